"""Labels of every kind are learned by the default classifier: several of a text, ordered ones, numbers, rare ones."""

import copy
import json
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.data.label_kinds import (
    decide,
    encode_label,
    list_labels,
    log_likelihoods,
    mixture,
    normalised,
    target_rows,
)
from heedful.engines.folder import open_folder
from heedful.engines.ngram_model import SHIFTS
from heedful.errors import DataError, UsageError
from heedful.evaluation.label_sets import NumberReport, SetReport
from heedful.evaluation.labels import LabelReport
from heedful.predictors.classifier import Classifier
from heedful.predictors.table import load
from heedful.runs.finish import export_engines
from heedful.text.label_sets import joined_labels, split_labels
from tests.cli.command import heedful
from tests.tasks.test_classification import Run
from tests.thorough import thorough

WORDS = ("stone", "river", "tree", "cloud", "house", "road", "field", "lamp")
FAST = (
    "text.source_units=words",
    "training.precision=float32",
    "training.export=false",
    "training.max_epochs=4",
    "model.encoder=words",
    "model.embedding_size=16",
)


def rows(number: int, seed: int = 0) -> list[tuple[str, tuple[str, ...], float]]:
    """Texts, the labels that their words tell, and a number: one point for each "very", five for each "huge"."""
    source = random.Random(seed)
    drawn: list[tuple[str, tuple[str, ...], float]] = []
    for _ in range(number):
        topics = sorted(source.sample(("sport", "music", "film"), source.choice((0, 1, 1, 2))))
        words = [source.choice(WORDS) for _ in range(6)] + topics
        strengths = [source.choice(("very", "huge", "so")) for _ in range(3)]
        words += strengths
        source.shuffle(words)
        drawn.append((" ".join(words), tuple(topics), strengths.count("very") + 5.0 * strengths.count("huge")))
    return drawn


def train(path: Path, *settings: str, **options: Any) -> Classifier:
    run = Run(path, path.parent / f"{path.stem}.m", *settings, common=FAST, **options)
    run.train()
    export_engines(run.started[0], lambda line: None)
    return load(path.parent / f"{path.stem}.m", kind=Classifier)


def test_several_labels_of_a_text(tmp_path: Path):
    drawn = rows(400)
    data = tmp_path / "topics.csv"
    data.write_text("text,topics\n" + "".join(f"{text},{'|'.join(own)}\n" for text, own, _ in drawn), "utf-8")
    model = train(data, "training.export=true", separator="|")
    held_out = rows(100, seed=1)
    texts, wanted = [text for text, *_ in held_out], [own for _, own, _ in held_out]
    found = model.classify(texts)
    assert np.mean([one.labels == own for one, own in zip(found, wanted, strict=True)]) > 0.95
    assert all(one.label == "|".join(one.labels) for one in found)
    assert {split_labels(text) for text in model.predict(texts[:9])} == {one.labels for one in found[:9]}
    # Each label has a probability of its own, and that of the set is their product.
    one = next(each for each in found if len(each.labels) == 2)
    assert sum(one.probabilities.values()) > 1.5
    shares = [p if label in one.labels else 1.0 - p for label, p in one.probabilities.items()]
    assert one.probability == pytest.approx(np.prod(shares), rel=1e-3)
    # The exported graph gives the same.
    assert "onnx" in model.exported
    for engine in ("torch", "onnx"):
        other = Classifier(open_folder(model.folder.path), engine=engine).classify(texts[:50])
        assert [each.labels for each in other] == [each.labels for each in found[:50]]
        assert other[0].probability == pytest.approx(found[0].probability, abs=1e-5)
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert [each.labels for each in copied.classify(texts[:9])] == [each.labels for each in found[:9]]
    for item in (None, float("nan"), 7):
        with pytest.raises(UsageError, match="item 1 is"):
            model.classify(["a", item])  # pyright: ignore[reportArgumentType]
    test = tmp_path / "test.csv"
    test.write_text("text,topics\n" + "".join(f"{text},{'|'.join(own)}\n" for text, own, _ in held_out), "utf-8")
    report = model.evaluate(test)
    assert isinstance(report, SetReport)
    assert min(report.micro_f1, report.macro_f1, report.accuracy) > 95
    done = heedful("evaluate", model.folder.path, test)
    assert "micro-F1" in done.out
    line = heedful("classify", model.folder.path, texts[wanted.index(one.labels)] if one.labels in wanted else texts[0])
    assert line.code == 0


