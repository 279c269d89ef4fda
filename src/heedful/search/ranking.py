"""The order in which offers fill the beam: by log probability, with required phrases in turn, in groups one by one.

Groups are diverse beam search with Hamming diversity; Vijayakumar et al. 2016, arXiv:1610.02424.
At each step the groups choose one after the other, and an offer of a token loses `diversity` for each hypothesis of an
earlier group that has just taken the same token. The loss orders the offers of that step and is then forgotten: log
probabilities and scores are the model's. EOS loses nothing: groups differ in words, not in length.
"""

import numpy as np

from heedful.search.beam_allocation import allocate_beam
from heedful.search.beam_state import BeamState, Candidates
from heedful.search.interface import FloatArray, IntArray
from heedful.search.next_tokens import NextTokens
from heedful.search.phrases import FILLING
from heedful.search.search_state import SearchState


def rank_candidates(tokens: NextTokens, beam_state: BeamState, search_state: SearchState, step: int) -> Candidates:
    """Put what the hypotheses of each row offer in order.

    Args:
        tokens: that may follow.
        beam_state: the hypotheses.
        search_state: settings and constraints.
        step: tokens generated so far.

    Returns:
        The offers, best first, as `BeamState.advance` takes them.
    """
    num_groups = search_state.config.num_groups
    if num_groups == 1:
        return _rank(tokens, beam_state, search_state, step, None)
    num_rows, size = beam_state.log_probs.shape
    taken = np.empty((num_rows // num_groups, 0), dtype=np.int64)
    parts: list[Candidates] = []
    for group in range(num_groups):
        rows = np.arange(group, num_rows, num_groups)
        own = tokens.select(rows)
        candidates = _rank(
            own, beam_state.select(rows), search_state, step, search_state.config.diversity * _counts(own.ids, taken)
        )
        # Whether they live on or end at the cap.
        chosen, is_taken = candidates.going_on(size, np.zeros(rows.size, dtype=np.bool_))
        ids = np.where(is_taken, np.take_along_axis(candidates.ids, chosen, axis=1), FILLING)
        taken = np.concatenate([taken, ids], axis=1)
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


def _counts(ids: IntArray, taken: IntArray) -> FloatArray:
    """[source, hypothesis, offer] how often each token was taken."""
    return (ids[:, :, :, None] == taken[:, None, None, :]).sum(axis=3).astype(np.float64)


def _interleaved(parts: list[Candidates]) -> Candidates:
    """Candidates of the groups as rows: those of a source beside each other."""
    arrays = [
        np.stack([getattr(part, name) for part in parts], axis=1).reshape(-1, getattr(parts[0], name).shape[1])
        for name in Candidates.__slots__
    ]
    return Candidates(*arrays)
