"""`heedful train --task classification`, `classify` and `evaluate` of its model."""

import csv
import gzip
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
    assert [line.split("\t")[0] for line in lines] == ["good", "", "bad"]
    assert heedful("classify", model, stdin=b"clean\n").out == lines[0] + "\n"


def test_a_blank_text_has_no_label_wherever_it_comes_from(model: Path, tmp_path: Path):
    done = heedful("classify", model, "", "   ", "clean", "--top", "2")
    assert [line.split("\t")[0] for line in done.out.splitlines()] == ["", "", "good"]
    assert {line.count("\t") for line in done.out.splitlines()} == {3}
    assert heedful("classify", model, stdin=b"\n  \n").out == "\t\n\t\n"
    facts = json.loads(heedful("classify", model, " ", "--format", "jsonl").out)
    assert facts == {"text": " ", "label": None, "probabilities": {}, "was_cut": False}
    (tmp_path / "in.csv").write_text("text,n\n ,1\nclean,2\n", "utf-8")
    assert heedful("classify", model, "-i", tmp_path / "in.csv").out.splitlines()[1] == " ,1,,"


def test_each_file_of_a_folder_gets_a_label_beside_its_path(model: Path, tmp_path: Path):
    folder = tmp_path / "in"
    (folder / "more").mkdir(parents=True)
    texts = {"b.txt": "dirty\nrooms", "a.txt": "clean", "more/c.txt": " ", "more/d.md": "clean", "other.png": "x"}
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    done = heedful("classify", model, "-i", folder)
    lines = [line.split("\t") for line in done.out.splitlines()]
    names = ["a.txt", "b.txt", "more/c.txt", "more/d.md"]
    assert [(name, label) for name, label, _ in lines] == [
        (str(folder / name), label) for name, label in zip(names, ("good", "bad", "", "good"), strict=True)
    ]
    facts = [
        json.loads(line) for line in heedful("classify", model, "-i", folder, "--format", "jsonl").out.splitlines()
    ]
    assert [(each["file"], each["text"]) for each in facts][1] == (str(folder / "b.txt"), "dirty rooms")
    (tmp_path / "none").mkdir()
    done = heedful("classify", model, "-i", tmp_path / "none")
    assert (done.code, len(done.errors)) == (2, 1)
    assert f"{tmp_path / 'none'}: no file of texts in this folder" in done.errors[0]


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


def named(model: Path, folder: Path, *columns: str) -> Path:
    """Copy of a model whose training data had columns of texts with names."""
    shutil.copytree(model, folder)
    facts = open_folder(folder).facts
    others = {key: value for key, value in facts.items() if key not in ("format", "files")}
    commit(folder, {**others, TEXT_COLUMNS: [*columns]}, [*facts["files"]])
    return folder


def test_a_table_without_the_column_of_the_training_is_refused(model: Path, tmp_path: Path):
    own, table, out = named(model, tmp_path / "named", "message"), tmp_path / "in.csv", tmp_path / "out.csv"
    for content, there in (
        ("id,category\n1,good\n2,bad\n", "id, category"),
        ("id\n1\n2\n", "id"),
        ("id,score,when\n1,5,2024\n2,25,2025\n", "id, score, when"),
        ("id,body,review\n1,a clean room,a dirty room\n", "id, body, review"),
    ):
        table.write_text(content, "utf-8")
        done = heedful("classify", own, "-i", table, "-o", out)
        assert (done.code, done.out, len(done.errors)) == (2, "", 1)
        assert f"no column message, which the model was trained on, but {there}; name the column" in done.err
        assert "--columns" in done.err
        assert not out.exists()
        done = heedful("evaluate", own, table)
        assert (done.code, done.out, len(done.errors)) == (2, "", 1)
        assert f"no column message, which the model was trained on, but {there}; name the columns" in done.err
    table.write_text("kind,other\ngood,x1\nbad,x2\n", "utf-8")
    done = heedful("classify", own, "-i", table, "-o", out)
    assert (done.code, done.out, len(done.errors)) == (2, "", 1)
    assert "no column of texts; column 1 has labels of the model; name the column" in done.err
    table.write_text("id,body,class\n1,a clean room,good\n2,a dirty room,bad\n", "utf-8")
    done = heedful("classify", own, "-i", table, "--columns", "body")
    assert [line.split(",")[3] for line in done.out.splitlines()[1:]] == ["good", "bad"]
    assert "accuracy 100.00 %" in heedful("evaluate", own, table, "--columns", "Body,CLASS").out
    assert heedful("classify", own, "-i", table, "--columns", "Body").out == done.out
    # The only column with another known name of texts is read, and told.
    done = heedful("classify", own, "-i", table)
    assert [line.split(",")[3] for line in done.out.splitlines()[1:]] == ["good", "bad"]
    assert "no column message, which the model was trained on; body is read instead" in done.err
    assert "accuracy 100.00 %" in heedful("evaluate", own, table).out


