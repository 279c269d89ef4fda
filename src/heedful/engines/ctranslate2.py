"""Backend for Transformers in CTranslate2, which runs its own beam search; no PyTorch.

CTranslate2's beam search differs from ours: it stops once `beam` outputs have ended, where ours continues while a live
hypothesis scores higher (`heedful.search.beam`), and it redistributes the probability of banned tokens over the others.
Greedy search is the same in both. CTranslate2 is therefore chosen automatically for greedy search only, and used for a
beam only if the user names it (docs/decisions/0010-beams-of-ctranslate2-by-name.md). Anything else is refused, because
an engine must not change results silently.
"""

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.cpu.contention import contention_watch
from heedful.engines.engine import Backend
from heedful.errors import FileRefused, needed_for
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.forced import ForcedDecoding
from heedful.search.inputs import Sources, token_sequences
from heedful.search.interface import Hypothesis
from heedful.search.penalties import length_score
from heedful.search.search_state import max_lengths
from heedful.text.vocabulary import BOS, EOS, PAD, UNK

IntArray = NDArray[np.int64]

SHORTLIST: Final = "vmap.txt"
"""CTranslate2's name of the file of a vocabulary shortlist."""
_MARKS: Final = {PAD: "<pad>", UNK: "<unk>", BOS: "<s>", EOS: "</s>"}
_DEFAULTS: Final = SearchConfig()
_OURS: Final = {
    "repetition_penalty": "takes repetition for another thing",
    "no_repeat_ngram_size": "bans other repeats in a beam",
    "min_length": "counts a least length otherwise",
    "beta": "has another coverage penalty",
}
"""Search settings that CTranslate2 lacks or defines differently, and the difference."""
_BATCH_TOKENS: Final = 4096
"""Maximum of source tokens times hypotheses in a CTranslate2 batch: larger batches do not fit into the cache."""
_OURS_OF_BEAMS: Final = {
    "num_groups": "has no groups in a beam",
    "stopping": "does not prove that nothing better follows",
    "length_penalty": "has another length penalty",
    "length_reward": "has no reward for length",
}


def token_names(num_tokens: int) -> list[str]:
    """Return the names that stand for our token ids in CTranslate2.

    Returns:
        One name per id.

    Example:
        >>> token_names(6)
        ['<pad>', '<unk>', '<s>', '</s>', '4', '5']
    """
    return names_of(range(num_tokens))


def names_of(ids: Sequence[int] | IntArray) -> list[str]:
    """Return the names of token ids in CTranslate2.

    Args:
        ids: token ids.

    Returns:
        One name per id.

    Example:
        >>> names_of([5, 3])
        ['5', '</s>']
    """
    return [_MARKS.get(int(token), str(int(token))) for token in ids]


def ids_of(names: Sequence[str]) -> list[int]:
    """Return the token ids of names in CTranslate2.

    Args:
        names: names from `names_of`.

    Returns:
        One id per name.

    Raises:
        ValueError: a name is not one of them.

    Example:
        >>> ids_of(["5", "</s>"])
        [5, 3]
    """
    marks = {name: token for token, name in _MARKS.items()}
    return [marks[name] if name in marks else int(name) for name in names]


def why_not(config: SearchConfig, need_alignment: bool, is_named: bool = False) -> str | None:
    """Say whether CTranslate2 supports a search, without loading a model.

    Args:
        config: beam, penalties and limits.
        need_alignment: whether attention weights are needed.
        is_named: whether the user named CTranslate2, and so accepts its own beam search.

    Returns:
        None if it does, else the reason why not.
    """
    if config.method != "beam":
        return "draws other samples than heedful does"
    if need_alignment:
        return "its attention is not the model's; use another engine for alignments"
    if config.beam > 1 and not is_named:
        return "stops a beam where heedful goes on, and may find other outputs; greedy search, --beam 1, is the same"
    for name, reason in (_OURS if config.beam == 1 else _OURS | _OURS_OF_BEAMS).items():
        if getattr(config, name) != getattr(_DEFAULTS, name):
            return f"{reason}: search.{name}"
    return None


