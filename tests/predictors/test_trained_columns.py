"""Columns that a classifier reads: those of its training data, by name."""

from pathlib import Path

import pytest

from heedful.errors import DataError
from heedful.predictors.trained_columns import are_headed, labelled_columns, opened_table, trained_columns


def test_words_above_numbers_are_headings():
    assert are_headed([["id"], ["0"]])
    assert are_headed([["points", "x"], ["0", "a"], ["1", "b"], ["2", "c"]])
    assert not are_headed([["points"], ["0"]])
    assert not are_headed([["id", "7"], ["0", "1"]])
    assert not are_headed([["id"]])
    for missing in ("n/a", "", "-", "null"):  # a first row of data that lacks its number
        assert not are_headed([["too loud", missing], ["a b", "5"], ["c d", "4"], ["e f", "3"]])


def test_another_known_name_of_texts_is_taken_if_it_is_the_only_one(tmp_path: Path):
    path = tmp_path / "in.csv"
    path.write_text("id,text,label\n1,too loud,bad\n", "utf-8")
    assert trained_columns(opened_table(path, ("Message",)), ("Message",), "x") == ("text",)
    assert labelled_columns((path,), ("Message",), (1, 2)) == ("text", "label")
    path.write_text("id,text,comment,label\n1,too loud,indeed,bad\n", "utf-8")
    with pytest.raises(DataError, match="no column Message"):
        trained_columns(opened_table(path, ("Message",)), ("Message",), "x")


def test_columns_are_found_in_any_case_and_missing_ones_named(tmp_path: Path):
    path = tmp_path / "in.csv"
    path.write_text("id,Title,BODY ,label\n1,a room,too loud,bad\n", "utf-8")
    table = opened_table(path, ("title", "body"))
    assert trained_columns(table, ("title", "body"), "x") == ("Title", "BODY ")
    assert trained_columns(table, (), "x") == ()
    assert labelled_columns((path,), ("title", "body"), (1, 2)) == ("Title+BODY", "label")
    assert labelled_columns((path,), ("title", "body"), ("id", "label")) == ("id", "label")
    assert labelled_columns((path, path), ("title",), (1, 2)) == (1, 2)
    with pytest.raises(DataError, match=r"no column text and more, .* but id, Title, BODY, label; look$"):
        trained_columns(table, ("title", "text", "more"), "look")


def test_what_has_no_headings_of_its_own_is_read_as_before(tmp_path: Path):
    (tmp_path / "plain.tsv").write_text("a quiet room\tgood\ntoo loud\tbad\n", "utf-8")
    (tmp_path / "fast.txt").write_text("__label__good text\n__label__bad text\n", "utf-8")
    (tmp_path / "folder" / "good").mkdir(parents=True)
    (tmp_path / "folder" / "bad").mkdir()
    for label in ("good", "bad"):
        (tmp_path / "folder" / label / "1.txt").write_text("a room", "utf-8")
    for name in ("plain.tsv", "fast.txt", "folder"):
        assert labelled_columns((tmp_path / name,), ("message",), (1, 2)) == (1, 2)


def test_headings_of_which_none_is_known_are_those_of_a_table_that_should_have_some(tmp_path: Path):
    path = tmp_path / "in.csv"
    path.write_text("kind,other\n" + "".join(f"{('good', 'bad')[n % 2]},x0.{n}\n" for n in range(8)), "utf-8")
    for read in (
        lambda: trained_columns(opened_table(path, ("text",)), ("text",), "look"),
        lambda: labelled_columns((path,), ("text",), (1, 2)),
    ):
        with pytest.raises(DataError, match="no column text, which the model was trained on, but kind, other; "):
            read()
    assert not opened_table(path, ()).has_headings
    path.write_text("kind,other\n" + "".join(f"{('good', 'bad')[n % 2]},a noisy room {n}\n" for n in range(3)), "utf-8")
    assert opened_table(path, ("text",)).has_headings
    path.write_text("".join(f"{('good', 'bad')[n % 2]},a{n}\n" for n in range(8)), "utf-8")
    assert not opened_table(path, ("text",)).has_headings
