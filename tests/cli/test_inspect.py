"""`heedful inspect` shows one sentence as text, as an offline page and as a picture."""

import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest

from heedful.pages.sentence import MEASURE_NAMES
from tests.cli.command import heedful
from tests.cli.conftest import Trained
from tests.thorough import sampled


def view_of(page: Path) -> dict:
    (data,) = re.findall(r'id="view-data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    return json.loads(data)


def test_the_page_has_the_translation_its_layers_searches_and_continuations(trained: Trained, tmp_path: Path):
    page = tmp_path / "page.html"
    done = heedful("inspect", trained.model, "abc", "--html", page, "--reference", "ABC")
    assert (done.code, done.out, done.err) == (0, f"{page}\n", "")
    view = view_of(page)
    assert view["outputs"][0]["text"] == heedful("translate", trained.model, "abc", "--beam", "5").out.strip("\n")
    assert [(one["role"], one["shape"][0]) for one in view["maps"]] == [("cross", 2), ("encoder", 2), ("decoder", 2)]
    assert [one["beam"] for one in view["searches"]] == [1, 2, 3, 5]
    assert isinstance(view["searches"][0]["departure"], int)
    best = view["outputs"][0]
    for step, choices in enumerate(best["choices"]):
        for choice in choices:
            if "output" in choice:
                assert choice["output"]["ids"][: step + 1] == [*best["ids"][:step], choice["token"]]
                assert choice["output"]["numForced"] == step + 1
    assert any("output" in choice for choice in best["choices"][0])


def test_without_files_the_attention_is_text(trained: Trained):
    done = heedful("inspect", trained.model, "abc")
    assert done.code == 0
    assert "weight" in done.out
    assert "abc" in done.out


def test_each_sentence_of_a_text_is_shown(trained: Trained, tmp_path: Path):
    done = heedful("inspect", trained.model, "abc\nfed", "--html", tmp_path / "page.html", "--quiet")
    pages = [tmp_path / "page-1.html", tmp_path / "page-2.html"]
    assert (done.code, done.out) == (0, "".join(f"{page}\n" for page in pages))
    assert [view_of(page)["source"]["text"] for page in pages] == ["abc", "fed"]
    both = heedful("inspect", trained.model, "abc\nfed").out
    assert both == "".join(heedful("inspect", trained.model, text).out for text in ("abc", "fed"))
    whole = heedful("inspect", trained.model, "abc\nfed", "--reference", "ABC", "--html", tmp_path / "page.html")
    assert whole.out == f"{tmp_path / 'page.html'}\n"


@sampled(2)
@pytest.mark.parametrize("measure", MEASURE_NAMES)
def test_each_measure_is_shown_as_text_and_page(trained: Trained, tmp_path: Path, measure: str):
    page = tmp_path / "page.html"
    assert heedful("inspect", trained.model, "abc", "--measure", measure, "--html", page).code == 0
    view = view_of(page)
    assert (view["measure"], view["measures"]) == (measure, list(MEASURE_NAMES))
    assert set(view["otherMaps"]) == set(MEASURE_NAMES) - {measure}
    roles = [one["role"] for one in view["maps"]]
    assert roles == (["cross"] if measure == "gradients" else ["cross", "encoder", "decoder"])
    for one in (*view["maps"], *(each for maps in view["otherMaps"].values() for each in maps)):
        assert unpacked(one).sum(axis=-1) == pytest.approx(1.0, abs=1e-4)
    text = heedful("inspect", trained.model, "abc", "--measure", measure)
    plain = heedful("inspect", trained.model, "abc")
    assert (text.code, text.err) == (0, "")
    assert "weight" in text.out
    assert text.out.split("\n")[:3] == plain.out.split("\n")[:3]  # the output and its probabilities


def unpacked(one: dict) -> np.ndarray:
    return np.frombuffer(base64.b64decode(one["data"]), dtype="<f4").reshape(one["shape"])


def test_a_picture_is_drawn(trained: Trained, tmp_path: Path):
    done = heedful("inspect", trained.model, "abc", "--png", tmp_path / "map.png")
    assert (done.code, done.out) == (0, f"{tmp_path / 'map.png'}\n")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("attention", "label"), [("encoder", "abc"), ("decoder", "▷")])
def test_attention_within_source_and_output_is_text_and_picture(
    trained: Trained, tmp_path: Path, attention: str, label: str
):
    done = heedful("inspect", trained.model, "abc", "--attention", attention)
    assert (done.code, done.err) == (0, "")
    columns, *rows = done.out.split("\n\n")[2].split("\n")
    assert columns.replace(" ", "").startswith(label)  # a text of one word is shown letter by letter
    word = "abc" if attention == "encoder" else done.out.split("\n")[2].split()[0]
    assert [row[0] for row in rows[: len(word)]] == list(word)
    done = heedful("inspect", trained.model, "abc", "--attention", attention, "--png", tmp_path / "map.png")
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("abc", "--measure", "atli"), "atli"),
        (("abc", "--measure", ""), "--measure"),
        (("abc", "--measure"), "--measure"),
        (("abc", "--measure", "alti\0"), "measure"),
        (("abc", "--attention", "self"), "self"),
        (("abc", "--attention", "encoder", "--measure", "gradients"), "no attention within the source"),
        (("  ",), "TEXT is blank"),
        (("abc", "--engine", "nosuch"), "nosuch"),
        (("abc", "--png", "map.xyz"), ".xyz"),
    ],
)
def test_bad_usage_is_one_line(trained: Trained, arguments: tuple[str, ...], message: str):
    done = heedful("inspect", trained.model, *arguments)
    assert (done.code, len(done.errors)) == (2, 1)
    assert message in done.errors[0]


def test_a_page_in_a_folder_that_does_not_exist(trained: Trained, tmp_path: Path):
    done = heedful("inspect", trained.model, "abc", "--html", tmp_path / "no" / "page.html")
    assert done.code == 5
    assert "not written" in done.errors[0]


def test_the_beam_and_a_prefix_of_the_page_are_those_asked_for(trained: Trained, tmp_path: Path):
    heedful("inspect", trained.model, "abc", "--beam", "7", "--html", tmp_path / "page.html")
    assert view_of(tmp_path / "page.html")["searches"][-1]["beam"] == 7
