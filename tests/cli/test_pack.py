"""`heedful pack`: what it says, and that its result is a model."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from heedful.cli.messages import readable_size
from tests.cli.command import heedful
from tests.cli.conftest import Trained
from tests.js.node import needs_runtime


def test_a_packed_model_translates_as_the_model_does(trained: Trained, tmp_path: Path):
    done = heedful("pack", trained.model, "-o", tmp_path / "shipped")
    assert done.code == 0, done.err
    assert done.out.startswith(f"{tmp_path / 'shipped'}: ")
    assert done.out.count("\n") == 1
    assert "kB of " in done.out
    assert not (tmp_path / "shipped" / "run").exists()
    texts = b"abc\nfade\n"
    before, after = (heedful("translate", model, stdin=texts) for model in (trained.model, tmp_path / "shipped"))
    assert (before.code, before.out) == (after.code, after.out)
    assert heedful("info", tmp_path / "shipped").code == 0


def test_an_archive_is_one_file(trained: Trained, tmp_path: Path):
    done = heedful("pack", trained.model, "-o", tmp_path / "shipped.zip")
    assert done.code == 0, done.err
    assert [path.name for path in tmp_path.iterdir()] == ["shipped.zip"]
    with zipfile.ZipFile(tmp_path / "shipped.zip") as archive:
        card = archive.read("shipped/README.md").decode("utf-8")
    assert card.startswith('---\nlibrary_name: "heedful"\npipeline_tag: "translation"\n')
    assert 'heedful.load("shipped")' in card
    assert "- trained: " in card
    assert "ask them" in card
    again = heedful("pack", trained.model, "-o", tmp_path / "shipped.zip")
    assert (again.code, len(again.err.splitlines())) == (2, 1)
    assert "exists; choose another --output" in again.err


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.xz"])
def test_commands_say_how_a_packed_model_is_unpacked(kind: str, trained: Trained, tmp_path: Path):
    packed, other = tmp_path / f"my pairs.{kind}", tmp_path / "other.zip"
    assert heedful("pack", trained.model, "-o", packed).code == 0
    for command in (
        ("translate", packed, "abc"),
        ("info", packed),
        ("serve", trained.model, packed),
        ("translate", trained.model, "abc", "--ensemble", packed),
        ("evaluate", trained.model, trained.data, "--versus", packed),
    ):
        done = heedful(*command)
        assert (done.code, done.out, len(done.errors)) == (2, "", 1)
        assert f"a packed model; unpack it with: python -m {kind[:3]}file -e '{packed}' . and" in done.errors[0]
        assert "name the folder: 'my pairs'" in done.errors[0]
    packed.write_bytes(packed.read_bytes()[:700])
    cut = heedful("info", packed)
    assert (cut.code, "copy it again" in cut.err) == (3, True)
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("text.txt", "")
    assert "not a folder" in heedful("info", other).err


def test_a_card_of_ones_own_is_packed_as_it_is(trained: Trained, tmp_path: Path):
    model = tmp_path / "m"
    shutil.copytree(trained.model, model)
    (model / "README.md").write_text("---\nlicense: mit\n---\n# Mine\n", encoding="utf-8")
    done = heedful("pack", model, "-o", tmp_path / "out", "--license", "cc-by-4.0")
    assert (done.code, len(done.errors)) == (2, 1)
    assert "packed as it is" in done.errors[0]
    assert heedful("pack", model, "-o", tmp_path / "out").code == 0
    assert (tmp_path / "out" / "README.md").read_bytes() == (model / "README.md").read_bytes()
    told = heedful("info", tmp_path / "out").out
    assert "licence" in told
    assert "mit" in told


def test_corrections_are_packed_if_asked_for_and_named_if_not(trained: Trained, tmp_path: Path):
    model = tmp_path / "m"
    shutil.copytree(trained.model, model)
    for source, correction in (("abc", "first"), ("abd", "withdrawn"), ("abc", "second")):
        assert heedful("correct", model, source, correction).code == 0
    assert heedful("correct", model, "abd", "--undo").code == 0
    without = heedful("pack", model, "-o", tmp_path / "without")
    assert without.code == 0
    assert f"{tmp_path / 'without'}: 1 correction left out; --corrections packs them" in without.err
    assert not (tmp_path / "without" / "corrections.jsonl").exists()
    done = heedful("pack", model, "-o", tmp_path / "with.zip", "--corrections")
    assert (done.code, "left out" in done.err) == (0, False)
    with zipfile.ZipFile(tmp_path / "with.zip") as archive:
        archive.extractall(tmp_path)
    assert heedful("translate", tmp_path / "with", "abc").out == "second\n"
    assert heedful("correct", tmp_path / "with", "--list").out == heedful("correct", model, "--list").out
    assert b"withdrawn" not in (tmp_path / "with" / "corrections.jsonl").read_bytes()
    refused = heedful("pack", model, "-o", tmp_path / "page.html", "--corrections")
    assert (refused.code, len(refused.errors)) == (2, 1)
    assert "a page has no corrections" in refused.errors[0]
    graph = tmp_path / "m.onnx"
    assert f"{graph}: 1 correction left out; " in heedful("export", model, "--to", "onnx", "--single", graph).err


@needs_runtime
def test_a_page_is_that_of_export(trained: Trained, tmp_path: Path):
    page, other, model = tmp_path / "shipped.html", tmp_path / "other.html", tmp_path / "m"
    shutil.copytree(trained.model, model)  # a page brings the model an engine
    licence = ("--license", "für alle, § 3")
    done = heedful("pack", model, "-o", page, *licence)
    assert done.code == 0, done.err
    assert done.out == f"{page}: {readable_size(page.stat().st_size)}; open it in a browser\n"
    assert heedful("export", model, "--to", "html", "-o", other, *licence).code == 0
    assert page.read_bytes() == other.read_bytes()
    facts = page.read_text("utf-8").split('id="model-facts">')[1].split("</script>")[0]
    assert json.loads(facts)["license"] == "für alle, § 3"


def test_what_is_no_model_is_refused(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    for folder in ("empty", "none"):
        done = heedful("pack", tmp_path / folder, "-o", tmp_path / "out")
        assert (done.code, done.out) == (2, "")
    assert not (tmp_path / "out").exists()
