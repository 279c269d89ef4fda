"""Trace of a beam search: every hypothesis of every step, with its parent and the reason why it left the beam.

A trace is recorded only where `heedful.search.beam.search` is given one; a search without a trace does no extra work.
"""

from dataclasses import dataclass, field
from typing import Final, Literal, final

import numpy as np

from heedful.search.beam_state import BeamState, BoolArray, Candidates
from heedful.search.interface import FinishReason, IntArray, WeightsArray
from heedful.text.vocabulary import EOS

Fate = Literal["live", "eos", "length", "rank", "late_eos", "stopped", "cancelled", "stuck"]
"""Fate of a hypothesis.

`live`: it was extended in the next step. `eos`, `length`: it finished. `rank`: too many candidates were more probable.
`late_eos`: it ended in EOS, but not among the best of the beam. `stopped`: the search ended first. `cancelled`,
`stuck`: as in `FinishReason`.
"""
ROOT: Final = -1
"""Parent of the hypotheses of one token."""


@final
@dataclass(slots=True, eq=False)
class TraceNode:
    """Hypothesis of a traced search: its last token, and the node of the tokens before it."""

    source: int
    """Position of its source in the caller's list."""
    group: int
    """Index of its beam among those of the source: a group of diverse beam search, or a sample."""
    step: int
    """Number of tokens before the last one."""
    parent: int
    """Index of the node that it extends; `ROOT` for none."""
    token: int
    token_log_prob: float
    """Log probability of the last token, in nats."""
    log_prob: float
    """Log probability of the whole hypothesis, less repetition charges."""
    rank: int
    """Rank among the candidates of its step, from 0."""
    fate: Fate
    weights: WeightsArray | None = None
    """[position] attention of the last token over the source; None unless the search stores weights."""


@final
@dataclass(slots=True, eq=False)
class SearchTrace:
    """Record of a search, filled step by step.

    Attributes:
        nodes: hypotheses in order of time; at each step the candidates that the beam could need, best first.
    """

    nodes: list[TraceNode] = field(default_factory=list)
    _live: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    def record(
        self, step: int, beam_state: BeamState, candidates: Candidates, is_last: BoolArray, weights: WeightsArray | None
    ) -> None:
        """Record the candidates of one step.

        Args:
            step: number of tokens generated before.
            candidates: candidates of each row, ranked.
            is_last: [row] whether the row is at its length limit.
            weights: [row * hypothesis, position] attention of this step; None if not stored.
        """
        size = beam_state.log_probs.shape[1]
        ends, exist = candidates.ending(size, is_last), candidates.exist
        chosen, lives = candidates.going_on(size, is_last)
        flat_indices = beam_state.flat_indices(candidates.parents)
        for row in range(beam_state.sources.size):
            key = int(beam_state.sources[row]), int(beam_state.groups[row])
            before, slots = self._live.get(key, []), {}
            for rank in np.flatnonzero(exist[row]).tolist():
                token, parent = int(candidates.ids[row, rank]), int(candidates.parents[row, rank])
                fate: Fate = "late_eos" if token == EOS else "rank"
                if ends[row, rank]:
                    fate = "eos" if token == EOS else "length"
                slots[rank] = len(self.nodes)
                self.nodes.append(
                    TraceNode(
                        *key,
                        step,
                        before[parent] if before else ROOT,
                        token,
                        float(candidates.token_log_probs[row, rank]),
                        float(candidates.log_probs[row, rank]),
                        rank,
                        fate,
                        None if weights is None else weights[flat_indices[row, rank]].copy(),
                    )
                )
            # Slots of the beam that hold no hypothesis repeat the first node, which nothing extends.
            after = [
                slots.get(int(rank), 0) if is_live else 0 for rank, is_live in zip(chosen[row], lives[row], strict=True)
            ]
            for node, is_live in zip(after, lives[row], strict=True):
                if is_live:
                    self.nodes[node].fate = "live"
            self._live[key] = after

    def close(self, beam_state: BeamState, rows: IntArray, reason: FinishReason | Literal["stopped"]) -> None:
        """Record that the search of some rows ends.

        Args:
            rows: [any] rows that end.
            reason: reason why their live hypotheses end.
        """
        for row in rows.tolist():
            nodes = self._live.get((int(beam_state.sources[row]), int(beam_state.groups[row])), [])
            for node, is_live in zip(nodes, beam_state.exist[row], strict=False):
                if is_live:
                    self.nodes[node].fate = reason

    def path(self, node: int) -> list[int]:
        """List the ancestors of a node.

        Returns:
            Indices from the first token to the node itself.
        """
        indices: list[int] = []
        while node != ROOT:
            indices.append(node)
            node = self.nodes[node].parent
        return indices[::-1]

    def departure(self, tokens: IntArray | list[int]) -> int:
        """Find the step at which a given output, such as a reference, leaves the beam.

        Args:
            tokens: ids of the output of source 0, with EOS.

        Returns:
            Index of the first token that the search dropped or never considered; -1 if it found the whole output.
        """
        parent = ROOT
        for step, token in enumerate(tokens):
            node = next(
                (
                    index
                    for index, one in enumerate(self.nodes)
                    if (one.source, one.step, one.parent, one.token) == (0, step, parent, int(token))
                ),
                None,
            )
            if node is None or self.nodes[node].fate not in ("live", "eos", "length"):
                return step
            parent = node
        return -1
