"""Exact match and F1 of answers that are spans."""

import pytest

from heedful.evaluation.answers import score_spans
from heedful.evaluation.interface import corpus_score
from heedful.evaluation.metrics.answer import SpanScore

ANSWERS = ["The cellar.", "in the old mill", "noon", ""]
REFERENCES = [["cellar"], ["a new mill", "old mill"], ["nine"], ["the"]]


def test_the_best_reference_counts():
    assert SpanScore("match").statistics(ANSWERS, REFERENCES).tolist() == [[1, 1], [0, 1], [0, 1], [1, 1]]
    assert SpanScore("f1").statistics(ANSWERS, REFERENCES)[:, 0].tolist() == pytest.approx([1, 0.8, 0, 1])
    assert SpanScore("f1").signature(REFERENCES) == "nrefs:var|case:lc|punct:no|articles:no|heedful:1"


def test_scores_are_those_of_evaluate():
    gold = [texts[0] for texts in REFERENCES]
    report = score_spans(ANSWERS, gold)
    for metric, score in ((SpanScore("match"), report.exact_match), (SpanScore("f1"), report.f1)):
        assert corpus_score(metric, metric.statistics(ANSWERS, [[text] for text in gold])) == pytest.approx(score)
