"""The arrays of a running beam search: the live hypotheses, and what they offer next.

The rules are in `heedful.search.beam`. Everything is vectorised over the rows of the batch; a row is a source that is
still searched. An offer or a hypothesis of log probability -inf is an empty place.
"""

from dataclasses import dataclass
from typing import TypeVar, final

import numpy as np
from numpy.typing import NDArray

from heedful.search.config import SearchConfig
from heedful.search.interface import FloatArray, IntArray
from heedful.search.penalties import length_penalty
from heedful.text.vocabulary import EOS

BoolArray = NDArray[np.bool_]

Kind = TypeVar("Kind", bound=np.generic)


@final
@dataclass(frozen=True, slots=True)
class Offers:
    """What the hypotheses of each row may become, best first.

    Attributes:
        log_probs: [row, offer] log probability of the whole hypothesis.
        token_log_probs: [row, offer] that of the token alone.
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

    def take(self, order: IntArray) -> "Offers":
        """Pick offers.

        Args:
            order: [row, chosen] offers of each row.

        Returns:
            Those offers, in that order.
        """
        return Offers(
            np.take_along_axis(self.log_probs, order, axis=1),
            np.take_along_axis(self.token_log_probs, order, axis=1),
            np.take_along_axis(self.parents, order, axis=1),
            np.take_along_axis(self.ids, order, axis=1),
        )

    def ending(self, beam: int, is_last: BoolArray) -> BoolArray:
        """Tell which offers end as finished hypotheses.

        Args:
            beam: width of the beam.
            is_last: [row] whether the row is at its cap.

        Returns:
            [row, offer] True for those among the best `beam` that are EOS, or that stand at the cap.
        """
        in_beam = np.arange(self.ids.shape[1]) < beam
        return self.exist & in_beam & ((self.ids == EOS) | is_last[:, None])


@final
@dataclass(frozen=True, slots=True)
class Live:
    """The live hypotheses of the rows.

    Attributes:
        sources: [row] position of the row's source in the caller's list.
        log_probs: [row, hypothesis] sums over the tokens so far.
        token_ids: [row, hypothesis, step] the tokens so far.
        token_log_probs: [row, hypothesis, step] their log probabilities.
        origins: [row, hypothesis, step] where each token's attention weights are, among all of that step's.
        num_finished: [row] hypotheses finished so far.
        best_finished: [row, nbest] log probabilities of the most probable of them, best first.
        best_score: [row] the highest log probability over length penalty among them; -inf while there is none.
    """

    sources: IntArray
    log_probs: FloatArray
    token_ids: IntArray
    token_log_probs: FloatArray
    origins: IntArray
    num_finished: IntArray
    best_finished: FloatArray
    best_score: FloatArray

    @staticmethod
    def start(num_sources: int, config: SearchConfig) -> "Live":
        """Return the hypotheses before the first token: all are the same, so only the first of a row is live.

        Args:
            num_sources: rows.
            config: gives `beam` and `nbest`.

        Returns:
            The hypotheses.
        """
        log_probs = np.full((num_sources, config.beam), -np.inf)
        log_probs[:, 0] = 0.0
        history = (num_sources, config.beam, 0)
        return Live(
            sources=np.arange(num_sources),
            log_probs=log_probs,
            token_ids=np.zeros(history, dtype=np.int64),
            token_log_probs=np.zeros(history),
            origins=np.zeros(history, dtype=np.int64),
            num_finished=np.zeros(num_sources, dtype=np.int64),
            best_finished=np.full((num_sources, config.nbest), -np.inf),
            best_score=np.full(num_sources, -np.inf),
        )

    def select(self, keep: IntArray) -> "Live":
        """Keep some rows.

        Args:
            keep: [kept] rows.

        Returns:
            Those rows alone.
        """
        return Live(*(getattr(self, name)[keep] for name in self.__slots__))

    def rank(self, log_probs: FloatArray, ids: IntArray) -> Offers:
        """Put what the hypotheses of each row offer in order: by log probability, then hypothesis, then id.

        Args:
            log_probs: [row, hypothesis, k] of the next tokens.
            ids: [row, hypothesis, k] those tokens.

        Returns:
            The best 2 * beam offers of each row, or all if fewer. As a hypothesis offers EOS but once, `beam` of
            them or more are not EOS, where the vocabulary allows.
        """
        num_rows, beam = self.log_probs.shape
        total = (self.log_probs[:, :, None] + log_probs).reshape(num_rows, -1)
        parents = np.broadcast_to(np.arange(beam)[:, None], ids.shape).reshape(num_rows, -1)
        offers = Offers(total, log_probs.reshape(num_rows, -1), parents, ids.reshape(num_rows, -1))
        order = np.lexsort((offers.ids, offers.parents, -total), axis=-1)
        return offers.take(order[:, : 2 * beam])

    def advance(self, offers: Offers, is_last: BoolArray, config: SearchConfig) -> tuple["Live", IntArray, BoolArray]:
        """Take the step: let the best offers that do not end live on.

        Args:
            offers: from `rank`.
            is_last: [row] whether the row is at its cap.
            config: gives `beam`, and through the penalties the rule for stopping.

        Returns:
            The hypotheses after the step, [row, hypothesis] the parents they had, and [row] whether the row is done.
        """
        goes_on = offers.exist & (offers.ids != EOS) & ~is_last[:, None]
        chosen = np.argsort(~goes_on, axis=1, kind="stable")[:, : config.beam]
        taken = offers.take(chosen)
        ends = offers.ending(config.beam, is_last)
        ended = np.where(ends, offers.log_probs, -np.inf)
        divisor = length_penalty(self.token_ids.shape[2] + 1, config.length_penalty, config.alpha)
        after = Live(
            sources=self.sources,
            log_probs=np.where(np.take_along_axis(goes_on, chosen, axis=1), taken.log_probs, -np.inf),
            token_ids=_extended(self.token_ids, taken.parents, taken.ids),
            token_log_probs=_extended(self.token_log_probs, taken.parents, taken.token_log_probs),
            origins=_extended(self.origins, taken.parents, self.places(taken.parents)),
            num_finished=self.num_finished + ends.sum(axis=1),
            best_finished=-np.sort(-np.concatenate([self.best_finished, ended], axis=1))[:, : config.nbest],
            best_score=np.maximum(self.best_score, ended.max(axis=1) / divisor),
        )
        return after, taken.parents, is_last | ~goes_on.any(axis=1) | after._has_enough(config)

    def places(self, hypotheses: IntArray) -> IntArray:
        """Number hypotheses through all rows, as the rows of one step's attention weights are.

        Args:
            hypotheses: [row, any] hypotheses of each row.

        Returns:
            [row, any] row * beam + hypothesis.
        """
        num_rows, beam = self.log_probs.shape
        return np.arange(num_rows)[:, None] * beam + hypotheses

    def _has_enough(self, config: SearchConfig) -> BoolArray:
        if config.alpha == 0 and config.beta == 0:
            return self.best_finished[:, -1] >= self.log_probs.max(axis=1)
        divisor = length_penalty(self.token_ids.shape[2], config.length_penalty, config.alpha)
        return (self.num_finished >= config.beam) & (self.best_score >= self.log_probs.max(axis=1) / divisor)


def _extended(history: NDArray[Kind], parents: IntArray, latest: NDArray[Kind]) -> NDArray[Kind]:
    rows = np.arange(parents.shape[0])[:, None]
    return np.concatenate([history[rows, parents], latest[:, :, None]], axis=2)
