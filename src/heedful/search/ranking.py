"""Ranking of candidates: by log probability, by beam allocation for required phrases, and group by group.

Groups are diverse beam search with Hamming diversity; Vijayakumar et al. 2016, arXiv:1610.02424. At each step the
groups choose one after the other, and a token is penalised by `diversity` for each hypothesis of an earlier group that
has just taken it. The penalty affects the ranking of that step only: log probabilities and scores are the model's. EOS
is not penalised: groups differ in words, not in length.
"""

import numpy as np

from heedful.search.beam_allocation import allocate_beam
from heedful.search.beam_state import BeamState, Candidates
from heedful.search.interface import FloatArray, IntArray
from heedful.search.next_tokens import NextTokens
from heedful.search.phrases import FILLING
from heedful.search.search_state import SearchState


def rank_candidates(tokens: NextTokens, beam_state: BeamState, search_state: SearchState, step: int) -> Candidates:
    """Rank the candidates of each row.

    Args:
        tokens: possible next tokens.
        step: tokens generated so far.

    Returns:
        The candidates, best first, for `BeamState.advance`.
    """
    num_groups = search_state.config.num_groups
    if num_groups == 1:
        return _rank(tokens, beam_state, search_state, step, None)
    num_rows, size = beam_state.log_probs.shape
    taken_ids = np.empty((num_rows // num_groups, 0), dtype=np.int64)
    parts: list[Candidates] = []
    for group in range(num_groups):
        rows = np.arange(group, num_rows, num_groups)
        own = tokens.select(rows)
        candidates = _rank(
            own,
            beam_state.select(rows),
            search_state,
            step,
            search_state.config.diversity * _counts(own.ids, taken_ids),
        )
        # Tokens count as taken whether their hypotheses stay alive or end at the length limit.
        chosen, is_taken = candidates.going_on(size, np.zeros(rows.size, dtype=np.bool_))
        ids = np.where(is_taken, np.take_along_axis(candidates.ids, chosen, axis=1), FILLING)
        taken_ids = np.concatenate([taken_ids, ids], axis=1)
        parts.append(candidates)
    return _interleaved(parts)


def _rank(
    tokens: NextTokens, beam_state: BeamState, search_state: SearchState, step: int, handicaps: FloatArray | None
) -> Candidates:
    if not search_state.required_ids.size:
        return beam_state.rank(tokens.log_probs, tokens.ids, tokens.charges, handicaps)
    everything = tokens.ids[0].size
    candidates = beam_state.rank(tokens.log_probs, tokens.ids, tokens.charges, handicaps, everything)
    size = beam_state.log_probs.shape[1]
    return allocate_beam(candidates, beam_state, search_state, step).first(2 * size if size > 1 else 1)


def _counts(ids: IntArray, taken_ids: IntArray) -> FloatArray:
    """[source, hypothesis, candidate] number of earlier hypotheses that took each token."""
    return (ids[:, :, :, None] == taken_ids[:, None, None, :]).sum(axis=3).astype(np.float64)


def _interleaved(parts: list[Candidates]) -> Candidates:
    """Candidates of all groups, the rows of a source next to each other."""
    arrays = [
        np.stack([getattr(part, name) for part in parts], axis=1).reshape(-1, getattr(parts[0], name).shape[1])
        for name in Candidates.__slots__
    ]
    return Candidates(*arrays)
