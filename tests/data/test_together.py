"""Pairs of several files as one."""

import csv
from pathlib import Path

import pytest

from heedful.data.together import file_tags, join_files
from heedful.errors import DataError, UsageError


def write(path: Path, rows: list[str]) -> Path:
    path.write_text("".join(row + "\n" for row in rows), encoding="utf-8")
    return path


def rows_of(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return [*csv.reader(stream, delimiter="\t")]


@pytest.mark.parametrize(
    ("names", "tags"),
    [
        (("ita_train.tsv", "rum_train.tsv"), ["ita", "rum"]),
        (("g2p.ita.train.tsv.gz", "g2p.rum.train.tsv"), ["ita", "rum"]),
        (("de.tsv", "de-at.tsv"), ["de", "de-at"]),
        (("eng us.tsv", "eng;uk.tsv"), ["eng_us", "eng_uk"]),
        (("hbs_latn_train.tsv", "ady_train.tsv"), ["hbs_latn", "ady"]),
    ],
)
def test_files_are_named_by_what_differs(names: tuple[str, ...], tags: list[str]):
    assert file_tags([Path(name) for name in names]) == tags


def test_files_of_one_name_are_refused():
    with pytest.raises(UsageError, match="two files are named 'ita'"):
        file_tags([Path("a/ita.tsv"), Path("b/ita.tsv")])


def test_small_files_are_repeated_and_all_are_mixed(tmp_path: Path):
    large = write(tmp_path / "a.tsv", [f"x{number}\ty{number}" for number in range(160)])
    small = write(tmp_path / "b.tsv", ['"q" r\tz', "", "s\tz", "\tz", *[f"v{number}\tw" for number in range(8)]])
    joined = join_files({"train": [large, small], "dev": [small, small]}, (1, 2), tmp_path / "joined")
    heading, *rows = rows_of(joined.paths["train"])
    assert (heading, joined.columns) == (["source 1", "file", "target"], ("source 1+file", "target"))
    assert joined.kinds == ("text", "features")
    assert joined.lines == ("a: 160 pairs", "b: 10 pairs, each 4 times")
    counts = {tag: sum(row[1] == tag for row in rows) for tag in "ab"}
    assert counts == {"a": 160, "b": 40}
    assert rows.count(['"q" r', "b", "z"]) == 4
    assert sum(row[1] == "b" for row in rows[:100]) == 20  # mixed evenly
    assert len(rows_of(joined.paths["dev"])) == 1 + 2 * 10  # not repeated


def test_files_that_have_their_content_are_left_alone(tmp_path: Path):
    files = {"train": [write(tmp_path / f"{name}.tsv", ["a\tb"]) for name in "xy"]}
    path = join_files(files, (1, 2), tmp_path / "joined").paths["train"]
    before = path.stat().st_mtime_ns
    assert join_files(files, (1, 2), tmp_path / "joined").paths["train"].stat().st_mtime_ns == before
    write(tmp_path / "x.tsv", ["a\tb", "c\td"])
    join_files(files, (1, 2), tmp_path / "joined")
    assert path.stat().st_mtime_ns != before


def test_words_with_features_have_three_columns(tmp_path: Path):
    tags = ("V;PST", "V;PRS", "N;SG", "N;PL")
    rows = [f"w{number}\t{tags[number % 4]}\tf{number}" for number in range(40)]
    files = {"train": [write(tmp_path / "deu.trn", rows), write(tmp_path / "nld.trn", rows)]}
    joined = join_files(files, (1, 2), tmp_path / "joined")
    assert joined.kinds == ("text", "features", "features")
    assert rows_of(joined.paths["train"])[1] == ["w0", "V;PST", "deu", "f0"]


def test_what_cannot_be_joined_is_refused(tmp_path: Path):
    one, empty = write(tmp_path / "a.tsv", ["a\tb"]), write(tmp_path / "b.tsv", ["\tb"])
    words = write(tmp_path / "c.trn", [f"w{number}\tV;{'PST' if number % 2 else 'PRS'}\tf" for number in range(40)])
    with pytest.raises(UsageError, match="2 files for training, 1 for dev; give one for each"):
        join_files({"train": [one, words], "dev": [one]}, (1, 2), tmp_path / "joined")
    with pytest.raises(DataError, match=r"b\.tsv: no pair"):
        join_files({"train": [one, empty]}, (1, 2), tmp_path / "joined")
    with pytest.raises(DataError, match=r"c.trn: a source of 2 columns, where .*a.tsv has 1"):
        join_files({"train": [one, words]}, (1, 2), tmp_path / "joined")
    assert not (tmp_path / "joined").exists()
