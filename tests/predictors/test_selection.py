"""Texts that are labelled next."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from heedful.errors import UsageError
from heedful.predictors import selection
from heedful.predictors.classifier import Classifier
from heedful.predictors.interface import Predictor
from heedful.predictors.selection import Candidate, candidates, select
from heedful.predictors.table import load
from tests.cli.command import heedful
from tests.cli.conftest import Trained
from tests.tasks.reviews import reviews, write_reviews
from tests.tasks.test_classification import Run


def plainly(pool: list[Candidate], number: int) -> list[str]:
    """The rule, word by word."""
    left, chosen = [*pool], list[Candidate]()
    while left and len(chosen) < number:
        vectors = [selection._vector(each.text) for each in chosen]

        def gain(one: Candidate, known: list[np.ndarray] = vectors) -> float:
            nearest = max((float(each @ selection._vector(one.text)) for each in known), default=0)
            return -math.log(1.0 - one.uncertainty) * (1.0 - nearest)

        chosen.append(max(left, key=gain))
        left.remove(chosen[-1])
    return [each.text for each in chosen]


def test_it_follows_its_rule():
    generator = np.random.default_rng(0)
    pool = [Candidate(text, "", float(generator.random())) for text, _ in reviews(80, 3)]
    assert [each.text for each in select(pool, 12)] == plainly(pool, 12)
    by_uncertainty = [each.text for each in sorted(pool, key=lambda each: -each.uncertainty)][:12]
    assert plainly(pool, 12) != by_uncertainty


def test_near_repeats_are_chosen_late():
    pool = [Candidate(f"the same long sentence number {index}", "", 0.9) for index in range(5)]
    pool.append(Candidate("Zwölf Boxkämpfer jagen Viktor", "", 0.5))
    assert [each.text for each in select(pool, 2)][1] == "Zwölf Boxkämpfer jagen Viktor"
    assert len(select(pool, 100)) == 6
    assert select([], 3) == []


def test_of_outputs_that_are_all_wrong_the_least_sure_come_first():
    words = ["kort", "lang", "zo", "een", "vreemdelingenverkeer"]
    pool = [Candidate(word, "", 1.0 - 0.3 ** len(word)) for word in words]
    assert [each.text for each in select(pool, 1)] == ["vreemdelingenverkeer"]
    assert len(select([Candidate(word, "", 1.0) for word in words], 5)) == 5


def test_a_pool_in_which_all_is_sure_is_chosen_from_by_difference():
    pool = [Candidate(text, "", 0.0) for text in ("aaa", "aaa b", "xyz")]
    assert {each.text for each in select(pool, 2)} == {"aaa", "xyz"}


def test_uncertainty_is_the_probability_of_an_error(trained: Trained, tmp_path: Path):
    out = tmp_path / "m"
    Run(write_reviews(tmp_path / "reviews.tsv"), out, "training.max_steps=5", preset="bag").train()
    classifier = load(out, kind=Classifier)
    (one,) = candidates(classifier, ["a clean room"])
    assert one.uncertainty == pytest.approx(1.0 - classifier.classify(["a clean room"])[0].probability)
    (other,) = candidates(load(trained.model), ["abc"])
    assert 0.0 <= other.uncertainty <= 1.0
    with pytest.raises(UsageError, match="its sources are pictures"):
        [*candidates(cast("Predictor", SimpleNamespace(folder=SimpleNamespace(task="captioning"))), ["x"])]


def test_the_command_writes_data_without_known_and_repeated_texts(trained: Trained, tmp_path: Path):
    pool, known = tmp_path / "pool.txt", tmp_path / "known.tsv"
    pool.write_text("abc\nfed\n\nabc\n bad\t \nfeed\n", encoding="utf-8")
    known.write_text("fed\tFED\nx\ty\n", encoding="utf-8")
    done = heedful("next", trained.model, pool, "-n", "2", "--known", known, "--quiet")
    assert done.code == 0
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert len(rows) == 2
    assert {source for source, _ in rows} <= {"abc", "bad", "feed"}
    assert rows[0][1] == heedful("translate", trained.model, rows[0][0]).out.rstrip("\n")
    everything = heedful("next", trained.model, pool, "--format", "jsonl", "-n", "9").out
    assert everything.count('"uncertainty"') == 4
    pool.write_text("fed\n", encoding="utf-8")
    refused = heedful("next", trained.model, pool, "--known", known)
    assert (refused.code, len(refused.errors)) == (2, 1)
    assert "all of its texts are in --known" in refused.err
