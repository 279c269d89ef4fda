"""Shares of tokens that are right where they stand."""

import pytest

from heedful.evaluation.metrics.in_place import TokensInPlace


@pytest.mark.parametrize(
    ("hypothesis", "references", "in_place", "before"),
    [
        ("a b c", ["a b c"], 1, 1),
        ("a x c", ["a b c"], 2 / 3, 1 / 4),
        ("a b", ["a b c"], 2 / 3, 2 / 4),
        ("a b c d", ["a b c"], 1, 3 / 4),
        ("x", ["a b", "x y"], 1 / 2, 1 / 3),
        ("", ["a"], 0, 0),
        ("", [""], 1, 1),
        ("a", [""], 0, 0),
    ],
)
def test_shares(hypothesis: str, references: list[str], in_place: float, before: float):
    for metric, share in ((TokensInPlace("all"), in_place), (TokensInPlace("before an error"), before)):
        assert metric.statistics([hypothesis], [references]).tolist() == [[pytest.approx(share), 1]]


def test_the_names_say_which_tokens_count():
    assert TokensInPlace("all").name == "tokens in place"
    assert TokensInPlace("before an error").name == "tokens before an error"
    assert TokensInPlace("all", lowercase=True).signature([["a"]]) == "nrefs:1|case:lc|tokens:space|heedful:1"
