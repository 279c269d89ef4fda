"""Captioning: it trains, resumes exactly, validates and runs without PyTorch, by the same loop as every task."""

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import PIL.Image
import pytest

from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.engines.folder import open_folder
from heedful.errors import DataError, HeedfulError, Stopped, UsageError
from heedful.models.table import PRESETS
from heedful.predictors.captioner import Captioner
from heedful.predictors.table import load
from heedful.runs.finish import export_engines, score_test
from heedful.runs.train import RunInfo
from heedful.tasks.captioning import CaptioningData, CaptioningTask
from heedful.text.vocabulary import EOS
from heedful.training.progress import Outcome, Progress
from tests.requests import load_experiment, make_request, train
from tests.tasks.scenes import PLACES, SETTINGS, write_boxes, write_scenes
from tests.tasks.two_processes import assert_two_processes_agree
from tests.thorough import is_thorough, thinned, thorough

SMALL = {
    "image_transformer": (
        "model.num_blocks=1",
        "model.layers.model_size=16",
        "model.layers.num_heads=2",
        "model.layers.feedforward_size=32",
        "model.layers.dropout=0",
        *(setting for setting in SETTINGS if setting.startswith("training.")),
    )
}
COLUMNS = ("images.region_size=4", "images.region_height=16", "model.num_row_layers=1", "model.transcription_weight=1")
MONOTONIC = tuple(
    f"model.attention.{each}"
    for each in ("normalizer=monotonic", "chunk_width=2", "location_filters=4", "location_width=3")
)
MODELS = ("show_attend_tell", "show_attend_tell-hard", "show_attend_tell-gumbel", "image_transformer")


class Run:
    """One run, and what it told."""

    def __init__(self, data: Path, out: Path, *settings: str, **options: Any) -> None:
        own = SMALL.get(options.get("preset", ""), SETTINGS)
        self.recipe = make_request((data,), out, task="captioning", settings=(*own, *settings), **options)
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


@pytest.mark.parametrize(("num_words", "metric"), [(3, "token_error_rate"), (4, "bleu"), (12, "bleu")])
def test_captions_too_short_for_bleu_are_selected_by_errors(num_words: int, metric: str):
    sides = [EncodedSide.of([[0]] * 10), EncodedSide.of([[5] * num_words + [EOS]] * 10)]
    data = SimpleNamespace(train=EncodedCorpus(*sides))
    settings = CaptioningTask().data_defaults(cast("CaptioningData", data), load_experiment("show_attend_tell"))
    assert settings["training"]["select_by"] == metric


@pytest.mark.parametrize(
    ("preset", "kind", "num_steps"),
    thinned([("show_attend_tell", "png", 150), ("show_attend_tell", "npy", 600), ("image_transformer", "png", 600)], 3),
)
def test_it_learns_to_describe_pictures_and_features(preset: str, kind: str, num_steps: int, tmp_path: Path):
    data = write_scenes(tmp_path / "scenes.tsv", 120, kind=kind)
    dev = write_scenes(tmp_path / "dev.tsv", 60, seed=2, kind=kind)
    test = write_scenes(tmp_path / "test.tsv", 20, seed=3, kind=kind)
    steps = f"training.max_steps={num_steps}"
    run = Run(data, tmp_path / "m", steps, preset=preset, dev=(dev,), test=(test,))
    outcome = run.train()
    scores = run.watched[-1].validation
    assert scores is not None
    assert scores.scores.keys() == {"loss", "exact_match", "bleu"}
    assert scores.scores["exact_match"] >= 90.0
    text = score_test(run.started[0], outcome, "cpu", lambda line: None)
    assert "exact match" in text
    captioner = load(tmp_path / "m", kind=Captioner)
    others = write_scenes(tmp_path / "others.tsv", 40, seed=1, kind=kind)
    report = captioner.evaluate(others)
    assert {result.key: result.score for result in report.results}["exact_match"] >= 90.0
    check_in_memory(captioner, others, report.scores())
    facts = open_folder(tmp_path / "m").facts
    assert (facts["task"], facts["kind"]) == ("captioning", PRESETS[preset].kind)


