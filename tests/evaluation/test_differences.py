"""Comparison of two models by the reports of every kind of output."""

from typing import cast

import pytest

from heedful.data.label_kinds import LabelKind, parse_number
from heedful.errors import DataError
from heedful.evaluation.answers import score_answers, score_spans
from heedful.evaluation.label_sets import MeanError, report_labels, score_numbers
from heedful.predictors.interface import Measured
from heedful.text.label_sets import joined_labels

GOLD = ("red", "blue") * 40
WRONG = ("red",) * 80


@pytest.mark.parametrize("kind", ["one", "several"])
def test_labels_and_sets_are_compared_by_their_share_of_right_ones(kind: LabelKind):
    right, wrong, gold = (
        [joined_labels([*label]) if kind == "several" else label for label in side] for side in (GOLD, WRONG, GOLD)
    )
    better, worse = (cast(Measured, report_labels(kind, side, gold)) for side in (right, wrong))
    (difference,) = better.differences(worse)
    assert (difference.difference, difference.verdict()) == (50.0, "better")
    assert better.differences(better)[0].verdict() == "undecided"


def test_answers_are_compared_by_their_share_of_right_ones():
    labels = [score_answers(side, GOLD, ((),) * 80, (None,) * 80) for side in (GOLD, WRONG)]
    spans = [score_spans(side, GOLD) for side in (GOLD, WRONG)]
    assert labels[0].differences(labels[1])[0].difference == 50.0
    assert spans[1].differences(spans[0])[0].verdict() == "worse"


def test_numbers_are_compared_by_their_mean_error_of_which_less_is_better():
    gold = [*map(float, range(50))]
    near, far = (score_numbers([each + by for each in gold], gold) for by in (1.0, -3.0))
    (difference,) = near.differences(far)
    assert (difference.metric, difference.difference, difference.verdict()) == ("mean error", -2.0, "better")
    assert far.differences(near)[0].verdict() == "worse"
    assert "errors" not in near.to_dict()
    with pytest.raises(DataError):
        near.differences(score_numbers(gold[:9], gold[:9]))


def test_mean_error_of_texts_is_that_of_the_nearest_reference():
    metric, texts = MeanError(), ["1", "2.5"]
    totals = metric.statistics(texts, [["3"], ["2", "4"]]).sum(axis=0)
    assert metric.scores(totals) == pytest.approx((abs(parse_number("1") - 3.0) + 0.5) / 2.0)
    assert metric.signature([["3"], ["2", "4"]]) == "nrefs:var|heedful:1"
