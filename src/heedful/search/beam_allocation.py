"""Outputs that hold required phrases: a beam parted among hypotheses that hold more of them and less of them.

Dynamic beam allocation; Post and Vilar 2018, arXiv:1804.06609, section 3. A hypothesis that holds few of the required
tokens is more probable than one that holds many, so a plain beam would drop the latter. Here

- every hypothesis also offers the tokens of its required phrases, however improbable;
- offers are sorted into banks by how many tokens they still need, and the beam is dealt out to the banks in turn: the
  best of each, beginning with the bank that needs least, then the second best of each, and so on. The paper parts the
  beam among all banks, those without offers too, and moves what they leave; dealt out in turn, nothing needs to be
  moved, and no bank gets all of a narrow beam;
- EOS is offered only by hypotheses that hold everything;
- an offer that needs more tokens than its cap leaves room for does not exist.

**Every output that ends holds all required phrases, and one is found** where the model gives no token probability 0
and, where phrases of several tokens are banned, some token that may be generated is in no phrase. For let a hypothesis
need n tokens, with room for n or more. Of the required phrases it lacks, it has begun one furthest; the token that goes
on with it is offered, and what is made so needs n - 1 at most. Where phrases are banned, the one gone on with is one
that holds all that is begun of a banned one: as no required phrase holds a banned one, it can be completed; and n
counts a token between phrases, which is in no phrase, so that nothing banned arises there. The cap has room for all of
it from the beginning (`heedful.search.constraints.least_length`). So no step leaves a source without offers, and at the
cap no offer needs anything.
"""

import numpy as np

from heedful.search.beam_state import BeamState, BoolArray, Candidates
from heedful.search.interface import IntArray
from heedful.search.phrases import Phrases
from heedful.search.search_state import SearchState


def allocate_beam(candidates: Candidates, beam_state: BeamState, search_state: SearchState, step: int) -> Candidates:
    """Put offers into the order in which the beam is dealt out, those that come too late for their phrases last.

    Args:
        candidates: all of each row, in order of log probability.
        beam_state: the hypotheses that make them.
        search_state: gives the required phrases.
        step: tokens generated so far.

    Returns:
        The offers; those that cannot count have log probability -inf.
    """
    needed = tokens_needed(
        search_state.required.select(beam_state.sources),
        search_state.banned.select(beam_state.sources),
        search_state.need_gaps[beam_state.sources],
        beam_state,
        candidates,
    )
    room = search_state.max_lengths[beam_state.sources] - (step + 1)
    # What a prefix says is done, even where it moves away from a phrase; the cap has room for what comes after.
    is_late = (needed > room[:, None]) & (search_state.forced(beam_state, step) < 0)[:, None]
    log_probs = np.where(is_late, -np.inf, candidates.log_probs)
    return interleave_banks(
        Candidates(log_probs, candidates.token_log_probs, candidates.parents, candidates.ids), needed
    )


def tokens_needed(
    required: Phrases, banned: Phrases, need_gaps: BoolArray, beam_state: BeamState, candidates: Candidates
) -> IntArray:
    """Count the tokens that offers need to hold all phrases, written one after the other.

    Args:
        required: phrases of each row.
        banned: phrases of each row.
        need_gaps: [row] whether a token is counted between phrases.
        beam_state: the hypotheses.
        candidates: what they offer.

    Returns:
        [row, offer] tokens of all phrases that are missing, gaps included, less what has begun of one of them; 0 where
        none is missing.
    """
    num_rows = beam_state.sources.size
    rows = np.arange(num_rows)[:, None]
    reached = required.reached(required.begun(beam_state.token_ids), candidates.parents, candidates.ids)
    begun = _furthest(reached)
    is_missing = ~(
        required.complete(beam_state.token_ids)[rows, candidates.parents] | (begun == required.lengths[:, None, :])
    )
    gaps = need_gaps.astype(np.int64)[:, None, None]
    missing = np.where(is_missing, required.lengths[:, None, :] + gaps, 0).sum(axis=2)
    # A beginning counts if it holds all that is begun of a banned phrase, for then nothing stands in its way.
    pending = banned.reached(banned.begun(beam_state.token_ids), candidates.parents, candidates.ids)
    is_part = np.arange(1, banned.ids.shape[2] + 1) < banned.lengths[:, None, :, None]
    in_the_way = _furthest(pending & is_part).max(axis=2, initial=0)
    is_sure = is_missing & ((gaps == 0) | (in_the_way[:, :, None] <= begun))
    return missing - np.where(is_sure, begun + gaps, 0).max(axis=2, initial=0)


def interleave_banks(candidates: Candidates, banks: IntArray) -> Candidates:
    """Deal offers out: the first of each bank, then the second of each, and so on.

    Args:
        candidates: best first.
        banks: [row, offer] which bank each belongs to; lower ones are served first.

    Returns:
        The offers in that order; those that do not exist come last.
    """
    by_bank = np.lexsort((banks, ~candidates.exist), axis=-1)
    ordered = np.take_along_axis(banks, by_bank, axis=1)
    exist = np.take_along_axis(candidates.exist, by_bank, axis=1)
    places = np.broadcast_to(np.arange(banks.shape[1]), banks.shape)
    is_first = np.ones(banks.shape, dtype=np.bool_)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    turns = places - np.maximum.accumulate(np.where(is_first, places, 0), axis=1)
    dealt = np.lexsort((ordered, turns, ~exist), axis=-1)
    return candidates.take(np.take_along_axis(by_bank, dealt, axis=1))


def _furthest(reached: BoolArray) -> IntArray:
    """[row, offer, phrase] tokens of the longest beginning that is reached."""
    return (reached * np.arange(1, reached.shape[3] + 1)).max(axis=3)
