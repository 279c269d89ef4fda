"""Errors of a classifier on a test set."""

import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np

from heedful.data.labelled_texts import LabelledTexts
from heedful.pages.label_errors import ErrorPage
from heedful.predictors.classifier import Classification, Classifier
from heedful.predictors.label_errors import MOST_WRONG, label_errors
from tests.cli.command import heedful
from tests.tasks.reviews import write_reviews
from tests.tasks.test_classification import Run


def classifier(said: list[str], probabilities: list[float]) -> Classifier:
    def stream(texts: list[str]) -> list[Classification]:
        return [
            Classification(text, label, share, {label: share, "other": 1 - share}, (text, "</s>"), np.array([0.9, 0.1]))
            for text, label, share in zip(texts, said, probabilities, strict=True)
        ]

    kind = SimpleNamespace(labels="one")
    return cast("Classifier", SimpleNamespace(stream=stream, folder=SimpleNamespace(path=Path("m")), text=kind))


def test_errors_are_counted_by_pair_and_length_and_shown_by_confidence():
    said = ["a", "b", "a", "b", "a"]
    items = LabelledTexts(["one", "one two", "x <b> y", "1 2 3 4", "z"], ["a", "b", "b", "a", "b"])
    found = label_errors(classifier(said, [0.9, 0.8, 0.6, 0.95, 0.7]), items)
    assert isinstance(found, ErrorPage)
    assert (found.num_texts, found.num_right) == (5, 2)
    assert found.pairs == Counter({("a", "a"): 1, ("b", "b"): 1, ("b", "a"): 2, ("a", "b"): 1})
    assert [one.text for one in found.wrong] == ["1 2 3 4", "z", "x <b> y"]
    assert sum(one.num_texts for one in found.by_length) == 5
    assert [one.shortest for one in found.by_length] == sorted(one.shortest for one in found.by_length)
    assert found.by_length[-1].num_right == 0
    page = found.to_html()
    assert "b → a" in page
    assert "40.00 %" in page
    assert "<b>" not in page
    assert "x &lt;b&gt; y" in page


def test_a_perfect_model_has_no_errors_and_many_errors_are_cut():
    items = LabelledTexts(["x"] * 200, ["a"] * 200)
    assert "Confused" not in label_errors(classifier(["a"] * 200, [0.9] * 200), items).to_html()
    assert len(label_errors(classifier(["b"] * 200, [0.9] * 200), items).wrong) == MOST_WRONG


def test_the_command_writes_the_page_of_its_scores(tmp_path: Path):
    data, out, page = write_reviews(tmp_path / "reviews.tsv"), tmp_path / "m", tmp_path / "errors.html"
    Run(data, out, "training.max_steps=5", preset="bag").train()
    done = heedful("evaluate", out, data, "--limit", "60", "--html", page)
    assert done.code == 0
    (num_right,) = re.findall(r"<p>(\d+) of 60 texts", page.read_text(encoding="utf-8"))
    assert f"accuracy {100 * int(num_right) / 60:.2f} %" in done.out
    refused = heedful("evaluate", out, data, "--html", tmp_path)
    assert (refused.code, len(refused.errors)) == (2, 1)
