"""`heedful train --task captioning`, `caption` and `evaluate` of its model."""

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import heedful as heedful_package
from heedful.errors import DataError, UsageError
from heedful.predictors.captioner import Captioner
from tests.cli.command import heedful
from tests.tasks.scenes import SETTINGS, write_scenes
from tests.tasks.test_captioning import write_bad_images


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("caption")
    data, dev = write_scenes(folder / "scenes.tsv", 120), write_scenes(folder / "dev.tsv", 60, seed=2)
    write_bad_images(folder)
    settings = [word for setting in (*SETTINGS, "training.max_steps=120") for word in ("--set", setting)]
    out = folder / "m"
    done = heedful("train", data, "--dev", dev, "--task", "captioning", "--out", out, "--threads", "1", *settings)
    assert done.code == 0, done.err
    assert f"next:  heedful caption {out}" in done.out
    return out


def rows(model: Path) -> list[list[str]]:
    lines = (model.parent / "dev.tsv").read_text(encoding="utf-8").splitlines()[:4]
    return [line.split("\t") for line in lines]


def test_images_get_captions(model: Path):
    paths = [model.parent / path for path, _ in rows(model)]
    done = heedful("caption", model, *paths)
    assert done.code == 0, done.err
    assert done.out == "".join(f"{path}\t{text}\n" for path, (_, text) in zip(paths, rows(model), strict=True))


def test_paths_come_from_a_file_or_standard_input(model: Path, tmp_path: Path):
    paths = [str(model.parent / path) for path, _ in rows(model)]
    (tmp_path / "paths.txt").write_text("\n".join(paths) + "\n", encoding="utf-8")
    heedful("caption", model, "-i", tmp_path / "paths.txt", "-o", tmp_path / "out.tsv")
    text = (tmp_path / "out.tsv").read_text(encoding="utf-8")
    assert [line.split("\t")[0] for line in text.splitlines()] == paths
    assert heedful("caption", model, stdin="\n".join(paths).encode()).out == text


def test_json_tells_alternatives_and_attention(model: Path):
    (path, text), *_ = rows(model)
    done = heedful("caption", model, model.parent / path, "--nbest", "2", "--format", "jsonl")
    facts = json.loads(done.out)
    assert facts["text"] == text
    assert len(facts["alternatives"]) == 2
    assert facts["grid"] == [2, 2]
    assert np.array(facts["attention"]).shape == (len(facts["pieces"]), 4)


def test_the_page_of_its_training_shows_where_each_word_looked(model: Path, tmp_path: Path):
    page = tmp_path / "page.html"
    assert heedful("report", model, "-o", page).code == 0
    html = page.read_text(encoding="utf-8")
    assert "<h2>Attention</h2>" in html
    panels = html.count("<figcaption>")
    assert panels == html.count("data:image/png;base64,") >= 5


def test_attention_is_drawn_over_one_image(model: Path, tmp_path: Path):
    path = model.parent / rows(model)[0][0]
    done = heedful("caption", model, path, "--png", tmp_path / "drawn.png")
    assert done.code == 0, done.err
    assert (tmp_path / "drawn.png").read_bytes().startswith(b"\x89PNG")
    done = heedful("caption", model, path, path, "--png", tmp_path / "other.png")
    assert done.code == 2
    assert "--png draws one image" in done.errors[0]
    assert not (tmp_path / "other.png").exists()


def test_two_models_are_compared_by_the_metrics_asked_for(model: Path):
    data = model.parent / "dev.tsv"
    done = heedful("evaluate", model, data, "--format", "json", "--metrics", "token_error_rate", "--versus", model)
    assert done.code == 0
    facts = json.loads(done.out)
    assert [result["metric"] for result in facts["results"]] == ["token_error_rate"]
    (difference,) = facts["versus"]["differences"]
    assert difference["difference"] == 0.0
    assert difference["p_value"] > 0.9
    assert (
        "token error rate" in heedful("evaluate", model, data, "--versus", model, "--metrics", "token_error_rate").out
    )
    assert heedful("evaluate", model, data, "--metrics", "blue").code == 2


def test_its_model_is_evaluated_and_described(model: Path):
    done = heedful("evaluate", model, model.parent / "dev.tsv", "--format", "json")
    assert done.code == 0, done.err
    scores = {each["metric"]: each["score"] for each in json.loads(done.out)["results"]}
    assert scores.keys() == {"exact_match", "bleu"}
    assert scores["exact_match"] >= 90.0
    assert "captioning" in heedful("info", model).out


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("none.png", "No such file"),
        ("text.png", "no picture"),
        ("empty.png", "empty file"),
        ("truncated.png", "truncated"),
        ("bomb.png", "pixels are too many"),
        ("other.npy", "this data has pixels"),
        (".", "no regular file"),
    ],
)
def test_a_bad_image_is_one_line(model: Path, name: str, complaint: str):
    done = heedful("caption", model, model.parent / name)
    assert done.code == 2
    assert complaint in done.errors[0]
    assert len(done.errors) == 1
    assert done.out == ""


