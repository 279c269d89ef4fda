"""A Transformer in CTranslate2, which searches by itself; no PyTorch.

Its beam search is not ours: it stops once `beam` outputs have ended, where ours goes on while a live hypothesis scores
higher (`heedful.search.beam`), and where tokens are banned it spreads their probability over the others. So it is taken
by itself for greedy search alone, which both do alike, and for a beam only where it is named
(docs/decisions/0010-beams-of-ctranslate2-by-name.md); all else is refused, for an engine never changes an answer
silently.
"""

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import FileRefused
from heedful.runtime.engine import Backend
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.forced import ForcedDecoding
from heedful.search.inputs import Sources, token_sequences
from heedful.search.interface import Hypothesis
from heedful.search.penalties import length_score
from heedful.search.search_state import max_lengths
from heedful.text.vocabulary import BOS, EOS, PAD, UNK

IntArray = NDArray[np.int64]

_MARKS: Final = {PAD: "<pad>", UNK: "<unk>", BOS: "<s>", EOS: "</s>"}
_DEFAULTS: Final = SearchConfig()
_OURS: Final = {
    "repetition_penalty": "takes repetition for another thing",
    "no_repeat_ngram_size": "bans other repeats in a beam",
    "min_length": "counts a least length otherwise",
    "beta": "has another coverage penalty",
}
"""What CTranslate2 has not, or means otherwise."""
_BATCH_TOKENS: Final = 4096
"""Source tokens times hypotheses that CTranslate2 takes together of what it is given: more are slower, out of cache."""
_OURS_OF_BEAMS: Final = {
    "num_groups": "has no groups in a beam",
    "stopping": "does not prove that nothing better follows",
    "length_penalty": "has another length penalty",
    "length_reward": "has no reward for length",
}


def token_names(num_tokens: int) -> list[str]:
    """Name the tokens of a vocabulary as CTranslate2 is told of them.

    Args:
        num_tokens: how many.

    Returns:
        A name for each id.

    Example:
        >>> token_names(6)
        ['<pad>', '<unk>', '<s>', '</s>', '4', '5']
    """
    return [_MARKS.get(token, str(token)) for token in range(num_tokens)]


