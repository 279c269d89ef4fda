"""Worst outputs are those that the metric scores worst, in its own direction."""

import pytest

from heedful.data.prepare import EvaluationSet
from heedful.evaluation.evaluate import evaluate
from heedful.evaluation.worst import worst_outputs

SOURCES = ["a", "b", "c"]
REFERENCES = [["the cat sat down"], ["a dog", "one dog"], ["good morning to you"]]
OUTPUTS = ["the cat sat down", "quite wrong", "good morning"]


@pytest.mark.parametrize(
    ("metrics", "key"), [(("bleu", "chrf"), "chrf"), (("character_error_rate",), "character_error_rate")]
)
def test_the_worst_come_first_whichever_way_the_metric_counts(metrics: tuple[str, ...], key: str):
    report = evaluate(OUTPUTS, REFERENCES, SOURCES, metrics=metrics)
    name, worst = worst_outputs(EvaluationSet(SOURCES, REFERENCES), OUTPUTS, report.results, 2)
    assert name == key
    assert [one.source for one in worst] == ["b", "c"]
    assert worst[0].to_dict() == {
        "source": "b",
        "references": ["a dog", "one dog"],
        "output": "quite wrong",
        "score": worst[0].score,
    }


def test_without_results_there_is_nothing():
    assert worst_outputs(EvaluationSet(SOURCES, REFERENCES), OUTPUTS, ()) == ("", ())
