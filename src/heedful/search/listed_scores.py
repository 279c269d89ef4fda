"""Step scores over a vocabulary shortlist, seen as scores over the whole vocabulary."""

from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.search.interface import Adjust, FloatArray, IntArray, StepScores, WeightsArray


@final
class ListedScores(StepScores):
    """Scores whose columns are the listed tokens; every other token has log probability -inf."""

    def __init__(self, scores: StepScores, listed: IntArray, vocab_size: int) -> None:
        """Wrap scores.

        Args:
            scores: [source, hypothesis, listed] scores.
            listed: [listed] token ids, ascending.
        """
        self._scores: Final = scores
        self._listed: Final = listed
        self._vocab_size: Final = vocab_size

    def top(self, k: int, adjust: Adjust | None = None) -> tuple[FloatArray, IntArray]:
        values, columns = self._scores.top(k, None if adjust is None else self._of_columns(adjust))
        return values, self._listed[columns]

    def full(self) -> NDArray[np.floating]:
        listed = self._scores.full()
        scores = np.full((*listed.shape[:-1], self._vocab_size), -np.inf, dtype=listed.dtype)
        scores[..., self._listed] = listed
        return scores

    def of(self, sources: IntArray, hypotheses: IntArray, ids: IntArray) -> FloatArray:
        columns, is_listed = self._columns(ids)
        scores = np.full(ids.shape, -np.inf)
        scores[is_listed] = self._scores.of(sources[is_listed], hypotheses[is_listed], columns[is_listed])
        return scores

    @property
    def vocab_size(self) -> int:
        return self._vocab_size

    @property
    def weights(self) -> WeightsArray:
        return self._scores.weights

    def _columns(self, ids: IntArray) -> tuple[IntArray, NDArray[np.bool_]]:
        """Column of each token, and whether it has one."""
        columns = np.minimum(np.searchsorted(self._listed, ids), len(self._listed) - 1)
        return columns, self._listed[columns] == ids

    def _of_columns(self, adjust: Adjust) -> Adjust:
        """The same adjustment of columns; that of tokens without one is left out."""
        banned, is_banned = self._columns(adjust.banned)
        changed, is_changed = self._columns(adjust.ids)
        return Adjust(
            banned[is_banned],
            adjust.sources[is_changed],
            adjust.hypotheses[is_changed],
            changed[is_changed],
            adjust.values[is_changed],
        )
