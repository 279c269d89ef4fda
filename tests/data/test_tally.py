"""Counts with first places, and outliers of a histogram."""

import numpy as np
import pytest

from heedful.data.tally import NUM_PLACES, Tally, far_from_median


def test_counts_and_first_places():
    tally = Tally[str]()
    for line in range(1, 11):
        tally.add("even" if line % 2 == 0 else "odd", line)
    tally.add("other", 12)
    assert tally.counts == {"even": 5, "odd": 5, "other": 1}
    assert tally.total(["even", "other", "never"]) == 6
    assert tally.lines(["even", "odd", "never"]) == (1, 2, 3, 4, 5)
    assert tally.lines(["other", "even"]) == (2, 4, 6, 8, 10)
    assert NUM_PLACES == 5


@pytest.mark.parametrize("centre", [-30, 0, 12])
def test_outliers_do_not_hide_one_another(centre: int):
    values = np.rint(np.random.default_rng(1).normal(centre, 5, 2000)).astype(int).tolist()
    counts = {value: values.count(value) for value in set(values)}
    assert far_from_median(counts, 6.0, 0.0) == []
    assert far_from_median(counts | {centre + 60: 400, centre - 50: 9}, 6.0, 0.0) == [centre - 50, centre + 60]
    assert far_from_median(counts | {centre + 60: 400}, 6.0, 70.0) == []


def test_the_bound_is_in_standard_deviations():
    # The median is 0 and half of the values are 10 away or farther: the deviation is 14.8.
    counts = {-10: 2, 0: 3, 10: 2, 29: 1, -30: 1}
    assert far_from_median(counts, 2.0, 0.0) == [-30]


def test_nothing_has_no_outliers():
    assert far_from_median({}, 6.0, 0.0) == []
    assert far_from_median({3: 1}, 6.0, 0.0) == []
