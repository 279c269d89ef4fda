"""Rows of TSV and JSONL are taken apart exactly, or refused with their place."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.rows import HEADER_WORDS, JsonRows, TabRows, is_header
from heedful.errors import DataError

CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\0"))


@given(st.lists(CELLS, min_size=3, max_size=5), st.permutations([1, 2, 3]))
def test_tab_rows_give_back_their_cells(cells: list[str], order: list[int]):
    columns = (order[0], order[1])
    rows = TabRows.of("\t" * (len(cells) - 1), columns, "f", 1)
    assert rows.cells("\t".join(cells), "f", 1) == (cells[columns[0] - 1], cells[columns[1] - 1])


@given(st.lists(CELLS, min_size=1, max_size=6))
def test_another_number_of_columns_is_refused(cells: list[str]):
    rows = TabRows.of("a\tb\tc", (1, 2), "f", 1)
    if len(cells) == 3:
        assert rows.cells("\t".join(cells), "f", 7) == (cells[0], cells[1])
        return
    with pytest.raises(DataError, match=rf"^f:7: {len(cells)} columns?, the lines before have 3; put the same number"):
        rows.cells("\t".join(cells), "f", 7)


def test_quotes_are_ordinary_characters():
    assert TabRows.of('"a\tb"', (1, 2), "f", 1).cells('"a\tb"', "f", 1) == ('"a', 'b"')


@pytest.mark.parametrize(
    ("line", "columns", "message"),
    [
        ("one", (1, 2), "f:4: 1 column, but 1,2 are wanted; columns are separated by a tab; for two"),
        ("one,two", (1, 2), "not by ','; for two"),
        ("one ||| two", (1, 2), r"not by '\|\|\|'"),
        ("one\ttwo", (1, 3), "f:4: 2 columns, but 1,3 are wanted"),
    ],
)
def test_too_few_columns_are_refused(line: str, columns: tuple[int, int], message: str):
    with pytest.raises(DataError, match=message):
        TabRows.of(line, columns, "f", 4)


@pytest.mark.parametrize(
    ("first", "columns", "expected"),
    [
        ({"source": "s", "target": "t"}, (1, 2), ("s", "t")),
        ({"target": "t", "id": "i", "source": "s"}, (1, 2), ("s", "t")),
        ({"target": "t", "source": "s"}, (2, 1), ("t", "s")),
        ({"de": "s", "en": "t"}, (1, 2), ("s", "t")),
        ({"de": "s", "en": "t"}, (2, 1), ("t", "s")),
        ({"id": 7, "de": "s", "en": "t"}, (1, 2), ("s", "t")),
        ({"id": 7, "de": "s", "en": "t"}, (3, 2), ("t", "s")),
        ({"a": "1", "b": "2", "c": "3"}, (2, 3), ("2", "3")),
        ({"a": "1", "source": "s", "target": "t"}, (1, 3), ("1", "t")),
        ({"translation": {"de": "s", "en": "t"}}, (1, 2), ("s", "t")),
    ],
)
def test_keys_are_chosen(first: dict[str, object], columns: tuple[int, int], expected: tuple[str, str]):
    line = json.dumps(first)
    assert JsonRows.of(line, columns, "f", 1).cells(line, "f", 1) == expected


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_json_texts_come_back(text: str):
    rows = JsonRows("source", "target")
    for is_ascii in (True, False):
        line = json.dumps({"source": text, "target": "t"}, ensure_ascii=is_ascii)
        assert rows.cells(line, "f", 1) == (text, "t")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"source": "a"', "^f:3:15: not JSON: "),
        ('["a", "b"]', r"^f:3: expected a JSON object, got list; write one object a line: jq -c '\.\[\]' f$"),
        ('"a"', "^f:3: expected a JSON object, got str$"),
        ('{"source": "a", "targe": "b"}', r"^f:3: no key 'target'; did you mean 'targe'\?$"),
        ('{"source": 5, "target": "b"}', "^f:3: key 'source' holds int, expected a string; .*--columns"),
        (r'{"source": "a\u0000", "target": "b"}', "^f:3: NUL character in 'source'"),
        (r'{"source": "a", "target": "\ud800"}', "^f:3: half a character .*surrogate.* in 'target'"),
        ("[" * 100_000, "^f:3: JSON nested too deeply$"),
        ('{"source": ' + "1" * 5_000 + "}", "^f:3: not JSON that can be read"),
    ],
)
def test_bad_json_is_refused(line: str, message: str):
    with pytest.raises(DataError, match=message) as caught:
        JsonRows("source", "target").cells(line, "f", 3)
    assert "\n" not in str(caught.value)


def test_too_few_keys_are_refused():
    with pytest.raises(
        DataError, match=r'^f:1: 1 key, but 1,2 are wanted; write {"source": "...", "target": "..."} on'
    ):
        JsonRows.of('{"text": "a"}', (1, 2), "f", 1)


@pytest.mark.parametrize("cells", [("source", "target"), (" English", "GERMAN "), ("en", "de"), ("原文", "译文")])
def test_headings_are_known(cells: tuple[str, str]):
    assert is_header(*cells)


@pytest.mark.parametrize(
    "cells", [("it", "es"), ("Hund", "dog"), ("word", "Wort"), ("text", "text"), ("", ""), ("en", "")]
)
def test_words_are_no_headings(cells: tuple[str, str]):
    assert not is_header(*cells)


def test_heading_words_can_match():
    assert all(word == word.strip().casefold() for word in HEADER_WORDS)
