import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import DataError, UsageError
from heedful.evaluation.bootstrap import score_interval
from heedful.evaluation.by_length import by_length, even_edges
from heedful.evaluation.interface import corpus_score
from heedful.evaluation.metrics.bleu import Bleu
from heedful.evaluation.metrics.exact_match import ExactMatch
from tests.evaluation.corpus import HYPOTHESES, REFERENCES, SOURCES

LENGTHS = [len(source.split()) for source in SOURCES]  # 6 10 1 9 4 2


def test_each_range_is_scored_alone():
    statistics = Bleu().statistics(HYPOTHESES, REFERENCES)
    buckets = by_length(Bleu(), statistics, LENGTHS, [4, 9])
    assert [(bucket.label, bucket.num_items) for bucket in buckets] == [("1-3", 2), ("4-8", 2), ("9-10", 2)]
    for bucket, rows in zip(buckets, ([2, 5], [0, 4], [1, 3]), strict=True):
        assert bucket.score == corpus_score(Bleu(), statistics[rows])
        assert bucket.interval == score_interval(Bleu(), statistics[rows])


def test_ranges_without_items_are_left_out():
    buckets = by_length(ExactMatch(), np.ones((3, 2)), [3, 30, 31], [10, 20, 30, 40])
    assert [(bucket.label, bucket.num_items) for bucket in buckets] == [("3-9", 1), ("30-39", 2)]


def test_without_edges_there_is_one_range():
    buckets = by_length(ExactMatch(), np.ones((2, 2)), [5, 5], [])
    assert [(bucket.label, bucket.num_items) for bucket in buckets] == [("5", 2)]


def test_seed_and_number_of_resamples_are_used():
    statistics = ExactMatch().statistics(["a", "b", "c", "d", "e"], [["a"], ["b"], ["x"], ["x"], ["e"]])
    few, other = (by_length(ExactMatch(), statistics, [1] * 5, [], 3, seed)[0].interval for seed in (1, 2))
    assert few != other
    assert few == score_interval(ExactMatch(), statistics, 3, 1)


@pytest.mark.parametrize("edges", [[10, 10], [20, 10]])
def test_edges_must_increase(edges: list[int]):
    with pytest.raises(UsageError, match="must increase"):
        by_length(ExactMatch(), np.ones((1, 2)), [1], edges)


def test_there_is_a_length_for_each_item():
    with pytest.raises(DataError, match="1 lengths for 2 items"):
        by_length(ExactMatch(), np.ones((2, 2)), [1], [])


def test_even_edges_part_items_evenly():
    assert even_edges(list(range(1, 101))) == (21, 41, 61, 81)
    assert even_edges(list(range(100, 0, -1)), 2) == (51,)


@pytest.mark.parametrize("lengths", [[7] * 100, [1, 2, 3], [5]])
def test_even_edges_of_few_items_or_lengths(lengths: list[int]):
    assert even_edges(lengths) == ()


def test_even_edges_need_a_bucket():
    with pytest.raises(UsageError, match="num_buckets must be 1 or more, got 0"):
        even_edges([1], 0)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=120), st.integers(1, 8))
def test_ranges_hold_every_item_once(lengths: list[int], num_buckets: int):
    edges = even_edges(lengths, num_buckets)
    assert len(edges) < num_buckets
    buckets = by_length(ExactMatch(), np.ones((len(lengths), 2)), lengths, edges, num_resamples=1)
    assert len(buckets) == len(edges) + 1
    for bucket in buckets:
        assert bucket.num_items == sum(bucket.shortest <= length <= bucket.longest for length in lengths)
    assert sum(bucket.num_items for bucket in buckets) == len(lengths)


def test_bucket_as_json():
    bucket = by_length(ExactMatch(), np.ones((2, 2)), [5, 6], [])[0]
    expected = {"shortest": 5, "longest": 6, "num_items": 2, "score": 100.0, "low": 100.0, "high": 100.0}
    assert json.loads(json.dumps(bucket.to_dict())) == expected
