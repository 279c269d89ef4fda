import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.evaluation.metrics.edit_distance import edit_distance


def by_table(a: str, b: str) -> int:
    """Wagner and Fischer's table, row by row."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [
        ("", "", 0),
        ("", "abc", 3),
        ("abc", "", 3),
        ("kitten", "sitting", 3),
        ("saturday", "sunday", 3),
        ("intention", "execution", 5),
        ("ab", "ba", 2),
        ("天气很好", "天气真好吗", 2),
        ("a" * 200, "a" * 130, 70),
        ("ab" * 100, "ba" * 100, 2),
    ],
)
def test_known_distances(a: str, b: str, distance: int):
    assert edit_distance(a, b) == distance


def test_tokens_are_compared_whole():
    assert edit_distance(["AE", "T"], ["AA", "T"]) == 1
    assert edit_distance(("A", "ET"), ("AE", "T")) == 2


@given(st.text("abc", max_size=90), st.text("abc", max_size=90))
def test_equals_the_table(a: str, b: str):
    assert edit_distance(a, b) == by_table(a, b)