def why_not(config: SearchConfig, need_alignment: bool, is_named: bool = False) -> str | None:
    """Say whether CTranslate2 searches exactly as asked; no model is needed to know.

    Args:
        config: beam, penalties and limits.
        need_alignment: whether attention is wanted.
        is_named: whether the user asked for CTranslate2, and so for its own way with a beam.

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
    """Searches in CTranslate2."""

    # It sorts and cuts what it is given by itself, and what is over from one batch goes into the next.
    has_own_batches = True

    def __init__(self, name: str, folder: Path, max_length: int, threads: int = 0, is_named: bool = False) -> None:
        """Load a model.

        Args:
            name: what the backend is called.
            folder: of the model.
            max_length: most tokens of an output, end mark included.
            threads: processor threads; 0 = what OMP_NUM_THREADS says, or else CTranslate2's own choice.
            is_named: whether the user asked for CTranslate2, and so for its own way with a beam.

        Raises:
            FileRefused: it cannot be read.
        """
        import ctranslate2

        asked = os.environ.get("OMP_NUM_THREADS", "")
        number = threads or (int(asked) if asked.isdecimal() else 0)
        self.name = name
        self._max_length: Final = max_length
        self._is_named: Final = is_named
        try:
            self._translator: Final[Any] = ctranslate2.Translator(str(folder), device="cpu", intra_threads=number)
        except (RuntimeError, ValueError) as error:
            raise FileRefused(f"{folder}: not readable: {error}; export the model again") from None

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
        lengths = np.array([max(0, len(ids) - 1) for ids in source_ids], dtype=np.int64)
        most = max_lengths(lengths, config, self._max_length).tolist()
        never = {PAD, BOS, UNK} if config.forbid_unknown else {PAD, BOS}
        results = [
            [_hypothesis(ids[:cap], log_prob if len(ids) <= cap else np.nan, config) for ids, log_prob in found]
            for found, cap in zip(self._search(source_ids, max(most), config), most, strict=True)
        ]
        # Banning tokens beforehand takes time, and spreads their probability over the others.
        wrong = [row for row, found in enumerate(results) if any(not never.isdisjoint(one.token_ids) for one in found)]
        if wrong:
            again = self._search([source_ids[row] for row in wrong], max(most), config, never)
            for row, found in zip(wrong, again, strict=True):
                results[row] = [_hypothesis(ids[: most[row]], np.nan, config) for ids, _ in found]
        self._read_again(source_ids, results, config)
        for row, ids in enumerate(source_ids):
            if len(ids) <= 1:
                # Nothing but an end mark is no source to CTranslate2; the output is empty, as that of a blank line is.
                results[row] = [Hypothesis((), 0.0, 0.0, (), "eos")]
        return [sorted(found, key=lambda one: -one.score) for found in results]

    def _search(
        self, source_ids: Sequence[IntArray], most: int, config: SearchConfig, never: Collection[int] = ()
    ) -> list[list[tuple[list[int], float]]]:
        """Outputs, with an end mark where they ended, and the log probabilities that CTranslate2 gives them.

        A batch has one cap: what goes on beyond a source's own is to be cut, for greedy search never looks ahead, and
        how a beam ends is CTranslate2's own affair.
        """
        is_greedy = config.beam == 1
        found = self._translator.translate_batch(
            [_named(ids) for ids in source_ids],
            beam_size=config.beam,
            num_hypotheses=config.nbest,
            max_batch_size=_BATCH_TOKENS // max(2, config.beam),
            batch_type="tokens",
            length_penalty=0.0 if is_greedy else config.alpha,
            max_decoding_length=most,
            min_decoding_length=0,
            max_input_length=0,
            return_scores=True,
            return_end_token=True,
            suppress_sequences=[[_MARKS[token]] for token in sorted(never)] or None,
        )
        outputs = [
            [(_ids(names), score) for names, score in zip(each.hypotheses, each.scores, strict=True)] for each in found
        ]
        if is_greedy:
            return outputs
        return [[(ids, score * max(1, len(ids)) ** config.alpha) for ids, score in each] for each in outputs]

    def _read_again(
        self, source_ids: Sequence[IntArray], results: list[list[Hypothesis]], config: SearchConfig
    ) -> None:
        """Give log probabilities to the outputs that have none: those that were cut or searched with bans."""
        places = [
            (row, rank) for row, found in enumerate(results) for rank, one in enumerate(found) if np.isnan(one.log_prob)
        ]
        if not places:
            return
        outputs = [_with_end(results[row][rank]) for row, rank in places]
        read = self.read([source_ids[row] for row, _ in places], outputs)
        for (row, rank), ids, found in zip(places, outputs, read, strict=True):
            results[row][rank] = _hypothesis(ids, float(found.log_probs.sum()), config)

    def supports_reading(self, need_alignment: bool) -> str | None:
        return "gives no attention" if need_alignment else None

    def read(
        self, sources: Sources, outputs: Sequence[Sequence[int]], need_alignment: bool = False
    ) -> list[ForcedDecoding]:
        # It adds an end mark of its own, whose log probability is its last.
        targets = [_named(ids[:-1] if len(ids) and ids[-1] == EOS else ids) for ids in outputs]
        scored = self._translator.score_batch(
            [_named(ids) for ids in token_sequences(sources)],
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
    """Hold a model in CTranslate2 as a backend.

    Args:
        name: what the backend is called.
        folder: of the model.
        max_length: most tokens of an output, end mark included.
        is_named: whether the user asked for CTranslate2, and so for its own way with a beam.

    Returns:
        The backend.
    """
    return CTranslate2(name, folder, max_length, is_named=is_named)


def _named(ids: Sequence[int] | IntArray) -> list[str]:
    return [_MARKS.get(int(token), str(int(token))) for token in ids]


def _ids(names: Sequence[str]) -> list[int]:
    marks = {name: token for token, name in _MARKS.items()}
    return [marks[name] if name in marks else int(name) for name in names]


def _with_end(found: Hypothesis) -> list[int]:
    return [*found.token_ids, EOS] if found.finish_reason == "eos" else [*found.token_ids]


def _hypothesis(ids: Sequence[int], log_prob: float, config: SearchConfig) -> Hypothesis:
    has_ended = len(ids) > 0 and ids[-1] == EOS
    score = float(length_score(log_prob, len(ids), config))
    tokens = tuple(ids[:-1] if has_ended else ids)
    # The log probabilities of single tokens are not told.
    return Hypothesis(tokens, float(log_prob), score, (), "eos" if has_ended else "length")
