"""The classifier that a user holds."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from heedful.data.labelled_texts import LabelledTexts
from heedful.data.prepare import EvaluationSet
from heedful.engines.folder import open_folder
from heedful.engines.members import join_members
from heedful.errors import DataError, UsageError
from heedful.export.labels import export_classifier
from heedful.pages.attention_text import TextView
from heedful.predictors.classifier import Classifier
from heedful.predictors.table import load
from tests.architecture.package import SOURCE
from tests.cli.command import heedful
from tests.cli.test_export import without_torch
from tests.tasks.reviews import reviews, write_reviews
from tests.tasks.test_classification import Run


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classifier")
    preset = {"preset": "text_classifier"}
    Run(write_reviews(folder / "reviews.tsv"), folder / "m", "training.max_steps=40", **preset).train()
    return folder / "m"


def test_probabilities_are_a_distribution_and_attention_is_one_too(model: Path):
    (found,) = load(model, kind=Classifier).classify(["a clean room"])
    assert sum(found.probabilities.values()) == pytest.approx(1.0, abs=1e-5)
    assert next(iter(found.probabilities)) == found.label
    assert found.probability == max(found.probabilities.values())
    assert found.attention is not None
    assert found.attention.shape == (len(found.pieces),)
    assert found.attention.sum() == pytest.approx(1.0, abs=1e-5)


def test_no_texts_are_encoded_as_no_vectors_of_the_same_size(model: Path):
    classifier = load(model, kind=Classifier)
    vectors = classifier.encode(["a clean room"])
    assert classifier.encode([]).shape == (0, vectors.shape[1])
    assert classifier.encode([]).dtype == vectors.dtype


def test_its_page_shades_the_words_that_it_attends_to(model: Path):
    classifier = load(model, kind=Classifier)
    (one,), (view,) = classifier.classify(["a clean room"]), classifier.attention_views(["a clean room"])
    assert view.title == f"'a clean room' → {one.label}"
    assert isinstance(view, TextView)
    ((*words, _),) = view.sentences
    assert "".join(word for word, _ in words) == "<unk> clean room"
    assert one.attention is not None
    assert sum(weight for _, weight in view.sentences[0]) == pytest.approx(float(one.attention.sum()))


def test_eight_bits_are_for_other_models(model: Path):
    done = heedful("export", model, "--to", "onnx", "--int8")
    assert (done.code, done.out, len(done.errors)) == (2, "", 1)
    assert "--int8 is for models that translate or describe images" in done.errors[0]


def test_a_string_of_numpy_is_a_plain_text(model: Path):
    (found,) = load(model, kind=Classifier).classify(np.array(["a clean room"]))
    assert type(found.text) is str
    assert repr(found).startswith("<Classification 'a clean room' -> ")


def test_neighbours_and_windows_change_nothing_but_rounding(model: Path):
    classifier, texts = load(model, kind=Classifier), [text for text, _ in reviews(30, seed=3)] + ["", " "]
    together = classifier.classify(texts)
    alone = list(classifier.stream(texts, window_texts=1))
    assert [found.label for found in together] == [found.label for found in alone]
    for one, other in zip(together, alone, strict=True):
        assert np.isclose(one.probability, other.probability, atol=1e-5)


def test_long_texts_are_cut_and_say_so(model: Path):
    (found,) = load(model, kind=Classifier).classify(["clean " * 25_000])
    assert found.was_cut
    assert len(found.pieces) == load(model, kind=Classifier).text.max_tokens


def test_what_does_not_fit_is_refused(model: Path, tmp_path: Path):
    classifier = load(model, kind=Classifier)
    with pytest.raises(UsageError, match="got a string"):
        classifier.classify("one text")
    folder = open_folder(model)
    with pytest.raises(UsageError, match="an ensemble of classifiers runs in PyTorch"):
        Classifier(folder, engine="onnx", ensemble=[folder])
    with pytest.raises(UsageError, match="engine ctranslate2: not for classifiers"):
        Classifier(folder, engine="ctranslate2")
    with pytest.raises(TypeError, match="got EvaluationSet"):
        classifier.measure(EvaluationSet([], []))
    (tmp_path / "empty.tsv").write_text("a text\t \n", encoding="utf-8")
    with pytest.raises(DataError, match=r"no row has a text and a label"):
        classifier.evaluate(tmp_path / "empty.tsv")
    for texts in ([None], ["a", float("nan")], [3], "a text"):
        with pytest.raises(UsageError, match=r"predict: (item|expected a list)"):
            classifier.predict(texts)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no label of the model, such as bad, good, but x, y; name the columns"):
        classifier.evaluate([("a clean room", "x"), ("a dirty room", "y")])


def test_an_ensemble_of_seeds_has_the_mean_of_their_probabilities(model: Path, tmp_path: Path):
    data, texts = model.parent / "reviews.tsv", [text for text, _ in reviews(9, seed=8)]
    preset, steps = {"preset": "text_classifier"}, "training.max_steps=15"
    Run(data, tmp_path / "other", steps, "training.seed=2", **preset).train()
    shutil.copytree(model, tmp_path / "both")
    assert join_members(tmp_path / "both", [tmp_path / "other"]) == 2
    folders = (model, tmp_path / "other", tmp_path / "both")
    one, other, both = (load(folder, kind=Classifier).classify(texts) for folder in folders)
    for results in zip(one, other, both, strict=True):
        shares, seconds, means = (result.probabilities for result in results)
        assert means == pytest.approx({label: (shares[label] + seconds[label]) / 2 for label in shares}, abs=1e-6)
    assert any(first.probabilities != pytest.approx(mean.probabilities) for first, mean in zip(one, both, strict=True))
    assert "members     2, which predict together" in heedful("info", tmp_path / "both").out
    rows = [(text, "good" if number % 2 else "poor") for number, text in enumerate(texts * 3)]
    foreign = tmp_path / "foreign.tsv"
    foreign.write_text("".join(f"{text}\t{label}\n" for text, label in rows), "utf-8")
    Run(foreign, tmp_path / "third", "training.max_steps=1", **preset).train()
    with pytest.raises(UsageError, match=r"has other (tokens|labels) than"):
        load(model, ensemble=[tmp_path / "third"])


def test_measuring_a_file_is_measuring_its_items(model: Path, tmp_path: Path):
    classifier, data = load(model, kind=Classifier), write_reviews(tmp_path / "other.tsv", 40, seed=5)
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


@pytest.mark.parametrize("preset", ["bag", "text_classifier"])
def test_an_exported_graph_says_the_same_without_pytorch(preset: str, tmp_path: Path):
    pytest.importorskip("onnxruntime")
    data = write_reviews(tmp_path / "reviews.tsv")
    Run(data, tmp_path / "m", "training.max_steps=40", preset=preset).train()
    plain = load(tmp_path / "m", kind=Classifier)
    exported = export_classifier(plain.model(), plain.folder, len(plain.tokenizer), plain.text.max_tokens)
    assert exported.parity.num_same == exported.parity.num_outputs
    texts = [text for text, _ in reviews(30, seed=4)]
    for one, other in zip(
        plain.classify(texts), load(tmp_path / "m", engine="auto", kind=Classifier).classify(texts), strict=True
    ):
        assert (one.label, one.pieces) == (other.label, other.pieces)
        assert one.probability == pytest.approx(other.probability, abs=1e-5)
        assert (one.attention is None) == (other.attention is None) == (preset == "bag")
        if one.attention is not None:
            assert other.attention == pytest.approx(one.attention, abs=1e-5)
    done = without_torch("classify", tmp_path / "m", *texts)
    assert (done.code, done.err) == (0, "")
    assert [line.split("\t")[0] for line in done.out.splitlines()] == [one.label for one in plain.classify(texts)]
