from typing import Any

import pytest

from heedful.errors import DataError
from heedful.evaluation.items import check_items, items_digest

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
