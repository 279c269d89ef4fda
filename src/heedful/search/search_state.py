"""Search state of a batch: its checked sources, limits and constraints, and the hypotheses found so far."""

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import ShapeError, UsageError
from heedful.search.beam_state import BeamState, BoolArray, Candidates, Kind
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints, after_whole, check_constraints, least_length, needs_gaps
from heedful.search.inputs import InputArrays, Sources, as_inputs
from heedful.search.interface import (
    Adjust,
    FinishReason,
    FloatArray,
    Hypothesis,
    IntArray,
    StepScores,
    WeightsArray,
)
from heedful.search.penalties import coverage_penalty, length_score
from heedful.search.phrases import Phrases, laid_out
from heedful.text.vocabulary import BOS, EOS, PAD, UNK


def max_lengths(length_hint: IntArray, config: SearchConfig, max_length: int) -> IntArray:
    """Return the length limit of each output, EOS included.

    limit = max(1, min(ratio * length hint + offset, max_length)), rounded down.

    Args:
        length_hint: [source] size of each source, such as its number of tokens without EOS.
        config: gives ratio and offset.
        max_length: most tokens the engine can generate.

    Returns:
        [source] limits, at least 1.

    Example:
        >>> max_lengths(np.array([0, 4, 100]), SearchConfig(max_length_ratio=1.5, max_length_offset=2), 60).tolist()
        [2, 8, 60]
    """
    wanted = np.minimum(length_hint * config.max_length_ratio + config.max_length_offset, max_length)
    return np.maximum(wanted.astype(np.int64), 1)


