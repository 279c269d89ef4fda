"""Alignment links and translation probabilities learned from pairs alone by IBM model 1 or 2."""

import math
from collections import defaultdict
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import UsageError
from heedful.text.dictionary import learn_dictionary
from heedful.text.links import combine_links
from heedful.text.word_alignment import Pair, align_pairs, translation_probabilities


def pairs_of(*lines: str) -> list[Pair]:
    return [(source.split(), target.split()) for source, target in (line.split("|") for line in lines)]


PAIRS = pairs_of("das Haus | the house", "das Buch | the book", "ein Buch | a book")


def slow_translation(pairs: Sequence[Pair], num_iterations: int) -> dict[tuple[str | None, str], float]:
    """t(target | source) with the empty word None, from loops and dictionaries."""
    translation: dict[tuple[str | None, str], float] = defaultdict(lambda: 1.0)
    for _ in range(num_iterations):
        expected: dict[tuple[str | None, str], float] = defaultdict(float)
        totals: dict[str | None, float] = defaultdict(float)
        for source, target in pairs:
            for word in target:
                norm = sum(translation[other, word] for other in (*source, None))
                for other in (*source, None):
                    share = translation[other, word] / norm
                    expected[other, word] += share
                    totals[other] += share
        translation = defaultdict(float, {key: value / totals[key[0]] for key, value in expected.items()})
    return translation


SENTENCE = st.lists(st.sampled_from("abcd"), max_size=4)


@settings(max_examples=80)
@given(st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=5), st.integers(1, 6))
def test_links_are_the_most_probable_of_the_slow_reference(pairs: list[Pair], num_iterations: int):
    translation = slow_translation([pair for pair in pairs if all(pair)], num_iterations)
    aligned = align_pairs(pairs, "forward", num_iterations)
    assert len(aligned) == len(pairs)
    for (source, target), links in zip(pairs, aligned, strict=True):
        assert links == sorted(links)
        chosen = {position: source[left] for left, position in links}
        assert len(chosen) == len(links)
        for position, word in enumerate(target if source else []):
            best = max(translation[other, word] for other in (*source, None))
            assert translation[chosen.get(position), word] == pytest.approx(best)


# IBM model 2 with a diagonal prior.
def slow_prior(source: Sequence[str], target: Sequence[str], place: int) -> list[float]:
    """Probability of each source position, and last of the empty word."""
    near = [math.exp(-4.0 * abs((left + 1) / len(source) - (place + 1) / len(target))) for left in range(len(source))]
    return [0.92 * each / sum(near) for each in near] + [0.08]


def slow_second(pairs: Sequence[Pair], num_iterations: int) -> dict[tuple[str | None, str], float]:
    """exp(E[log t(target | source)]) from loops and dictionaries."""
    translation: dict[tuple[str | None, str], float] = defaultdict(lambda: 1.0)
    for _ in range(num_iterations):
        expected: dict[tuple[str | None, str], float] = defaultdict(float)
        for source, target in pairs:
            for place, word in enumerate(target):
                prior = slow_prior(source, target, place)
                shares = [share * translation[other, word] for other, share in zip((*source, None), prior, strict=True)]
                for other, share in zip((*source, None), shares, strict=True):
                    expected[other, word] += share / sum(shares)
        totals: dict[str | None, float] = defaultdict(float)
        for (other, _), value in expected.items():
            totals[other] += value + 0.01
        translation = defaultdict(
            float,
            {
                key: math.exp(float(digamma(value + 0.01)) - float(digamma(totals[key[0]])))
                for key, value in expected.items()
            },
        )
    return translation


def digamma(value: float) -> torch.Tensor:
    return torch.digamma(torch.tensor(value, dtype=torch.float64))


@settings(max_examples=60)
@given(st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=4), st.integers(1, 4))
def test_links_of_the_second_model_are_those_of_its_slow_reference(pairs: list[Pair], num_iterations: int):
    translation = slow_second([pair for pair in pairs if all(pair)], num_iterations)
    for (source, target), links in zip(pairs, align_pairs(pairs, "forward", num_iterations, "ibm2"), strict=True):
        chosen = {position: left for left, position in links}
        for position, word in enumerate(target if source else []):
            prior = slow_prior(source, target, position)
            products = [share * translation[other, word] for other, share in zip((*source, None), prior, strict=True)]
            assert products[chosen.get(position, len(source))] == pytest.approx(max(products), rel=1e-6)


