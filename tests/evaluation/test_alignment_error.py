"""Alignment error rate by hand, over a corpus, and as a metric among the others."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import DataError, UsageError
from heedful.evaluation.alignment_error import AlignmentErrorRate, count_links, score_alignments
from heedful.evaluation.bootstrap import Interval, paired_bootstrap, score_interval
from heedful.evaluation.by_length import by_length
from heedful.evaluation.interface import Metric, corpus_score
from heedful.text.links import GoldLinks, Links, parse_gold, parse_pharaoh

# S = {0-0, 1-2, 3-3}, P = S + {1-1, 2-2}; A = {0-0, 1-1, 1-2, 2-3}: A and S = 2, A and P = 3, |A| = 4, |S| = 3.
FOUND = parse_pharaoh("0-0 1-1 1-2 2-3")
GOLD = parse_gold("0-0 1-2 3-3 1p1 2p2")
# S = {0-0}, P = {0-0, 0-1}; A = {0-1}: 0, 1, 1, 1.
SECOND, SECOND_GOLD = parse_pharaoh("0-1"), parse_gold("0-0 0p1")


def test_one_sentence_by_hand():
    found = score_alignments([FOUND], [GOLD])
    assert found.precision == pytest.approx(100 * 3 / 4)
    assert found.recall == pytest.approx(100 * 2 / 3)
    assert found.error_rate == pytest.approx(100 * (1 - (2 + 3) / (4 + 3)))
    assert (found.num_sentences, found.num_links, found.num_sure) == (1, 4, 3)


def test_a_corpus_is_counted_as_a_whole():
    found = score_alignments([FOUND, SECOND], [GOLD, SECOND_GOLD])
    # Not the mean of 28.57 % and 50 %.
    assert found.error_rate == pytest.approx(100 * (1 - (2 + 4) / (5 + 4)))
    assert (found.precision, found.recall) == (pytest.approx(100 * 4 / 5), pytest.approx(100 * 2 / 4))
    assert count_links([FOUND, SECOND], [GOLD, SECOND_GOLD]).tolist() == [[2, 3, 4, 3], [0, 1, 1, 1]]


@pytest.mark.parametrize(
    ("links", "gold", "scores"),
    [
        ("0-0 1-1", "0-0 1-1", (0, 100, 100)),
        ("0-0", "0-0 1p1", (0, 100, 100)),
        ("0-0 1-1", "0-0 1p1", (0, 100, 100)),
        ("0-1", "0-0 1-1", (100, 0, 0)),
        ("", "0-0", (100, 100, 0)),
        ("0-0", "", (100, 0, 100)),
        ("0-0", "0p0", (0, 100, 100)),
        ("", "0p0", (0, 100, 100)),
        ("", "", (0, 100, 100)),
    ],
)
def test_ends_of_the_scale(links: str, gold: str, scores: tuple[float, float, float]):
    found = score_alignments([parse_pharaoh(links)], [parse_gold(gold)])
    assert (found.error_rate, found.precision, found.recall) == scores


def test_a_sure_link_is_possible_and_a_repeated_one_counts_once():
    gold = GoldLinks(sure=[(0, 0), (0, 0)], possible=[(1, 1)])
    assert count_links([[(0, 0), (0, 0), (1, 1)]], [gold]).tolist() == [[1, 2, 2, 1]]


ALIGNMENTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6)


@settings(max_examples=50)
@given(st.lists(st.tuples(ALIGNMENTS, ALIGNMENTS, ALIGNMENTS), min_size=1, max_size=4))
def test_with_only_sure_links_aer_is_one_less_the_f_measure(sentences: list[tuple[Links, Links, Links]]):
    found = score_alignments(
        [one[0] for one in sentences], [GoldLinks(one[1], one[1] + one[2]) for one in sentences], 10
    )
    assert 0 <= found.error_rate <= 100
    sure_only = score_alignments([one[0] for one in sentences], [GoldLinks(one[1], one[1]) for one in sentences], 10)
    assert found.error_rate <= sure_only.error_rate + 1e-9
    if sure_only.precision + sure_only.recall > 0 and sure_only.num_links and sure_only.num_sure:
        f_measure = 2 * sure_only.precision * sure_only.recall / (sure_only.precision + sure_only.recall)
        assert sure_only.error_rate == pytest.approx(100 - f_measure)


def test_the_interval_is_that_of_resampled_sentences():
    generator = np.random.default_rng(4)
    gold = [GoldLinks([(0, 0), (1, 1)], [(0, 0), (1, 1)])] * 200
    alignments: list[Links] = [[(0, 0), (1, 1)] if right else [(0, 1)] for right in generator.random(200) < 0.7]
    found = score_alignments(alignments, gold, num_resamples=500, seed=9)
    statistics = count_links(alignments, gold)
    assert found.interval == score_interval(AlignmentErrorRate(), statistics, 500, 9)
    assert found.interval.low < found.error_rate < found.interval.high
    # Some resamples of a corpus in which most sentences have no link at all hold none.
    empty = [GoldLinks([], [])] * 3 + [GoldLinks([(0, 0)], [(0, 0)])]
    assert score_alignments([[], [], [], [(0, 1)]], empty).interval == Interval(0, 100)


def test_seed_and_number_of_resamples_are_used():
    gold = [GoldLinks([(0, 0)], [(0, 0)])] * 9
    alignments: list[Links] = [[(0, 0)], [(1, 1)], [(0, 0), (1, 1)]] * 3
    few, other, again = (score_alignments(alignments, gold, 5, seed) for seed in (1, 2, 1))
    assert few.interval != other.interval
    assert few == again
    assert (few.num_resamples, few.seed) == (5, 1)
    with pytest.raises(UsageError, match="num_resamples"):
        score_alignments(alignments, gold, 0)


def test_a_metric_among_the_others():
    metric: Metric = AlignmentErrorRate()
    references = [["0-0 1-2 3-3 1p1 2?2"], ["0-0 0p1"]]
    statistics = metric.statistics(["0-0 1-1 1-2 2-3", "0-1"], references)
    assert statistics.tolist() == [[2, 3, 4, 3], [0, 1, 1, 1]]
    assert corpus_score(metric, statistics) == pytest.approx(100 / 3)
    np.testing.assert_allclose(metric.scores(statistics), [200 / 7, 50])
    assert metric.signature(references) == "nrefs:1|sure:among-possible|average:corpus|heedful:1"
    better = paired_bootstrap(metric, np.tile([2.0, 2, 2, 2], (50, 1)), np.tile([0.0, 1, 2, 2], (50, 1)), 100)
    assert (better.difference, better.verdict()) == (-75, "better")
    assert [bucket.score for bucket in by_length(metric, statistics, [3, 9], [5])] == pytest.approx([200 / 7, 50])


def test_texts_that_are_no_alignments_are_refused():
    metric = AlignmentErrorRate()
    with pytest.raises(DataError, match="alignment 2: 'x' is not a link"):
        metric.statistics(["0-0", "x"], [["0-0"], ["0-0"]])
    with pytest.raises(DataError, match="alignment 1: possible links"):
        metric.statistics(["0p0"], [["0-0"]])
    with pytest.raises(DataError, match="manual alignment 1: 'x' is not"):
        metric.statistics(["0-0"], [["x"]])
    with pytest.raises(DataError, match="sentence 2: 2 manual alignments; expected one"):
        metric.statistics(["0-0", "0-0"], [["0-0"], ["0-0", "0-1"]])


def test_other_numbers_of_sentences_are_refused():
    with pytest.raises(DataError, match="1 alignments and 2 manual ones"):
        score_alignments([FOUND], [GOLD, GOLD])
    with pytest.raises(DataError, match="no manual alignment"):
        score_alignments([], [])


def test_as_text_and_as_json():
    found = score_alignments([FOUND, SECOND] * 20, [GOLD, SECOND_GOLD] * 20)
    low, high = found.interval
    assert str(found) == f"AER 33.3 % ({low:.1f} to {high:.1f}), precision 80.0 %, recall 50.0 %, 40 sentences"
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (plain["low"], plain["high"], plain["num_links"]) == (low, high, 100)
    assert "interval" not in plain
