"""The arrays of a running beam search: the live hypotheses, and what they offer next.

The rules are in `heedful.search.beam`. Everything is vectorised over rows; a row is a search of its own: a source that
is still searched, one group of its beam, or one of its samples. An offer or a hypothesis of log probability -inf is an
empty place.
"""

from dataclasses import dataclass
from typing import TypeVar, final

import numpy as np
from numpy.typing import NDArray

from heedful.search.config import SearchConfig
from heedful.search.interface import FloatArray, IntArray
from heedful.search.penalties import length_score
from heedful.text.vocabulary import EOS

BoolArray = NDArray[np.bool_]

Kind = TypeVar("Kind", bound=np.generic)


@final
@dataclass(frozen=True, slots=True)
class Candidates:
    """What the hypotheses of each row may become, best first.

    Attributes:
        log_probs: [row, offer] log probability of the whole hypothesis, less what repetition costs.
        token_log_probs: [row, offer] that of the token alone, as the model has it.
        parents: [row, offer] hypothesis that makes the offer.
        ids: [row, offer] token offered.
    """

    log_probs: FloatArray
    token_log_probs: FloatArray
    parents: IntArray
    ids: IntArray

    @property
    def exist(self) -> BoolArray:
        """[row, offer] whether the offer is possible."""
        return self.log_probs > -np.inf

    def take(self, order: IntArray) -> "Candidates":
        """Pick offers.

        Args:
            order: [row, chosen] offers of each row.

        Returns:
            Those offers, in that order.
        """
        rows = np.arange(order.shape[0])[:, None]
        return Candidates(
            self.log_probs[rows, order],
            self.token_log_probs[rows, order],
            self.parents[rows, order],
            self.ids[rows, order],
        )

    def first(self, most: int) -> "Candidates":
        """Pick the best offers.

        Args:
            most: how many of each row.

        Returns:
            Them, or all if fewer.
        """
        return Candidates(
            self.log_probs[:, :most], self.token_log_probs[:, :most], self.parents[:, :most], self.ids[:, :most]
        )

    def ending(self, beam: int, is_last: BoolArray) -> BoolArray:
        """Tell which offers end as finished hypotheses.

        Args:
            beam: hypotheses of a row.
            is_last: [row] whether the row is at its cap.

        Returns:
            [row, offer] True for those among the best `beam` that are EOS, or that stand at the cap.
        """
        in_beam = np.arange(self.ids.shape[1]) < beam
        return self.exist & in_beam & ((self.ids == EOS) | is_last[:, None])

    def going_on(self, beam: int, is_last: BoolArray) -> tuple[IntArray, BoolArray]:
        """Tell which offers live on.

        Args:
            beam: hypotheses of a row.
            is_last: [row] whether the row is at its cap.

        Returns:
            [row, hypothesis] the offer that takes each place, and whether there is one: the best `beam` that are not
            EOS, and none at the cap.
        """
        goes_on = self.exist & (self.ids != EOS) & ~is_last[:, None]
        chosen = np.argsort(~goes_on, axis=1, kind="stable")[:, :beam]
        return chosen, goes_on[np.arange(chosen.shape[0])[:, None], chosen]


