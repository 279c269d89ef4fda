"""Sources of several columns as one text, and which columns hold features."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.text.columns import ColumnKind, column_kinds, join_columns, split_columns

CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t|")).map(str.strip).filter(bool)


@given(st.lists(CELLS, min_size=2, max_size=5))
def test_columns_come_back(cells: list[str]):
    joined = join_columns(cells)
    assert split_columns(joined) == cells
    assert split_columns("\t".join(cells)) == cells


def test_a_column_may_not_hold_the_separator():
    for cell in ("a | b", "a\tb"):
        with pytest.raises(ValueError, match="within a column"):
            join_columns([cell, "c"])


PARADIGM = [
    [word, tags] for word in ("gehen", "sehen", "stehen", "drehen") for tags in ("V;PRS;SG", "V;PST", "V;PST;PL")
]


@pytest.mark.parametrize(
    ("rows", "kinds"),
    [
        (PARADIGM, ("text", "features")),
        ([row[::-1] for row in PARADIGM], ("features", "text")),
        ([[f"word {n}", ("deu", "ita")[n % 2]] for n in range(60)], ("text", "features")),
        ([[f"word {n}", f"sense {n // 2}"] for n in range(60)], ("text", "text")),
        ([[("yes", "no")[n % 2], f"text {n}"] for n in range(60)], ("text", "text")),
        ([[f"word {n}", f"a{n}; b{n}; c"] for n in range(60)], ("text", "text")),
    ],
)
def test_columns_of_features_are_recognised(rows: list[list[str]], kinds: tuple[ColumnKind, ...]):
    assert column_kinds(rows) == kinds
