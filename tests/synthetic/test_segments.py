"""Generated unsegmented texts: one segmentation each, which the target follows in its own order."""

from itertools import combinations

import pytest

from heedful.errors import UsageError
from heedful.synthetic.segments import NUM_MODIFIERS, UnsegmentedText, generate, lexicon
from tests.thorough import sampled


def segmentations(source: str) -> list[list[str]]:
    """All ways to write a text as words of the lexicon."""
    if not source:
        return [[]]
    return [
        [word, *rest] for word in lexicon() if source.startswith(word) for rest in segmentations(source[len(word) :])
    ]


def is_translation(text: UnsegmentedText) -> bool:
    """Whether the target is that of the only segmentation, with modifiers after the word that they stand before."""
    (words,) = segmentations(text.source)
    named = [lexicon()[word] for word in words]
    # A modifier waits for the word after it, from the end of the text on.
    target: list[str] = []
    waiting: list[str] = []
    for number, name in enumerate(named, start=1):
        if int(name[1:]) < NUM_MODIFIERS and number < len(named):
            waiting.append(name)
        else:
            target += [name, *waiting]
            waiting = []
    spans = [lexicon().get(text.source[start:stop]) for start, stop in text.spans]
    return target == text.target.split() == spans


def test_no_word_begins_another_one():
    assert not any(one.startswith(two) or two.startswith(one) for one, two in combinations(lexicon(), 2))
    assert len(set(lexicon().values())) == len(lexicon())


@sampled(3)
@pytest.mark.parametrize("number", [1, 2, 7])
def test_the_target_translates_the_only_segmentation(number: int):
    texts = list(generate(200, (number,), seed=number))
    assert all(is_translation(text) for text in texts)
    assert {len(text.spans) for text in texts} == {number}


def test_other_targets_are_no_translation():
    text = next(text for text in generate(50, (3,), seed=1) if len(set(text.target.split())) == 3)
    target = " ".join(reversed(text.target.split()))
    assert not is_translation(UnsegmentedText(text.source, target, text.spans))
    assert not is_translation(UnsegmentedText(text.source, text.target, text.spans[::-1]))


def test_more_texts_begin_with_the_same_ones_and_other_seeds_with_others():
    first, more, other = (list(generate(n, (3, 6), seed)) for n, seed in ((50, 1), (80, 1), (50, 2)))
    assert more[:50] == first
    assert not {each.source for each in first} & {each.source for each in other}


@pytest.mark.parametrize(
    ("number", "words", "message"), [(-1, (2,), "num_texts"), (1, (), "num_words"), (1, (2, 101), "num_words")]
)
def test_what_cannot_be_generated_is_refused(number: int, words: tuple[int, ...], message: str):
    with pytest.raises(UsageError, match=message):
        generate(number, words, seed=1)
