"""Phrases of several tokens: how far hypotheses have begun them, and which they contain.

Everything is computed from the tokens of the hypotheses at every step, so that no state has to be stored and reordered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.search.interface import IntArray

BoolArray = NDArray[np.bool_]

FILLING: Final = -1
"""Padding of token arrays; no token is negative."""

_BEYOND: Final = -2
"""Padding past the end of a hypothesis; equal to neither a token nor `FILLING`."""


def laid_out(rows: Sequence[Sequence[int]]) -> IntArray:
    """Write sequences of ids into one padded array.

    Args:
        rows: ids; one row or more.

    Returns:
        [row, position] ids, at least one position, `FILLING` behind the shorter rows.

    Example:
        >>> laid_out([[4, 5], []]).tolist()
        [[4, 5], [-1, -1]]
    """
    filled = np.full((len(rows), max(1, *(len(row) for row in rows))), FILLING, dtype=np.int64)
    for index, row in enumerate(rows):
        filled[index, : len(row)] = row
    return filled


@final
@dataclass(frozen=True, slots=True)
class Phrases:
    """Phrases of each row, as padded arrays.

    Attributes:
        ids: [row, phrase, position] tokens, then `FILLING`; one position or more.
        lengths: [row, phrase] tokens of each phrase; 0 where a row has no further phrase.
    """

    ids: IntArray
    lengths: IntArray

    @staticmethod
    def of(phrases: Sequence[Sequence[Sequence[int]]]) -> "Phrases":
        """Write the phrases of each row into arrays.

        Args:
            phrases: for each row its phrases; one row or more, and no phrase is empty.
        """
        num_phrases = max(len(row) for row in phrases)
        filled = [phrase for row in phrases for phrase in [*row, *[()] * (num_phrases - len(row))]]
        ids = laid_out(filled) if filled else np.empty((0, 1), dtype=np.int64)
        ids = ids.reshape(len(phrases), num_phrases, -1) if num_phrases else np.empty((len(phrases), 0, 1), np.int64)
        return Phrases(ids, (ids != FILLING).sum(axis=2))

    def select(self, rows: IntArray) -> "Phrases":
        """Select rows.

        Args:
            rows: [picked] rows; one may be picked again.
        """
        return Phrases(self.ids[rows], self.lengths[rows])

    def begun(self, token_ids: IntArray) -> BoolArray:
        """Find the beginnings of phrases that hypotheses end in.

        Args:
            token_ids: [row, hypothesis, step] tokens.

        Returns:
            [row, hypothesis, phrase, position] True where the last `position` tokens are the phrase's first ones, and
            the phrase goes on after them; so at position 0 for every phrase.
        """
        num_steps, most = token_ids.shape[2], self.ids.shape[2]
        begun = np.zeros((*token_ids.shape[:2], *self.ids.shape[1:]), dtype=np.bool_)
        for position in range(min(most, num_steps + 1)):
            ending = token_ids[:, :, None, num_steps - position :]
            is_same = (ending == self.ids[:, None, :, :position]).all(axis=3)
            begun[..., position] = is_same & (self.lengths[:, None, :] > position)
        return begun

    def ended(self, token_ids: IntArray) -> BoolArray:
        """Find the phrases that hypotheses end in.

        Args:
            token_ids: [row, hypothesis, step] tokens.

        Returns:
            [row, hypothesis, phrase] True where the last tokens are the phrase; False for a phrase of no tokens.
        """
        num_steps, most = token_ids.shape[2], self.ids.shape[2]
        ended = np.zeros((*token_ids.shape[:2], self.ids.shape[1]), dtype=np.bool_)
        for length in range(1, min(most, num_steps) + 1):
            ending = token_ids[:, :, None, num_steps - length :]
            is_same = (ending == self.ids[:, None, :, :length]).all(axis=3)
            ended |= is_same & (self.lengths[:, None, :] == length)
        return ended

    def complete(self, token_ids: IntArray) -> BoolArray:
        """Find the phrases that hypotheses contain.

        Args:
            token_ids: [row, hypothesis, step] tokens.

        Returns:
            [row, hypothesis, phrase] True where the phrase occurs, and for a phrase of no tokens.
        """
        num_rows, num_hypotheses, num_steps = token_ids.shape
        most = self.ids.shape[2]
        beyond = np.full((num_rows, num_hypotheses, most), _BEYOND, dtype=np.int64)
        padded = np.concatenate([token_ids, beyond], axis=2)[:, :, None, :]
        # One start more than there are steps, for a phrase of no tokens in a hypothesis of none.
        stands = np.ones((num_rows, num_hypotheses, self.ids.shape[1], num_steps + 1), dtype=np.bool_)
        for position in range(most):
            wanted = self.ids[:, None, :, position, None]
            stands &= (padded[..., position : position + num_steps + 1] == wanted) | (wanted == FILLING)
        return np.logical_or.reduce(stands, axis=3)

    def reached(self, begun: BoolArray, parents: IntArray, ids: IntArray) -> BoolArray:
        """Find the beginnings of phrases that hypotheses end in once a token is appended.

        Args:
            begun: [row, hypothesis, phrase, position] from `begun`.
            parents: [row, candidate] the hypothesis that is extended.
            ids: [row, candidate] the appended token.

        Returns:
            [row, candidate, phrase, position] True where the phrase's first `position` + 1 tokens, perhaps all, end it.
        """
        rows = np.arange(parents.shape[0])[:, None]
        is_next: BoolArray = self.ids[:, None] == ids[:, :, None, None]
        return begun[rows, parents] & is_next
