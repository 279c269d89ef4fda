"""Rows of TSV and JSONL are taken apart exactly, or refused with their place."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.cells import CellStyle, csv_style, is_quoted_tsv
from heedful.data.rows import ColumnRows, Columns, JsonRows
from heedful.errors import DataError

CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\0"))


@given(st.lists(CELLS, min_size=3, max_size=5), st.permutations([1, 2, 3]))
def test_tab_rows_give_back_their_cells(cells: list[str], order: list[int]):
    columns = (order[0], order[1])
    rows = ColumnRows.of("\t" * (len(cells) - 1), columns, "f", 1)
    assert rows.cells("\t".join(cells), "f", 1) == (cells[columns[0] - 1], cells[columns[1] - 1])


@given(st.lists(CELLS, min_size=1, max_size=6))
def test_another_number_of_columns_is_refused(cells: list[str]):
    rows = ColumnRows.of("a\tb\tc", (1, 2), "f", 1)
    if len(cells) == 3:
        assert rows.cells("\t".join(cells), "f", 7) == (cells[0], cells[1])
        return
    with pytest.raises(DataError, match=rf"^f:7: {len(cells)} columns?, the lines before have 3; put the same number"):
        rows.cells("\t".join(cells), "f", 7)


IPA = ["hoofs\tˈhufs,ˈhʊfs", "tone\tˈtoʊn", "odd\t,"]


def test_pronunciations_of_one_word_are_divided_at_commas():
    rows = ColumnRows.of(IPA[0], (1, 2), "f", 1, sample=IPA)
    records = [*rows.records(IPA)]
    assert [rows.cells(record.text, "f", record.line) for record in records] == [
        ("hoofs", "ˈhufs"),
        ("hoofs", "ˈhʊfs"),
        ("tone", "ˈtoʊn"),
        ("odd", ","),
    ]
    assert [record.line for record in records] == [1, 1, 2, 3]
    assert "IPA" in rows.describe()


def test_a_csv_and_a_row_with_quotes_are_divided_too():
    lines = ["word,phones", 'hoofs,"ˈhufs,ˈhʊfs"', "tone,ˈtoʊn", '"a ""b""","ˈa,ˈb"', '"open,ˈa']
    rows = ColumnRows.of(lines[0], (1, 2), "f", 1, csv_style(lines[:4]), sample=lines[:4])
    records = [*rows.records(lines[1:4])]
    read = [rows.cells(record.text, "f", record.line) for record in records]
    assert read == [("hoofs", "ˈhufs"), ("hoofs", "ˈhʊfs"), ("tone", "ˈtoʊn"), ('a "b"', "ˈa"), ('a "b"', "ˈb")]
    with pytest.raises(DataError):
        [rows.cells(record.text, "f", record.line) for record in rows.records(lines[4:])]


def test_files_of_few_letters_are_divided_as_the_training_data_are():
    rows = ColumnRows.of("kata\tkata,kada", (1, 2), "f", 1, sample=["kata\tkata,kada"])
    assert not rows.divides_targets
    rows.divide_targets()
    assert [record.text for record in rows.records(["kata\tkata,kada"])] == ["kata\tkata", "kata\tkada"]


@pytest.mark.parametrize("line", ["cat\tKatze, Kater", "school\tməktəb,dərs", "ˈhufs\tˈhufs,ˈhʊfs"])
def test_commas_of_other_texts_stay(line: str):
    rows = ColumnRows.of(line, (1, 2), "f", 1, sample=[line])
    assert [record.text for record in rows.records([line])] == [line]


def test_quotes_are_ordinary_characters():
    assert ColumnRows.of('"a\tb"', (1, 2), "f", 1).cells('"a\tb"', "f", 1) == ('"a', 'b"')


@pytest.mark.parametrize(
    ("line", "columns", "message"),
    [
        ("one", (1, 2), "f:4: 1 column, but 1,2 were requested; columns are separated by a tab; for two"),
        ("one,two", (1, 2), "not by ','; for two"),
        ("one ||| two", (1, 2), r"not by '\|\|\|'"),
        ("one\ttwo", (1, 3), "f:4: 2 columns, but 1,3 were requested"),
    ],
)
def test_too_few_columns_are_refused(line: str, columns: tuple[int, int], message: str):
    with pytest.raises(DataError, match=message):
        ColumnRows.of(line, columns, "f", 4)


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
        ({"De": "s", "EN": "t"}, ("de", "en"), ("s", "t")),
        ({"translation": {"de": "s", "EN": "t"}}, ("translation.de", "translation.en"), ("s", "t")),
    ],
)
def test_keys_are_chosen(first: dict[str, object], columns: tuple[int, int], expected: tuple[str, str]):
    line = json.dumps(first)
    assert JsonRows.of(line, columns, "f", 1).cells(line, "f", 1) == expected


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_json_texts_come_back(text: str):
    rows = JsonRows(["source"], ["target"])
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
        ('{"source": 5.5, "target": "b"}', "^f:3: key 'source' holds float, expected a string$"),
        ('{"id": 1, "source": [], "target": "b"}', "^f:3: key 'source' holds list, expected a string; .*--columns"),
        (r'{"source": "a\u0000", "target": "b"}', "^f:3: NUL character in 'source'"),
        (r'{"source": "a", "target": "\ud800"}', "^f:3: half a character .*surrogate.* in 'target'"),
        ("[" * 100_000, "^f:3: JSON nested too deeply$"),
        ('{"source": ' + "1" * 5_000 + "}", "^f:3: invalid JSON"),
    ],
)
def test_bad_json_is_refused(line: str, message: str):
    with pytest.raises(DataError, match=message) as caught:
        JsonRows(["source"], ["target"]).cells(line, "f", 3)
    assert "\n" not in str(caught.value)


