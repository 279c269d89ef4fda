"""Forbidden next tokens: repeated n-grams, banned phrases, EOS before required phrases are complete, longer words."""

from typing import Final, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from heedful.search.beam_state import BeamState
from heedful.search.interface import Adjust, IntArray
from heedful.search.phrases import FILLING, Phrases
from heedful.search.search_state import SearchState
from heedful.text.vocabulary import EOS


class ForbiddenTokens(NamedTuple):
    """Tokens that single hypotheses may not take next; each axis [token]."""

    rows: IntArray
    hypotheses: IntArray
    ids: IntArray


_EMPTY: Final = np.empty(0, dtype=np.int64)
NOTHING_FORBIDDEN: Final = ForbiddenTokens(_EMPTY, _EMPTY, _EMPTY)


def find_forbidden_tokens(beam_state: BeamState, search_state: SearchState) -> ForbiddenTokens:
    """Find the tokens that single hypotheses may not take next.

    Returns:
        The last token of an n-gram of `no_repeat_ngram_size` tokens that occurred before, the last token of banned
        phrases, EOS where a required phrase is missing, and tokens that continue a word where a whole phrase stands.
    """
    parts: list[ForbiddenTokens] = []
    if size := search_state.config.no_repeat_ngram_size:
        parts.append(repeated_ngrams(beam_state.token_ids, size))
    if search_state.banned.lengths.shape[1]:
        parts.append(last_of_phrases(beam_state.token_ids, search_state.banned.select(beam_state.sources)))
    if search_state.required.lengths.shape[1]:
        is_complete = search_state.required.select(beam_state.sources).complete(beam_state.token_ids).all(axis=2)
        rows, hypotheses = np.nonzero(~is_complete)
        parts.append(ForbiddenTokens(rows, hypotheses, np.full(rows.size, EOS, dtype=np.int64)))
    if search_state.whole.lengths.shape[1]:
        sources = beam_state.sources
        parts.append(
            after_phrases(beam_state.token_ids, search_state.whole.select(sources), search_state.after_whole[sources])
        )
    return ForbiddenTokens(*(np.concatenate(axis) for axis in zip(*parts, strict=True))) if parts else NOTHING_FORBIDDEN


def as_adjust(forbidden: ForbiddenTokens, adjust: Adjust, beam_state: BeamState, width: int) -> Adjust:
    """Convert forbidden tokens to an adjustment of the engine's log probabilities.

    Args:
        width: hypotheses that the engine carries for a source.
    """
    if not forbidden.ids.size:
        return adjust
    flat_indices = forbidden.rows * beam_state.log_probs.shape[1] + forbidden.hypotheses
    values = np.full(forbidden.ids.size, -np.inf)
    return Adjust(adjust.banned, flat_indices // width, flat_indices % width, forbidden.ids, values)


def repeated_ngrams(token_ids: IntArray, size: int) -> ForbiddenTokens:
    """Find the tokens that would repeat an n-gram.

    Args:
        token_ids: [row, hypothesis, step] tokens so far.
        size: tokens of an n-gram; 1 or more.

    Returns:
        The tokens; one that is forbidden for two reasons occurs twice.

    Cost: size comparisons for each token so far.
    """
    num_steps = token_ids.shape[2]
    if num_steps < size:
        return NOTHING_FORBIDDEN
    windows = sliding_window_view(token_ids, size, axis=2)
    ending = token_ids[:, :, None, num_steps - size + 1 :]
    rows, hypotheses, starts = np.nonzero((windows[..., :-1] == ending).all(axis=3))
    return ForbiddenTokens(rows, hypotheses, windows[rows, hypotheses, starts, -1])


def last_of_phrases(token_ids: IntArray, phrases: Phrases) -> ForbiddenTokens:
    """Find the tokens that would complete phrases.

    Args:
        token_ids: [row, hypothesis, step] tokens so far.

    Returns:
        The tokens.
    """
    last = np.maximum(phrases.lengths - 1, 0)
    begun = phrases.begun(token_ids)
    # A phrase of no tokens has begun nowhere, not even at position 0.
    is_due = np.take_along_axis(begun, last[:, None, :, None], axis=3)[..., 0]
    rows, hypotheses, phrase_indices = np.nonzero(is_due)
    return ForbiddenTokens(rows, hypotheses, phrases.ids[rows, phrase_indices, last[rows, phrase_indices]])


def after_phrases(token_ids: IntArray, phrases: Phrases, ids: IntArray) -> ForbiddenTokens:
    """Forbid tokens directly after phrases.

    Args:
        token_ids: [row, hypothesis, step] tokens so far.
        ids: [row, phrase, any] the tokens, then `FILLING`.

    Returns:
        The tokens, for each hypothesis that ends in a phrase.
    """
    rows, hypotheses, indices = np.nonzero(phrases.ended(token_ids))
    tokens = ids[rows, indices]
    is_token = tokens != FILLING
    counts = is_token.sum(axis=1)
    return ForbiddenTokens(np.repeat(rows, counts), np.repeat(hypotheses, counts), tokens[is_token])
