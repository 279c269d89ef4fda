"""`heedful translate` with a table: it is given back with the translations of one of its columns."""

import csv
import gzip
import io
import json
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from tests.cli.command import heedful
from tests.cli.conftest import Trained

ROWS = [("1", "abc, fed", "cat"), ("2", "", "dog"), ("3", "fade", "red, blue"), ("4", "de", "x")]
HEADINGS = ("id", "Source", "note")


def written(path: Path) -> Path:
    """Table of three columns in the form that its name tells."""
    if path.suffix == ".parquet":
        parquet.write_table(pyarrow.table(dict(zip(HEADINGS, map(list, zip(*ROWS, strict=True)), strict=True))), path)
    elif path.suffix == ".jsonl":
        rows = (dict(zip(HEADINGS, row, strict=True)) for row in ROWS)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    else:
        stream = io.StringIO()
        csv.writer(stream, delimiter="," if path.suffix == ".csv" else "\t").writerows([HEADINGS, *ROWS])
        path.write_text(stream.getvalue(), "utf-8")
    return path


def read(path: Path) -> list[dict[str, str]]:
    """Rows of a table of any form; an empty cell is an empty text."""
    if path.suffix == ".parquet":
        rows = parquet.read_table(path).to_pylist()
    elif path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    else:
        separator = "," if path.suffix == ".csv" else "\t"
        rows = [*csv.DictReader(io.StringIO(path.read_text("utf-8")), delimiter=separator)]
    return [{name: value or "" for name, value in row.items()} for row in rows]


@pytest.mark.parametrize("source", ["in.csv", "in.tsv", "in.jsonl", "in.parquet"])
def test_a_table_comes_back_with_translations(source: str, trained: Trained, tmp_path: Path):
    texts = [row[1] for row in ROWS if row[1]]
    outputs = iter(heedful("translate", trained.model, *texts).out.splitlines())
    wanted = [dict(zip(HEADINGS, row, strict=True)) | {"translation": next(outputs) if row[1] else ""} for row in ROWS]
    table = written(tmp_path / source)
    for name in ("out.csv", "out.tsv", "out.jsonl", "out.parquet"):
        done = heedful("translate", trained.model, "-i", table, "--columns", "source", "-o", tmp_path / name)
        assert (done.code, done.out) == (0, ""), done.err
        assert f"{table}: texts in column Source" in done.err
        assert read(tmp_path / name) == wanted
        assert [*read(tmp_path / name)[0]] == [*wanted[0]]
    done = heedful("translate", trained.model, "-i", table, "--columns", "source", "--format", "jsonl")
    assert done.out == (tmp_path / "out.jsonl").read_text("utf-8")
    heedful("translate", trained.model, "-i", table, "--columns", "2", "-o", tmp_path / "out.csv.gz")
    assert gzip.decompress((tmp_path / "out.csv.gz").read_bytes()) == (tmp_path / "out.csv").read_bytes()
    if source != "in.tsv":
        assert heedful("translate", trained.model, "-i", table, "--format", "jsonl").out == done.out


@pytest.mark.parametrize("number", [1, 2])
def test_the_number_of_a_column_is_no_heading(number: int, trained: Trained, tmp_path: Path):
    rows = [[str(number), "abc", "fed"], ["7", "fade", "cab"]]
    outputs = heedful("translate", trained.model, *(row[number - 1] for row in rows)).out.splitlines()
    table = tmp_path / "in.csv"
    table.write_text("".join(",".join(row) + "\n" for row in rows), "utf-8")
    done = heedful("translate", trained.model, "-i", table, "--columns", str(number))
    assert [*csv.reader(done.out.splitlines())] == [[*row, output] for row, output in zip(rows, outputs, strict=True)]
    table.write_text("7,Wort\n8,fade\n", "utf-8")
    assert heedful("translate", trained.model, "-i", table, "--columns", "Wort").out.startswith("7,Wort,translation\n")


def test_lines_of_tabs_are_texts_unless_a_column_or_another_form_is_named(trained: Trained, tmp_path: Path):
    table = written(tmp_path / "in.tsv")
    lines = heedful("translate", trained.model, "-i", table)
    assert lines.out.count("\n") == 1 + len(ROWS)
    (warning,) = [line for line in lines.err.splitlines() if "warning" in line and "tabs" in line]
    assert warning.endswith("in.tsv: lines are translated with their tabs; to translate one column: --columns NAME")
    heedful("translate", trained.model, "-i", table, "-o", tmp_path / "out.csv")
    assert [row["note"] for row in read(tmp_path / "out.csv")] == [row[2] for row in ROWS]
    (tmp_path / "plain.tsv").write_text("abc\nfed\n", "utf-8")
    assert "tabs" not in heedful("translate", trained.model, "-i", tmp_path / "plain.tsv").err
    (tmp_path / "none.tsv").write_text("", "utf-8")
    done = heedful("translate", trained.model, "-i", tmp_path / "none.tsv")
    assert (done.code, done.out) == (0, "")


def test_alternatives_links_and_long_texts_of_a_table(trained: Trained, tmp_path: Path):
    table = written(tmp_path / "in.csv")
    done = heedful("translate", trained.model, "-i", table, "--nbest", "2", "--format", "jsonl")
    first = json.loads(done.out.splitlines()[0])
    assert [*first] == [*HEADINGS, "translation", "translation_2"]
    assert first["translation"] != first["translation_2"]
    done = heedful("translate", trained.model, "-i", table, "--align", "-q")
    assert done.out.splitlines()[0].endswith(",translation,alignment")
    with table.open("a", encoding="utf-8") as file:
        file.write(f"5,{'a' * 99},x\n")
    done = heedful("translate", trained.model, "-i", table)
    assert f"{table}: 1 text cut after 24 tokens" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-i", "in.csv", "--columns", "german"), "in.csv: no column 'german'; known: id, Source, note"),
        (("in.csv", "-o", "out.csv"), "in.csv: a table; to translate a column of it: --input in.csv"),
        (("in.csv",), "in.csv: a table; to translate a column of it: --input in.csv"),
        (("in.tsv",), "in.tsv: a table; to translate a column of it: --input in.tsv --columns NAME\n"),
        (("in.tsv", "-o", "out.csv"), "in.tsv: a table; to translate a column of it: --input in.tsv\n"),
        (("-i", "in.csv", "--min-confidence", "0.5"), "not calibrated, so it has no confidence"),
        (("-i", "in.csv", "--min-confidence", "0.5", "-o", "out.csv"), "not calibrated, so it has no confidence"),
        (("-i", "in.csv", "--format", "jsonl", "-o", "out.json"), "give a name that ends in .jsonl"),
        (("-i", "no.csv"), "no.csv: no such file"),
        (("-i", "empty.csv"), "empty.csv: empty"),
        (("-i", "in.csv", "-o", "out.docx"), "out.docx: give a name that ends in .csv"),
        (("-i", "in.csv", "-o", "in.csv"), "read by this command"),
        (("abc", "--columns", "x"), "--columns names those of a table"),
    ],
)
def test_what_is_no_table_is_refused(
    arguments: tuple[str, ...], message: str, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    table = written(tmp_path / "in.csv")
    written(tmp_path / "in.tsv")
    content = table.read_bytes()
    (tmp_path / "empty.csv").write_bytes(b"")
    done = heedful("translate", trained.model, *arguments, "-q")
    assert (done.code, done.out, len(done.errors)) == (2, "", 1), done.err
    assert message in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.csv", "in.csv", "in.tsv"]
    assert table.read_bytes() == content