def test_too_few_keys_are_refused():
    with pytest.raises(
        DataError, match=r'^f:1: 1 key, but 1,2 were requested; write {"source": "...", "target": "..."} on'
    ):
        JsonRows.of('{"text": "a"}', (1, 2), "f", 1)


# ---------------------------------------------------------------------------------------------- quotes and names
QUOTABLE = st.text(st.one_of(st.sampled_from('",;\t '), st.characters(exclude_categories=["Cs"]))).map(
    lambda text: text.translate(dict.fromkeys(map(ord, "\0\r\n")))
)


@given(st.lists(st.lists(QUOTABLE, min_size=2, max_size=4), min_size=1, max_size=5), st.sampled_from(",;\t"))
def test_what_python_writes_as_csv_comes_back(rows: list[list[str]], separator: str):
    for cells in rows:
        written = io.StringIO()
        csv.writer(written, delimiter=separator, lineterminator="").writerow(cells)
        for quotes in ("strict", "lenient"):
            assert CellStyle(separator, quotes).split(written.getvalue()) == cells


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ("", [""]),
        (",", ["", ""]),
        ('""', [""]),
        ('"",""', ["", ""]),
        ('a"b,c"', ['a"b', 'c"']),
        ('"a,b",c', ["a,b", "c"]),
        (' "a",b', [' "a"', "b"]),
        ('"""",x', ['"', "x"]),
    ],
)
def test_rfc_4180(line: str, cells: list[str]):
    assert CellStyle(",", "strict").split(line) == cells


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('"a', "is not closed"),
        ('a,"b""', "not closed"),
        ('"a"b,c', "double the quotes"),
        ('"a" ,b', "double"),
    ],
)
def test_open_quotes_are_refused_in_csv_and_ordinary_in_tsv(line: str, message: str):
    with pytest.raises(DataError, match=f"^f:3: .*{message}"):
        CellStyle(",", "strict").split(line, "f", 3)
    assert CellStyle("\t", "lenient").split(line) == [line]


@pytest.mark.parametrize(
    ("lines", "separator"),
    [
        (["a,b", "c,d"], ","),
        (["a;b", "c, d;e"], ";"),
        (["a, b;c", "d;e"], ";"),
        (['"a;b",c', "d,e"], ","),
        (["a\tb, c", "d\te"], "\t"),
        (["a"], ","),
        (["a,b,c", "d,e"], ","),
    ],
)
def test_the_separator_of_csv(lines: list[str], separator: str):
    assert csv_style(lines) == CellStyle(separator, "strict")


@pytest.mark.parametrize(
    ("lines", "is_quoted"),
    [
        (["a\tb"], False),
        (['"a, b"\tc', "d\te"], True),  # as Excel writes a comma
        (['"a, b"\tc', "d, e\tf"], False),  # here a sentence is in quotes, and commas need none
        (['"a ""b"""\tc', "d, e\tf"], True),  # as pandas writes a quote
        (['"a\tb"\tc', "d\te"], True),
        (['"Hi"\tc'], False),  # nothing in it that had to be quoted
        (['"Hi"\t"Salut"', '"Bye"\t"Au revoir"'], True),  # every cell
        (['"Hi"\t"Salut"', '"Bye"\tAu revoir'], False),
        (['"Hi"\t"Salut"'], False),  # one line may be a dialogue
        (['1\t"Hi"\t"Salut"', '2\t"Bye"\t"Au revoir"'], True),  # every cell but numbers
        (["1\t2", "3\t4"], False),
        (['"Hi, you\tc"'], False),
        (['"Hi, you"\tc', '"Hi\td'], False),
        (['say "Hi, you"\tc'], False),
    ],
)
def test_quoted_tsv_is_told_from_text_with_quotes(lines: list[str], is_quoted: bool):
    assert is_quoted_tsv(lines) == is_quoted


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (("de", "en"), (3, 2)),
        (("en", 3), (2, 3)),
        ((2, 3), (2, 3)),
        (("id", "de"), (1, 3)),
        (("DE", "En"), (3, 2)),
    ],
)
def test_columns_may_be_named(columns: Columns, expected: tuple[int, int]):
    rows = ColumnRows.of("id\ten\t de ", columns, "f", 1)
    assert rows.columns == expected
    assert rows.has_header
    line = "7\tyes\tja"
    assert rows.cells(line, "f", 2) == tuple(line.split("\t")[column - 1] for column in expected)


def test_a_name_that_is_not_there_is_refused():
    with pytest.raises(DataError, match=r"^f:1: no column 'englsh'; did you mean 'english'\?"):
        ColumnRows.of("english\tgerman", ("englsh", 2), "f", 1)
    with pytest.raises(DataError, match=r"^f:1: no column 'english'; did you mean 'English'\?"):
        ColumnRows.of("English\tENGLISH", ("english", 2), "f", 1)
    with pytest.raises(DataError, match="no key 'x'"):
        JsonRows.of('{"a": "b"}', ("a", "x"), "f", 1).cells('{"a": "b"}', "f", 1)
