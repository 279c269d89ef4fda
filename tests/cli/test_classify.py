"""`heedful train --task classification`, `classify` and `evaluate` of its model."""

import json
from pathlib import Path

import pytest

from tests.cli.command import heedful
from tests.tasks.reviews import SETTINGS, write_reviews


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classify")
    data, out = write_reviews(folder / "reviews.tsv"), folder / "m"
    settings = [word for setting in (*SETTINGS, "training.max_steps=60") for word in ("--set", setting)]
    options = ("--task", "classification", "--preset", "bag", "--out", out, "--threads", "1")
    done = heedful("train", data, *options, *settings)
    assert done.code == 0, done.err
    assert "accuracy" in done.out
    assert f"next:  heedful classify {out}" in done.out
    return out


def test_texts_get_labels(model: Path):
    done = heedful("classify", model, "a clean room", "a dirty room")
    assert [line.split("\t")[0] for line in done.out.splitlines()] == ["good", "bad"]


def test_lines_of_a_file_and_of_standard_input_get_labels(model: Path, tmp_path: Path):
    (tmp_path / "in.txt").write_text("clean\n\ndirty\n", encoding="utf-8")
    heedful("classify", model, "-i", tmp_path / "in.txt", "-o", tmp_path / "out.tsv")
    lines = (tmp_path / "out.tsv").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in lines][::2] == ["good", "bad"]
    assert heedful("classify", model, stdin=b"clean\n").out == lines[0] + "\n"


def test_json_tells_every_probability(model: Path):
    facts = json.loads(heedful("classify", model, "clean", "--format", "jsonl").out)
    assert facts["label"] == "good"
    assert facts["probabilities"].keys() == {"good", "bad"}


def test_its_model_is_evaluated_and_described(model: Path, tmp_path: Path):
    data = write_reviews(tmp_path / "other.tsv", 60, seed=9)
    done = heedful("evaluate", model, data)
    assert done.code == 0, done.err
    assert "macro-F1" in done.out
    facts = json.loads(heedful("evaluate", model, data, "--format", "json").out)
    assert facts["num_items"] == 60
    assert facts["accuracy"] > 90
    assert "classification" in heedful("info", model).out


def test_other_commands_refuse_it_in_a_line(model: Path):
    done = heedful("translate", model, "x")
    assert done.code == 2
    assert "a model for classification, not for translation" in done.err


def test_an_engine_for_translation_is_refused_without_advice_that_cannot_help(model: Path):
    done = heedful("classify", model, "text", "--engine", "ctranslate2")
    assert done.code == 2
    assert "engine ctranslate2: not for classifiers; take onnx, torch or auto" in done.errors[0]


def test_attention_is_shown_where_there_is_some(model: Path, tmp_path: Path):
    done = heedful("classify", model, "a clean room", "--show-attention")
    assert done.code == 2
    assert "this model has no attention to show" in done.errors[0]
    settings = [word for setting in (*SETTINGS, "training.max_steps=20") for word in ("--set", setting)]
    data, out = write_reviews(tmp_path / "reviews.tsv"), tmp_path / "m"
    heedful("train", data, "--task", "classification", "--preset", "hierarchical", "--out", out, *settings)
    done = heedful("classify", out, "a clean room. Dirty.", "--show-attention")
    assert done.code == 0, done.err
    label, first, second = done.out.splitlines()
    assert label.split("\t")[0] in ("good", "bad")
    shares = [float(line.split()[0]) for line in (first, second)]
    assert sum(shares) == pytest.approx(1.0, abs=0.02)
    assert "\x1b" not in done.out
    done = heedful("classify", out, "clean", "--show-attention", "--format", "jsonl")
    assert done.code == 2
    assert "the format jsonl has the weights already" in done.errors[0]


def test_two_models_are_compared_on_the_same_texts(model: Path, tmp_path: Path):
    data = write_reviews(tmp_path / "other.tsv", 60, seed=9)
    settings = [word for setting in (*SETTINGS, "training.max_steps=1") for word in ("--set", setting)]
    train = write_reviews(tmp_path / "reviews.tsv")
    options = ("--task", "classification", "--preset", "bag", "--out", tmp_path / "worse")
    assert heedful("train", train, *options, *settings).code == 0
    done = heedful("evaluate", model, data, "--versus", tmp_path / "worse")
    assert done.code == 0, done.err
    assert "better" in done.out.splitlines()[-1]
    facts = json.loads(heedful("evaluate", model, data, "--versus", model, "--format", "json").out)
    (difference,) = facts["versus"]["differences"]
    assert (difference["metric"], difference["difference"], difference["p_value"]) == ("accuracy", 0.0, 1.0)
