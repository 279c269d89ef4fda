from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import DataError
from heedful.evaluation.items import check_items, group_references, items_digest

THREE: list[str] = ["a", "b", "c"]


def test_good_items_pass():
    check_items(THREE, [["a"], ["b", "x"], [""]], THREE)


@pytest.mark.parametrize(
    ("hypotheses", "references", "sources", "message"),
    [
        (THREE, [["a", "b", "c"]], THREE, "3 hypotheses but references for 1 items; they look transposed"),
        (THREE, [["a", "b", "c"], ["x", "y", "z"]], THREE, "references for 2 items; they look transposed"),
        (THREE, [["a"], ["b"]], THREE, r"references for 2 items$"),
        (THREE, [["a"], ["b"], ["c"], ["d"]], THREE, r"references for 4 items$"),
        (["a"], [["a"], ["b"], ["c"]], ["a"], "1 hypotheses but references for 3 items"),
        (THREE, [["a"], ["b"], ["c"]], ["a", "b"], "3 hypotheses for 2 sources"),
        (THREE, THREE, THREE, r"references\[0\] must be a list of texts, got a single text"),
        (THREE, [["a"], [], ["c"]], THREE, r"references\[1\] is empty: every item needs at least one"),
        (THREE, [["a"], ["b", None], ["c"]], THREE, r"references\[1\]\[1\] is not a text but NoneType"),
        (["a", None, "c"], [["a"], ["b"], ["c"]], THREE, r"hypotheses\[1\] is not a text but NoneType"),
        ("abc", [["a"], ["b"], ["c"]], THREE, "hypotheses must be a list of texts"),
        (THREE, "abc", THREE, "references must be a list of texts per item"),
        (THREE, [["a"], ["b"], ["c"]], "abc", "sources must be a list of texts"),
        ([], [], [], "nothing to evaluate"),
    ],
)
def test_bad_items_are_refused(hypotheses: Any, references: Any, sources: Any, message: str):
    with pytest.raises(DataError, match=message):
        check_items(hypotheses, references, sources)


def test_rows_with_one_source_become_one_item():
    rows = [("b", "1"), ("a", "2"), ("b", "3"), ("b", "1"), ("B", "4")]
    assert group_references(rows) == (["b", "a", "B"], [["1", "3"], ["2"], ["4"]])


@given(st.lists(st.tuples(st.text("ab", max_size=2), st.text("xy", max_size=2)), min_size=1))
def test_grouping_loses_and_invents_nothing(rows: list[tuple[str, str]]):
    sources, references = group_references(rows)
    pairs = [(source, text) for source, texts in zip(sources, references, strict=True) for text in texts]
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == set(rows)
    check_items(sources, references, sources)


def test_digest_tells_items_apart():
    digests = {
        items_digest([["a"], ["b"]], ["x", "y"]),
        items_digest([["b"], ["a"]], ["x", "y"]),
        items_digest([["a"], ["b"]], ["y", "x"]),
        items_digest([["a", "b"], ["b"]], ["x", "y"]),
        items_digest([["a\n"], ["b"]], ["x", "y"]),
        items_digest([["a", "b"]], ["x"]),
        items_digest([["b"]], ["xa"]),
    }
    assert len(digests) == 7
    assert items_digest([["a"], ["b"]], ["x", "y"]) == items_digest((("a",), ("b",)), ("x", "y"))


def test_digest_takes_any_text():
    assert len(items_digest([["\ud800"]], ["é\0"])) == 64