@final
class CTranslate2(Backend):
    """Backend that searches in CTranslate2."""

    # CTranslate2 sorts sources and makes batches itself.
    has_own_batches = True

    def __init__(self, name: str, folder: Path, max_length: int, threads: int = 0, is_named: bool = False) -> None:
        """Load a model.

        Args:
            max_length: maximum number of tokens of an output, EOS included.
            threads: number of threads; 0 = OMP_NUM_THREADS, or CTranslate2's own choice if that is not set. While
                other programs are in the way, it is one, unless the user has set the number: CTranslate2 divides each
                operation between its threads, and so waits for the one that has no processor.
            is_named: whether the user named CTranslate2, and so accepts its own beam search.

        Raises:
            FileRefused: the model cannot be read.
        """
        num_threads = os.environ.get("OMP_NUM_THREADS", "")
        number = threads or (int(num_threads) if num_threads.isdecimal() else 0)
        self.name = name
        self._folder: Final = folder
        self._max_length: Final = max_length
        self._is_named: Final = is_named
        self.has_shortlist = (folder / SHORTLIST).is_file()
        self._whole: Final[Any] = self._open(number)
        self._single: Any = None

    def _open(self, threads: int) -> Any:
        with needed_for("running a model in CTranslate2"):
            import ctranslate2

        try:
            return ctranslate2.Translator(str(self._folder), device="cpu", intra_threads=threads)
        except (RuntimeError, ValueError) as error:
            raise FileRefused(f"{self._folder}: not readable: {error}; export the model again") from None

    @property
    def _translator(self) -> Any:
        """CTranslate2 with as many threads as are best now; that of one is opened when it is first needed."""
        watch = contention_watch()
        if watch is None or not watch.asks_for_one:
            return self._whole
        if self._single is None:
            self._single = self._open(1)
        return self._single

    def supports(self, config: SearchConfig, need_alignment: bool) -> str | None:
        return why_not(config, need_alignment, self._is_named)

    def decode(
        self,
        sources: Sources,
        config: SearchConfig,
        need_alignment: bool = False,
        cancelled: Callable[[], bool] | None = None,
        constraints: Sequence[Constraints] | None = None,
    ) -> list[list[Hypothesis]]:
        source_ids = token_sequences(sources)
        if len(source_ids) == 0:
            return []
        if cancelled is not None and cancelled():
            return [[Hypothesis((), 0.0, 0.0, (), "cancelled")] for _ in source_ids]
        lengths = np.array([max(0, len(ids) - 1) for ids in source_ids], dtype=np.int64)
        most = max_lengths(lengths, config, self._max_length).tolist()
        never = {PAD, BOS, UNK} if config.forbid_unknown else {PAD, BOS}
        results = [
            [
                _hypothesis(ids[:limit], log_prob if len(ids) <= limit else np.nan, config)
                for ids, log_prob in hypotheses
            ]
            for hypotheses, limit in zip(self._search(source_ids, max(most), config), most, strict=True)
        ]
        # Tokens are banned only in a second search for outputs that contain them: banning takes time, and redistributes
        # the probability of banned tokens over the others.
        wrong = [
            row
            for row, hypotheses in enumerate(results)
            if any(not never.isdisjoint(one.token_ids) for one in hypotheses)
        ]
        if wrong:
            again = self._search([source_ids[row] for row in wrong], max(most), config, never)
            for row, hypotheses in zip(wrong, again, strict=True):
                results[row] = [_hypothesis(ids[: most[row]], np.nan, config) for ids, _ in hypotheses]
        self._score_missing(source_ids, results, config)
        for row, ids in enumerate(source_ids):
            if len(ids) <= 1:
                # CTranslate2 does not accept a source of EOS alone; the output of a blank line is empty.
                results[row] = [Hypothesis((), 0.0, 0.0, (), "eos")]
        return [sorted(hypotheses, key=lambda one: -one.score) for hypotheses in results]

    def _search(
        self, source_ids: Sequence[IntArray], most: int, config: SearchConfig, never: Collection[int] = ()
    ) -> list[list[tuple[list[int], float]]]:
        """Outputs, including EOS if they ended, and their log probabilities by CTranslate2.

        A call has one length limit for all sources; the caller cuts each output to the limit of its own source. This
        does not change greedy search, which never looks ahead; CTranslate2's beam search differs from ours anyway.
        """
        is_greedy = config.beam == 1
        translations = self._translator.translate_batch(
            [names_of(ids) for ids in source_ids],
            beam_size=config.beam,
            num_hypotheses=config.nbest,
            max_batch_size=_BATCH_TOKENS // max(2, config.beam),
            batch_type="tokens",
            length_penalty=0.0 if is_greedy else config.alpha,
            max_decoding_length=most,
            min_decoding_length=0,
            use_vmap=config.shortlist and self.has_shortlist,
            max_input_length=0,
            return_scores=True,
            return_end_token=True,
            suppress_sequences=[[_MARKS[token]] for token in sorted(never)] or None,
        )
        outputs = [
            [(ids_of(names), score) for names, score in zip(each.hypotheses, each.scores, strict=True)]
            for each in translations
        ]
        if is_greedy:
            return outputs
        return [[(ids, score * max(1, len(ids)) ** config.alpha) for ids, score in each] for each in outputs]

    def _score_missing(
        self, source_ids: Sequence[IntArray], results: list[list[Hypothesis]], config: SearchConfig
    ) -> None:
        """Score the outputs that have no log probability, because they were cut or searched with banned tokens."""
        missing = [
            (row, rank)
            for row, hypotheses in enumerate(results)
            for rank, one in enumerate(hypotheses)
            if np.isnan(one.log_prob)
        ]
        if not missing:
            return
        outputs = [_with_end(results[row][rank]) for row, rank in missing]
        decodings = self.score([source_ids[row] for row, _ in missing], outputs)
        for (row, rank), ids, decoding in zip(missing, outputs, decodings, strict=True):
            results[row][rank] = _hypothesis(ids, float(decoding.log_probs.sum()), config)

    def supports_scoring(self, need_alignment: bool) -> str | None:
        return "gives no attention" if need_alignment else None

    def score(
        self, sources: Sources, outputs: Sequence[Sequence[int]], need_alignment: bool = False
    ) -> list[ForcedDecoding]:
        # CTranslate2 appends EOS to each target and returns its log probability last.
        targets = [names_of(ids[:-1] if len(ids) and ids[-1] == EOS else ids) for ids in outputs]
        scored = self._translator.score_batch(
            [names_of(ids) for ids in token_sequences(sources)],
            targets,
            max_batch_size=_BATCH_TOKENS,
            batch_type="tokens",
            max_input_length=0,
        )
        return [
            ForcedDecoding(np.array(each.log_probs[: len(ids)], dtype=np.float64))
            for each, ids in zip(scored, outputs, strict=True)
        ]


def ctranslate2_backend(name: str, folder: Path, max_length: int, is_named: bool = False) -> Backend:
    """Create a CTranslate2 backend.

    Args:
        max_length: maximum number of tokens of an output, EOS included.
        is_named: whether the user named CTranslate2, and so accepts its own beam search.
    """
    return CTranslate2(name, folder, max_length, is_named=is_named)


def _with_end(hypothesis: Hypothesis) -> list[int]:
    return [*hypothesis.token_ids, EOS] if hypothesis.finish_reason == "eos" else [*hypothesis.token_ids]


def _hypothesis(ids: Sequence[int], log_prob: float, config: SearchConfig) -> Hypothesis:
    has_ended = len(ids) > 0 and ids[-1] == EOS
    score = float(length_score(log_prob, len(ids), config))
    tokens = tuple(ids[:-1] if has_ended else ids)
    # CTranslate2's search does not return log probabilities of single tokens.
    return Hypothesis(tokens, float(log_prob), score, (), "eos" if has_ended else "length")
