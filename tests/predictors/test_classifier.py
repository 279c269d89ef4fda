"""The classifier that a user holds."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from heedful.data.labelled import LabelledTexts
from heedful.data.prepare import EvaluationSet
from heedful.errors import DataError, UsageError
from heedful.predictors.classifier import Classifier, load_classifier
from heedful.runtime.folder import open_folder
from tests.architecture.package import SOURCE
from tests.tasks.reviews import reviews, write_reviews
from tests.tasks.test_classification import Run


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classifier")
    preset = {"preset": "text_classifier"}
    Run(write_reviews(folder / "reviews.tsv"), folder / "m", "training.max_steps=40", **preset).train()
    return folder / "m"


def test_probabilities_are_a_distribution_and_attention_is_one_too(model: Path):
    (found,) = load_classifier(model).classify(["a clean room"])
    assert sum(found.probabilities.values()) == pytest.approx(1.0, abs=1e-5)
    assert next(iter(found.probabilities)) == found.label
    assert found.probability == max(found.probabilities.values())
    assert found.attention is not None
    assert found.attention.shape == (len(found.pieces),)
    assert found.attention.sum() == pytest.approx(1.0, abs=1e-5)


def test_neighbours_and_windows_change_nothing_but_rounding(model: Path):
    classifier, texts = load_classifier(model), [text for text, _ in reviews(30, seed=3)] + ["", " "]
    together = classifier.classify(texts)
    alone = list(classifier.stream(texts, window_texts=1))
    assert [found.label for found in together] == [found.label for found in alone]
    for one, other in zip(together, alone, strict=True):
        assert np.isclose(one.probability, other.probability, atol=1e-5)


def test_long_texts_are_cut_and_say_so(model: Path):
    (found,) = load_classifier(model).classify(["clean " * 1000])
    assert found.was_cut
    assert len(found.pieces) == load_classifier(model).text.max_tokens


def test_what_does_not_fit_is_refused(model: Path, tmp_path: Path):
    classifier = load_classifier(model)
    with pytest.raises(UsageError, match="got a string"):
        classifier.classify("one text")
    with pytest.raises(UsageError, match="--engine onnx: a classifier runs alone and by PyTorch"):
        Classifier(open_folder(model), engine="onnx")
    with pytest.raises(TypeError, match="got EvaluationSet"):
        classifier.measure(EvaluationSet([], []))
    (tmp_path / "empty.tsv").write_text("a text\t \n", encoding="utf-8")
    with pytest.raises(DataError, match=r"no row has a text and a label"):
        classifier.evaluate(tmp_path / "empty.tsv")


def test_measuring_a_file_is_measuring_its_items(model: Path, tmp_path: Path):
    classifier, data = load_classifier(model), write_reviews(tmp_path / "other.tsv", 40, seed=5)
    rows = reviews(40, seed=5)
    items = LabelledTexts([text for text, _ in rows], [label for _, label in rows])
    assert classifier.evaluate(data) == classifier.measure(items)


def test_without_pytorch_it_says_what_is_missing(model: Path):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from heedful.cli.main import main\n"
        f"sys.exit(main(['classify', {str(model)!r}, 'a text']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 6
    assert "torch" in done.stderr.lower()
    assert done.stderr.count("\n") == 1
