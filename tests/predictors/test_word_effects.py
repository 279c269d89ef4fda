"""Effects of words on a label, against a classifier whose reasons are known."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from heedful.predictors.classifier import Classification, Classifier
from heedful.predictors.table import load
from heedful.predictors.word_effects import MOST_WORDS, word_effects
from tests.tasks.reviews import write_reviews
from tests.tasks.test_classification import Run

WORD = re.compile(r"\S+")
REASONS = {"clean": 2.0, "quiet": 1.0, "rude": -3.0}


class Known:
    """Classifier that adds up the reasons in a text; it looks at words as it is told."""

    def __init__(self, looks: dict[str, float] | None, kind: str = "one") -> None:
        self.looks = looks
        self.text = SimpleNamespace(labels=kind, split_sentences=False)
        self.tokenizer = SimpleNamespace(
            normalize=str, ranges=lambda text: [m.span() for m in re.finditer(r"\S+", text)]
        )

    def classify(self, texts: list[str]) -> list[Classification]:
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Classification:
        pieces = text.split()
        score = sum(REASONS.get(piece, 0.0) for piece in pieces)
        good = 1.0 / (1.0 + np.exp(-score))
        weights = [(self.looks or {}).get(piece, 0.01) for piece in pieces]
        attention = None if self.looks is None else np.array([*weights, 0.0], dtype=np.float32)
        label = f"{score:g}" if self.text.labels == "number" else "good"
        shares = {label: good, "bad": 1.0 - good}
        return Classification(text, label, good, shares, (*pieces, "<eos>"), attention, labels=(label,))


def effects(known: Known, text: str) -> dict[str, float | None]:
    found = word_effects(cast("Classifier", known), text)
    return {each.word.strip(): each.effect for sentence in found.sentences for each in sentence if each.word.strip()}


def test_an_effect_is_the_fall_of_the_log_probability():
    found = effects(Known({}), "a clean and quiet room with rude staff")

    def log_good(score: float) -> float:
        return float(-np.log1p(np.exp(-score)))

    assert found["clean"] == pytest.approx(log_good(0.0) - log_good(-2.0), abs=1e-6)
    assert found["rude"] == pytest.approx(log_good(0.0) - log_good(3.0), abs=1e-6)
    assert found["room"] == 0.0
    assert max(found, key=lambda word: found[word] or 0.0) == "clean"


def test_the_correlation_tells_attention_that_decides_from_attention_that_does_not():
    text = "a clean and quiet room with rude staff"
    honest = word_effects(cast("Classifier", Known({"clean": 0.3, "quiet": 0.2, "rude": 0.5})), text)
    elsewhere = word_effects(cast("Classifier", Known({"a": 0.3, "and": 0.2, "with": 0.5})), text)
    assert honest.correlation is not None
    assert elsewhere.correlation is not None
    assert honest.correlation > 0.9
    assert elsewhere.correlation < 0.0
    assert word_effects(cast("Classifier", Known(None)), text).correlation is None
    assert word_effects(cast("Classifier", Known({"clean": 1.0})), "clean room").correlation is None


def test_the_effect_on_a_number_is_its_change():
    assert effects(Known({}, "number"), "a clean rude room")["rude"] == -3.0


def test_words_are_those_of_the_text_also_where_the_vocabulary_lacks_them(tmp_path: Path):
    run = Run(write_reviews(tmp_path / "reviews.tsv"), tmp_path / "m", "training.max_steps=5", preset="text_classifier")
    run.train()
    classifier = load(tmp_path / "m", kind=Classifier)
    found = word_effects(classifier, "Zyx clean quux, 3,000 rooms")
    ((*words, end),) = found.sentences
    assert [each.word for each in words] == ["zyx", " clean", " quux", ",", " 3", ",", "000", " rooms"]
    assert found.result.attention is not None
    assert sum(each.weight for each in (*words, end)) == pytest.approx(1.0, abs=1e-5)
    shorter, whole = classifier.classify(["zyx quux, 3,000 rooms", "zyx clean quux, 3,000 rooms"])
    label = found.result.label
    expected = np.log(whole.probabilities[label]) - np.log(shorter.probabilities[label])
    assert words[1].effect == pytest.approx(expected, abs=1e-4)


def test_of_a_long_text_the_words_of_the_largest_weights_are_left_out():
    words = [f"w{index}" for index in range(3 * MOST_WORDS)]
    looks: dict[str, Any] = {word: 0.5 for word in words[::3]}
    found = effects(Known(looks), " ".join(words))
    assert [word for word, effect in found.items() if effect is not None] == words[::3]
