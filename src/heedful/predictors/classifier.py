"""Classifier: a loaded model that assigns a label to each text."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.config import read_toml, validate
from heedful.data.corpus import find_pairs
from heedful.data.labelled import LabelledTexts
from heedful.data.rows import Columns
from heedful.errors import DataError, FileRefused, MissingExtra, UsageError, needed_for
from heedful.evaluation.labels import LabelReport, score_labels
from heedful.pages.attention_map import AttentionMap
from heedful.predictors.interface import Predictor
from heedful.regular_files import MOST_BULK_BYTES, read_json
from heedful.runtime.exported import ENGINES, find_exported, named_engine
from heedful.runtime.folder import CONFIG, ModelFolder
from heedful.runtime.label_arrays import Floats, LabelRun
from heedful.runtime.labels import open_label_graphs, run_labels
from heedful.runtime.scored_pairs import encode_source
from heedful.search.inputs import TokenArrays
from heedful.text.quoting import shortened
from heedful.text.tokenizer import TextConfig
from heedful.text.tokenizer_files import load_tokenizer

if TYPE_CHECKING:
    from heedful.models.label_model import LabelModel

WINDOW_TEXTS: Final = 2048
"""Number of texts that are sorted by length together, so that memory does not grow with the input."""


@final
@dataclass(frozen=True)
class Classification:
    """Label of a text, with the probabilities of all labels."""

    text: str
    label: str
    probability: float
    """Probability of `label`, in [0, 1]."""
    probabilities: dict[str, float]
    """Probability of every label, the most probable first."""
    pieces: tuple[str, ...] = ()
    """Tokens of the text as the model saw them, EOS included."""
    attention: NDArray[np.float32] | None = None
    """[piece] weights; None from a model without attention."""
    was_cut: bool = False
    """Whether the text exceeded the model's length limit and was truncated."""

    def __repr__(self) -> str:
        return f"<Classification {shortened(self.text)} -> {self.label!r}, probability {self.probability:.4f}>"


@final
@dataclass(frozen=True, eq=False)
class EncodedText:
    """Text and its vector."""

    text: str
    vector: Floats
    """[size] float32 input of the model's label layer."""
    was_cut: bool = False
    """Whether the text exceeded the model's length limit and was truncated."""


