"""What may not come next: for all hypotheses, and for each by what it holds."""

from typing import Final, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from heedful.search.interface import Adjust, IntArray
from heedful.search.live import Live
from heedful.search.phrases import Phrases
from heedful.search.task import Task
from heedful.text.vocabulary import EOS


class Bans(NamedTuple):
    """Tokens that single hypotheses may not take; each axis [banned]."""

    rows: IntArray
    hypotheses: IntArray
    ids: IntArray


_EMPTY: Final = np.empty(0, dtype=np.int64)
NO_BANS: Final = Bans(_EMPTY, _EMPTY, _EMPTY)


def find_bans(live: Live, task: Task) -> Bans:
    """Find what single hypotheses may not take.

    Args:
        live: the hypotheses.
        task: gives what is banned.

    Returns:
        The second of two equal sequences of `no_repeat_ngram_size` tokens, the last token of banned phrases, and EOS
        where a required phrase is missing.
    """
    found: list[Bans] = []
    if size := task.config.no_repeat_ngram_size:
        found.append(repeated_ngrams(live.token_ids, size))
    if task.banned.lengths.shape[1]:
        found.append(last_of_phrases(live.token_ids, task.banned.select(live.sources)))
    if task.required.lengths.shape[1]:
        is_complete = task.required.select(live.sources).complete(live.token_ids).all(axis=2)
        rows, hypotheses = np.nonzero(~is_complete)
        found.append(Bans(rows, hypotheses, np.full(rows.size, EOS, dtype=np.int64)))
    return Bans(*(np.concatenate(axis) for axis in zip(*found, strict=True))) if found else NO_BANS


def as_adjust(bans: Bans, adjust: Adjust, live: Live, width: int) -> Adjust:
    """Say it in the engine's terms.

    Args:
        bans: for single hypotheses of the rows.
        adjust: what holds for all hypotheses.
        live: the hypotheses.
        width: hypotheses that the engine carries for a source.

    Returns:
        The change to make.
    """
    if not bans.ids.size:
        return adjust
    places = bans.rows * live.log_probs.shape[1] + bans.hypotheses
    values = np.full(bans.ids.size, -np.inf)
    return Adjust(adjust.banned, places // width, places % width, bans.ids, values)


def repeated_ngrams(token_ids: IntArray, size: int) -> Bans:
    """Find the tokens that would end the same sequence a second time.

    Args:
        token_ids: [row, hypothesis, step] tokens so far.
        size: tokens of such a sequence; 1 or more.

    Returns:
        The tokens; of a token that is banned for two reasons both.

    Cost: size comparisons for each token so far.
    """
    num_steps = token_ids.shape[2]
    if num_steps < size:
        return NO_BANS
    windows = sliding_window_view(token_ids, size, axis=2)
    ending = token_ids[:, :, None, num_steps - size + 1 :]
    rows, hypotheses, starts = np.nonzero((windows[..., :-1] == ending).all(axis=3))
    return Bans(rows, hypotheses, windows[rows, hypotheses, starts, -1])


def last_of_phrases(token_ids: IntArray, phrases: Phrases) -> Bans:
    """Find the tokens that would complete phrases.

    Args:
        token_ids: [row, hypothesis, step] tokens so far.
        phrases: of the rows.

    Returns:
        The tokens.
    """
    last = np.maximum(phrases.lengths - 1, 0)
    begun = phrases.begun(token_ids)
    # A phrase of no tokens has begun nowhere, not even at position 0.
    is_due = np.take_along_axis(begun, last[:, None, :, None], axis=3)[..., 0]
    rows, hypotheses, places = np.nonzero(is_due)
    return Bans(rows, hypotheses, phrases.ids[rows, places, last[rows, places]])
