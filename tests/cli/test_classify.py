"""`heedful train --task classification`, `classify` and `evaluate` of its model."""

import csv
import io
import json
import shutil
from datetime import datetime
from pathlib import Path
from unittest.mock import ANY

import pyarrow
import pytest
from pyarrow import parquet

from heedful.engines.folder import commit, open_folder
from heedful.predictors.label_predictor import TEXT_COLUMNS
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
    assert facts["selected"][0]["coverage"] > 90
    assert "confidence 0." in done.out or "confidence 1." in done.out
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


def test_a_table_comes_back_in_order_with_labels(model: Path, tmp_path: Path):
    rows = [(str(n), "a clean\nroom, yes" if n % 3 else "a dirty room", 'say "x"') for n in range(30)]
    rows[4] = ("4", " ", "blank")
    wanted = ["" if n == 4 else "good" if n % 3 else "bad" for n in range(30)]
    heads = ("id", "text", "label")
    stream = io.StringIO()
    csv.writer(stream, delimiter=";").writerows([heads, *rows])
    table = tmp_path / "in.csv"
    table.write_bytes(stream.getvalue().encode() + b"5;too;many;cells\n")
    for name in ("out.csv", "out.jsonl", "out.parquet", "out.tsv"):
        done = heedful("classify", model, "-i", table, "-o", tmp_path / name, "--top", "2")
        assert done.code == 0, done.err
        assert "in.csv:51: 4 columns, where others have 3" in done.err
        path = tmp_path / name
        if path.suffix == ".parquet":
            read = parquet.read_table(path).to_pylist()
        elif path.suffix == ".jsonl":
            read = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        else:
            separator = ";" if path.suffix == ".csv" else "\t"
            read = [*csv.DictReader(io.StringIO(path.read_text("utf-8")), delimiter=separator)]
        assert [(row["id"], row["text"], row["label"]) for row in read[:30]] == rows, name
        assert [row["predicted_label"] or "" for row in read[:30]] == wanted
        assert {"predicted_probability", "predicted_label_2", "predicted_probability_2"} < read[0].keys()
        assert len(read) == 31
    # In Parquet, other columns keep their types; JSON keeps what is nested.
    whole = pyarrow.table({"when": [datetime(2026, 1, 1)], "text": ["a clean room"], "more": [[1, 2]]})
    parquet.write_table(whole, tmp_path / "in.parquet")
    assert heedful("classify", model, "-i", tmp_path / "in.parquet", "-o", tmp_path / "back.parquet").code == 0
    back = parquet.read_table(tmp_path / "back.parquet")
    assert back.select(["when", "text", "more"]) == whole
    assert back["label"].to_pylist() == ["good"]
    (tmp_path / "in.json").write_text(json.dumps([{"a": {"b": 1}, "text": "a dirty room"}]), "utf-8")
    (line,) = heedful("classify", model, "-i", tmp_path / "in.json").out.splitlines()
    assert json.loads(line) == {"a": {"b": 1}, "text": "a dirty room", "label": "bad", "probability": ANY}
    (tmp_path / "plain.tsv").write_text("a clean room\t17\n", "utf-8")
    assert heedful("classify", model, "-i", tmp_path / "plain.tsv").out.startswith("a clean room\t17\tgood\t")


def test_an_unsure_label_is_none_and_a_missing_column_is_one_line(model: Path, tmp_path: Path):
    assert heedful("classify", model, "a clean room", "--min-confidence", "1").out.startswith("unsure\t")
    (tmp_path / "in.csv").write_text("id,review\n1,a clean room\n", "utf-8")
    done = heedful("classify", model, "-i", tmp_path / "in.csv", "--columns", "reviews")
    assert done.code == 2
    assert "no column 'reviews'; did you mean 'review'" in done.err
    assert heedful("classify", model, "-i", tmp_path / "in.csv").out.splitlines()[1].startswith("1,a clean room,good,")
    assert heedful("classify", model, "-i", tmp_path / "in.csv", "-o", tmp_path / "out.docx").code == 2
    assert heedful("classify", model, "a", "--columns", "text").code == 2
    for name, content, complaint in (
        ("a.png", b"\x89PNG\r\n\x1a\n", "a PNG picture"),
        ("a.jpg", b"\xff\xd8\xff\xe0", "a JPEG picture"),
        ("a.txt", bytes(range(32)) * 9, "a binary file"),
    ):
        (tmp_path / name).write_bytes(content)
        done = heedful("classify", model, "-i", tmp_path / name)
        assert (done.code, done.out) == (2, "")
        assert f"{tmp_path / name}: {complaint}, not text" in done.err


def test_a_table_without_the_column_of_texts_and_one_with_empty_cells(model: Path, tmp_path: Path):
    named = tmp_path / "named"
    shutil.copytree(model, named)
    facts = open_folder(named).facts
    others = {key: value for key, value in facts.items() if key not in ("format", "files")}
    commit(named, {**others, TEXT_COLUMNS: ["text"]}, [*facts["files"]])
    (tmp_path / "numbers.csv").write_text("id,score,when\n1,5,2024\n2,25,2025\n", "utf-8")
    done = heedful("classify", named, "-i", tmp_path / "numbers.csv", "-o", tmp_path / "out.csv")
    assert (done.code, done.out) == (2, "")
    assert "no column text, which the model was trained on, and none of texts; name it with --columns" in done.err
    assert not (tmp_path / "out.csv").exists()
    (tmp_path / "bodies.csv").write_text("id,body\n1,a clean room\n", "utf-8")
    done = heedful("classify", named, "-i", tmp_path / "bodies.csv")
    assert done.code == 0
    assert "no column text, which the model was trained on; is it another?" in done.err
    (tmp_path / "blank.tsv").write_text("\ta clean room\n\ta dirty room\n", "utf-8")
    done = heedful("classify", named, "-i", tmp_path / "blank.tsv", "-o", tmp_path / "blank.csv")
    assert len((tmp_path / "blank.csv").read_text("utf-8").splitlines()) == 2


def test_inspect_shows_words_by_attention_and_by_effect(model: Path, tmp_path: Path):
    text = "the staff were rude and the room was clean"
    done = heedful("inspect", model, text)
    assert done.code == 0
    assert all(part in done.out for part in ("attention", "without it"))
    page = tmp_path / "page.html"
    done = heedful("inspect", model, f"{text} <script>alert(1)</script>", "--html", page)
    assert (done.code, done.out) == (0, f"{page}\n")
    written = page.read_text(encoding="utf-8")
    assert "Without each word" in written
    assert "<mark" in written
    assert "<script" not in written
    for options, reason in ((("--reference", "good"), "translations"), (("--png", tmp_path / "p.png"), "attention")):
        refused = heedful("inspect", model, text, *options)
        assert (refused.code, len(refused.errors), reason in refused.err) == (2, 1, True)