@final
class Classifier(Predictor):
    """Loaded text classifier."""

    def __init__(
        self, folder: ModelFolder, device: str = "cpu", engine: str = "auto", ensemble: Sequence[ModelFolder] = ()
    ) -> None:
        """Load a model's tokenizer and labels; its weights are loaded on first use.

        Args:
            folder: a verified model folder.
            device: PyTorch device, such as cpu or cuda; "auto" takes a CUDA device where there is one.
            engine: torch; onnx, if `heedful export` wrote it; or "auto": onnx where its results equal PyTorch's and
                ONNX Runtime is installed, else torch.
            ensemble: must be empty; part of the signature that all predictors share.

        Raises:
            UsageError: there is no such engine, or the ensemble is not empty.
            FileRefused: the list of labels is damaged.
        """
        if ensemble:
            raise UsageError(f"{folder.path}: a classifier runs alone; leave the ensemble out")
        self.folder = folder
        self.text: Final = validate(TextConfig, read_toml(folder.path / CONFIG).get("text", {}), "text")
        self.tokenizer: Final = load_tokenizer(
            folder.file("tokenizer"), self.text.source_units, self.text.normalization
        )
        try:
            names = read_json(folder.file("labels"), MOST_BULK_BYTES)
        except OSError as error:
            raise FileRefused(f"{folder.file('labels')}: not readable: {error}") from None
        if not isinstance(names, list):
            raise FileRefused(f"{folder.file('labels')}: damaged: not a list of labels; copy the folder again")
        self.labels: Final[tuple[str, ...]] = tuple(map(str, names))
        self.exported: Final = find_exported(folder, self.text.max_tokens)
        if engine in ENGINES and engine != "onnx":
            raise UsageError(f"engine {engine}: not for classifiers; take onnx, torch or auto")
        if engine not in ("auto", "torch"):
            named_engine(self.exported, engine, folder)
        self._engine: Final = engine
        self._device: Final = device
        self._run: LabelRun | None = None
        self._model: LabelModel | None = None

    def __repr__(self) -> str:
        labels = f"{len(self.labels):,} labels"
        return (
            f"<Classifier {str(self.folder.path)!r}: {self.folder.facts.get('kind')}, {labels}, engine {self._engine}>"
        )

    def model(self) -> "LabelModel":
        """Return the PyTorch model, loaded on first use.

        Returns:
            The model in evaluation mode, the same object at every call.

        Raises:
            MissingExtra: PyTorch is not installed.
            FileRefused: the folder holds a model of another task.
        """
        if self._model is None:
            with needed_for("running this model"):
                from heedful.models.label_model import LabelModel
                from heedful.models.store import load_model
            model = load_model(self.folder, (len(self.tokenizer), len(self.labels)), self._device)
            if not isinstance(model, LabelModel):
                raise FileRefused(f"{self.folder.path}: its model is no classifier")
            self._model = model
        return self._model

    def classify(self, texts: Iterable[str]) -> list[Classification]:
        """Classify texts.

        Args:
            texts: any texts; a blank one is classified like any other.

        Returns:
            One classification for each text, in order.

        Raises:
            UsageError: a single string was given.

        Example:
            >>> load("reviews.model", kind=Classifier).classify(["A quiet room"])[0].label  # doctest: +SKIP
            'good'
        """
        if isinstance(texts, str):
            raise UsageError("classify: expected a list of texts, got a string; put it into a list")
        return list(self.stream(texts))

    def stream(self, texts: Iterable[str], window_texts: int = WINDOW_TEXTS) -> Iterator[Classification]:
        """Classify any number of texts in constant memory.

        Args:
            texts: any texts.
            window_texts: number of texts that are sorted by length together; 1 yields each result at once.

        Yields:
            One classification for each text, in order.
        """
        run, remaining = self._label_run(), iter(texts)
        while window := list(islice(remaining, window_texts)):
            encoded = [encode_source(self.tokenizer, text, self.text) for text in window]
            log_probs, _, attention = run_labels(run, TokenArrays([ids for ids, _ in encoded]))
            for text, (ids, was_cut), row, weights in zip(window, encoded, log_probs, attention, strict=True):
                order = np.argsort(-row, kind="stable")
                shares = {self.labels[index]: float(np.exp(row[index])) for index in order}
                label = self.labels[order[0]]
                pieces = tuple(self.tokenizer.pieces(ids.tolist()))
                yield Classification(text, label, shares[label], shares, pieces, weights, was_cut)

    def encode(self, texts: Iterable[str], window_texts: int = WINDOW_TEXTS) -> Iterator[EncodedText]:
        """Encode texts as vectors, for search by similarity or as input of other models.

        Args:
            texts: any texts.
            window_texts: number of texts that are sorted by length together.

        Yields:
            The vector of each text, in order.
        """
        run, remaining = self._label_run(), iter(texts)
        while window := list(islice(remaining, window_texts)):
            encoded = [encode_source(self.tokenizer, text, self.text) for text in window]
            _, vectors, _ = run_labels(run, TokenArrays([ids for ids, _ in encoded]))
            for text, vector, (_, was_cut) in zip(window, vectors, encoded, strict=True):
                yield EncodedText(text, vector, was_cut)

    def _label_run(self) -> LabelRun:
        """Return the function that computes label probabilities, loaded on first use."""
        if self._run is None:
            self._run = self._graph()
        if self._run is None:
            model = self.model()
            from heedful.models.label_model import label_run

            self._run = label_run(model)
        return self._run

    def _graph(self) -> LabelRun | None:
        """Return the exported graph if the engine is onnx, or is "auto" and the graph's results equal PyTorch's.

        Raises:
            MissingExtra: the engine is onnx, and ONNX Runtime is not installed.
        """
        exported = self.exported.get("onnx")
        if self._engine == "torch" or exported is None:
            return None
        if self._engine == "auto" and (exported.fault or not exported.parity.is_exact):
            return None
        exported.verify()
        try:
            return open_label_graphs(exported.path)
        except MissingExtra:
            if self._engine != "auto":
                raise
            return None

    def evaluate(self, *paths: str | Path, columns: Columns = (1, 2)) -> LabelReport:
        """Classify the texts of a file and compare with its labels, as `heedful evaluate` does.

        Args:
            paths: one file of texts and labels, of any format that `heedful.data.corpus.find_pairs` reads, or two
                aligned files.
            columns: columns of text and label, by 1-based number or by name.

        Returns:
            Accuracy, macro-F1 and scores of each label.
        """
        return self.measure_files(tuple(Path(path) for path in paths), columns)

    def measure(self, items: Any) -> LabelReport:
        if not isinstance(items, LabelledTexts):
            raise TypeError(f"a classifier is measured on labelled texts, got {type(items).__name__}")
        return score_labels([classification.label for classification in self.stream(items.texts)], items.labels)

    def attention_maps(self, sources: Sequence[str]) -> list[AttentionMap]:
        return [
            AttentionMap(f"{one.text} → {one.label}", one.pieces, [one.label], [one.attention.tolist()])
            for one in self.classify(sources)
            if one.attention is not None
        ]

    def measure_files(self, paths: tuple[Path, ...], columns: Columns) -> LabelReport:
        items = LabelledTexts.of(find_pairs(paths, columns))
        if not len(items):
            raise DataError(f"{paths[0]}: no row has a text and a label; name their columns with --columns TEXT,LABEL")
        return self.measure(items)
