"""Noise of training texts."""

from collections.abc import Iterable

import numpy as np
import pytest

from heedful.data.batching import PairSampler
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.data.noise import CHANGES, Noise
from heedful.data.random_changes import RandomChanges
from heedful.data.sentence_counts import final_marks, opening_words, usual_characters, usual_sentences
from heedful.text.tokenizer import PieceTokenizer
from heedful.text.vocabulary import EOS

WORDS = {"Hund": "dog", "Katze": "cat", "Maus": "mouse", "Straße": "street", "Vögel": "birds", "Haus": "house"}
PAIRS = [
    (f"Der {one} sieht {number} mal „{other}“.", f"The {WORDS[one]} sees {number} times “{WORDS[other]}”.")
    for number in range(10, 40)
    for one in WORDS
    for other in WORDS
    if one != other
]


@pytest.fixture(scope="module")
def tokenizer() -> PieceTokenizer:
    return PieceTokenizer.train([text for pair in PAIRS for text in pair], 400, "NFC")


@pytest.fixture(scope="module")
def corpus(tokenizer: PieceTokenizer) -> EncodedCorpus:
    source, target = (EncodedSide.of([[*tokenizer.encode(pair[side]), EOS] for pair in PAIRS]) for side in (0, 1))
    return EncodedCorpus(source, target)


@pytest.fixture(scope="module")
def noise(tokenizer: PieceTokenizer) -> Noise:
    return Noise((tokenizer, tokenizer), 1.0, 200)


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_of_the_named_kind(name: str):
    change, weight = CHANGES[name]
    source, target = PAIRS[0][0].replace("Hund", "Hündchen"), PAIRS[0][1]
    changed = change(source, target, np.random.default_rng(2))
    assert changed[0] != source
    assert weight > 0
    assert (changed[1] == target) == (name != "no final mark")
    assert change("", "", np.random.default_rng(2)) == ("", "")


def test_pairs_are_joined_in_the_same_order(tokenizer: PieceTokenizer, corpus: EncodedCorpus, noise: Noise):
    rows = [corpus.source[index] for index in range(9)], [corpus.target[index] for index in range(9)]
    draws = (noise(*rows, np.random.default_rng(seed)) for seed in range(100))
    sources, targets = next((one, other) for one, other in draws if len(one) < 9)
    texts = [[tokenizer.decode(ids[:-1].tolist()) for ids in side] for side in (sources, targets)]
    assert len(sources) < 9
    assert sum(text.count(".") for text in texts[0]) == 9
    known = dict(PAIRS)
    for source, target in zip(*texts, strict=True):
        assert " ".join(known[f"{one}."] for one in source.rstrip(".").split(". ")) == target


def test_batches_resume_exactly_and_share_zero_changes_nothing(corpus: EncodedCorpus, noise: Noise):
    def sampler(changes: RandomChanges) -> PairSampler:
        return PairSampler(corpus, 300, 5, changes)

    whole = sampler(RandomChanges(noise=noise))
    batches = iter(whole)
    for _ in range(7):
        next(batches)
    position = whole.position
    expected = [next(batches) for _ in range(12)]
    resumed = sampler(RandomChanges(noise=noise))
    resumed.position = position
    for one, other in zip(expected, resumed, strict=False):
        assert (one.source.shape, one.target_out.shape) == (other.source.shape, other.target_out.shape)
        assert (one.source == other.source).all()
        assert (one.target_out == other.target_out).all()
    clean = zip(sampler(RandomChanges()), sampler(RandomChanges(noise=noise)), range(20), strict=False)
    assert any(one.source.shape != other.source.shape for one, other, _ in clean)


def test_one_source_in_a_hundred_may_be_longer_than_usual(tokenizer: PieceTokenizer):
    def number(lengths: Iterable[int]) -> int:
        texts = ("e" * length for length in lengths)
        return usual_characters(EncodedSide.of([[*tokenizer.encode(text), EOS] for text in texts]), tokenizer)

    assert number(range(1, 101)) == 100
    assert number([*range(1, 101), *range(1, 101), 500]) == 100
    assert number([7]) == 60


def test_final_marks_are_those_of_nearly_all_texts(tokenizer: PieceTokenizer):
    def marks(sources: list[str], targets: list[str]) -> list[str]:
        sides = (EncodedSide.of([[*tokenizer.encode(text), EOS] for text in texts]) for texts in (sources, targets))
        return final_marks(EncodedCorpus(*sides), (tokenizer, tokenizer))

    assert marks(["Hund."] * 8 + ["Hund?", "Hund"], ["dog"] * 2 + ["dog."] * 8) == [".", ""]
    assert marks(["Hund。"] * 9, ["dog,"] * 9) == ["。", ""]
    assert marks([], []) == ["", ""]


def test_usual_sentences(tokenizer: PieceTokenizer):
    def number(texts: list[str]) -> int:
        return usual_sentences(EncodedSide.of([[*tokenizer.encode(text), EOS] for text in texts]), tokenizer)

    assert number(["Eins. Zwei."] + ["Eins."] * 19) == 1
    assert number(["Eins. Zwei."] * 5 + ["Eins."] * 15) == 2
    assert number([]) == 1


def test_a_word_that_is_in_lower_case_but_at_the_beginning_tells_that_a_sentence_begins(tokenizer: PieceTokenizer):
    def words(texts: list[str]) -> list[str]:
        return opening_words(EncodedSide.of([[*tokenizer.encode(text), EOS] for text in texts]), tokenizer)

    texts = ["Ein Hund sieht ein Tier."] * 30 + ["Sie sagt, sie hat Hunger."] * 30 + ["Hund sieht Hund."] * 30
    assert words(texts) == ["Ein", "Sie"]
    assert words([*texts, "Da sehen Sie ihn."]) == ["Ein"]  # a capital for politeness
    assert words(texts[:19]) == []
