"""Scores of answers."""

import numpy as np
import pytest

from heedful.errors import DataError
from heedful.evaluation.answers import score_answers, score_spans

WEIGHTS = np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]], dtype=np.float32)


def test_supporting_facts_are_attended_where_they_have_the_largest_weight_of_a_step():
    report = score_answers(
        ["a", "b", "a"], ["a", "a", "a"], [[0, 1], [2], []], [WEIGHTS, WEIGHTS, np.zeros((2, 0), np.float32)]
    )
    assert (report.num_supporting, report.num_attended) == (3, 2)
    assert report.attended == pytest.approx(200 / 3)
    assert report.right == (True, False, True)
    assert "66.67 % of 3 supporting facts" in report.summary()
    assert "66.67 % of 3 supporting facts" in report.to_text()
    assert "3 questions" in report.to_text()
    assert report.to_dict()["attended"] == report.attended


def test_the_most_frequent_answer_alone_stands_beside_the_score():
    report = score_answers(["a", "a", "c"], ["a", "b", "b"], [[], [], []], [None, None, None])
    for text in (report.summary(), report.to_text()):
        assert "; the most frequent answer of these questions alone has 66.67 %\n" in text
    assert report.to_dict()["majority"] == pytest.approx(200 / 3)
    spans = score_spans(["the hall", "a", ""], ["Hall", "the hall.", ""])
    assert spans.majority == spans.to_dict()["majority"] == pytest.approx(200 / 3)
    assert "; the most frequent answer of these questions alone has 66.67 %\n" in spans.summary()
    assert "; the most frequent answer of these questions alone has 66.67 %\n" in spans.to_text()


def test_without_supporting_facts_nothing_is_said_of_them():
    report = score_answers(["a"], ["a"], [[]], [None])
    assert report.attended is None
    assert "supporting" not in report.summary() + report.to_text()
    assert report.to_dict()["attended"] is None


def test_spans_are_right_apart_from_case_punctuation_and_articles():
    report = score_spans(
        ["the cellar.", "Ada", "", "北京大学"],
        ["Cellar", "Ada Stone", "x", "北京"],
        [[0], [1], [], []],
        [WEIGHTS, WEIGHTS, None, None],
    )
    assert report.right == (True, False, False, False)
    assert report.exact_match == 25.0
    assert report.shares == pytest.approx((1.0, 2 / 3, 0.0, 2 / 3))
    assert report.f1 == pytest.approx(100 * (1 + 4 / 3) / 4)
    assert (report.num_supporting, report.num_attended) == (2, 1)
    assert "exact match 25.00 %" in report.summary()
    assert "50.00 % of 2 supporting facts" in report.to_text()
    assert report.to_dict()["f1"] == report.f1
    assert "exact match 25.00" in repr(report)
    assert "supporting" not in score_spans(["a"], ["a"]).summary()


def test_no_spans_have_no_scores():
    with pytest.raises(DataError, match="no questions"):
        score_spans([], [])
