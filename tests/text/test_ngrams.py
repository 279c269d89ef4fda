"""Hashed n-grams of words and characters."""

import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from heedful.text.ngrams import Ngrams, NgramSizes, is_unspaced, text_ngrams

Named = Counter[tuple[int, str]]


def words_by_hand(texts: list[str], most: int) -> Named:
    named: Named = Counter()
    for index, text in enumerate(texts):
        words = ["^", *re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+|[^\w\s]", text), "$"]
        named.update((index, word) for word in words[1:-1])
        for size in range(2, most + 1):
            named.update((index, " ".join(words[at : at + size])) for at in range(len(words) - size + 1))
    return named


def characters_by_hand(texts: list[str], least: int, most: int) -> Named:
    named: Named = Counter()
    for index, text in enumerate(texts):
        padded = f" {text} "
        for size in range(least, most + 1):
            grams = (padded[at : at + size] for at in range(len(padded) - size + 1))
            named.update((index, f"{size} {gram}") for gram in grams if " " not in gram[1:-1])
    return named


def shape(found: Ngrams) -> list[tuple[int, int]]:
    """How often each n-gram occurs in each text, without its name."""
    counts = Counter(zip(found.texts.tolist(), found.hashes.tolist(), strict=True))
    return sorted((text, count) for (text, _), count in counts.items())


def shared(found: Ngrams) -> list[int]:
    """In how many texts each n-gram occurs, without its name."""
    return sorted(Counter(one for _, one in {*zip(found.texts.tolist(), found.hashes.tolist(), strict=True)}).values())


def named_shape(named: Named) -> tuple[list[tuple[int, int]], list[int]]:
    return sorted((text, count) for (text, _), count in named.items()), sorted(
        Counter(one for _, one in named).values()
    )


@given(st.lists(st.text("ab酒.' "), min_size=1, max_size=4))
def test_ngrams_are_those_listed_by_hand(texts: list[str]):
    folded = [" ".join(text.split()) for text in texts]
    words, characters = text_ngrams(texts, NgramSizes(3, 2, 4))
    assert (shape(words), shared(words)) == named_shape(words_by_hand(folded, 3))
    assert (shape(characters), shared(characters)) == named_shape(characters_by_hand(folded, 2, 4))


def test_the_comparison_sees_other_ngrams():
    words, _ = text_ngrams(["a b a"], NgramSizes())
    assert shape(words) != named_shape(words_by_hand(["a b c"], 2))[0]
    assert shape(words) != named_shape(words_by_hand(["a b a"], 3))[0]


def test_scripts_without_spaces_are_recognised():
    assert is_unspaced("房间很好，早餐也好 ok")
    assert not is_unspaced("A room in 北京")