def test_a_bad_image_among_others_costs_only_its_own_caption(model: Path, tmp_path: Path):
    (first, text), (second, other), *_ = [(model.parent / path, text) for path, text in rows(model)]
    bad, none = model.parent / "truncated.png", model.parent / "none.png"
    (tmp_path / "paths.txt").write_text(f"{first}\n{bad}\n{second}\n{none}\n", encoding="utf-8")
    done = heedful("caption", model, "-i", tmp_path / "paths.txt", "-o", tmp_path / "out.tsv")
    assert done.code == 2
    expected = f"{first}\t{text}\n{bad}\t\n{second}\t{other}\n{none}\t\n"
    assert (tmp_path / "out.tsv").read_text(encoding="utf-8") == expected
    (warning,) = [line for line in done.err.splitlines() if "warning" in line]
    assert f"{tmp_path / 'paths.txt'}: 2 images could not be read: lines 2, 4; the first: {bad}: truncated" in warning
    assert "2 images could not be read; the others have their captions" in done.errors[0]
    facts = [json.loads(line) for line in heedful("caption", model, bad, second, "--format", "jsonl").out.splitlines()]
    assert facts[0]["text"] == ""
    assert "truncated" in facts[0]["error"]
    assert facts[1]["text"] == other
    assert "error" not in facts[1]


def test_images_none_of_which_can_be_read_are_named(model: Path):
    bad = model.parent / "truncated.png"
    done = heedful("caption", model, bad, bad)
    assert (done.code, done.out) == (2, f"{bad}\t\n" * 2)


def test_a_data_file_with_a_bad_row_is_named_with_its_line(model: Path, tmp_path: Path):
    (tmp_path / "rows.tsv").write_text("absent-picture.png\ta red square\n", encoding="utf-8")
    done = heedful("evaluate", model, tmp_path / "rows.tsv")
    assert done.code == 2
    assert f"{tmp_path / 'rows.tsv'}:1: " in done.errors[0]


def test_few_bad_pictures_and_rows_of_a_test_file_are_left_out_and_told_once(model: Path, tmp_path: Path):
    lines = (model.parent / "dev.tsv").read_text(encoding="utf-8").splitlines()[:30]
    good = [f"{Path(path).name},{text}" for path, text in (line.split("\t") for line in lines)]
    folder = (model.parent / rows(model)[0][0]).parent
    (tmp_path / "in").symlink_to(folder)
    table = tmp_path / "in.csv"
    table.write_text(
        "\n".join([*(f"in/{row}" for row in good), "in/none.png,a red square", "in/x,y,z"]) + "\n", "utf-8"
    )
    done = heedful("evaluate", model, table)
    assert done.code == 0, done.err
    left_out = [line for line in done.err.splitlines() if "left out as unreadable" in line]
    assert [line.split(": line ")[0] for line in left_out] == [
        f"heedful: warning: {table}: 1 of 32 rows left out as unreadable",
        f"heedful: warning: {table}: 1 of 31 images left out as unreadable",
    ]


def test_other_commands_refuse_it_in_a_line(model: Path):
    done = heedful("translate", model, "x")
    assert done.code == 2
    assert "a model for captioning, not for translation" in done.err


def test_its_own_image_is_not_drawn_over(model: Path, tmp_path: Path):
    path = tmp_path / "dog.png"
    path.write_bytes((model.parent / rows(model)[0][0]).read_bytes())
    before = path.read_bytes()
    done = heedful("caption", model, path, "--png", path)
    assert (done.code, len(done.errors)) == (2, 1)
    assert "choose another output file" in done.errors[0]
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", [b"caf\xe9.png", b"two\nlines.png"])
def test_a_name_need_not_be_text(name: bytes, model: Path, tmp_path: Path):
    path = tmp_path / os.fsdecode(name)
    path.write_bytes((model.parent / rows(model)[0][0]).read_bytes())
    for form in ("text", "jsonl"):
        done = heedful("caption", model, path, "--format", form)
        assert (done.code, done.out.count("\n"), rows(model)[0][1] in done.out) == (0, 1, True), done.err


def test_beam_and_limit_of_an_evaluation_count_and_other_options_are_refused(model: Path):
    data = model.parent / "dev.tsv"
    facts = json.loads(heedful("evaluate", model, data, "--limit", "5", "--beam", "1", "--format", "json").out)
    assert (facts["num_items"], facts["beam"]) == (5, 1)
    for option in (["--lowercase"], ["--ensemble", model], ["--shortlist"], ["--record"]):
        done = heedful("evaluate", model, data, *option)
        assert (done.code, len(done.errors)) == (2, 1)
        assert f"a model for captioning has no {option[0]}" in done.errors[0]


