"""Confidence of translations: features, file, engines."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heedful.data.prepare import EvaluationSet
from heedful.engines.folder import commit, open_folder
from heedful.engines.scored_pairs import ScoredPair
from heedful.errors import FileRefused, NewerFormat, UsageError
from heedful.files.formats import CONFIDENCE_FORMAT
from heedful.files.records import CHECKSUM
from heedful.predictors.calibration import calibrate, measure_confidence
from heedful.predictors.confidence import (
    FEATURES,
    OF_ATTENTION,
    ROLE,
    Confidence,
    features_of,
    read_confidence,
    write_confidence,
)
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from tests.cli.command import heedful
from tests.cli.conftest import SETTINGS, write_pairs
from tests.seal import write_sealed


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that writes short words in capitals, with an ONNX engine, calibrated at the end of its training."""
    folder = tmp_path_factory.mktemp("confidence")
    (folder / "tiny.toml").write_text(SETTINGS.replace("export = false", "export = true"), encoding="utf-8")
    write_pairs(folder / "words.tsv", 400)
    dev = words(7, 160)
    lines = [f"{source}\t{texts[0]}\n" for source, texts in zip(dev.sources, dev.references, strict=True)]
    (folder / "dev.tsv").write_text("".join(lines), encoding="utf-8")
    learned = ("training.max_steps=250", "training.validate_every=125", "training.optimizer.schedule.warmup_steps=30")
    settings = (*(word for each in learned for word in ("--set", each)), "--threads", "1")
    data = ("train", folder / "words.tsv", "--dev", folder / "dev.tsv", "--out", folder / "m")
    done = heedful(*data, "--config", folder / "tiny.toml", *settings)
    assert done.code == 0, done.err
    assert "calibration error (ECE)" in done.err
    again = heedful(*data, "--config", folder / "tiny.toml", *settings)
    assert "calibration error" not in again.err
    return folder / "m"


@pytest.fixture
def copy(model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(model, tmp_path / "m", ignore=shutil.ignore_patterns("run")))


def words(seed: int, number: int = 200) -> EvaluationSet:
    """Words of which some are longer than those of the training."""
    generator = np.random.default_rng(seed)
    texts = ["".join(generator.choice([*"abcdef"], generator.integers(2, 16))) for _ in range(number)]
    return EvaluationSet(texts, [[text.upper()] for text in texts])


def scored(log_probs: tuple[float, ...], attention: list[list[float]] | None = None, num_source: int = 2) -> ScoredPair:
    weights = None if attention is None else np.array(attention, dtype=np.float32)
    return ScoredPair("a", "b", log_probs, ("x",) * num_source, ("y",) * len(log_probs), weights)


def test_features_are_those_of_their_names():
    values = dict(
        zip(FEATURES, features_of(scored((-1.0, -0.5, -0.1), [[1.0, 0.0], [0.5, 0.5], [1.0, 0.0]])), strict=True)
    )
    probability = math.exp(-1.6)
    assert values["log_prob"] == pytest.approx(-1.6)
    assert values["log_odds"] == pytest.approx(math.log(probability / (1 - probability)))
    assert values["per_token"] == pytest.approx(-1.6 / 3)
    assert values["least"] == -1.0
    assert values["spread"] == pytest.approx(np.std([-1.0, -0.5, -0.1]))
    assert values["log_ratio"] == pytest.approx(math.log(3 / 2))
    assert values["entropy"] == pytest.approx(1 / 3)
    assert values["uncovered"] == 0.0
    assert features_of(scored((-1.0,), [[1.0, 0.0]]), ("uncovered",)) == [0.5]


@pytest.mark.parametrize("log_probs", [(0.0,), (-1e-18,), (-math.inf, -1.0), (-1e5,)])
def test_features_are_finite(log_probs: tuple[float, ...]):
    assert np.isfinite(features_of(scored(log_probs, [[0.0, 0.0]] * len(log_probs), 1), FEATURES)).all()


def test_training_calibrates_and_confidence_tells_right_from_wrong(model: Path):
    translator = load(model, kind=Translator)
    items = words(11)
    outputs = translator.translate(items.sources, confidence=True)
    right = np.array([one.text in texts for one, texts in zip(outputs, items.references, strict=True)])
    confidences = np.array([one.confidence for one in outputs])
    assert 0.1 < right.mean() < 0.98
    assert confidences[right].mean() > confidences[~right].mean() + 0.1
    report = measure_confidence(translator, items, [one.text for one in outputs])
    assert report is not None
    assert report.num_right == right.sum()
    assert report.area > 0.6
    assert report.risks[-1] == pytest.approx(1 - right.mean())


def test_every_engine_has_the_same_confidence(model: Path):
    texts = words(12, 30).sources
    one, other = (
        load(model, engine=engine, kind=Translator).translate(texts, confidence=True) for engine in ("onnx", "torch")
    )
    assert [each.confidence for each in one] == pytest.approx([each.confidence for each in other], abs=1e-4)


def test_no_other_value_depends_on_it(model: Path):
    translator = load(model, kind=Translator)
    texts = [*words(13, 20).sources, ""]
    with_it, without = translator.translate(texts, confidence=True), translator.translate(texts)
    assert [(one.text, one.log_prob) for one in with_it] == [(one.text, one.log_prob) for one in without]
    assert {one.confidence for one in without} == {None}
    assert with_it[-1].confidence == 1.0


def test_exact_results_have_the_confidence_of_a_call_of_their_own(model: Path):
    translator = load(model, kind=Translator)
    texts = words(13, 12).sources
    together = [one.confidence for one in translator.translate(texts, exact=True, confidence=True)]
    assert together == [translator.translate([text], exact=True, confidence=True)[0].confidence for text in texts]


