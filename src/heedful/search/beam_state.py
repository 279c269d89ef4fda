"""Live hypotheses of a running beam search, and the candidates that extend them by one token.

The rules are in `heedful.search.beam`. Everything is vectorised over rows; a row is a search of its own: a source that
is still being searched, one group of its beam, or one of its samples. A candidate or a hypothesis of log probability
-inf is an empty slot.
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
    """Possible extensions of the hypotheses of each row by one token, best first.

    Attributes:
        log_probs: [row, candidate] log probability of the whole hypothesis, less repetition charges.
        token_log_probs: [row, candidate] log probability of the token alone, from the model.
        parents: [row, candidate] hypothesis that the candidate extends.
        ids: [row, candidate] next token.
    """

    log_probs: FloatArray
    token_log_probs: FloatArray
    parents: IntArray
    ids: IntArray

    @property
    def exist(self) -> BoolArray:
        """[row, candidate] whether the candidate is possible."""
        return self.log_probs > -np.inf

    def take(self, order: IntArray) -> "Candidates":
        """Select candidates by rank.

        Args:
            order: [row, chosen] ranks of candidates of each row.

        Returns:
            Those candidates, in that order.
        """
        rows = np.arange(order.shape[0])[:, None]
        return Candidates(
            self.log_probs[rows, order],
            self.token_log_probs[rows, order],
            self.parents[rows, order],
            self.ids[rows, order],
        )

    def first(self, most: int) -> "Candidates":
        """Select the best candidates.

        Args:
            most: number of candidates of each row.

        Returns:
            Those candidates, or all if there are fewer.
        """
        return Candidates(
            self.log_probs[:, :most], self.token_log_probs[:, :most], self.parents[:, :most], self.ids[:, :most]
        )

    def ending(self, beam: int, is_last: BoolArray) -> BoolArray:
        """Find the candidates that finish their hypothesis.

        Args:
            beam: number of hypotheses of a row.
            is_last: [row] whether the row is at its length limit.

        Returns:
            [row, candidate] True for those among the best `beam` that are EOS, or all of these at the length limit.
        """
        in_beam = np.arange(self.ids.shape[1]) < beam
        return self.exist & in_beam & ((self.ids == EOS) | is_last[:, None])

    def going_on(self, beam: int, is_last: BoolArray) -> tuple[IntArray, BoolArray]:
        """Find the candidates that become the next live hypotheses.

        Args:
            beam: number of hypotheses of a row.
            is_last: [row] whether the row is at its length limit.

        Returns:
            [row, hypothesis] rank of the candidate that becomes each hypothesis, and whether there is one: the `beam`
            best that are not EOS, and none at the length limit.
        """
        goes_on = self.exist & (self.ids != EOS) & ~is_last[:, None]
        chosen = np.argsort(~goes_on, axis=1, kind="stable")[:, :beam]
        return chosen, goes_on[np.arange(chosen.shape[0])[:, None], chosen]


@final
@dataclass(frozen=True, slots=True)
class BeamState:
    """Beam search state: the live hypotheses of each row.

    Attributes:
        sources: [row] position of the row's source in the caller's list.
        groups: [row] index among the rows of its source: the group of the beam, or the sample.
        log_probs: [row, hypothesis] sums over the tokens so far, less repetition charges.
        token_ids: [row, hypothesis, step] the tokens so far.
        token_log_probs: [row, hypothesis, step] their log probabilities.
        origins: [row, hypothesis, step] index of each token's attention weights among all of that step.
        num_finished: [row] number of hypotheses finished so far.
        best_finished: [row, nbest] log probabilities of the most probable finished hypotheses, best first.
        best_scores: [row, 1 or hypothesis] highest scores of finished hypotheses before the coverage penalty, best
            first; -inf while there are fewer. As many as a beam for the rule `full`, else the best alone.
    """

    sources: IntArray
    groups: IntArray
    log_probs: FloatArray
    token_ids: IntArray
    token_log_probs: FloatArray
    origins: IntArray
    num_finished: IntArray
    best_finished: FloatArray
    best_scores: FloatArray

    @staticmethod
    def start(num_sources: int, config: SearchConfig) -> "BeamState":
        """Return the state before the first token: all hypotheses are equal, so only the first of a row is live.

        Args:
            num_sources: number of sources.
            config: gives the rows of a source, the hypotheses of a row, and `nbest`.
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
            best_scores=np.full((num_rows, config.row_size if config.stopping == "full" else 1), -np.inf),
        )

    @property
    def exist(self) -> BoolArray:
        """[row, hypothesis] whether the hypothesis is live."""
        return self.log_probs > -np.inf

    def select(self, keep: IntArray) -> "BeamState":
        """Select rows.

        Args:
            keep: [kept] rows.
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
        """Rank the candidates of each row: by log probability, then by hypothesis, then by token id.

        Args:
            log_probs: [row, hypothesis, k] log probabilities of the next tokens.
            ids: [row, hypothesis, k] the next tokens.
            charges: [row, hypothesis, k] amounts subtracted from the log probability permanently; None = 0.
            handicaps: [row, hypothesis, k] amounts subtracted in this ranking only; None = 0.
            most: number of candidates returned for each row; 0 for as many as `advance` can need.

        Returns:
            The best candidates of each row, or all if fewer: 1 for a row of one hypothesis (greedy search), else 2 for
            each hypothesis. Each hypothesis proposes EOS only once, so enough of them to fill a row are not EOS, where
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
        """Take the step: the best candidates that do not finish become the live hypotheses.

        Args:
            candidates: from `rank`.
            is_last: [row] whether the row is at its length limit.
            config: gives the penalties and the rule for stopping.

        Returns:
            The state after the step, [row, hypothesis] the parent of each hypothesis, and [row] whether the row is
        """
        size = self.log_probs.shape[1]
        chosen, lives = candidates.going_on(size, is_last)
        survivors = candidates.take(chosen)
        ends = candidates.ending(size, is_last)
        ended = np.where(ends, candidates.log_probs, -np.inf)
        ranked = ended if config.stopping == "full" else ended.max(axis=1, keepdims=True)
        scores = length_score(ranked, self.token_ids.shape[2] + 1, config)
        after = BeamState(
            sources=self.sources,
            groups=self.groups,
            log_probs=np.where(lives, survivors.log_probs, -np.inf),
            token_ids=_extended(self.token_ids, survivors.parents, survivors.ids),
            token_log_probs=_extended(self.token_log_probs, survivors.parents, survivors.token_log_probs),
            origins=_extended(self.origins, survivors.parents, self.flat_indices(survivors.parents)),
            num_finished=self.num_finished + ends.sum(axis=1),
            best_finished=_best(self.best_finished, ended),
            best_scores=_best(self.best_scores, scores),
        )
        return after, survivors.parents, is_last | ~lives.any(axis=1) | after._has_enough(config)

    def flat_indices(self, hypotheses: IntArray) -> IntArray:
        """Number hypotheses through all rows, as the rows of one step's attention weights are numbered.

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
        scores = length_score(self.log_probs.max(axis=1), self.token_ids.shape[2], config)
        if config.stopping == "full":
            return self.best_scores[:, -1] >= scores
        if config.alpha == 0 and config.beta == 0 and config.length_reward == 0:
            return self.best_finished[:, -1] >= self.log_probs.max(axis=1)
        return (self.num_finished >= self.log_probs.shape[1]) & (self.best_scores[:, 0] >= scores)


def _best(numbers: FloatArray, more: FloatArray) -> FloatArray:
    """[row, any] the highest of the numbers of each row and more of them, best first."""
    return -np.sort(-np.concatenate([numbers, more], axis=1))[:, : numbers.shape[1]]


def _extended(history: NDArray[Kind], parents: IntArray, latest: NDArray[Kind]) -> NDArray[Kind]:
    rows = np.arange(parents.shape[0])[:, None]
    return np.concatenate([history[rows, parents], latest[:, :, None]], axis=2)
