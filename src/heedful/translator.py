"""What `import heedful` offers: train a model, load one, translate and evaluate with it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.config import read_toml, validate
from heedful.errors import MissingExtra, UsageError
from heedful.evaluation.evaluate import evaluate
from heedful.evaluation.report import Report
from heedful.runtime.engine import DEFAULT_BATCH_TOKENS, Backend, decode_sorted
from heedful.runtime.exported import find_exported, named_engine
from heedful.runtime.folder import CONFIG, ModelFolder, open_folder
from heedful.search.config import SearchConfig, with_outputs
from heedful.search.demands import Demand
from heedful.search.interface import Hypothesis
from heedful.text.corpus import find_pairs
from heedful.text.links import format_pharaoh, links_from_weights, merge_pieces
from heedful.text.prepare import EvaluationSet
from heedful.text.tokenizer import TextConfig, Tokenizer, load_tokenizer
from heedful.text.vocabulary import EOS

if TYPE_CHECKING:
    from heedful.models.interface import Seq2Seq

WINDOW_LINES: Final = 2048
"""Lines sorted by length together; memory does not grow with the input."""


@dataclass(frozen=True)
class Alternative:
    """One output for a source."""

    text: str
    log_prob: float
    """Of the whole output, in nats."""
    score: float
    """What outputs are ranked by: log_prob after the length penalty."""


@dataclass(frozen=True)
class Translation:
    """The best output for a source, and what is known of it."""

    source: str
    text: str
    log_prob: float
    score: float
    alternatives: tuple[Alternative, ...]
    """All outputs asked for, best first; the first is this one."""
    source_pieces: tuple[str, ...] = ()
    """Tokens of the source as the model saw them, eos included; where attention was asked for."""
    target_pieces: tuple[str, ...] = ()
    """Tokens of the output, eos included where the model ended it."""
    attention: NDArray[np.float32] | None = None
    """[target piece, source piece] weights."""
    alignment: tuple[tuple[int, int], ...] | None = None
    """Links (source word, target word), 0-based."""
    was_cut: bool = False
    """Whether the source was longer than the model takes, and its end left out."""

    def pharaoh(self) -> str:
        """Write the alignment as ``0-0 1-2``.

        Returns:
            Source-target links; empty where there are none.
        """
        return format_pharaoh(self.alignment or ())


@final
class Translator:
    """A loaded model."""

    def __init__(self, folder: ModelFolder, device: str = "cpu", engine: str = "torch") -> None:
        """Open a model's tokenizers, and its weights when first used.

        Args:
            folder: a verified model folder.
            device: where PyTorch computes, such as cpu or cuda; "auto" takes a CUDA device where there is one.
            engine: what computes: torch, the name of an exported engine, or "auto": for each search the fastest one
                that gives the model's own answers.
        """
        tree = read_toml(folder.path / CONFIG)
        self.folder: Final = folder
        self.text: Final = validate(TextConfig, tree.get("text", {}), "text")
        self.search: Final = validate(SearchConfig, tree.get("search", {}), "search")
        units = (self.text.source_units, self.text.target_units)
        roles = ("source_tokenizer", "target_tokenizer")
        self.source_tokenizer, self.target_tokenizer = (
            load_tokenizer(folder.file(role), unit, self.text.normalization)
            for role, unit in zip(roles, units, strict=True)
        )
        self.exported: Final = find_exported(folder, self.text.max_tokens)
        if engine not in ("auto", "torch"):
            named_engine(self.exported, engine, folder)
        self._engine: Final = engine
        self._device = device
        self._backends: dict[str, Backend] = {}
        self._model: Seq2Seq | None = None

    @property
    def target_language(self) -> str:
        """Code of the target language, or empty."""
        return str(self.folder.facts.get("languages", ["", ""])[1])

    @property
    def backend(self) -> Backend:
        """What decodes by the model's own search settings; loaded on first use."""
        return self.backend_for(self.search)

    def backend_for(self, search: SearchConfig, attention: bool = False) -> Backend:
        """Give what decodes; loaded on first use.

        Args:
            search: beam, penalties and limits.
            attention: whether attention is wanted.

        Returns:
            The engine that was named; for "auto" the fastest one whose answers were found to be PyTorch's when it was
            exported and that searches so, PyTorch where there is none.

        Raises:
            MissingExtra: the package that runs it is not installed.
            FileRefused: the engine's files were changed.
        """
        if self._engine != "auto":
            return self._opened(self._engine)
        for name, exported in self.exported.items():
            if exported.fault or exported.facts.get("precision") != "float32" or not exported.parity.is_exact:
                continue
            if exported.why_not(search, attention):
                continue
            try:
                return self._opened(name)
            except MissingExtra:
                continue
        return self._opened("torch")

    def _opened(self, name: str) -> Backend:
        if name not in self._backends:
            most = self.text.max_tokens
            self._backends[name] = self._open_torch() if name == "torch" else self.exported[name].load(most)
        return self._backends[name]

    def _open_torch(self) -> Backend:
        """Load PyTorch and the model.

        Raises:
            MissingExtra: PyTorch is not installed.
            ModuleNotFoundError: a part of PyTorch or of heedful is missing.
        """
        try:
            from heedful.models.engine import torch_backend
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingExtra("PyTorch", "train", "running this model") from None
        return torch_backend(self.model(), self.text.max_tokens)

    def model(self) -> "Seq2Seq":
        """Give the PyTorch model, loaded on first use.

        Returns:
            The model in evaluation mode, always the same.
        """
        if self._model is None:
            from heedful.experiment import load_model

            sizes = len(self.source_tokenizer), len(self.target_tokenizer)
            self._model = load_model(self.folder, *sizes, self._torch_device())
        return self._model

    def _torch_device(self) -> str:
        if self._device != "auto":
            return self._device
        import torch

        return "cuda" if torch.cuda.is_available() else "cpu"

    def translate(
        self,
        texts: Iterable[str],
        *,
        beam: int = 0,
        nbest: int = 1,
        attention: bool = False,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        search: SearchConfig | None = None,
    ) -> list[Translation]:
        """Translate texts.

        Args:
            texts: one sentence each; an empty one gives an empty translation.
            beam: hypotheses carried per sentence; 0 = the model's default.
            nbest: outputs wanted for each.
            attention: whether to return attention and alignment.
            batch_tokens: most source positions times beam decoded together.
            search: all other settings; None = the model's own.

        Returns:
            One translation for each text, in order.

        Raises:
            UsageError: a single string was given, or the settings do not fit.
        """
        if isinstance(texts, str):
            raise UsageError("translate: expected a list of texts, got a string; put it into a list")
        config = with_outputs(search or self.search, beam, nbest)
        return list(self.stream(texts, config, attention, batch_tokens))

    def stream(
        self,
        texts: Iterable[str],
        search: SearchConfig,
        attention: bool = False,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        window_lines: int = WINDOW_LINES,
        first_index: int = 0,
    ) -> Iterator[Translation]:
        """Translate any number of texts in constant memory.

        Args:
            texts: one sentence each.
            search: beam, penalties and limits.
            attention: whether to return attention and alignment.
            batch_tokens: most source positions times beam decoded together.
            window_lines: texts sorted by length together; 1 answers each at once.
            first_index: number of the first text among all of the caller's, on which samples depend.

        Yields:
            One translation for each text, in order.
        """
        remaining = iter(texts)
        num_done = first_index
        while window := list(islice(remaining, window_lines)):
            yield from self._translate_window(window, search, attention, batch_tokens, num_done)
            num_done += len(window)

    def evaluate(self, *paths: str | Path, columns: tuple[int, int] = (1, 2), **settings: Any) -> Report:
        """Translate an evaluation file and score the output.

        Args:
            paths: a TSV or JSONL file, or two aligned files; rows of one source are its references.
            columns: 1-based columns of source and target.
            settings: passed to `heedful.evaluation.evaluate.evaluate`, such as metrics.

        Returns:
            Scores with signatures, by source length too.
        """
        items = EvaluationSet.of(find_pairs([Path(path) for path in paths], columns))
        outputs = [result.text for result in self.translate(items.sources)]
        language = settings.pop("target_language", self.target_language)
        return evaluate(outputs, items.references, items.sources, target_language=language, **settings)

    def _translate_window(
        self, texts: Sequence[str], search: SearchConfig, attention: bool, batch_tokens: int, first_index: int
    ) -> Iterator[Translation]:
        encoded = [encode_source(self.source_tokenizer, text, self.text) for text in texts]
        full = [index for index, (ids, _) in enumerate(encoded) if len(ids) > 1]
        ids = [encoded[index][0] for index in full]
        demands = [Demand(index=first_index + index) for index in full]
        backend = self.backend_for(search, attention)
        decoded = decode_sorted(
            backend, ids, search, batch_tokens=batch_tokens, need_alignment=attention, demands=demands
        )
        found = dict(zip(full, decoded, strict=True))
        for index, text in enumerate(texts):
            if index in found:
                yield self._finish(text, encoded[index][0], found[index], encoded[index][1])
            else:
                yield Translation(text, "", 0.0, 0.0, (Alternative("", 0.0, 0.0),))

    def _finish(
        self, text: str, ids: NDArray[np.int64], hypotheses: Sequence[Hypothesis], was_cut: bool
    ) -> Translation:
        alternatives = tuple(
            Alternative(self.target_tokenizer.decode(found.token_ids), found.log_prob, found.score)
            for found in hypotheses
        )
        best, hypothesis = alternatives[0], hypotheses[0]
        if hypothesis.weights is None:
            return Translation(text, best.text, best.log_prob, best.score, alternatives, was_cut=was_cut)
        ended = [EOS] if hypothesis.finish_reason == "eos" else []
        links = links_from_weights(hypothesis.weights, len(ids) - 1, len(hypothesis.token_ids))
        words = merge_pieces(
            links,
            self.source_tokenizer.word_indices(ids[:-1].tolist()),
            self.target_tokenizer.word_indices(hypothesis.token_ids),
        )
        return Translation(
            text,
            best.text,
            best.log_prob,
            best.score,
            alternatives,
            tuple(self.source_tokenizer.pieces(ids.tolist())),
            tuple(self.target_tokenizer.pieces([*hypothesis.token_ids, *ended])),
            hypothesis.weights,
            tuple(words),
            was_cut,
        )


