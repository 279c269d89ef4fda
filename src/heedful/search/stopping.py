"""Stopping rule `certain`: proof that no hypothesis still to be found can enter the list.

Let a live hypothesis have log probability L <= 0 after t tokens (less repetition charges, which are never negative),
and let its source's length limit be c > t tokens. Any continuation of it ends with n tokens, t < n <= c. Each further
token adds a log probability that is at most 0 and costs that are at least 0, so the whole has at most L; the coverage
penalty is at most 0. With the length penalty lp >= 1 and the reward r >= 0, its score is therefore at most

    L / lp(n) + r n  <=  L / lp(c) + r c,

for L <= 0 and neither lp nor n falls as n grows. A hypothesis that is found later continues one that is live now. So
once the `nbest`-th best of the finished ones scores at least max over the live ones of L / lp(c) + r c, all that is
found later ranks behind `nbest` others, which came first where scores are equal. Rounding preserves this: addition,
division and roots in floating point do not reverse an order.

After Huang, Zhao and Ma 2017, "When to finish?", arXiv:1809.00069, whose rewards are bounded too; here the
length limit bounds them.

The rule applies to each group of a beam separately: if no later hypothesis of any group can enter that group's list,
none can enter the common list.
"""

import numpy as np

from heedful.search.beam_state import BeamState, BoolArray
from heedful.search.config import SearchConfig
from heedful.search.interface import FloatArray, IntArray
from heedful.search.penalties import length_score


def is_certain(beam_state: BeamState, thresholds: FloatArray, max_lengths: IntArray, config: SearchConfig) -> BoolArray:
    """Find the rows in which no later hypothesis can enter the list.

    Args:
        thresholds: [row] score of the row's `nbest`-th best finished hypothesis; -inf while there are fewer.
        max_lengths: [row] most tokens of an output.

    Returns:
        [row] whether `nbest` finished hypotheses score no lower than any continuation of the live ones.
    """
    return thresholds >= length_score(beam_state.log_probs.max(axis=1), np.maximum(max_lengths, 1), config)
