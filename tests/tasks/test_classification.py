"""The second task: it trains, resumes exactly, validates and runs by several processes, by the same loop."""

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.config.plugins import allow_code
from heedful.data.split_positions import split_of
from heedful.engines.folder import open_folder
from heedful.errors import ConfigError, DataError, Stopped, UsageError
from heedful.models.table import PRESETS
from heedful.predictors.classifier import Classifier
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.runs.api import train_model
from heedful.runs.finish import export_engines, score_test
from heedful.runs.train import RunInfo
from heedful.training.progress import Outcome, Progress
from tests.requests import make_request, train
from tests.tasks.reviews import BAD, GOOD, NEUTRAL, SETTINGS, write_reviews
from tests.tasks.two_processes import assert_two_processes_agree
from tests.thorough import sampled, thinned, thorough


class Run:
    """One run, and what it told."""

    def __init__(
        self,
        data: Path,
        out: Path,
        *settings: str,
        task: str = "classification",
        common: Any = SETTINGS,
        **options: Any,
    ) -> None:
        self.recipe = make_request((data,), out, task=task, settings=(*common, *settings), **options)
        self.watched: list[Progress] = []
        self.started: list[RunInfo] = []

    def train(self, stop: int = 0) -> Outcome:
        def watch(progress: Progress) -> None:
            self.watched.append(progress)
            if progress.step == stop:
                os.kill(os.getpid(), signal.SIGTERM)

        return train(self.recipe, watch, self.started.append, lambda line: None)

    @property
    def weights(self) -> str:
        assert self.recipe.out is not None
        return str(open_folder(self.recipe.out).facts["weights"])


MODELS = (
    "bag",
    "text_classifier",
    "text_classifier-steps",
    "hierarchical",
    "hierarchical-average",
    "hierarchical-max",
    "self_attentive",
)


@sampled(3)
@pytest.mark.parametrize("preset", thinned(MODELS, 3))
def test_it_learns_which_words_tell_and_says_how_well(preset: str, tmp_path: Path):
    run = Run(write_reviews(tmp_path / "reviews.tsv"), tmp_path / "m", "training.max_steps=120", preset=preset)
    outcome = run.train()
    assert outcome.best == 100.0
    scores = run.watched[-1].validation
    assert scores is not None
    assert scores.scores.keys() == {"loss", "accuracy", "macro_f1"}
    text = score_test(run.started[0], outcome, "cpu", lambda line: None)
    assert "accuracy" in text
    assert score_test(run.started[0], outcome, "cpu", pytest.fail) == text  # once for each model
    classifier = load(tmp_path / "m")
    assert isinstance(classifier, Classifier)
    assert classifier.evaluate(write_reviews(tmp_path / "others.tsv", seed=1)).accuracy >= 90.0
    facts = open_folder(tmp_path / "m").facts
    assert (facts["task"], facts["kind"]) == ("classification", PRESETS[preset].kind)


@pytest.mark.parametrize("preset", thinned(MODELS[::-1], 7))
def test_an_engine_gives_the_labels_vectors_and_attention_of_pytorch(preset: str, tmp_path: Path):
    settings = ("training.max_steps=20", "training.export=true")
    run = Run(write_reviews(tmp_path / "reviews.tsv", sentences=3), tmp_path / "m", *settings, preset=preset)
    run.train()
    export_engines(run.started[0], lambda line: None)
    texts = ["A clean room. Noisy! And dark", "", "quiet", "Rude staff? No. No. No. " * 30, "房间很好。不错！"]
    graph, model = (load(tmp_path / "m", engine=engine) for engine in ("onnx", "torch"))
    assert isinstance(graph, Classifier)
    assert isinstance(model, Classifier)
    for one, other in zip(graph.classify(texts), model.classify(texts), strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)
        assert (one.attention is None) == (other.attention is None)
        if one.attention is not None and other.attention is not None:
            np.testing.assert_allclose(one.attention, other.attention, atol=1e-5)
            assert float(one.attention.sum()) == pytest.approx(1.0, abs=1e-5)
    np.testing.assert_allclose(graph.encode(texts), model.encode(texts), atol=1e-4)