def check_in_memory(captioner: Captioner, file: Path, scores: dict[str, float]) -> None:
    """Images in memory are read as those of files."""
    rows = [line.split("\t") for line in file.read_text("utf-8").splitlines()]
    paths = [file.parent / name for name, _ in rows]
    captions = [caption for _, caption in rows]
    if captioner.images.kind == "features":
        images: list[Any] = [np.load(path) for path in paths]
        with pytest.raises(UsageError, match="got Image; this model reads"):
            captioner.caption([PIL.Image.new("RGB", (4, 4))])
    else:
        images = [PIL.Image.open(path) for path in paths]
        arrays = [np.asarray(image) for image in images]
        assert captioner.evaluate([*zip(arrays, captions, strict=True)]).scores() == scores
        for wrong, complaint in (
            (arrays[0].astype(np.float32), "expected a picture as uint8"),
            (arrays[0][..., :2], r"expected a picture as uint8"),
            (7, "item 0 is 7, of type int; give a path, a picture of Pillow or an array"),
        ):
            with pytest.raises(HeedfulError, match=complaint):
                captioner.caption([wrong])  # type: ignore[list-item]
    assert captioner.evaluate({"image": images, "caption": [[one, "x"] for one in captions]})["exact_match"].score >= 90
    assert captioner.evaluate([*zip(paths, captions, strict=True)]).scores() == scores
    for data in ([(images[0], "")], [{"image": None, "caption": "a"}], [{"caption": "a"}]):
        with pytest.raises(DataError, match="row 0 lacks an image or a caption"):
            captioner.evaluate(data)


@pytest.mark.parametrize(
    ("preset", "kind", "settings"),
    [
        ("show_attend_tell", "npy", ()),  # pictures: tests/layers/test_backbone.py
        *map(is_thorough, ((preset, kind, ()) for preset in MODELS for kind in ("png", "npy"))),
        is_thorough(("show_attend_tell", "png", ("model.hides_background=true",))),
        is_thorough(("show_attend_tell", "npy", ("model.num_region_layers=1",))),
        ("show_attend_tell", "png", COLUMNS),
        is_thorough(("show_attend_tell", "npy", ("model.num_row_layers=1",))),
        is_thorough(("show_attend_tell", "png", (*COLUMNS, *MONOTONIC))),
    ],
)
def test_an_engine_gives_the_captions_and_attention_of_pytorch(
    preset: str, kind: str, settings: tuple[str, ...], tmp_path: Path
):
    data = write_scenes(tmp_path / "scenes.tsv", 40, kind=kind)
    run = Run(data, tmp_path / "m", "training.max_steps=10", "training.export=true", *settings, preset=preset)
    run.train()
    export_engines(run.started[0], lambda line: None)
    images = sorted((tmp_path / "scenes").iterdir())[:7]
    graph, model = (load(tmp_path / "m", engine=engine, kind=Captioner) for engine in ("onnx", "torch"))
    results = (each.caption(images, beam=3, nbest=2, attention=True) for each in (graph, model))
    for one, other in zip(*results, strict=True):
        assert [each.text for each in one.alternatives] == [each.text for each in other.alternatives]
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)
        assert one.attention is not None
        assert other.attention is not None
        np.testing.assert_allclose(one.attention, other.attention, atol=1e-5)
        assert one.attention.shape == (len(one.pieces), 4)
        least = 0.0 if settings[-len(MONOTONIC) :] == MONOTONIC else 1.0  # which may pass all regions
        assert ((one.attention.sum(axis=1) >= least - 1e-5) & (one.attention.sum(axis=1) <= 1.0 + 1e-5)).all()


@pytest.mark.parametrize("preset", thinned(["show_attend_tell", "show_attend_tell-hard", "image_transformer"], 3))
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(preset: str, tmp_path: Path):
    data = write_scenes(tmp_path / "scenes.tsv", 60)
    whole = Run(data, tmp_path / "whole", "training.max_steps=40", preset=preset)
    whole.train()
    parts = Run(data, tmp_path / "parts", "training.max_steps=40", preset=preset)
    with pytest.raises(Stopped):
        parts.train(stop=20)
    parts.train()
    assert parts.started[-1].step > 0
    assert parts.weights == whole.weights