def test_a_running_translator_survives_another_calibration(copy: Path):
    running = load(copy, kind=Translator)
    confidence = read_confidence(running.folder)
    changed = replace(confidence, calibrator=replace(confidence.calibrator, bias=confidence.calibrator.bias + 1.0))
    write_confidence(open_folder(copy), changed)
    assert read_confidence(running.folder) == changed
    text = words(13, 1).sources[0]
    assert running.translate([text], confidence=True)[0].confidence is not None


def test_confidence_is_that_of_the_outputs_before_words_were_replaced(model: Path):
    translator = load(model, kind=Translator)
    items = words(14, 40)
    generated = [one.text for one in translator.translate(items.sources)]
    shown = ["other" for _ in generated]
    report = measure_confidence(translator, items, shown, generated=generated)
    assert report is not None
    assert report.num_right == 0
    mean = np.mean([one.confidence for one in translator.translate(items.sources, confidence=True)])
    assert report.calibration_error == pytest.approx(float(mean), abs=1e-4)  # none is right


def test_a_correction_is_certain_and_a_near_match_is_not(copy: Path):
    translator = load(copy, kind=Translator)
    translator.correct("abc", "X")
    outputs = translator.translate(["abc", "abcabc"], confidence=True)
    assert (outputs[0].text, outputs[0].confidence) == ("X", 1.0)
    assert outputs[1].confidence is not None
    assert outputs[1].confidence < 1.0


def test_a_model_without_it_says_how_to_get_it(copy: Path):
    facts = {key: value for key, value in open_folder(copy).facts.items() if key not in (ROLE, "files", "format")}
    commit(copy, facts, [name for name in open_folder(copy).facts["files"] if not name.startswith(ROLE)])
    translator = load(copy, kind=Translator)
    with pytest.raises(UsageError, match=r"not calibrated.*heedful calibrate"):
        translator.translate(["abc"], confidence=True)
    assert measure_confidence(translator, words(1, 5), [""] * 5) is None
    with pytest.raises(UsageError, match="99 sources; give at least 100"):
        calibrate(translator, words(1, 99), "exact_match")


def test_another_takes_its_place_and_the_model_stays_whole(copy: Path):
    translator = load(copy, kind=Translator)
    before = translator.folder.file(ROLE)
    confidence, report = calibrate(translator, words(14, 150), "chrf")
    assert (confidence.criterion, confidence.num_items, report.num_items) == ("chrf", 150, 150)
    write_confidence(translator.folder, confidence)
    folder = open_folder(copy)
    assert read_confidence(folder) == confidence
    assert not before.exists()
    assert sorted(path.name for path in copy.glob("confidence-*")) == [folder.file(ROLE).name]
    write_confidence(folder, confidence)
    assert read_confidence(open_folder(copy)) == confidence


def test_attention_is_left_out_where_the_features_leave_it_out(copy: Path):
    translator = load(copy, kind=Translator)
    confidence = read_confidence(translator.folder)
    assert confidence.needs_attention
    names = tuple(name for name in FEATURES if name not in OF_ATTENTION)
    plain = Confidence(names, confidence.calibrator, "chrf", 1)
    assert not plain.needs_attention


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"criterion": "luck"}, "criterion"),
        ({"weights": []}, "its numbers do not fit its features"),
        ({"scale": [0.0] * len(FEATURES)}, "its numbers do not fit its features"),
        ({"bias": "x"}, "bias"),
        ({"features": ["luck"] * len(FEATURES)}, "no feature is called 'luck'"),
    ],
)
def test_a_file_of_other_content_is_refused(copy: Path, change: dict[str, object], complaint: str):
    folder = open_folder(copy)
    path = folder.file(ROLE)
    facts = json.loads(path.read_text(encoding="utf-8"))
    write_sealed(path, facts | change)
    with pytest.raises(FileRefused, match=complaint):
        read_confidence(folder)
    write_sealed(path, facts | {"format": CONFIDENCE_FORMAT.version + 1})
    with pytest.raises(NewerFormat):
        read_confidence(folder)
    path.write_text(json.dumps(facts | {"bias": 0.5, CHECKSUM: facts[CHECKSUM]}), encoding="utf-8")
    with pytest.raises(FileRefused, match="checksum"):
        read_confidence(folder)


def test_an_engine_without_attention_is_refused_before_it_translates(copy: Path):
    assert heedful("export", copy, "--to", "ctranslate2").code == 0
    named, items = load(copy, engine="ctranslate2", kind=Translator), words(15, 100)
    with pytest.raises(UsageError, match=r"ctranslate2: gives no attention.*--engine onnx or --engine torch"):
        named.translate(items.sources, confidence=True)
    assert measure_confidence(named, items, items.sources) is None
    rows = "".join(f"{source}\t{texts[0]}\n" for source, texts in zip(items.sources, items.references, strict=True))
    (copy.parent / "words.tsv").write_text(rows, encoding="utf-8")
    done = heedful("evaluate", copy, copy.parent / "words.tsv", "--engine", "ctranslate2", "--limit", "5")
    assert done.code == 0, done.err
    assert "confidence not measured: it needs attention, which --engine ctranslate2 does not give" in done.err


def test_a_fast_engine_without_attention_leaves_no_feature_out(copy: Path):
    assert heedful("export", copy, "--to", "ctranslate2").code == 0
    translator = load(copy, kind=Translator)
    assert translator.backends.scoring().name == "ctranslate2"
    assert calibrate(translator, words(15, 100), "exact_match")[0].features == FEATURES