def encode_source(tokenizer: Tokenizer, text: str, config: TextConfig) -> tuple[NDArray[np.int64], bool]:
    """Encode a source sentence, cut to what the model takes.

    Args:
        tokenizer: of the source side.
        text: any text; its length is bounded before tokenising, so that a huge line costs no huge time.
        config: the limits.

    Returns:
        [position] ids ending in eos (eos alone for blank text), and whether something was cut off.
    """
    if not text.strip():
        return np.array([EOS], dtype=np.int64), False
    # No piece is longer than 16 characters, so what is left out here could not have been kept below.
    most = 16 * config.max_tokens
    # A NUL ends a string in some libraries; to the model it is an unknown character all the same.
    ids = tokenizer.encode(text[:most].replace("\0", "\ufffd"))
    room = config.max_tokens - 1
    return np.array([*ids[:room], EOS], dtype=np.int64), len(ids) > room or len(text) > most


def load(path: str | Path, device: str = "cpu", engine: str = "torch") -> Translator:
    """Open a model folder.

    Args:
        path: made by `train`.
        device: where PyTorch computes.
        engine: what computes: torch, "auto" or the name of an exported engine; see `Translator`.

    Returns:
        The translator; weights load when first used.

    Raises:
        UsageError: there is no model there, or no such engine in it.
        FileRefused: a file was changed or is missing.
    """
    return Translator(open_folder(Path(path)), device, engine)