@final
@dataclass(slots=True)
class SearchState:
    """Inputs of a search, constant while it runs, and the hypotheses that it has found.

    A source has `config.num_rows` rows: the groups of its beam, or its samples. Hypotheses are stored by row.

    Attributes:
        config: beam, penalties and limits.
        need_alignment: whether hypotheses carry attention weights.
        inputs: the sources.
        num_positions: [source] number of positions that are attended.
        max_lengths: [source] most tokens an output may have.
        indices: [source] index among all sources of the caller.
        prefixes: [source, step] tokens that an output must have; -1 where it is free.
        required: phrases that an output must contain.
        required_ids: [source, any] their tokens, each once, then -1; without columns if no phrase is required.
        banned: phrases that an output must not contain, except those in `banned_ids`.
        banned_ids: tokens that no output of any source may contain.
        whole: phrases after which a word ends.
        after_whole: [source, phrase, any] tokens that may not follow these, then -1.
        need_gaps: [source] whether required phrases may have to be separated by a token.
        num_phrase_ids: most different tokens in the phrases of a source that requires one.
        weights_steps: for each step so far [row * hypothesis, position] attention weights; empty if not needed.
        finished: for each row its hypotheses, in the order they ended.
        unfinished: for each row the hypotheses that were abandoned.
        best_scores: for each row the `nbest` best scores of finished ones, negative, in ascending order.
    """

    config: SearchConfig
    need_alignment: bool
    inputs: InputArrays
    num_positions: IntArray
    max_lengths: IntArray
    indices: IntArray
    prefixes: IntArray
    required: Phrases
    required_ids: IntArray
    banned: Phrases
    banned_ids: IntArray
    whole: Phrases
    after_whole: IntArray
    need_gaps: BoolArray
    num_phrase_ids: int
    weights_steps: list[WeightsArray]
    finished: list[list[Hypothesis]]
    unfinished: list[list[Hypothesis]]
    best_scores: list[list[float]]

    @staticmethod
    def of(
        sources: Sources,
        config: SearchConfig,
        max_length: int,
        need_alignment: bool,
        prefixes: Sequence[Sequence[int]] | None,
        constraints: Sequence[Constraints] | None = None,
    ) -> "SearchState":
        """Check the arguments of a search and write them into arrays.

        Args:
            sources: as for `heedful.search.beam.search`; one source or more.
            config: beam, penalties and limits.
            max_length: most tokens the engine can generate.
            need_alignment: whether hypotheses carry attention weights.
            prefixes: as for `heedful.search.beam.search`.
            constraints: as for `heedful.search.beam.search`.

        Returns:
            The state before the first step.

        Raises:
            UsageError: `max_length` is below 1.
        """
        if max_length < 1:
            raise UsageError(f"max_length is {max_length}: an output needs room for 1 token or more")
        inputs = as_inputs(sources)
        checked = check_constraints(constraints, prefixes, len(inputs), config, max_length)
        least = np.array([least_length(constraints_of) for constraints_of in checked], dtype=np.int64)
        banned_ids = set.intersection(*({p[0] for p in one.banned if len(p) == 1} for one in checked))
        phrase_ids = [_ids_of(one.required) for one in checked]
        num_rows = len(inputs) * config.num_rows
        return SearchState(
            config=config,
            need_alignment=need_alignment,
            inputs=inputs,
            num_positions=inputs.num_positions,
            max_lengths=np.maximum(max_lengths(inputs.length_hint, config, max_length), least),
            indices=np.array([one.index for one in checked], dtype=np.int64),
            prefixes=laid_out([one.prefix for one in checked]),
            required=Phrases.of([one.required for one in checked]),
            required_ids=laid_out(phrase_ids) if any(phrase_ids) else np.empty((len(inputs), 0), dtype=np.int64),
            banned=Phrases.of([[p for p in one.banned if len(p) > 1 or p[0] not in banned_ids] for one in checked]),
            banned_ids=np.array(sorted(banned_ids), dtype=np.int64),
            whole=Phrases.of([one.whole for one in checked]),
            after_whole=Phrases.of([after_whole(one) for one in checked]).ids,
            need_gaps=np.array([needs_gaps(one) for one in checked]),
            num_phrase_ids=max(len(_ids_of([*one.required, *one.banned])) * bool(one.required) for one in checked),
            weights_steps=[],
            finished=[[] for _ in range(num_rows)],
            unfinished=[[] for _ in range(num_rows)],
            best_scores=[[] for _ in range(num_rows)],
        )

    @property
    def num_sources(self) -> int:
        """Number of sources."""
        return len(self.inputs)

    def check_vocabulary(self, scores: StepScores) -> None:
        """Refuse tokens outside the engine's vocabulary.

        Raises:
            UsageError: a prefix or a phrase contains such a token.
        """
        for name, ids in (
            ("prefixes", self.prefixes),
            ("required phrases", self.required_ids),
            ("banned phrases", np.append(self.banned.ids, self.banned_ids)),
            ("continuing", self.after_whole),
        ):
            largest = int(ids.max(initial=-1))
            if largest >= 0 and largest >= scores.vocab_size:
                raise UsageError(f"{name}: token {largest} is not in the vocabulary of {scores.vocab_size}")

    def adjust(self, step: int) -> Adjust:
        """Return the tokens that no hypothesis may take at a step.

        Args:
            step: tokens generated so far.

        Returns:
            Adjustment that forbids PAD, BOS, UNK if so configured, EOS before `min_length`, and the tokens that every
        """
        banned = [PAD, BOS]
        if self.config.forbid_unknown:
            banned.append(UNK)
        if step < self.config.min_length:
            banned.append(EOS)
        return Adjust(banned=np.array([*banned, *self.banned_ids], dtype=np.int64))

    def forced(self, beam_state: BeamState, step: int) -> IntArray:
        """Return the tokens that prefixes require at a step.

        Args:
            step: tokens generated so far.

        Returns:
            [row] the token; -1 where the row is free.
        """
        if step >= self.prefixes.shape[1]:
            return np.full(beam_state.sources.size, -1, dtype=np.int64)
        return self.prefixes[beam_state.sources, step]

    def remember_weights(self, scores: StepScores) -> None:
        """Store the step's attention weights, if they are needed.

        Raises:
            ShapeError: the weights are not as wide as the source.
        """
        if not self.need_alignment and self.config.beta == 0:
            return
        weights, width = scores.weights, self.inputs.width
        if weights.ndim != 3 or weights.shape[2] != width:
            raise ShapeError(f"the engine's weights have shape {list(weights.shape)}, the source has {width} positions")
        # A copy: the engine may use the array again in its next step.
        self.weights_steps.append(np.array(weights, dtype=np.float32).reshape(-1, width))

    def finish(self, beam_state: BeamState, candidates: Candidates, is_last: BoolArray) -> None:
        """Store the candidates that finish as hypotheses.

        Args:
            candidates: candidates of each row, ranked.
            is_last: [row] whether the row is at its length limit.
        """
        rows, ranks = np.nonzero(candidates.ending(beam_state.log_probs.shape[1], is_last))
        if not rows.size:
            return
        parents, ids = candidates.parents[rows, ranks], candidates.ids[rows, ranks]
        reasons: list[FinishReason] = ["eos" if is_end else "length" for is_end in (ids == EOS).tolist()]
        hypotheses = self._made(
            beam_state.sources[rows],
            _followed(beam_state.token_ids[rows, parents], ids),
            _followed(beam_state.token_log_probs[rows, parents], candidates.token_log_probs[rows, ranks]),
            _followed(beam_state.origins[rows, parents], beam_state.flat_indices(candidates.parents)[rows, ranks]),
            candidates.log_probs[rows, ranks],
            reasons,
        )
        for row, hypothesis in zip(rows.tolist(), hypotheses, strict=True):
            slot = self._slot(beam_state, row)
            self.finished[slot].append(hypothesis)
            insort(self.best_scores[slot], -hypothesis.score)
            del self.best_scores[slot][self.config.nbest :]

    def give_up(self, beam_state: BeamState, rows: IntArray, reason: FinishReason) -> None:
        """Store the live hypotheses of rows unfinished, to be returned if no hypothesis finishes.

        Args:
            rows: [any] the rows.
        """
        indices, hypotheses = np.nonzero(beam_state.exist[rows])
        if not indices.size:
            return
        live = rows[indices], hypotheses
        reasons: list[FinishReason] = [reason] * indices.size
        unfinished = self._made(
            beam_state.sources[live[0]],
            beam_state.token_ids[live],
            beam_state.token_log_probs[live],
            beam_state.origins[live],
            beam_state.log_probs[live],
            reasons,
        )
        for row, hypothesis in zip(live[0].tolist(), unfinished, strict=True):
            self.unfinished[self._slot(beam_state, row)].append(hypothesis)

    def end(
        self,
        sources: IntArray,
        token_ids: IntArray,
        token_log_probs: FloatArray,
        origins: IntArray,
        totals: FloatArray,
        reasons: Sequence[FinishReason],
    ) -> None:
        """Store the only hypotheses of sources, in a search that has one row for each source.

        Args:
            sources: [ended] positions in the caller's list.
            token_ids: [ended, step] their tokens, with EOS where the model ended one.
            token_log_probs: [ended, step] log probabilities of these.
            origins: [ended, step] index of each token's attention weights among all of that step.
            totals: [ended] sums of the log probabilities, in the order of the tokens.
            reasons: reason of each; "cancelled" and "stuck" for one that was abandoned.
        """
        hypotheses = self._made(sources, token_ids, token_log_probs, origins, totals, reasons)
        for source, one in zip(sources.tolist(), hypotheses, strict=True):
            lists = self.finished if one.finish_reason in ("eos", "length") else self.unfinished
            lists[source].append(one)

    def worst_of_best(self, beam_state: BeamState) -> FloatArray:
        """Return the score that a hypothesis must exceed to be among the best.

        Returns:
            [row] score of the row's `nbest`-th best finished hypothesis; -inf while there are fewer.
        """
        slots = [self.best_scores[self._slot(beam_state, row)] for row in range(beam_state.sources.size)]
        nbest = self.config.nbest
        return np.array([-scores[-1] if len(scores) == nbest else -np.inf for scores in slots])

    def best(self) -> list[list[Hypothesis]]:
        """Return the hypotheses found.

        Returns:
            For each source up to `nbest` hypotheses, best score first, each once; of equal scores the one that finished
            first, in the first group. For samples, each as it was drawn, in their order.
        """
        size = self.config.num_rows
        if self.config.method == "sampling":
            drawn = [(*ended, *given_up)[0] for ended, given_up in zip(self.finished, self.unfinished, strict=True)]
            return [drawn[start : start + size] for start in range(0, len(drawn), size)]
        results: list[list[Hypothesis]] = []
        for start in range(0, len(self.finished), size):
            ended = list(chain.from_iterable(self.finished[start : start + size]))
            given_up = chain.from_iterable(self.unfinished[start : start + size])
            results.append(_distinct(sorted(ended or given_up, key=lambda one: -one.score))[: self.config.nbest])
        return results

    def _slot(self, beam_state: BeamState, row: int) -> int:
        return int(beam_state.sources[row]) * self.config.num_rows + int(beam_state.groups[row])

    def _made(
        self,
        sources: IntArray,
        token_ids: IntArray,
        token_log_probs: FloatArray,
        origins: IntArray,
        totals: FloatArray,
        reasons: Sequence[FinishReason],
    ) -> list[Hypothesis]:
        """Hypotheses of one length; arguments as in `end`."""
        config, length = self.config, token_ids.shape[1]
        scores = length_score(totals, length, config).tolist()
        # Summed in the order of the tokens, as in the search.
        log_probs = np.cumsum(token_log_probs, axis=1)[:, -1].tolist() if length else [0.0] * len(scores)
        hypotheses: list[Hypothesis] = []
        histories = zip(token_ids.tolist(), token_log_probs.tolist(), reasons, strict=True)
        for index, (tokens, probabilities, reason) in enumerate(histories):
            score, weights = scores[index], None
            if self.weights_steps:
                weights = self._weights(int(sources[index]), origins[index])
                if config.beta > 0:
                    score += coverage_penalty(weights, config.beta)
            hypotheses.append(
                Hypothesis(
                    token_ids=tuple(tokens[:-1] if reason == "eos" else tokens),
                    log_prob=log_probs[index],
                    score=score,
                    token_log_probs=tuple(probabilities),
                    finish_reason=reason,
                    weights=weights if self.need_alignment else None,
                )
            )
        return hypotheses

    def _weights(self, source: int, origins: IntArray) -> WeightsArray:
        weights = np.zeros((origins.size, self.num_positions[source]), dtype=np.float32)
        for step, origin in enumerate(origins):
            weights[step] = self.weights_steps[step][origin, : weights.shape[1]]
        return weights


def _followed(history: NDArray[Kind], latest: NDArray[Kind]) -> NDArray[Kind]:
    """[row, step] numbers with one more behind each row."""
    return np.concatenate([history, latest[:, None]], axis=1)


def _ids_of(phrases: Iterable[Sequence[int]]) -> list[int]:
    return sorted(set(chain.from_iterable(phrases)))


def _distinct(hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
    """The hypotheses without repetitions: groups of a beam may find the same one."""
    distinct: dict[tuple[tuple[int, ...], FinishReason], Hypothesis] = {}
    for one in hypotheses:
        distinct.setdefault((one.token_ids, one.finish_reason), one)
    return list(distinct.values())
