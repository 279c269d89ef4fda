"""N-gram index against a plain comparison with every text."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.text import ngram_index
from heedful.text.ngram_index import NgramIndex

SHORT = st.text("ab Aß三", max_size=9)


def share_of(left: str, right: str) -> Fraction:
    """Dice's coefficient of the trigrams of two texts, exactly."""
    grams: list[Counter[str]] = []
    for text in (left, right):
        padded = f" {text.casefold()} "
        grams.append(Counter(padded[start : start + 3] for start in range(max(1, len(padded) - 2))))
    return Fraction(2 * (grams[0] & grams[1]).total(), grams[0].total() + grams[1].total())


def agrees(texts: list[str], query: str, number: int = 3) -> bool:
    ranked = sorted(((share_of(text, query), index) for index, text in enumerate(texts)), reverse=True)
    expected = [(index, share) for share, index in ranked[:number] if share]
    nearest = NgramIndex(texts).nearest(query, number)
    return [index for index, _ in nearest] == [index for index, _ in expected] and all(
        abs(share - right) < 1e-12 for (_, share), (_, right) in zip(nearest, expected, strict=True)
    )


@given(st.lists(SHORT, max_size=6), SHORT)
def test_the_nearest_texts_and_their_shares_are_those_of_a_plain_comparison(texts: list[str], query: str):
    assert agrees(texts, query)


CASES = [(["aaaa", "aa"], "aaaaaa"), (["ABC"], "abc"), (["abc", "abc"], "abd")]


def test_the_cases_of_the_faults_agree():
    assert all(agrees(*case) for case in CASES)


@pytest.mark.parametrize("fault", ["no repetitions", "case", "size"])
def test_a_wrong_index_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch):
    right = ngram_index.ngrams
    wrong = {
        "no repetitions": lambda text: iter({(gram, 0) for gram, _ in right(text)}),
        "case": lambda text: ((text[start : start + 3], 0) for start in range(max(1, len(text) - 2))),
        "size": lambda text: ((f" {text} ".casefold()[start : start + 2], 0) for start in range(len(text) + 1)),
    }
    monkeypatch.setattr(ngram_index, "ngrams", wrong[fault])
    assert not all(agrees(*case) for case in CASES)


def test_the_same_text_is_all_in_common():
    assert NgramIndex(["ein Haus", "zwei Häuser"]).nearest("ZWEI HÄUSER") == [(1, 1.0)]


def test_texts_are_added_later_and_may_not_count():
    index = NgramIndex(["ein Haus"])
    assert index.nearest("ein Baum") == NgramIndex(["ein Haus"]).nearest("ein Baum")
    index.add("ein Baum")
    assert index.nearest("ein Baum") == [(1, 1.0)]
    assert [number for number, _ in index.nearest("ein Baum", 2, lambda number: number != 1)] == [0]