def test_only_the_second_model_knows_positions():
    pairs = pairs_of("a a a | x x x")
    assert align_pairs(pairs, "forward", model="ibm1") == [[(0, 0), (0, 1), (0, 2)]]
    assert align_pairs(pairs, "forward", model="ibm2") == [[(0, 0), (1, 1), (2, 2)]]


def test_words_are_told_apart_by_where_else_they_occur():
    assert align_pairs(PAIRS, "forward") == [[(0, 0), (1, 1)]] * 3
    learned = learn_dictionary(PAIRS, align_pairs(PAIRS), min_count=1)
    assert {source: entry.target for source, entry in learned.entries.items()} == {
        "das": "the",
        "Haus": "house",
        "Buch": "book",
        "ein": "a",
    }


def test_of_equal_words_the_leftmost_and_no_empty_one():
    assert align_pairs(pairs_of("a b | x"), "forward") == [[(0, 0)]]
    assert align_pairs(pairs_of("a a | x y"), "forward") == [[(0, 0), (0, 1)]]


def test_target_words_that_no_source_word_explains_have_no_link():
    # "do" is in every target: the empty word explains it best.
    pairs = pairs_of("a | do x", "b | do y", "c | do z", "d | do u", "e | do v")
    assert align_pairs(pairs, "forward", 20) == [[(0, 1)]] * 5


def test_directions_and_their_combinations():
    pairs = pairs_of("a b | x", "a | x", "b b | y", "c a | x z", "a c b | z z y")
    forward, backward = align_pairs(pairs, "forward"), align_pairs(pairs, "backward")
    turned = align_pairs([(target, source) for source, target in pairs], "forward")
    assert backward == [sorted((source, target) for target, source in links) for links in turned]
    assert forward != backward
    for method in ("intersection", "union", "grow-diag"):
        expected = [combine_links(one, other, method) for one, other in zip(forward, backward, strict=True)]
        assert align_pairs(pairs, method) == expected
    assert align_pairs(pairs) == align_pairs(pairs, "intersection")


def test_empty_and_huge_pairs_have_no_links_and_teach_nothing():
    huge = (["das"] * 201, ["wrong"] * 200)
    pairs = [([], []), PAIRS[0], ([], ["x"]), huge, PAIRS[1], (["x"], []), PAIRS[2]]
    aligned = align_pairs(pairs, "forward")
    assert [aligned[place] for place in (1, 4, 6)] == align_pairs(PAIRS, "forward")
    assert [aligned[place] for place in (0, 2, 3, 5)] == [[]] * 4
    assert align_pairs([([], ["x"]), huge]) == [[], []]
    assert align_pairs([]) == []
    largest = (["das"] * 200, ["the"] * 200)
    assert align_pairs([largest], "forward") == [[(0, position) for position in range(200)]]


def test_wrong_settings_are_refused():
    with pytest.raises(UsageError, match="no method 'intersect'; did you mean 'intersection'"):
        align_pairs(PAIRS, "intersect")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no alignment model 'ibm3'; did you mean 'ibm"):
        align_pairs(PAIRS, model="ibm3")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="num_iterations must be 1 or more, got 0"):
        align_pairs(PAIRS, num_iterations=0)


@settings(max_examples=40)
@given(st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=5), st.integers(1, 6))
def test_translation_probabilities_are_those_of_the_slow_reference(pairs: list[Pair], num_iterations: int):
    slow = {
        key: value
        for key, value in slow_translation([pair for pair in pairs if all(pair)], num_iterations).items()
        if key[0] is not None
    }
    fast = translation_probabilities(pairs, num_iterations)
    flat = {(source, target): value for source, row in fast.items() for target, value in row.items()}
    assert {key: value for key, value in slow.items() if value > 0} == pytest.approx(
        {key: value for key, value in flat.items() if value > 0}
    )