def test_the_column_of_the_training_is_read_in_any_case_and_without_headings_the_texts(model: Path, tmp_path: Path):
    own, table = named(model, tmp_path / "named", "note"), tmp_path / "in.csv"
    longer = "a text that is much longer than the others are"
    table.write_text(f"label,Note,text\ngood,clean,{longer}\nbad,dirty,{longer}\n", "utf-8")
    assert "accuracy 100.00 %" in heedful("evaluate", own, table).out
    done = heedful("classify", own, "-i", table)
    assert [line.split(",")[3] for line in done.out.splitlines()[1:]] == ["good", "bad"]
    both = named(model, tmp_path / "both", "note", "more")
    table.write_text(f"label,note,text,more\ngood,a,{longer},clean\nbad,dirty,{longer},b\n", "utf-8")
    assert "accuracy 100.00 %" in heedful("evaluate", both, table).out
    (tmp_path / "plain.tsv").write_text("a clean room\tgood\na dirty room\tbad\n", "utf-8")
    assert heedful("evaluate", own, tmp_path / "plain.tsv").code == 0
    assert heedful("classify", own, "-i", tmp_path / "plain.tsv").out.startswith("a clean room\tgood\tgood\t")
    (tmp_path / "blank.tsv").write_text("\ta clean room\n\ta dirty room\n", "utf-8")
    heedful("classify", own, "-i", tmp_path / "blank.tsv", "-o", tmp_path / "blank.csv")
    assert len((tmp_path / "blank.csv").read_text("utf-8").splitlines()) == 2


def test_the_number_of_a_column_is_no_heading(model: Path, tmp_path: Path):
    table = tmp_path / "in.csv"
    table.write_text("2,a clean room,x\n7,a dirty room,x\n", "utf-8")
    done = heedful("classify", model, "-i", table, "--columns", "2")
    assert [line.split(",")[3] for line in done.out.splitlines()] == ["good", "bad"]


def test_texts_that_are_cut_are_counted_in_a_table_and_in_an_evaluation(model: Path, tmp_path: Path):
    long = "clean " * 25_000
    (tmp_path / "in.csv").write_text(f"text,label\n{long},good\ndirty,bad\n{long},good\n", "utf-8")
    for command in (("classify", model, "-i"), ("evaluate", model)):
        done = heedful(*command, tmp_path / "in.csv")
        assert done.code == 0
        (line,) = [line for line in done.err.splitlines() if "cut after" in line]
        assert line == f"heedful: warning: {tmp_path / 'in.csv'}: 2 texts cut after 20000 tokens"


def test_rows_that_are_left_out_and_labels_that_are_unseen_are_told(model: Path, tmp_path: Path):
    rows = [("clean", "good"), ("dirty", "bad"), (" ", "good"), ("", "bad"), ("clean", ""), ("dirty", "awful")]
    table = tmp_path / "in.csv"
    table.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows), "utf-8")
    done = heedful("evaluate", model, table)
    assert done.code == 0
    assert f"warning: {table}: 3 rows left out: 2 without text and 1 without a label\n" in done.err
    assert done.out.splitlines()[-1] == "1 text with 1 label unseen in training: 'awful'"
    assert "never predicted" not in done.out
    table.write_text("text,label\nclean,good\n", "utf-8")
    done = heedful("evaluate", model, table)
    assert "left out" not in done.err
    assert "unseen" not in done.out


def test_rows_of_a_wrong_width_are_one_line(model: Path, tmp_path: Path):
    table = tmp_path / "in.csv"
    rows = [f"clean {n},good" for n in range(100)]
    broken = [row + ",x" if n in (3, 5, 7) else row for n, row in enumerate(rows)]
    table.write_text("\n".join(["text,label", *broken]) + "\n", "utf-8")
    done = heedful("classify", model, "-i", table)
    assert (done.code, len(done.out.splitlines())) == (0, 101)
    (warning,) = [line for line in done.err.splitlines() if "warning" in line]
    start = f"{table}: 3 rows could not be read and have no results: lines 5, 7, 9; the first: {table}:5: 3 columns"
    assert start in warning
    done = heedful("evaluate", model, table)
    assert (done.code, "(and 2 more rows of 100)" in done.errors[0]) == (2, True)
    table.write_text("\n".join(["text,label", *rows, "clean,good,x"]) + "\n", "utf-8")
    done = heedful("evaluate", model, table)
    assert done.code == 0, done.err
    assert f"warning: {table}: 1 of 101 rows left out as unreadable: line 102" in done.err


