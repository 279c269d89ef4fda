"""Scores on the page: of the stored record whose weights are the model's."""

from pathlib import Path
from typing import Any

import pytest

from heedful.files.formats import TEST_SCORES_FORMAT
from heedful.files.records import write_facts
from heedful.pages.evaluation import evaluation, stored_scores
from heedful.pages.record import EVALUATION, TEST

BUCKET = {"shortest": 1, "longest": 4, "num_items": 9, "score": 30.0, "low": 20.0, "high": 40.0}
RESULT = {"metric": "chrf", "name": "chrF2", "unit": "", "score": 40.0, "low": 35.0, "high": 45.0}


def stored(path: Path, score: float, weights: str = "w", **facts: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    results = [{**RESULT, "score": score, "by_length": [BUCKET]}]
    write_facts(path, TEST_SCORES_FORMAT, {"weights": weights, "results": results, "num_items": 9, **facts})


def test_a_recorded_evaluation_goes_before_that_of_training(tmp_path: Path):
    model = tmp_path / "my model"
    assert evaluation(model, "w")["metrics"] == []
    assert evaluation(model, "w")["command"] == "heedful evaluate 'my model' TEST.tsv --record"
    stored(model / TEST, 40.0)
    assert [one["score"] for one in evaluation(model, "w")["metrics"]] == [40.0]
    worst = [{"source": "s", "references": ["r"], "output": "o", "score": 1.0}]
    stored(model / EVALUATION, 41.0, worst_by="chrf", worst=worst)
    shown = evaluation(model, "w")
    assert [one["score"] for one in shown["metrics"]] == [41.0]
    assert shown["metrics"][0]["byLength"][0]["longest"] == 4
    assert shown["worst"] == [{"source": "s", "reference": "r", "output": "o", "score": 1.0}]
    assert shown["worstBy"] == "chrF2"


def test_scores_of_other_weights_and_damaged_ones_are_left_out(tmp_path: Path):
    stored(tmp_path / TEST, 40.0, weights="older")
    assert evaluation(tmp_path, "w")["metrics"] == []
    stored(tmp_path / EVALUATION, 40.0, worst=[{"source": 1}])
    assert evaluation(tmp_path, "w")["worst"] == []
    (tmp_path / EVALUATION).write_text("{", encoding="utf-8")
    assert evaluation(tmp_path, "w")["metrics"] == []


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ({"accuracy": 90.04, "low": 80.0, "high": 95.0, "macro_f1": 70.5, "labels": []}, ["accuracy", "macro-F1"]),
        ({"exact_match": 50.0, "low": 40.0, "high": 60.0, "f1": 55.5}, ["exact match", "F1"]),
        ({"mean_error": 0.25, "root_mean_square": 0.5, "explained": 80.0}, ["mean error", "variance explained"]),
        ({"accuracy": "high"}, []),
    ],
)
def test_scores_of_every_task_have_their_names(stored: dict[str, Any], shown: list[str], tmp_path: Path):
    (tmp_path / "run").mkdir()
    write_facts(tmp_path / TEST, TEST_SCORES_FORMAT, {"weights": "w", "num_items": 20, **stored})
    scores, number = stored_scores(tmp_path, "w")
    assert [one["name"] for one in scores] == shown
    assert number == 20
    if stored.get("low") and shown:
        assert [(one["low"], one["high"]) for one in scores] == [(stored["low"], stored["high"]), (None, None)]