@final
@dataclass(frozen=True, slots=True)
class BeamState:
    """The live hypotheses of the rows.

    Attributes:
        sources: [row] position of the row's source in the caller's list.
        groups: [row] which of its source's rows it is: its group of the beam, or its sample.
        log_probs: [row, hypothesis] sums over the tokens so far, less what repetition costs.
        token_ids: [row, hypothesis, step] the tokens so far.
        token_log_probs: [row, hypothesis, step] their log probabilities.
        origins: [row, hypothesis, step] where each token's attention weights are, among all of that step's.
        num_finished: [row] hypotheses finished so far.
        best_finished: [row, nbest] log probabilities of the most probable of them, best first.
        best_score: [row] the highest score before coverage among them; -inf while there is none.
    """

    sources: IntArray
    groups: IntArray
    log_probs: FloatArray
    token_ids: IntArray
    token_log_probs: FloatArray
    origins: IntArray
    num_finished: IntArray
    best_finished: FloatArray
    best_score: FloatArray

    @staticmethod
    def start(num_sources: int, config: SearchConfig) -> "BeamState":
        """Return the hypotheses before the first token: all are the same, so only the first of a row is live.

        Args:
            num_sources: how many sources there are.
            config: gives the rows of a source, the hypotheses of a row, and `nbest`.

        Returns:
            The hypotheses.
        """
        num_rows = num_sources * config.num_rows
        log_probs = np.full((num_rows, config.row_size), -np.inf)
        log_probs[:, 0] = 0.0
        history = (num_rows, config.row_size, 0)
        return BeamState(
            sources=np.repeat(np.arange(num_sources), config.num_rows),
            groups=np.tile(np.arange(config.num_rows), num_sources),
            log_probs=log_probs,
            token_ids=np.zeros(history, dtype=np.int64),
            token_log_probs=np.zeros(history),
            origins=np.zeros(history, dtype=np.int64),
            num_finished=np.zeros(num_rows, dtype=np.int64),
            best_finished=np.full((num_rows, config.nbest), -np.inf),
            best_score=np.full(num_rows, -np.inf),
        )

    @property
    def exist(self) -> BoolArray:
        """[row, hypothesis] whether there is one."""
        return self.log_probs > -np.inf

    def select(self, keep: IntArray) -> "BeamState":
        """Keep some rows.

        Args:
            keep: [kept] rows.

        Returns:
            Those rows alone.
        """
        return BeamState(*(getattr(self, name)[keep] for name in self.__slots__))

    def rank(
        self,
        log_probs: FloatArray,
        ids: IntArray,
        charges: FloatArray | None = None,
        handicaps: FloatArray | None = None,
        most: int = 0,
    ) -> Candidates:
        """Put what the hypotheses of each row offer in order: by log probability, then hypothesis, then id.

        Args:
            log_probs: [row, hypothesis, k] of the next tokens.
            ids: [row, hypothesis, k] those tokens.
            charges: [row, hypothesis, k] what hypotheses lose for good; None for nothing.
            handicaps: [row, hypothesis, k] what offers lose in this order alone; None for nothing.
            most: offers wanted of each row; 0 for as many as `advance` can need.

        Returns:
            The best offers of each row, or all if fewer: 1 for one hypothesis, which greedy search goes on with or ends
            with, else 2 for each. As a hypothesis offers EOS but once, enough of them to fill a row are not EOS, where
            the vocabulary allows.
        """
        num_rows, size = self.log_probs.shape
        paid = log_probs if charges is None else log_probs - charges
        total = (self.log_probs[:, :, None] + paid).reshape(num_rows, -1)
        parents = np.broadcast_to(np.arange(size)[:, None], ids.shape).reshape(num_rows, -1)
        candidates = Candidates(total, log_probs.reshape(num_rows, -1), parents, ids.reshape(num_rows, -1))
        key = total if handicaps is None else total - handicaps.reshape(num_rows, -1)
        order = np.lexsort((candidates.ids, candidates.parents, -key), axis=-1)
        return candidates.take(order[:, : most or (2 * size if size > 1 else 1)])

    def advance(
        self, candidates: Candidates, is_last: BoolArray, config: SearchConfig
    ) -> tuple["BeamState", IntArray, BoolArray]:
        """Take the step: let the best offers that do not end live on.

        Args:
            candidates: from `rank`.
            is_last: [row] whether the row is at its cap.
            config: gives the penalties and the rule for stopping.

        Returns:
            The hypotheses after the step, [row, hypothesis] the parents they had, and [row] whether the row is done.
        """
        size = self.log_probs.shape[1]
        chosen, lives = candidates.going_on(size, is_last)
        taken = candidates.take(chosen)
        ends = candidates.ending(size, is_last)
        ended = np.where(ends, candidates.log_probs, -np.inf)
        scores = length_score(ended.max(axis=1), self.token_ids.shape[2] + 1, config)
        after = BeamState(
            sources=self.sources,
            groups=self.groups,
            log_probs=np.where(lives, taken.log_probs, -np.inf),
            token_ids=_extended(self.token_ids, taken.parents, taken.ids),
            token_log_probs=_extended(self.token_log_probs, taken.parents, taken.token_log_probs),
            origins=_extended(self.origins, taken.parents, self.places(taken.parents)),
            num_finished=self.num_finished + ends.sum(axis=1),
            best_finished=-np.sort(-np.concatenate([self.best_finished, ended], axis=1))[:, : config.nbest],
            best_score=np.maximum(self.best_score, scores),
        )
        return after, taken.parents, is_last | ~lives.any(axis=1) | after._has_enough(config)

    def places(self, hypotheses: IntArray) -> IntArray:
        """Number hypotheses through all rows, as the rows of one step's attention weights are.

        Args:
            hypotheses: [row, any] hypotheses of each row.

        Returns:
            [row, any] row * hypotheses of a row + hypothesis.
        """
        num_rows, size = self.log_probs.shape
        return np.arange(num_rows)[:, None] * size + hypotheses

    def _has_enough(self, config: SearchConfig) -> BoolArray:
        if config.stopping == "certain":
            return np.zeros(self.sources.size, dtype=np.bool_)
        if config.alpha == 0 and config.beta == 0 and config.length_reward == 0:
            return self.best_finished[:, -1] >= self.log_probs.max(axis=1)
        scores = length_score(self.log_probs.max(axis=1), self.token_ids.shape[2], config)
        return (self.num_finished >= self.log_probs.shape[1]) & (self.best_score >= scores)


def _extended(history: NDArray[Kind], parents: IntArray, latest: NDArray[Kind]) -> NDArray[Kind]:
    rows = np.arange(parents.shape[0])[:, None]
    return np.concatenate([history[rows, parents], latest[:, :, None]], axis=2)
