"""Generated reviews, whose label follows from their words."""

import re

import pytest

from heedful.errors import UsageError
from heedful.synthetic.reviews import BAD, GOOD, LABELS, generate


def test_the_label_follows_from_the_telling_words_alone():
    counts = dict.fromkeys(LABELS, 0)
    for text, label in generate(1_000, seed=2):
        words = set(re.findall(r"\w+", text.lower()))
        good, bad = words & {*GOOD}, words & {*BAD}
        assert (len(good) in (1, 2), len(bad) in (1, 2)) == (label == "good", label == "bad"), text
        assert 2 <= text.count(".") <= 9
        assert "\t" not in text
        counts[label] += 1
    assert min(counts.values()) > 250


def test_reviews_are_a_function_of_the_seed_and_fewer_are_a_prefix():
    first = [*generate(20, seed=1)]
    assert [*generate(5, seed=1)] == first[:5]
    assert [*generate(20, seed=2)] != first


def test_a_negative_number_is_refused():
    with pytest.raises(UsageError, match="give 0 or more"):
        generate(-1, seed=1)