@pytest.mark.parametrize("damage", thinned(["flipped", "empty"], 2))
@pytest.mark.parametrize("file", ["tokenizer.json", "run/data/captioning.json", "run/data/images.data"])
def test_damaged_images_are_prepared_again_and_train_the_same_weights(file: str, damage: str, tmp_path: Path):
    data = write_scenes(tmp_path / "scenes.tsv", 40)
    run = Run(data, tmp_path / "m", "training.max_steps=5")
    run.train()
    path = tmp_path / "m" / file
    before = path.read_bytes()
    path.write_bytes(
        bytes(byte ^ (i == len(before) // 2) for i, byte in enumerate(before)) if damage != "empty" else b""
    )
    longer = Run(data, tmp_path / "m", "training.max_steps=10")
    longer.train()
    assert any("prepared again" in line for line in longer.started[0].data.report)
    assert path.read_bytes() == before


def test_images_that_change_after_the_start_do_not_change_a_resumed_training(tmp_path: Path):
    weights: list[str] = []
    for name in ("same", "changed"):
        data = write_scenes(tmp_path / name / "scenes.tsv", 40)
        Run(data, tmp_path / name / "m", "training.max_steps=5").train()
        if name == "changed":
            for path in (tmp_path / name / "scenes").iterdir():
                path.unlink()
        longer = Run(data, tmp_path / name / "m", "training.max_steps=20")
        longer.train()
        weights.append(longer.weights)
    assert weights[0] == weights[1]


@thorough
def test_two_processes_train_the_model_of_one(tmp_path: Path):
    settings = (*SETTINGS, "training.max_steps=10", "training.optimizer.learning_rate=0.1")
    assert_two_processes_agree("captioning", write_scenes(tmp_path / "scenes.tsv", 60), tmp_path, settings)


@thorough
@pytest.mark.parametrize("preset", thinned(["show_attend_tell", "image_transformer", "show_attend_tell-hard"], 3))
def test_boxes_teach_attention_the_places_of_words(preset: str, tmp_path: Path):
    data = write_scenes(tmp_path / "scenes.tsv", 60)
    boxes = write_boxes(data, tmp_path / "boxes.tsv")
    settings = ["training.max_steps=90", f"training.links={boxes}", "training.alignment_weight=1"]
    if preset == "show_attend_tell-hard":
        settings.append("training.soft_start=60")
    Run(data, tmp_path / "m", *settings, preset=preset, dev=(data,)).train()
    assert share_of_places(tmp_path / "m", data) >= 0.9
    if preset == "show_attend_tell":
        Run(data, tmp_path / "plain", settings[0], preset=preset, dev=(data,)).train()
        assert share_of_places(tmp_path / "plain", data) < 0.6


def share_of_places(model: Path, data: Path) -> float:
    """Share of the pictures whose colour is looked for, above all, in the quarter of the square."""
    scenes = [line.split("\t") for line in data.read_text("utf-8").splitlines()]
    captioner = load(model, kind=Captioner, engine="torch")
    captions = captioner.caption([data.parent / image for image, _ in scenes], beam=1, attention=True)
    places = [
        None if caption.attention is None or len(caption.attention) < 2 else int(caption.attention[1].argmax())
        for caption in captions
    ]
    wanted = [PLACES.index(text.partition(" at the ")[2]) for _, text in scenes]
    return sum(one == other for one, other in zip(places, wanted, strict=True)) / len(scenes)


@thorough
def test_boxes_resume_and_two_processes_share_them(tmp_path: Path):
    data = write_scenes(tmp_path / "scenes.tsv", 60)
    links = f"training.links={write_boxes(data, tmp_path / 'boxes.tsv')}"
    settings = (links, "training.alignment_weight=1", "training.validate_every=6")
    whole = Run(data, tmp_path / "whole", *settings, "training.max_steps=12")
    whole.train()
    with pytest.raises(Stopped):
        Run(data, tmp_path / "parts", *settings, "training.max_steps=12").train(stop=6)
    parts = Run(data, tmp_path / "parts", *settings, "training.max_steps=12")
    parts.train()
    assert parts.weights == whole.weights
    settings = (*SETTINGS, *settings, "training.max_steps=10", "training.optimizer.learning_rate=0.1")
    assert_two_processes_agree("captioning", data, tmp_path, settings)


def test_boxes_need_pictures_and_places_need_boxes(tmp_path: Path):
    data = write_scenes(tmp_path / "scenes.tsv", 20)
    with pytest.raises(UsageError, match="give their boxes with --links FILE"):
        Run(data, tmp_path / "m", "training.alignment_weight=1").train()
    boxes = write_boxes(data, tmp_path / "boxes.tsv")
    features = write_scenes(tmp_path / "features.tsv", 20, kind="npy")
    settings = (f"training.links={boxes}", "training.alignment_weight=1")
    with pytest.raises(UsageError, match="features have no places"):
        Run(features, tmp_path / "f", *settings).train()
    for setting in ("training.alignment_model=ibm2", "training.alignment_step=read"):
        with pytest.raises(UsageError, match="for links between texts"):
            Run(data, tmp_path / "s", *settings, setting).train()
    boxes.write_text("scenes/0.png\tother words\t0:0,0,8,8\n")
    with pytest.raises(DataError, match="none of its 1 caption is trained on"):
        Run(data, tmp_path / "o", *settings, "training.max_steps=2").train()


BAD_ROWS = {
    "missing": ("scenes/none.png", "No such file"),
    "outside": ("../outside.png", "no path inside"),
    "absolute": ("/etc/passwd", "no path inside"),
    "folder": ("scenes", "no regular file"),
    "text": ("text.png", "no picture"),
    "empty": ("empty.png", "empty file"),
    "truncated": ("truncated.png", "truncated"),
    "bomb": ("bomb.png", "pixels are too many"),
    "giant": ("giant.png", "too many pixels"),
    "features": ("other.npy", "this data has pixels"),
}


def test_a_bad_image_is_one_line_with_file_and_row(tmp_path: Path):
    data = write_scenes(tmp_path / "scenes.tsv", 9)
    write_bad_images(tmp_path)
    good = data.read_text("utf-8")
    for fault, (name, complaint) in BAD_ROWS.items():
        data.write_text(f"{good}{name}\ta red square\n", "utf-8", newline="\n")
        with pytest.raises(DataError, match=complaint) as caught:
            Run(data, tmp_path / "m", "training.max_steps=2").train()
        message = str(caught.value)
        assert f"{data}:10: " in message, fault
        assert "\n" not in message, fault
        assert caught.value.exit_code == 2, fault


def test_a_small_share_of_bad_images_is_left_out_and_told_once(tmp_path: Path):
    data = write_scenes(tmp_path / "scenes.tsv", 60)
    write_bad_images(tmp_path)
    rows = data.read_text("utf-8").splitlines()
    bad = [f"{name}\ta red square" for name in ("truncated.png", "scenes/none.png", "empty.png")]
    data.write_text("".join(f"{row}\n" for row in (bad[0], *rows, *bad[1:])), "utf-8")
    run = Run(data, tmp_path / "m", "training.max_steps=2")
    assert run.train().step == 2
    report = [line for line in run.started[0].data.report if "left out as unreadable" in line]
    assert len(report) == 1
    assert f"{data}: 3 of 63 images left out" in report[0]
    assert all(f"{place}" in report[0] for place in ("1", "62", "63"))


def write_bad_images(folder: Path) -> None:
    from PIL import Image

    (folder / "text.png").write_text("not a picture", encoding="utf-8")
    (folder / "empty.png").write_bytes(b"")
    whole = next((folder / "scenes").glob("*.png")).read_bytes()
    (folder / "truncated.png").write_bytes(whole[: len(whole) // 2])
    Image.new("1", (10_000, 9_000)).save(folder / "bomb.png")
    Image.new("1", (20_000, 20_000)).save(folder / "giant.png")
    np.save(folder / "other.npy", np.zeros((2, 3)))
    Image.new("RGB", (16, 16)).save(folder.parent / "outside.png")
