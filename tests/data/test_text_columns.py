"""Headings and identifiers: which columns are source and target where nobody says."""

import pytest

from heedful.data.text_columns import HEADER_WORDS, choose_columns, is_header, is_id, is_number

ID_COLUMN = "column 1 holds numbers"
TATOEBA = [["1276", "Let's try.", "2", "我們試試看！"], ["1277", "I have to sleep.", "2", "我该去睡觉了。"]]


@pytest.mark.parametrize("cells", [("source", "target"), (" English", "GERMAN "), ("en", "de"), ("原文", "译文")])
def test_headings_are_known(cells: tuple[str, str]):
    assert is_header(*cells)


@pytest.mark.parametrize(
    "heading",
    [
        *("Name\tGreeting", "old\tnew", "v1\tv2", "singular\tplural", "lemma\tform", "wrong\tcorrect"),
        *("zh-CN\tzh-TW", "pt\tpt-BR", "Mandarin\tCantonese", "src\tsource"),
        *("Deutsch\tEnglisch", "Frage\tAntwort", "Satz\tÜbersetzung", "anglais\tfrançais"),
        *("文言文\t白话文", "上联\t下联"),
    ],
)
def test_names_of_what_pairs_hold_are_headings(heading: str):
    assert is_header(*heading.split("\t"))


@pytest.mark.parametrize(
    "cells",
    [
        ("it", "es"),
        ("Hund", "dog"),
        ("word", "Wort"),
        ("Deutsch", "German"),
        ("alt", "old"),
        ("问题", "question"),
        ("text", "text"),
        ("", ""),
        ("en", ""),
        ("Frage", "Antworten Sie!"),
        ("v1", "text2"),
        ("wrong", "incorrect"),
        ("answer", "solution"),
        ("label", "v1"),
    ],
)
def test_words_are_no_headings(cells: tuple[str, str]):
    assert not is_header(*cells)


@pytest.mark.parametrize("cells", [("source_text", "target_text"), ("text_en", "text_de"), ("src", "translation_de")])
def test_compound_headings_are_headings(cells: tuple[str, str]):
    assert is_header(*cells)
    assert not is_header(cells[0], "Wort_art")


@pytest.mark.parametrize("heading", ["text\tlabel", "Review\tSentiment", "sentence\tcategory", "文本\t标签"])
def test_headings_of_labels_are_a_header(heading: str):
    assert is_header(*heading.split("\t"))


def test_heading_words_can_match():
    assert all(word == word.strip().casefold() for word in HEADER_WORDS)


@pytest.mark.parametrize(
    ("rows", "columns", "reason"),
    [
        pytest.param(TATOEBA, (2, 4), "columns 1 and 3 hold numbers", id="Tatoeba"),
        pytest.param([["1", "a", "b"], ["2", "c", "d"]], (2, 3), "column 1 holds numbers", id="one id"),
        pytest.param(
            [[str(number), f"text {number}", str(number % 2)] for number in range(9)],
            (2, 3),
            "column 1 holds numbers",
            id="labels",
        ),
        pytest.param([["a", "b", "7"], ["c", "d", "8"]], (1, 2), "", id="ids behind"),
        pytest.param(
            [["7", "seven", "x", "y"], ["8", "eight", "z", "w"]],
            (1, 2),
            f"{ID_COLUMN}; for other columns, --columns N,M",
            id="three texts",
        ),
        pytest.param([["7", "seven"], ["8", "eight"]], (1, 2), "", id="numbers to words"),
        pytest.param([["a", "b", "c"], ["d", "e", "f"]], (1, 2), "", id="three texts, no ids"),
    ],
)
def test_columns_of_identifiers_are_left_out(rows: list[list[str]], columns: tuple[int, int], reason: str):
    assert choose_columns(rows, (1, 2)) == (columns, False, reason)
    assert choose_columns(rows, (2, 1)).columns == columns[::-1]
    assert choose_columns(rows, (1, 3)) == ((1, 3), False, "")


@pytest.mark.parametrize(
    ("heading", "columns"),
    [
        (["Date", "Article Body", "Headline"], (2, 3)),
        (["id", "article", "highlights"], (2, 3)),
        (["id", "source", "target"], (2, 3)),
        (["id", "Quelle", "Ziel"], (2, 3)),
        (["ID", "Source", "Target", "score"], (2, 3)),
        (["", "text", "label"], (2, 3)),
        (["id", "lang", "text", "translation"], (3, 4)),
        (["id", "de", "id2", "en"], (2, 4)),
    ],
)
def test_headings_name_the_columns(heading: list[str], columns: tuple[int, int]):
    rows = [heading, [f"cell {number}" for number in range(len(heading))]]
    assert choose_columns(rows, (1, 2)) == (columns, True, "")
    assert choose_columns(rows, (2, 1)) == (columns[::-1], True, "")


@pytest.mark.parametrize("first", [["It is a", "source", "target"], ["id", "text", "text"], ["id", "Zorn", "Zeit"]])
def test_other_first_rows_are_no_headings(first: list[str]):
    assert choose_columns([first, ["x", "y", "z"]], (1, 2)) == ((1, 2), False, "")


def test_a_heading_of_numbers_is_left_out():
    assert choose_columns([["Nummer", "Beugung", "Stamm"], ["1", "a", "b"], ["2", "c", "d"]], (1, 2)) == (
        (2, 3),
        True,
        "column 1 holds numbers",
    )


def test_numbers_with_decimals_are_no_identifiers_of_pairs():
    rows = [["Wert", "Beugung", "Stamm"], ["1.5", "a", "b"], ["2.5", "c", "d"]]
    assert choose_columns(rows, (1, 2)) == ((1, 2), False, "")


@pytest.mark.parametrize(
    "cell", ["7", " ４２ ", "-3", "+0.5", "32.88", "1,5", "1,240.5", "1,23,456.5", "1.240,50 €", "-$24.50", "1e-3"]
)
def test_numbers_are_known(cell: str):
    assert is_number(cell)


@pytest.mark.parametrize("cell", ["", "price", "$", "v1", "1.2.3", "1,2,3", "2026-01-01", "5 stars", "nan", "10 %"])
def test_other_cells_are_no_numbers(cell: str):
    assert not is_number(cell)


def test_keys_of_identifiers_are_known():
    assert is_id("ID")
    assert is_id("")
    assert not is_id("idea")