def test_a_json_document_comes_back_as_one(model: Path, tmp_path: Path):
    rows = [{"n": 1, "text": "clean", "x": 0.5}, {"n": 2, "text": "dirty", "x": None}]
    (tmp_path / "in.json").write_text(json.dumps(rows), "utf-8")
    assert heedful("classify", model, "-i", tmp_path / "in.json", "-o", tmp_path / "out.json").code == 0
    back = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert back == [
        {**row, "label": label, "probability": ANY} for row, label in zip(rows, ("good", "bad"), strict=True)
    ]
    heedful("classify", model, "-i", tmp_path / "in.json", "-o", tmp_path / "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text("utf-8").splitlines()
    assert [*map(json.loads, lines)] == back


def test_the_wanted_format_and_compression_of_a_table(model: Path, tmp_path: Path):
    labelled = [
        {"n": "1", "text": "a clean room", "label": "good", "probability": ANY},
        {"n": "2", "text": "a dirty room", "label": "bad", "probability": ANY},
    ]
    for name, content in (
        ("in.csv", "n,text\n1,a clean room\n2,a dirty room\n"),
        ("in.tsv", "n\ttext\n1\ta clean room\n2\ta dirty room\n"),
        ("in.jsonl", '{"n": "1", "text": "a clean room"}\n{"n": "2", "text": "a dirty room"}\n'),
    ):
        (tmp_path / name).write_text(content, "utf-8")
        done = heedful("classify", model, "-i", tmp_path / name, "--format", "jsonl")
        assert [json.loads(line) for line in done.out.splitlines()] == labelled
        assert [*json.loads(done.out.splitlines()[0])] == [*labelled[0]]
        heedful("classify", model, "-i", tmp_path / name, "--format", "jsonl", "-o", tmp_path / "out.txt")
        assert (tmp_path / "out.txt").read_text("utf-8") == done.out
        for suffix in ("csv", "tsv", "jsonl", "json"):
            plain, packed = tmp_path / f"out.{suffix}", tmp_path / f"out.{suffix}.gz"
            for out in (plain, packed):
                assert heedful("classify", model, "-i", tmp_path / name, "-o", out).code == 0
            assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
            assert packed.read_bytes()[:2] == b"\x1f\x8b"
        assert heedful("classify", model, "-i", tmp_path / "out.csv.gz").out.count("\n") == 3
    for name, options in (
        ("no.csv", ("--format", "jsonl")),
        ("no.json", ("--format", "jsonl")),
        ("no.json.gz", ("--format", "jsonl")),
        ("no.parquet.gz", ()),
        ("no.arrow", ()),
    ):
        done = heedful("classify", model, "-i", tmp_path / "in.csv", "-o", tmp_path / name, *options, "--quiet")
        assert (done.code, len(done.errors), (tmp_path / name).exists()) == (2, 1, False)
        assert "give a name that ends in" in done.err


def test_the_least_confidence_of_a_wanted_precision_is_told(model: Path, tmp_path: Path):
    data = write_reviews(tmp_path / "other.tsv", 60, seed=9)
    with data.open("a", encoding="utf-8") as file:
        file.write("".join("room bed clean dirty night\tgood\nroom clean dirty hotel\tbad\n" for _ in range(8)))
    done = heedful("evaluate", model, data, "--precision", "0.95")
    assert done.code == 0
    line = done.out.splitlines()[-1]
    assert "; use heedful classify --min-confidence 0." in line
    least = float(line.rpartition(" ")[2])
    texts, gold = zip(*(line.split("\t") for line in data.read_text("utf-8").splitlines()), strict=True)
    said = [
        line.split("\t")[0] for line in heedful("classify", model, *texts, "--min-confidence", least).out.splitlines()
    ]
    sure = [own == label for own, label in zip(said, gold, strict=True) if own != "unsure"]
    assert sum(sure) / len(sure) >= 0.95
    assert f"{100 * len(sure) / len(gold):.1f} % of the texts, of which {100 * sum(sure) / len(sure):.1f} %" in line
    facts = json.loads(heedful("evaluate", model, data, "--precision", "0.95", "--format", "json").out)
    assert facts["chosen"]["min_confidence"] == least
    assert 2 <= len(facts["selected"]) <= 6
    (tmp_path / "wrong.tsv").write_text("a clean room\tbad\na dirty room\tgood\n", "utf-8")
    done = heedful("evaluate", model, tmp_path / "wrong.tsv", "--precision", "0.5")
    assert done.out.splitlines()[-1] == "no confidence from which on 50 % of the texts are right"
    sure, unsure = ("a clean room", "good"), ("a clean and a dirty room", "x")
    rows = [(f"{sure[0]} and a clean room", "bad"), *[sure] * 3, unsure]
    (tmp_path / "most.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in rows), "utf-8")
    done = heedful("evaluate", model, tmp_path / "most.tsv", "--precision", "0.99")
    line = done.out.splitlines()[-1]
    assert line.startswith("no confidence from which on 99 % of the texts are right; the best is confidence 0.")
    least = float(line.rpartition(" ")[2])
    assert ": 80.0 % of the texts, of which 75.0 % are right; use heedful classify --min-confidence 0." in line
    facts = json.loads(heedful("evaluate", model, tmp_path / "most.tsv", "--precision", "0.99", "--format", "json").out)
    assert (facts["chosen"], facts["best"]["min_confidence"], facts["best"]["accuracy"]) == (None, least, 75.0)


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tables whose labels are several, numbers and ordered, each with a model beside it."""
    folder = tmp_path_factory.mktemp("kinds")
    words = [("clean", ["good"]), ("dirty", ["bad"]), ("clean dirty", ["bad", "good"])]
    values = {
        "several": [(f"{text} room {number}", label) for number in range(20) for text, label in words],
        "number": [(f"{text} room {number}", f"{number % 7 / 2}") for number in range(20) for text, _ in words],
        "ordered": [(f"room {number}", f"{number % 3 * 5} stars") for number in range(60)],
    }
    for kind, rows in values.items():
        table = folder / f"{kind}.jsonl"
        table.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows), "utf-8")
        wanted = () if kind == "several" else (f"text.labels={kind}",)
        settings = [word for one in (*SETTINGS, "training.max_steps=5", *wanted) for word in ("--set", one)]
        options = ("--task", "classification", "--preset", "bag", "--out", folder / kind, "--threads", "1")
        done = heedful("train", table, *options, *settings)
        assert done.code == 0, done.err
    return {kind: folder / kind for kind in values}


def test_a_number_has_no_probability(kinds: dict[str, Path], tmp_path: Path):
    model = kinds["number"]
    for option in (("--top", "2"), ("--min-confidence", "0.5")):
        done = heedful("classify", model, "clean", *option)
        assert (done.code, done.out, len(done.errors)) == (2, "", 1)
        assert f"{option[0]}: {model} gives numbers, which have no probability; leave it out" in done.err
    number = heedful("classify", model, "clean room").out.removesuffix("\n")
    assert float(number) == pytest.approx(1.5, abs=1.5)
    facts = json.loads(heedful("classify", model, "clean room", "--format", "jsonl").out)
    assert facts == {"text": "clean room", "label": number, "was_cut": False}
    heedful("classify", model, "-i", f"{model}.jsonl", "-o", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text("utf-8").startswith("text,label,predicted_label\n")
    done = heedful("evaluate", model, f"{model}.jsonl", "--precision", "0.9")
    assert (done.code, len(done.errors)) == (2, 1)


def test_single_labels_of_several_are_listed_by_probability(kinds: dict[str, Path]):
    cells = heedful("classify", kinds["several"], "clean dirty", "--top", "2").out.split()
    facts = json.loads(heedful("classify", kinds["several"], "clean dirty", "--format", "jsonl").out)
    assert cells == [cell for name, share in facts["probabilities"].items() for cell in (name, f"{share:.4f}")]
    done = heedful("evaluate", kinds["several"], f"{kinds['several']}.jsonl")
    assert "% of the texts, of which" in done.out


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("ordered", ["0 stars → 5 stars|5 stars → 0 stars|10 stars → 5 stars", "predicted"]),
        ("several", ["exactly the right labels", "not predicted", "Most confident errors"]),
        ("number", ["The mean error of 60 texts", "Largest errors"]),
    ],
)
def test_errors_of_every_kind_of_labels_are_a_page(kind: str, parts: list[str], kinds: dict[str, Path], tmp_path: Path):
    done = heedful("evaluate", kinds[kind], f"{kinds[kind]}.jsonl", "--html", tmp_path / "errors.html")
    assert done.code == 0, done.err
    page = (tmp_path / "errors.html").read_text("utf-8")
    assert all(any(each in page for each in part.split("|")) for part in parts)
    if kind == "ordered":
        assert page.index("0 stars") < page.index("5 stars") < page.index("10 stars")
        lines = done.out.splitlines()
        assert [line.split()[0] for line in lines if "precision" in line] == ["0", "5", "10"]


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