@pytest.mark.parametrize("preset", thinned(["hierarchical", "bag"], 2))
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(preset: str, tmp_path: Path):
    data = write_reviews(tmp_path / "reviews.tsv")
    whole = Run(data, tmp_path / "whole", "training.max_steps=60", preset=preset)
    whole.train()
    parts = Run(data, tmp_path / "parts", "training.max_steps=60", preset=preset)
    with pytest.raises(Stopped):
        parts.train(stop=20)
    parts.train()
    assert parts.started[-1].step > 0
    assert parts.weights == whole.weights


def test_damaged_texts_are_prepared_again_and_train_the_same_weights(tmp_path: Path):
    data = write_reviews(tmp_path / "reviews.tsv")
    Run(data, tmp_path / "half", "training.max_steps=20").train()
    shutil.copytree(tmp_path / "half", tmp_path / "whole")
    whole = Run(data, tmp_path / "whole", "training.max_steps=24")
    whole.train()
    assert not any("prepared again" in line for line in whole.started[0].data.report)
    kept = ("classification.json", "source.ids", "target.ids")
    for number, file in enumerate(("labels.json", "tokenizer.json", *(f"run/data/{name}" for name in kept))):
        folder = Path(shutil.copytree(tmp_path / "half", tmp_path / str(number)))
        before = (folder / file).read_bytes()
        middle = len(before) // 2
        flipped = before[:middle] + bytes([before[middle] ^ 1]) + before[middle + 1 :]
        (folder / file).write_bytes(b"" if number % 2 else flipped)
        run = Run(data, folder, "training.max_steps=24")
        run.train()
        assert any("prepared again" in line for line in run.started[0].data.report), file
        assert run.weights == whole.weights, file
        assert (folder / file).read_bytes() == before, file


@thorough
def test_two_processes_train_the_model_of_one(tmp_path: Path):
    settings = (*SETTINGS, "training.max_steps=20", "model.dropout=0", "training.optimizer.learning_rate=0.5")
    assert_two_processes_agree("classification", write_reviews(tmp_path / "reviews.tsv"), tmp_path, settings)


def test_python_trains_and_scores_the_test_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    settings = dict(setting.split("=", 1) for setting in SETTINGS)
    values = {key: float(value) if value.replace(".", "").isdigit() else value for key, value in settings.items()}
    values = {
        key: int(value) if isinstance(value, float) and value.is_integer() else value for key, value in values.items()
    }
    data = write_reviews(tmp_path / "reviews.tsv")
    settings = values | {"training.max_steps": 60, "training.export": True}
    model = train_model(data, kind=Classifier, task="classification", out=tmp_path / "m", settings=settings)
    assert (tmp_path / "m" / "run" / "test.json").is_file()
    assert "accuracy" in capsys.readouterr().out
    assert model.evaluate(data).accuracy > 90.0
    assert model.exported["onnx"].parity.is_exact


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (("model.kind=rnnsearch",), "rnnsearch is not a model for classification"),
        (("training.select_by=bleu",), "no score 'bleu' in classification"),
    ],
)
def test_what_is_of_another_task_is_refused(settings: tuple[str, ...], complaint: str, tmp_path: Path):
    data = write_reviews(tmp_path / "reviews.tsv")
    with pytest.raises(ConfigError, match=complaint):
        train(
            make_request((data,), tmp_path / "m", task="classification", settings=settings),
            print,
            lambda facts: None,
            print,
        )


OUTSIDE = """
from typing import Literal
from torch import nn
from heedful.config.base import Config

class Other(Config):
    kind: Literal["{module}:Other"] = "{module}:Other"

    def build(self, num_source_tokens, num_target_tokens, is_shared):
        return nn.Identity()

class Same(Other):
    kind: Literal["{module}:Same"] = "{module}:Same"

    def build(self, num_tokens, num_labels):
        return nn.Identity()
"""