def test_ordered_labels_and_numbers(tmp_path: Path):
    drawn, held_out = rows(500), rows(100, seed=1)
    stars = [(text, f"{1 + int(number) // 4} stars") for text, _, number in drawn]
    data = tmp_path / "stars.tsv"
    data.write_text("".join(f"{text}\t{label}\n" for text, label in stars), "utf-8")
    model = train(data, "text.labels=ordered")
    assert list(model.labels) == sorted(model.labels, key=lambda label: int(label.split()[0]))
    (tmp_path / "s.tsv").write_text("".join(f"{text}\t{1 + int(n) // 4} stars\n" for text, _, n in held_out), "utf-8")
    report = model.evaluate(tmp_path / "s.tsv")
    assert isinstance(report, LabelReport)
    assert report.accuracy > 80
    assert report.mean_error is not None
    assert report.mean_error < 0.25
    data = tmp_path / "scores.tsv"
    data.write_text("".join(f"{text}\t{number}\n" for text, _, number in drawn), "utf-8")
    model = train(data, "text.labels=number")
    (tmp_path / "n.tsv").write_text("".join(f"{text}\t{number}\n" for text, _, number in held_out), "utf-8")
    report = model.evaluate(tmp_path / "n.tsv")
    assert isinstance(report, NumberReport)
    assert report.explained > 80
    assert report.mean_error < 0.5 * report.constant_error
    assert float(model.classify(["very very very"])[0].label) < float(model.classify(["huge huge huge"])[0].label)


@thorough
def test_rare_labels_are_found(tmp_path: Path):
    source = random.Random(3)
    pairs: list[tuple[str, str]] = []
    for number in range(2000):
        is_rare = number % 20 == 0
        words = [source.choice(WORDS) for _ in range(6)]
        # A word that the rare label has often, and the other sometimes, so that its score alone never exceeds a half.
        words += ["alarm"] * (source.random() < (0.9 if is_rare else 0.06))
        pairs.append((f"{' '.join(words)} {number}", "rare" if is_rare else "usual"))
    data = tmp_path / "rare.tsv"
    data.write_text("".join(f"{text}\t{label}\n" for text, label in pairs), "utf-8")
    model = train(data)
    facts = json.loads((model.folder.path / "heedful.json").read_text("utf-8"))
    assert len(facts[SHIFTS]) == 2
    assert facts[SHIFTS][0] > facts[SHIFTS][1]
    said = model.predict([text for text, _ in pairs])
    found = sum(own == "rare" for own, (_, label) in zip(said, pairs, strict=True) if label == "rare")
    assert found > 60
    assert sum(own == "rare" for own in said) < 300


def test_codes_of_labels():
    assert list_labels("one", ["b", "a", "b"]) == ["a", "b"]
    assert list_labels("ordered", ["10 stars", "2 stars"]) == ["2 stars", "10 stars"]
    assert list_labels("several", [joined_labels(["b"]), joined_labels(["a", "c"]), joined_labels([])]) == [
        "a",
        "b",
        "c",
    ]
    values = list_labels("number", map(str, np.random.default_rng(1).normal(size=5000)))
    assert 10 < len(values) <= 32
    numbers = {value: index for index, value in enumerate(values)}
    for wanted in (-1.234, 0.0, 0.5, 2.0, float(values[0]), float(values[-1])):
        ids = np.array([encode_label("number", str(wanted), numbers)])
        (said,) = decide("number", np.log(np.maximum(target_rows("number", ids, len(values)), 1e-30)), values)
        assert float(said) == pytest.approx(wanted, abs=1e-5)
    for kind, value in (("ordered", "many stars"), ("number", "ten"), ("number", "nan")):
        with pytest.raises(DataError, match=r"number"):
            list_labels(kind, [value, "1"])  # pyright: ignore[reportArgumentType]
    assert list_labels("number", ["1,5", "2.5"]) == ["1.5", "2.5"]


def test_mixtures_lie_between_their_parts():
    drawn = np.random.default_rng(2)
    for kind in ("one", "several"):
        own, other = (normalised(kind, drawn.normal(scale=3.0, size=(20, 5))) for _ in range(2))
        for share in (0.0, 0.3, 1.0):
            mixed = mixture(kind, own, other, share)
            if kind == "one":
                np.testing.assert_allclose(np.exp(mixed).sum(axis=1), 1.0, rtol=1e-5)
            else:
                low, high = np.minimum(own, other), np.maximum(own, other)
                assert ((mixed >= low - 1e-5) & (mixed <= high + 1e-5)).all()
        np.testing.assert_allclose(mixture(kind, own, other, 1.0), own, atol=1e-5)
        np.testing.assert_allclose(mixture(kind, own, other, 0.0), other, atol=1e-5)
        targets = target_rows(
            kind, drawn.integers(0, 2, size=(20, 5)) if kind == "several" else drawn.integers(5, size=20), 5
        )
        assert (log_likelihoods(kind, own, targets) < 0).all()
