"""Captioners in JavaScript: pictures scaled as Pillow scales them, and the captions and weights of Python."""

import io
import random
from base64 import b64encode
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from heedful.cli.messages import Messages
from heedful.cli.web_export import export_web
from heedful.data.images import ImageConfig, read_picture
from heedful.errors import UsageError
from heedful.predictors.captioner import Captioner
from heedful.predictors.table import load
from tests.js.node import Run, answers, changed_package, needs_node
from tests.js.test_labels import DESCRIBED, TIE, exported
from tests.serving.task_models import TaskModels
from tests.tasks.scenes import write_scenes
from tests.tasks.test_captioning import Run as Training
from tests.thorough import is_thorough

pytestmark = needs_node


def pixels(picture: Any) -> dict[str, Any]:
    data = picture.convert("RGBA").tobytes()
    return {"data": b64encode(data).decode(), "width": picture.width, "height": picture.height}


def png(picture: Any) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    return stream.getvalue()


def drawn(number: int, *modes: str) -> list[Any]:
    """Pictures of many sizes, of noise on a gradient, some of them transparent."""
    source, generator = random.Random(1), np.random.default_rng(1)
    pictures: list[Any] = []
    for index in range(number):
        width, height = source.randint(1, 60), source.randint(1, 60)
        array = generator.integers(0, 256, (height, width, 4), dtype=np.uint8)
        array[..., 0] = np.linspace(0, 255, width).astype(np.uint8)
        pictures.append(Image.fromarray(array).convert(modes[index % len(modes)]))
    return pictures


def test_pictures_are_scaled_to_the_same_bytes(tmp_path: Path):
    cases = [
        (picture, ImageConfig(height=height, width=width, channels=channels, region_size=8))
        for index, picture in enumerate(drawn(120, "RGB", "RGBA", "L"))
        for height, width, channels in (((16, 24, 3), (32, 32, 1), (8, 8, 3))[index % 3],)
    ]
    calls = [["fit", pixels(one), config.model_dump(mode="json")] for one, config in cases]
    run = Run(DESCRIBED, calls)
    wrong = changed_package(tmp_path / "wrong", "pictures.js", "const left = Math.floor(", "const left = Math.ceil(")
    results = answers(run, run._replace(folder=wrong))
    expected = [read_picture(png(one), config).ravel().astype(int) for one, config in cases]
    # Versions of Pillow differ in the order of the axes for some shapes, which changes roundings.
    differences = [np.abs(one - other).max() for one, other in zip(expected, results, strict=False)]
    assert max(differences) <= 1
    assert np.mean(differences) <= 0.2
    others = zip(expected, results[len(cases) :], strict=True)
    assert max(np.abs(one - other).max() for one, other in others) > 1


@pytest.fixture(scope="module")
def transformer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("captions")
    data = write_scenes(folder / "scenes.tsv", 40)
    Training(data, folder / "m", "training.max_steps=4", preset="image_transformer").train()
    return folder / "m"


@pytest.mark.parametrize("number", [6, is_thorough(200)])
def test_captions_and_weights_are_those_of_python(
    task_models: TaskModels, transformer: Path, number: int, tmp_path: Path
):
    pictures = drawn(number, "RGB", "RGBA")
    for path in (task_models.captioner, transformer):
        archive = tmp_path / f"{path.name}.tgz"
        export_web(load(path, engine="torch"), "js", Messages(True), archive, "float32")
        captioner = load(path, engine="onnx", kind=Captioner)
        options = {"beam": 3, "nbest": 3, "attention": True}
        (results,) = answers(Run(archive, [["caption", [*map(pixels, pictures)], options]]))
        ours = captioner.caption([*map(png, pictures)], **options)
        for one, other in zip(ours, results, strict=True):
            assert [each.text for each in one.alternatives] == [each["text"] for each in other["alternatives"]]
            assert other["score"] == pytest.approx(one.score, abs=TIE)
            assert (list(one.pieces), list(one.grid)) == (other["pieces"], other["grid"])
            assert one.attention is not None
            np.testing.assert_allclose(other["attention"], one.attention, atol=TIE)


# A picture as JSON gives it, and what is said of it.
WRONG: tuple[tuple[Any, str], ...] = (
    ("a.png", "is 'a.png'; expected a file (a Blob), or { data, width, height }"),
    (None, "is null; expected a file"),
    (7, "is 7; expected a file"),
    ([255, 255, 255, 255], "is a list; expected a file"),
    ({}, "has no data; expected a file"),
    ({"data": "abcd", "width": 1, "height": 1}, "has no data; expected a file"),
    ({"data": [1, 2, 3, 4], "width": 1, "height": 1}, "has no data; expected a file"),
    (
        {"bytes": 12, "width": 2, "height": 2},
        "has 12 bytes of data; 2 x 2 pixels of red, green, blue and alpha have 16",
    ),
    ({"bytes": 20, "width": 2, "height": 2}, "has 20 bytes of data; 2 x 2 pixels"),
    ({"bytes": 0, "width": 0, "height": 0}, "has the width 0 and the height 0; expected whole numbers from 1"),
    ({"bytes": 16, "width": -2, "height": -2}, "has the width -2 and the height -2; expected whole numbers"),
    ({"bytes": 12, "width": 1.5, "height": 2}, "has the width 1.5 and the height 2; expected whole numbers"),
    ({"bytes": 4, "height": 1}, "has the width undefined and the height 1; expected whole numbers"),
)


def test_what_is_no_picture_is_refused_and_named(task_models: TaskModels, tmp_path: Path):
    _, archive = exported(task_models.captioner, tmp_path)
    right, jpeg = {"bytes": 4, "width": 1, "height": 1}, [0xFF, 0xD8, 0xFF]
    calls: list[list[Any]] = [["captionRaw", [right, one]] for one, _ in WRONG]
    others: list[list[Any]] = [["captionRaw", None], ["captionRaw", right], ["captionRaw", [right]]]
    files: list[list[Any]] = [
        ["captionFiles", [[], jpeg]],
        ["captionFiles", [jpeg]],
        ["captionRaw", [right], {"search": {"beam": 1}}],
    ]
    given = answers(Run(archive, [*calls, *others, *files]))
    for (picture, message), answer in zip(WRONG, given, strict=False):
        assert isinstance(answer, dict), f"{picture}: {answer}"
        assert answer["error"] == "usage", f"{picture}: {answer}"
        assert answer["message"].startswith(f"caption: pictures[1]: {message}")
    nothing, single, found, first, only, greedy = given[len(WRONG) :]
    said = "caption: expected a list of pictures; put a single one into a list"
    assert nothing == single == {"error": "usage", "message": said}
    assert (len(found), len(greedy)) == (1, 1)
    assert (first["error"], only["error"]) == ("picture", "picture")
    assert first["message"] == f"pictures[0]: {only['message']}"


def test_a_model_of_features_is_refused(tmp_path: Path):
    data = write_scenes(tmp_path / "scenes.tsv", 12, kind="npy")
    Training(data, tmp_path / "m", "training.max_steps=1", preset="show_attend_tell").train()
    with pytest.raises(UsageError, match="features in place of pictures"):
        export_web(load(tmp_path / "m", engine="torch"), "js", Messages(True), tmp_path / "m.tgz")
