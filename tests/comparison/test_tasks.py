"""Comparisons of every task beside translation, from the data to the table."""

import json
from pathlib import Path

import pytest
from PIL import Image

from heedful.comparison.compare import compare_grid
from heedful.errors import ConfigError, UsageError
from heedful.evaluation.answers import score_spans
from heedful.predictors.answerer import Answerer
from heedful.predictors.table import load
from heedful.synthetic import facts, notices, reviews
from heedful.synthetic.scenes import generate_scenes
from tests.thorough import sampled, thorough

TINY = {
    "classification": "embedding_size = 4\nhidden_size = 4",
    "answering": "hidden_size = 4",
    "captioning": "embedding_size = 8\nhidden_size = 8",
}


def write_data(task: str, folder: Path) -> Path:
    if task == "classification":
        lines = [f"{text}\t{label}" for text, label in reviews.generate(200, 1)]
    elif task == "answering":
        lines = [story.to_json() for story in facts.generate(200, 1, 1)]
    else:
        lines = []
        for index, scene in enumerate(generate_scenes(120, 1)):
            Image.fromarray(scene.pixels).resize((16, 16)).save(folder / f"{index}.png")
            lines.append(f"{index}.png\t{scene.text}")
    path = folder / ("data.jsonl" if task == "answering" else "data.tsv")
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_grid(task: str, folder: Path) -> Path:
    path = folder / "grid.toml"
    path.write_text(
        f'task = "{task}"\n[base.model]\n{TINY[task]}\n[base.training]\nmax_steps = 2\nexport = false\n'
        '[[rows]]\nname = "one"\n[[rows]]\nname = "other"\nmodel = {dropout = 0.3}\n'
        '[[rows]]\nname = "of another task"\npreset = "rnnsearch-tiny"\n'
        '[[rows]]\nname = "too fast"\ntraining = {max_steps = 20, optimizer = {learning_rate = 1e38}}\n',
        encoding="utf-8",
    )
    return path


@sampled(3)
@pytest.mark.parametrize(
    ("task", "metric", "side"),
    [
        ("classification", "accuracy", "source"),
        ("answering", "accuracy", "source"),
        ("captioning", "exact match", "reference"),
    ],
)
def test_every_task_has_a_table(task: str, metric: str, side: str, tmp_path: Path):
    data, grid, out = write_data(task, tmp_path), write_grid(task, tmp_path), tmp_path / "out"
    result = compare_grid(grid, data, out=out, quiet=True)
    assert [row.name for row in result.rows] == ["one", "other"]
    assert result.comparison.metric.name == metric
    assert result.comparison.measured_side == side
    assert list(result.comparison.missing) == ["of another task", "too fast"]
    assert f"is not a model for {task}" in result.comparison.missing["of another task"]
    assert "seed 1: step " in result.comparison.missing["too fast"]
    assert result["other"].difference is not None
    assert ("macro_f1" in result["one"].figures) == (task != "captioning")
    assert ("attended" in result["one"].figures) == (task == "answering")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<h2>Attention</h2>" in page
    facts = json.loads((out / "findings" / "one-1.json").read_text(encoding="utf-8"))
    score = result["one"].scores[next(iter(result.comparison.metrics))].mean
    right = [
        output in texts
        for output, texts in zip(
            facts["outputs"], json.loads((out / "items.json").read_text(encoding="utf-8"))["references"], strict=True
        )
    ]
    assert score == pytest.approx(100 * sum(right) / len(right))
    assert f"--task {task}" in facts["command"]
    again = compare_grid(grid, data, out=out, quiet=True)  # nothing is trained again
    assert again.to_dict() == result.to_dict()


def test_spans_are_compared_by_exact_match_and_f1(tmp_path: Path):
    data, grid = tmp_path / "notices.jsonl", tmp_path / "grid.toml"
    data.write_text("".join(f"{story.to_json()}\n" for story in notices.generate(120, seed=1)), encoding="utf-8")
    grid.write_text(
        'task = "answering"\n[base]\npreset = "bidaf"\n[base.model]\nhidden_size = 4\nnum_layers = 1\n'
        '[base.training]\nmax_steps = 1\nexport = false\n[[rows]]\nname = "one"\n',
        encoding="utf-8",
    )
    result = compare_grid(grid, data, out=tmp_path / "out", quiet=True)
    assert [metric.name for metric in result.comparison.metrics.values()] == ["exact match", "F1"]
    assert result["one"].scores["answer_f1"].mean >= result["one"].scores["answer_match"].mean
    assert "macro_f1" not in result["one"].figures
    predictor = load(tmp_path / "out" / "runs" / "one-1", kind=Answerer)
    items = json.loads((tmp_path / "out" / "items.json").read_text(encoding="utf-8"))
    report = score_spans(predictor.predict(items["sources"]), [texts[0] for texts in items["references"]])
    assert result["one"].scores["answer_match"].mean == pytest.approx(report.exact_match)
    assert result["one"].scores["answer_f1"].mean == pytest.approx(report.f1)
    assert len(items["supporting"]) == len(items["sources"])


@thorough
def test_another_baseline_trains_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    data, grid, out = write_data("answering", tmp_path), write_grid("answering", tmp_path), tmp_path / "out"
    first = compare_grid(grid, data, out=out, seeds=(1, 2), quiet=True)
    monkeypatch.setattr("heedful.comparison.run.evaluate_run", None)
    second = compare_grid(grid, data, out=out, seeds=(1, 2), baseline="other", quiet=True)
    before, after = first["other"].difference, second["one"].difference
    assert before is not None
    assert after is not None
    assert after.difference == pytest.approx(-before.difference)
    assert second["other"].difference is None
    assert second["one"].scores["accuracy"].num_runs == 2
    assert second.command.endswith("--seeds 1,2 --baseline other")
    with pytest.raises(ConfigError, match="baseline: no row 'otter'; did you mean 'other'"):
        compare_grid(grid, data, out=out, baseline="otter", quiet=True)


def test_links_are_of_translations_only(tmp_path: Path):
    data, grid = write_data("classification", tmp_path), write_grid("classification", tmp_path)
    links = tmp_path / "links.txt"
    links.write_text("0-0\n", encoding="utf-8")
    with pytest.raises(UsageError, match="classification has no word alignments"):
        compare_grid(grid, data, out=tmp_path / "out", test=data, gold=links, quiet=True)
