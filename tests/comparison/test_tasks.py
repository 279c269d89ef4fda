"""Comparisons of every task beside translation, from the data to the table."""

import json
from pathlib import Path

import pytest
from PIL import Image

from heedful.comparison.compare import compare_grid
from heedful.errors import UsageError
from heedful.synthetic import facts, reviews
from heedful.synthetic.scenes import generate_scenes

TINY = {
    "classification": "embedding_size = 4\nhidden_size = 4",
    "answering": "hidden_size = 4",
    "captioning": "embedding_size = 8\nhidden_size = 8",
}


def write_data(task: str, folder: Path) -> Path:
    if task == "classification":
        lines = [f"{text}\t{label}" for text, label in reviews.generate(200, 1)]
    elif task == "answering":
        lines = [
            json.dumps({"facts": list(story.facts), "question": story.question, "answer": story.answer})
            for story in facts.generate(200, 1, 1)
        ]
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
        '[[rows]]\nname = "of another task"\npreset = "rnnsearch-tiny"\n',
        encoding="utf-8",
    )
    return path


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
    assert list(result.comparison.missing) == ["of another task"]
    assert f"is not a model for {task}" in result.comparison.missing["of another task"]
    assert result["other"].difference is not None
    assert ("macro_f1" in result["one"].figures) == (task != "captioning")
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


def test_links_are_of_translations_only(tmp_path: Path):
    data, grid = write_data("classification", tmp_path), write_grid("classification", tmp_path)
    links = tmp_path / "links.txt"
    links.write_text("0-0\n", encoding="utf-8")
    with pytest.raises(UsageError, match="classification has no word alignments"):
        compare_grid(grid, data, out=tmp_path / "out", test=data, gold=links, quiet=True)
