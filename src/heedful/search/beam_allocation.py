"""Dynamic beam allocation: the beam is divided by the number of required tokens that hypotheses still lack.

Post and Vilar 2018, arXiv:1804.06609, section 3. A hypothesis with few of the required tokens is more probable than one
with many, so a plain beam would drop the latter. Here

- every hypothesis also proposes the tokens of its required phrases, however improbable;
- candidates are sorted into banks by the number of tokens they still need, and the beam is divided among the banks
  round robin: the best candidate of each bank, beginning with the bank that needs fewest tokens, then the second best
  of each, and so on. The paper divides the beam among all banks, empty ones too, and reassigns the slots that they
  leave; round robin needs no reassignment, and no bank gets all of a narrow beam;
- EOS is a candidate only of hypotheses that contain all required phrases;
- a candidate that needs more tokens than its length limit leaves room for does not exist.

**Every finished output contains all required phrases, and one is found**, provided that the model gives no token
probability 0 and, where phrases of several tokens are banned, that some allowed token is in no phrase. Proof: let a
hypothesis need n tokens, with room for n or more. Among the required phrases that it lacks, take the one with
the longest beginning at the end of the hypothesis; the next token of this phrase is a candidate, and with it the
hypothesis needs at most n - 1. Where phrases are banned, take a phrase whose beginning includes every begun
part of a banned one: no required phrase contains a banned one, so it can be completed; and n counts one token between
phrases that is in no phrase, so that no banned phrase arises there. The length limit has room for all of this from the
start (`heedful.search.constraints.least_length`). So no step leaves a source without candidates, and at the length
limit no candidate needs further tokens.
"""

import numpy as np

from heedful.search.beam_state import BeamState, BoolArray, Candidates
from heedful.search.interface import IntArray
from heedful.search.phrases import Phrases
from heedful.search.search_state import SearchState


def allocate_beam(candidates: Candidates, beam_state: BeamState, search_state: SearchState, step: int) -> Candidates:
    """Order candidates by the rounds of beam allocation, those without room for their missing phrases last.

    Args:
        candidates: all of each row, in order of log probability.
        beam_state: the hypotheses that make them.
        step: tokens generated so far.

    Returns:
        The candidates; those without enough room have log probability -inf.
    """
    needed = tokens_needed(
        search_state.required.select(beam_state.sources),
        search_state.banned.select(beam_state.sources),
        search_state.need_gaps[beam_state.sources],
        beam_state,
        candidates,
    )
    room = search_state.max_lengths[beam_state.sources] - (step + 1)
    # Prefixes are obeyed even where they lead away from a phrase; the length limit has room for what comes after.
    is_late = (needed > room[:, None]) & (search_state.forced(beam_state, step) < 0)[:, None]
    log_probs = np.where(is_late, -np.inf, candidates.log_probs)
    return interleave_banks(
        Candidates(log_probs, candidates.token_log_probs, candidates.parents, candidates.ids), needed
    )


def tokens_needed(
    required: Phrases, banned: Phrases, need_gaps: BoolArray, beam_state: BeamState, candidates: Candidates
) -> IntArray:
    """Count the tokens that candidates still need to contain all phrases, written one after the other.

    Args:
        required: phrases of each row.
        banned: phrases of each row.
        need_gaps: [row] whether a token is counted between phrases.

    Returns:
        [row, candidate] tokens of all missing phrases, gaps included, less the beginning of one of them that is already
        there; 0 where none is missing.
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
    # A begun phrase counts if it includes every begun part of a banned phrase, because it can then be completed.
    pending = banned.reached(banned.begun(beam_state.token_ids), candidates.parents, candidates.ids)
    is_part = np.arange(1, banned.ids.shape[2] + 1) < banned.lengths[:, None, :, None]
    in_the_way = _furthest(pending & is_part).max(axis=2, initial=0)
    is_sure = is_missing & ((gaps == 0) | (in_the_way[:, :, None] <= begun))
    return missing - np.where(is_sure, begun + gaps, 0).max(axis=2, initial=0)


def interleave_banks(candidates: Candidates, banks: IntArray) -> Candidates:
    """Order candidates round robin: the first of each bank, then the second of each, and so on.

    Args:
        candidates: best first.
        banks: [row, candidate] which bank each belongs to; lower ones are served first.

    Returns:
        The candidates in that order; those that do not exist come last.
    """
    by_bank = np.lexsort((banks, ~candidates.exist), axis=-1)
    ordered = np.take_along_axis(banks, by_bank, axis=1)
    exist = np.take_along_axis(candidates.exist, by_bank, axis=1)
    ranks = np.broadcast_to(np.arange(banks.shape[1]), banks.shape)
    is_first = np.ones(banks.shape, dtype=np.bool_)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    turns = ranks - np.maximum.accumulate(np.where(is_first, ranks, 0), axis=1)
    dealt = np.lexsort((ordered, turns, ~exist), axis=-1)
    return candidates.take(np.take_along_axis(by_bank, dealt, axis=1))


def _furthest(reached: BoolArray) -> IntArray:
    """[row, candidate, phrase] length of the longest beginning of the phrase that is reached."""
    return (reached * np.arange(1, reached.shape[3] + 1)).max(axis=3)