@pytest.mark.parametrize("name", ["Other", "Same"])
@pytest.mark.parametrize("task", ["classification", "translation"])
def test_a_class_from_outside_that_makes_models_of_another_task_is_refused(
    name: str, task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    kind = f"models_of_{task}:{name}"
    (tmp_path / f"models_of_{task}.py").write_text(OUTSIDE.format(module=f"models_of_{task}"), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    allow_code([kind])
    recipe = make_request(
        (write_reviews(tmp_path / "reviews.tsv"),), tmp_path / "m", task=task, settings=(f"model.kind={kind}",)
    )
    with pytest.raises(ConfigError, match=f"model.kind: {kind} makes no .*, which {task} needs"):
        train(recipe, print, lambda facts: None, print)
    assert not (tmp_path / "m/run/experiment.toml").exists()  # the same folder serves the run that follows


def test_a_kind_of_predictor_that_the_task_does_not_make_is_refused(tmp_path: Path):
    data = write_reviews(tmp_path / "reviews.tsv")
    with pytest.raises(UsageError, match="classification makes a Classifier, not a Translator"):
        train_model(data, out=tmp_path / "m", task="classification", kind=Translator)
    assert not (tmp_path / "m").exists()


def test_texts_in_the_place_of_labels_are_refused(tmp_path: Path):
    run = Run(write_reviews(tmp_path / "reviews.tsv"), tmp_path / "m", columns=(2, 1))
    with pytest.raises(DataError, match=r"column 1 has .* different labels .*--columns TEXT,LABEL"):
        run.train()


def test_one_label_alone_is_refused(tmp_path: Path):
    (tmp_path / "one.tsv").write_text("".join(f"text {n}\tgood\n" for n in range(40)), encoding="utf-8")
    with pytest.raises(DataError, match=r"every row for training has the label .good.; give rows of another too"):
        Run(tmp_path / "one.tsv", tmp_path / "m").train()


def test_blank_texts_alone_are_one_clear_line(tmp_path: Path):
    (tmp_path / "blank.tsv").write_text("".join(f"  \t{'ab'[n % 2]}\n" for n in range(40)), encoding="utf-8")
    with pytest.raises(DataError, match=r"blank\.tsv: each of 40 rows lacks its text or its label; give both"):
        Run(tmp_path / "blank.tsv", tmp_path / "m").train()


@pytest.mark.parametrize("preset", thinned(["hierarchical", "text_classifier"], 2))
def test_labels_may_have_spaces_and_texts_any_length(preset: str, tmp_path: Path):
    rows = write_reviews(tmp_path / "reviews.tsv").read_text(encoding="utf-8").splitlines()
    spaced = [f"{text}\t very {label} indeed " for text, label in (row.split("\t") for row in rows)]
    (tmp_path / "spaced.tsv").write_text("".join(f"{row}\n" for row in spaced), encoding="utf-8")
    Run(tmp_path / "spaced.tsv", tmp_path / "m", "training.max_steps=2", preset=preset).train()
    classifier = load(tmp_path / "m", kind=Classifier)
    assert all(label.startswith("very ") and label.endswith(" indeed") for label in classifier.labels)
    blank, empty, long = classifier.classify([" ", "", "word " * 100_000])
    assert blank.label in classifier.labels
    assert np.isclose(blank.probability, empty.probability)
    assert long.was_cut


def test_a_run_does_not_go_on_as_another_task(tmp_path: Path):
    data = write_reviews(tmp_path / "reviews.tsv")
    Run(data, tmp_path / "m", "training.max_steps=20").train()
    with pytest.raises(ConfigError, match="choose another --out"):
        train(make_request((data,), tmp_path / "m"), print, lambda facts: None, print)


def test_validation_texts_of_an_unseen_label_are_counted(tmp_path: Path):
    data, dev = write_reviews(tmp_path / "reviews.tsv"), write_reviews(tmp_path / "dev.tsv", 20, seed=1)
    with dev.open("a", encoding="utf-8") as stream:
        stream.write("nothing like it\tstrange\n")
    lines: list[str] = []
    recipe = make_request(
        (data,), tmp_path / "m", dev=(dev,), task="classification", settings=(*SETTINGS, "training.max_steps=2")
    )
    train(recipe, print, lambda facts: lines.extend(facts.data.report), print)
    assert "1 text for validation with labels unseen in training: strange" in lines


def test_rare_labels_are_held_out_too_and_labels_that_are_not_are_named(tmp_path: Path):
    numbers = [number for number in range(400) if split_of(f"rare text {number}", 0.1, 0.1) == "train"]
    rows = [f"common text {number}\tcommon" for number in range(200)]
    rows += [f"rare text {number}\trare" for number in numbers[:10]] + ["text of its own\tsingle"]
    (tmp_path / "texts.tsv").write_text("\n".join(rows), encoding="utf-8")
    run = Run(tmp_path / "texts.tsv", tmp_path / "m", "training.max_steps=2", preset="bag")
    run.train()
    data: Any = run.started[0].data
    assert sorted(data.dev.labels).count("rare") == sorted(data.test.labels).count("rare") == 1
    assert any(line.endswith("so that it says nothing of them: single") for line in data.report)


def test_validation_data_of_labels_never_seen_are_refused(tmp_path: Path):
    (tmp_path / "dev.tsv").write_text("a text\tunseen\nanother\tunseen\n", encoding="utf-8")
    run = Run(write_reviews(tmp_path / "reviews.tsv"), tmp_path / "m", dev=(tmp_path / "dev.tsv",))
    with pytest.raises(DataError, match="none of the 2 items has an answer that can be learned"):
        run.train()


def test_word_vectors_are_placed_and_may_stay_as_they_are(tmp_path: Path):
    data, vectors = write_reviews(tmp_path / "reviews.tsv"), tmp_path / "words.vec"
    words = (*GOOD, *BAD, *NEUTRAL)
    rows = np.random.default_rng(0).normal(size=(len(words), 8)).round(3)
    lines = (f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, rows.tolist(), strict=True))
    vectors.write_text(f"{len(words)} 8\n{''.join(lines)}", encoding="utf-8")
    settings = (f'text.source_vectors="{vectors}"', "text.vectors=frozen", "training.max_steps=20")
    run = Run(data, tmp_path / "m", *settings, preset="hierarchical")
    run.train()
    assert any(line.startswith("word vectors: words.vec, frozen") for line in run.started[0].data.report)
    model = load(tmp_path / "m", kind=Classifier)
    table = model.model().get_parameter("embedding.weight").detach().numpy()
    ids = [model.tokenizer.encode(word)[0] for word in words]
    ratio = table[ids] / rows
    np.testing.assert_allclose(ratio, ratio.mean(), rtol=1e-3)
    missing = Run(data, tmp_path / "n", 'text.source_vectors="none.vec"')
    with pytest.raises(DataError, match=r"none\.vec"):
        missing.train()


@pytest.mark.parametrize(
    "setting",
    ["text.target_vectors=a.vec", "text.max_training_tokens=5", "training.split_pieces=0.1", "training.term_share=0.5"],
)
def test_settings_without_effect_are_refused(setting: str, tmp_path: Path):
    run = Run(write_reviews(tmp_path / "reviews.tsv"), tmp_path / "m", setting)
    with pytest.raises(ConfigError, match=f"^{setting.partition('=')[0]}: classification does not use it"):
        run.train()


def test_a_validation_set_without_labels_is_refused_and_a_missing_one_announced(tmp_path: Path):
    data = write_reviews(tmp_path / "reviews.tsv", 40)
    (tmp_path / "dev.tsv").write_text("a\t \n \tgood\n", encoding="utf-8")
    run = Run(data, tmp_path / "m", "training.max_steps=2", dev=(tmp_path / "dev.tsv",))
    with pytest.raises(DataError, match=r"dev\.tsv: no row has a text and a label"):
        run.train()
    run = Run(data, tmp_path / "n", "training.max_steps=2")
    run.train()
    assert "validation is on the training texts and says nothing about new ones" in run.started[0].data.report


def test_texts_of_thousands_of_characters_have_pieces_for_each(tmp_path: Path):
    characters = [chr(0x4E00 + number) for number in range(3_000)]
    rows = [f"{''.join(characters[n : n + 20])}{'好坏'[n % 2]}\t{n % 2}\n" for n in range(0, 3_000, 7)]
    (tmp_path / "reviews.tsv").write_text("".join(rows), encoding="utf-8")
    common = [setting for setting in SETTINGS if not setting.startswith("text.")]
    run = Run(tmp_path / "reviews.tsv", tmp_path / "m", "training.max_steps=1", common=common)
    run.train()
    assert len(load(tmp_path / "m", kind=Classifier).tokenizer) > 3_000
