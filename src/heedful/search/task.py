"""One search: its sources and limits, checked, and the hypotheses it has found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from heedful.errors import ShapeError, UsageError
from heedful.search.config import SearchConfig
from heedful.search.interface import (
    Adjust,
    FinishReason,
    FloatArray,
    Hypothesis,
    IntArray,
    StepScores,
    WeightsArray,
)
from heedful.search.live import BoolArray, Live, Offers
from heedful.search.penalties import coverage_penalty, length_penalty
from heedful.text.vocabulary import BOS, EOS, PAD, UNK


def caps(source_lengths: IntArray, config: SearchConfig, max_length: int) -> IntArray:
    """Return how many tokens an output may have, end mark included.

    cap = max(1, min(ratio * source length + offset, max_length)), rounded down.

    Args:
        source_lengths: [source] tokens of each source, without its end mark.
        config: gives ratio and offset.
        max_length: most tokens the engine can generate.

    Returns:
        [source] caps, at least 1.

    Example:
        >>> caps(np.array([0, 4, 100]), SearchConfig(max_length_ratio=1.5, max_length_offset=2), 60).tolist()
        [2, 8, 60]
    """
    wanted = np.minimum(source_lengths * config.max_length_ratio + config.max_length_offset, max_length)
    return np.maximum(wanted.astype(np.int64), 1)


@final
@dataclass(slots=True)
class Task:
    """What stays the same while a search runs, and what it has found.

    Attributes:
        config: beam, penalties and limits.
        need_alignment: whether hypotheses carry attention weights.
        source: [source, position] ids, filled with PAD.
        source_lengths: [source] real lengths, end mark included.
        caps: [source] most tokens an output may have.
        prefixes: [source, step] tokens an output must have; -1 where it is free.
        weights_steps: for each step so far [row * beam, position] attention weights; empty if not needed.
        finished: for each source its hypotheses, in the order they ended.
    """

    config: SearchConfig
    need_alignment: bool
    source: IntArray
    source_lengths: IntArray
    caps: IntArray
    prefixes: IntArray
    weights_steps: list[WeightsArray]
    finished: list[list[Hypothesis]]

    @staticmethod
    def of(
        source_ids: Sequence[IntArray],
        config: SearchConfig,
        max_length: int,
        need_alignment: bool,
        prefixes: Sequence[Sequence[int]] | None,
    ) -> "Task":
        """Check what the caller gave and lay it out in arrays.

        Args:
            source_ids: as for `heedful.search.beam.search`; one source or more.
            config: beam, penalties and limits.
            max_length: most tokens the engine can generate.
            need_alignment: whether hypotheses carry attention weights.
            prefixes: as for `heedful.search.beam.search`.

        Returns:
            The task, with nothing found.

        Raises:
            UsageError: `max_length` is below 1.
        """
        if max_length < 1:
            raise UsageError(f"max_length is {max_length}: an output needs room for 1 token or more")
        sources = [_with_end(ids, place) for place, ids in enumerate(source_ids)]
        forced = _checked_prefixes(prefixes, len(sources), max_length)
        inner_lengths = np.array([ids.size - (ids[-1] == EOS) for ids in sources], dtype=np.int64)
        # One token past its prefix is what an output needs at least, however short the source.
        least = np.array([prefix.size + 1 for prefix in forced], dtype=np.int64)
        return Task(
            config=config,
            need_alignment=need_alignment,
            source=_filled(sources, PAD),
            source_lengths=np.array([ids.size for ids in sources], dtype=np.int64),
            caps=np.maximum(caps(inner_lengths, config, max_length), least),
            prefixes=_filled(forced, -1),
            weights_steps=[],
            finished=[[] for _ in sources],
        )

    def adjust(self, step: int) -> Adjust:
        """Return what no hypothesis may take at a step.

        Args:
            step: tokens generated so far.

        Returns:
            Bans of filling, start mark, unknown token if so configured, and end mark before `min_length`.
        """
        banned = [PAD, BOS]
        if self.config.forbid_unknown:
            banned.append(UNK)
        if step < self.config.min_length:
            banned.append(EOS)
        return Adjust(banned=np.array(banned, dtype=np.int64))

    def forced(self, live: Live, step: int) -> IntArray:
        """Return what the prefixes demand at a step.

        Args:
            live: the rows.
            step: tokens generated so far.

        Returns:
            [row] the token; -1 where the row is free.
        """
        if step >= self.prefixes.shape[1]:
            return np.full(live.sources.size, -1, dtype=np.int64)
        return self.prefixes[live.sources, step]

    def remember_weights(self, scores: StepScores) -> None:
        """Store the step's attention weights, if they are needed.

        Args:
            scores: the step's.

        Raises:
            ShapeError: they are not as wide as the source.
        """
        if not self.need_alignment and self.config.beta == 0:
            return
        weights, width = scores.weights, self.source.shape[1]
        if weights.ndim != 3 or weights.shape[2] != width:
            raise ShapeError(f"the engine's weights have shape {list(weights.shape)}, the source has {width} positions")
        # A copy: the engine may use the array again in its next step.
        self.weights_steps.append(np.array(weights, dtype=np.float32).reshape(-1, width))

    def finish(self, live: Live, offers: Offers, is_last: BoolArray) -> None:
        """Keep the offers that end as hypotheses.

        Args:
            live: the hypotheses that made the offers.
            offers: ranked.
            is_last: [row] whether the row is at its cap.
        """
        places = live.places(offers.parents)
        for row, rank in np.argwhere(offers.ending(self.config.beam, is_last)):
            parent, token = offers.parents[row, rank], offers.ids[row, rank]
            self._keep(
                int(live.sources[row]),
                np.append(live.token_ids[row, parent], token),
                np.append(live.token_log_probs[row, parent], offers.token_log_probs[row, rank]),
                np.append(live.origins[row, parent], places[row, rank]),
                float(offers.log_probs[row, rank]),
                "eos" if token == EOS else "length",
            )

    def give_up(self, live: Live, rows: IntArray, reason: FinishReason) -> None:
        """Keep the live hypotheses of rows as they are, unless the row has finished ones.

        Args:
            live: the hypotheses.
            rows: [any] the rows.
            reason: why.
        """
        for row in rows:
            source = int(live.sources[row])
            if self.finished[source]:
                continue
            for place in np.flatnonzero(live.log_probs[row] > -np.inf):
                histories = live.token_ids[row, place], live.token_log_probs[row, place], live.origins[row, place]
                self._keep(source, *histories, float(live.log_probs[row, place]), reason)

    def best(self) -> list[list[Hypothesis]]:
        """Return what was found.

        Returns:
            For each source up to `nbest` hypotheses, best score first; of equal scores the one that ended first.
        """
        return [sorted(found, key=lambda one: -one.score)[: self.config.nbest] for found in self.finished]

    def _keep(
        self,
        source: int,
        tokens: IntArray,
        token_log_probs: FloatArray,
        origins: IntArray,
        log_prob: float,
        reason: FinishReason,
    ) -> None:
        config = self.config
        score = log_prob / length_penalty(tokens.size, config.length_penalty, config.alpha).item()
        weights = self._weights(source, origins) if self.weights_steps else None
        if weights is not None and config.beta > 0:
            score += coverage_penalty(weights, config.beta)
        self.finished[source].append(
            Hypothesis(
                token_ids=tuple(tokens[: tokens.size - (reason == "eos")].tolist()),
                log_prob=log_prob,
                score=score,
                token_log_probs=tuple(token_log_probs.tolist()),
                finish_reason=reason,
                weights=weights if self.need_alignment else None,
            )
        )

    def _weights(self, source: int, origins: IntArray) -> WeightsArray:
        weights = np.zeros((origins.size, self.source_lengths[source]), dtype=np.float32)
        for step, origin in enumerate(origins):
            weights[step] = self.weights_steps[step][origin, : weights.shape[1]]
        return weights


def _with_end(ids: IntArray, place: int) -> IntArray:
    """The source as an array, an empty one as its end mark alone.

    Raises:
        ShapeError: it is not flat.
    """
    ids = np.asarray(ids, dtype=np.int64)
    if ids.ndim != 1:
        raise ShapeError(f"source {place} has shape {list(ids.shape)}; expected [position]")
    return ids if ids.size else np.array([EOS], dtype=np.int64)


def _checked_prefixes(prefixes: Sequence[Sequence[int]] | None, num_sources: int, max_length: int) -> list[IntArray]:
    """The prefixes as arrays.

    Raises:
        UsageError: their number is wrong, or one is too long or holds what is no token.
    """
    if prefixes is None:
        return [np.empty(0, dtype=np.int64)] * num_sources
    if len(prefixes) != num_sources:
        raise UsageError(f"prefixes: {len(prefixes)} given for {num_sources} sources; give one each, empty for none")
    checked = [np.asarray(prefix, dtype=np.int64).reshape(-1) for prefix in prefixes]
    for place, prefix in enumerate(checked):
        if prefix.size >= max_length:
            raise UsageError(f"prefixes: source {place} has {prefix.size} tokens, an output at most {max_length}")
        if np.isin(prefix, (PAD, BOS, EOS)).any() or (prefix < 0).any():
            raise UsageError(f"prefixes: that of source {place} holds a mark or a negative id; give tokens only")
    return checked


def _filled(rows: Sequence[IntArray], value: int) -> IntArray:
    filled = np.full((len(rows), max(row.size for row in rows)), value, dtype=np.int64)
    for place, row in enumerate(rows):
        filled[place, : row.size] = row
    return filled