@pytest.mark.parametrize(("row", "complaint"), [("test/none.png", "No such file"), ("../a.png", "no path inside")])
def test_images_for_testing_are_looked_at_before_the_training(row: str, complaint: str, tmp_path: Path):
    data, test = write_scenes(tmp_path / "scenes.tsv", 120), write_scenes(tmp_path / "test.tsv", 5, seed=2)
    settings = [word for setting in (*SETTINGS, "training.max_steps=2") for word in ("--set", setting)]
    command = (
        "train",
        data,
        "--test",
        test,
        "--task",
        "captioning",
        "--out",
        tmp_path / "m",
        "--threads",
        "1",
        *settings,
    )
    good = test.read_text(encoding="utf-8")
    test.write_text(f"{good}{row}\ta red square\n", encoding="utf-8")
    done = heedful(*command)
    assert (done.code, len(done.errors)) == (2, 1)
    assert f"{test}:6: " in done.errors[0]
    assert complaint in done.errors[0]
    test.write_text(good.replace("\t", " \t"), encoding="utf-8")
    done = heedful(*command)
    assert done.code == 0, done.err
    assert "test:" in done.out


def test_a_table_comes_back_with_captions(model: Path, tmp_path: Path):
    scenes = write_scenes(tmp_path / "scenes.tsv", 6)
    names = [line.split("\t")[0] for line in scenes.read_text("utf-8").splitlines()]
    wanted = [(str(n), f"{name}#{n}", "mine") for n, name in enumerate(names)]
    table = tmp_path / "in.csv"
    table.write_text("".join(",".join(row) + "\n" for row in [("id", "photo", "caption"), *wanted]), "utf-8")
    done = heedful("caption", model, "-i", table)
    assert done.code == 0, done.err
    read = [*csv.reader(io.StringIO(done.out))]
    assert read[0] == ["id", "photo", "caption", "predicted_caption", "predicted_log_prob"]
    assert [tuple(row[:3]) for row in read[1:]] == wanted
    lines = heedful("caption", model, "-i", table, "--format", "jsonl").out.splitlines()
    assert [[*json.loads(line).values()][:4] for line in lines] == [row[:4] for row in read[1:]]
    alone = heedful("caption", model, *(tmp_path / name for name in names)).out.splitlines()
    assert [row[3] for row in read[1:]] == [line.split("\t")[1] for line in alone]
    renamed = table.read_text("utf-8").replace("id,photo,caption", "Nr,My Shot,Who")
    (tmp_path / "own.csv").write_text(renamed, "utf-8")
    own = [*csv.reader(io.StringIO(heedful("caption", model, "-i", tmp_path / "own.csv").out))]
    assert own[0] == ["Nr", "My Shot", "Who", "caption", "log_prob"]
    assert [row[3] for row in own[1:]] == [row[3] for row in read[1:]]
    plain = [f"2,{name}" for name in names]
    (tmp_path / "plain.csv").write_text("".join(f"{line}\n" for line in plain), "utf-8")
    done = heedful("caption", model, "-i", tmp_path / "plain.csv", "--columns", "2")
    assert [line.rsplit(",", 2)[0] for line in done.out.splitlines()] == plain
    with table.open("a") as stream:
        stream.write("7,none.png,mine\n8,../out.png,mine\n")
    done = heedful("caption", model, "-i", table)
    assert done.code == 2
    assert len([*csv.reader(io.StringIO(done.out))]) == 9


def test_a_single_picture_and_what_is_none_are_refused(model: Path):
    captioner = heedful_package.load(model, kind=Captioner)
    (path, text), *_ = rows(model)
    picture = Image.open(model.parent / path)
    pixels = np.array(picture.convert("RGB"))
    singles: list[Any] = [path, picture, pixels, pixels[..., 0]]
    for single in singles:
        with pytest.raises(UsageError, match="got a single one; put it into a list"):
            captioner.caption(single)
    for several in ([picture], [pixels], pixels[None]):
        assert [one.text for one in captioner.caption(several)] == [text]
    for item, message in ((None, "item 1 is None, of type NoneType; give"), (float("nan"), "item 1 is nan")):
        with pytest.raises(UsageError, match=message):
            captioner.caption([picture, item])  # pyright: ignore[reportArgumentType]
    with pytest.raises(DataError, match=r"caption: item 1: shape \[2, 2\] of float64"):
        captioner.caption([picture, np.zeros((2, 2))])
    with pytest.raises(UsageError, match="expected a list of images, got None"):
        captioner.caption(None)  # pyright: ignore[reportArgumentType]


def test_inspection_says_where_each_word_looked(model: Path):
    (path, text), *_ = rows(model)
    lines = heedful("inspect", model, model.parent / path).out.splitlines()
    assert lines[0].split("\t")[0] == text
    assert lines[2] == "The region with most weight, of 2 x 2 regions:"
    assert [line.split()[-1] for line in lines[4:]] == text.split()
