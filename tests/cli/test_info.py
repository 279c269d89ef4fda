import gzip
import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from heedful.cli.info import num_parameters
from heedful.data.split import on_training
from heedful.errors import FileRefused
from heedful.export.archive import compressed
from heedful.files.formats import HISTORY_FORMAT
from heedful.files.records import sealed
from heedful.pages.bundle import model_page
from tests.cli.command import heedful
from tests.cli.conftest import Trained
from tests.seal import write_sealed


def rows(trained: Trained, model: Path) -> dict[str, str]:
    done = heedful("info", model)
    assert (done.code, done.err) == (0, "")
    return {line[:10].strip(): line[10:].strip() for line in done.out.split("\n")[:-1]}


def test_what_is_said(trained: Trained):
    said = rows(trained, trained.model)
    assert said["kind"] == "transformer"
    assert said["parameters"] == "4,832"
    assert said["vocabulary"] == "16 characters"
    assert said["languages"] == "not known"
    assert said["search"] == "beam 2, power length penalty 1"
    assert said["trained"].startswith("8 steps, 2.0 epochs, ")
    assert re.fullmatch(
        r"loss \S+, exact match 0.00 %, character error rate \S+ %; on validation, at step \d", said["best"]
    )
    assert said["test"].startswith("exact match 0.00 [0.00, 0.00], character error rate ")
    assert said["size"].endswith("kB to use it")
    assert "max_steps 8" in said["[training]"]


def test_scores_on_the_training_pairs_are_called_so(trained: Trained, tmp_path: Path):
    shutil.copytree(trained.model, model := tmp_path / "m")
    history = model / "run" / "history.jsonl"
    line = sealed(HISTORY_FORMAT, {"event": "began", "step": 0, "report": [on_training("pairs")]})
    history.write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert "; on the training pairs, at step " in rows(trained, model)["best"]


def test_a_model_without_its_run_says_less(trained: Trained, tmp_path: Path):
    shutil.copytree(trained.model, tmp_path / "m")
    shutil.rmtree(tmp_path / "m" / "run")
    said = rows(trained, tmp_path / "m")
    assert said["parameters"] == "4,832"
    assert not {"trained", "best", "test"} & said.keys()


def test_a_log_that_a_crash_cut_off_is_read_until_there(trained: Trained, tmp_path: Path):
    shutil.copytree(trained.model, tmp_path / "m")
    with (tmp_path / "m" / "run" / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 12, "sco')
    assert rows(trained, tmp_path / "m")["trained"].startswith("8 steps")


def test_parameters_are_counted_without_loading(trained: Trained):
    weights = next(trained.model.glob("model-*.safetensors"))
    assert num_parameters(weights) == sum(array.size for array in load_file(weights).values())


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00" * 8, b"\xff" * 8, b"\x02\0\0\0\0\0\0\0[]", b"\x05\0\0\0\0\0\0\0{...}", b"[" * 99],
    ids=repr,
)
def test_weights_that_are_none_have_no_parameters(content: bytes, tmp_path: Path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(FileRefused, match="not a safetensors file"):
        num_parameters(path)


@pytest.mark.parametrize("name", ["metrics.jsonl", "history.jsonl", "test.json"])
@pytest.mark.parametrize("content", [b"", b"\xff", b"{}\n", b"[\n"], ids=repr)
def test_damaged_files_of_the_run_are_named(name: str, content: bytes, trained: Trained, tmp_path: Path):
    model = tmp_path / "copy"
    shutil.copytree(trained.model, model)
    (model / "run" / name).write_bytes(content)
    for command in (("info", model), ("report", model, "-o", tmp_path / "page.html")):
        done = heedful(*command)
        assert done.code == 0
        assert done.err == f"heedful: warning: {model / 'run' / name}: damaged; what it holds is left out\n"


def test_scores_of_other_weights_are_not_those_of_the_model(trained: Trained, tmp_path: Path):
    model = tmp_path / "m"
    shutil.copytree(trained.model, model)
    assert "\ntest " in heedful("info", model).out
    facts = json.loads((model / "run/test.json").read_text(encoding="utf-8"))
    write_sealed(model / "run/test.json", {**facts, "weights": "model-00000000.safetensors"})
    assert "\ntest " not in heedful("info", model).out


def test_the_card_is_the_models_own_or_the_one_that_is_packed(trained: Trained, tmp_path: Path):
    model = tmp_path / "m.model"
    shutil.copytree(trained.model, model)
    done = heedful("info", model, "--card")
    assert (done.code, done.err) == (0, "")
    for words in ("# m\n", 'heedful.load("m.model")', "## Limits", "longest source in training had ", "## Licence"):
        assert words in done.out
    (model / "README.md").write_text("# Mine\x1b[2J\n\nText.\n", encoding="utf-8")
    assert heedful("info", model, "--card").out == "# Mine\\x1b[2J\n\nText.\n"


def page_of(model: bytes) -> str:
    """Page of an archive; no engine runs in it."""
    runtime = "export { ort };", gzip.compress(b"module", mtime=0), ""
    return model_page("words · heedful", {"name": "words"}, model, runtime)


def test_a_file_for_others_says_what_it_is_and_what_to_do(trained: Trained, tmp_path: Path):
    model, archive, page = (tmp_path / f"words.{kind}" for kind in ("model", "tgz", "html"))
    shutil.copytree(trained.model, model)
    options = ("--weights", "float32", "--license", "mit")
    assert heedful("export", model, "--to", "js", *options).code == 0
    done = heedful("info", archive)
    assert (done.code, done.err) == (0, "")
    said = {line[:10].strip(): line[10:].strip() for line in done.out.split("\n")[:-1]}
    assert said["what"] == "a model for JavaScript, in one archive"
    assert (said["model"], said["task"], said["kind"]) == ("words.model", "translation", "transformer")
    assert (said["licence"], said["languages"]) == ("mit", "not known")
    assert said["use"] == "with the npm package heedful: await load('words.tgz')"
    card = heedful("info", archive, "--card")
    assert (card.code, "```javascript" in card.out) == (0, True)
    page.write_text(page_of(archive.read_bytes()), encoding="utf-8", newline="")
    shown = heedful("info", page).out
    assert "a page with the model inside" in shown
    assert "open it in a browser" in shown
    refused = heedful("info", page, "--card")
    assert (refused.code, "leave out --card" in refused.err) == (2, True)


@pytest.mark.parametrize("suffix", [".tgz", ".html"])
@pytest.mark.parametrize("content", [b"", b"\xff" * 99, gzip.compress(b"a" * 2000, mtime=0), b"<html>", None], ids=repr)
def test_a_file_that_nothing_exported_is_refused(suffix: str, content: bytes | None, tmp_path: Path):
    path = tmp_path / f"other{suffix}"
    if content is not None:
        path.write_bytes(content)
    done = heedful("info", path)
    assert (done.code, len(done.errors), done.out) == (2 if content is None else 3, 1, "")
    assert str(path) in done.err


@pytest.mark.parametrize("facts", [b"", b"[1]", b'{"languages": 3}', b"{", b"[" * 99999], ids=lambda one: repr(one[:9]))
def test_damaged_facts_of_an_archive_are_refused(facts: bytes, tmp_path: Path):
    path = tmp_path / "m.tgz"
    path.write_bytes(compressed({"model.json": facts}))
    done = heedful("info", path)
    assert (done.code, len(done.errors)) == (3, 1)
    path.write_bytes(compressed({"model.json": b"{}"})[:-9])
    assert heedful("info", path).code in (0, 3)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content, middle: content[:middle],
        lambda content, middle: content[:-5],
        lambda content, middle: content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
    ],
    ids=["cut", "cut at its end", "changed"],
)
def test_a_file_for_others_that_was_cut_or_changed_is_refused(damage: Callable[[bytes, int], bytes], tmp_path: Path):
    graph = random.Random(0).randbytes(99_999)  # which does not shrink, so that the middle of the file is in it
    whole = {"m.tgz": compressed({"model.json": b"{}", "step.onnx": graph})}
    whole["m.html"] = page_of(whole["m.tgz"]).encode()
    middles = {"m.tgz": len(whole["m.tgz"]) // 2, "m.html": whole["m.html"].index(b'id="model-data">') + 60_000}
    for name, content in whole.items():
        path = tmp_path / name
        path.write_bytes(content)
        assert heedful("info", path).code == 0
        path.write_bytes(damage(content, middles[name]))
        done = heedful("info", path)
        assert (done.code, done.out, len(done.errors)) == (3, "", 1)
        assert done.errors[0].endswith(f"{path}: cut or changed; copy it again")


@pytest.mark.parametrize("part", ["script", "engine-script", "runtime-data"])
def test_each_part_of_a_page_is_checked(part: str, tmp_path: Path):
    path, page = tmp_path / "m.html", page_of(compressed({"model.json": b"{}"}))
    start = page.index("const modules" if part == "script" else f'id="{part}"')
    place = page.index("</script>", start) - 8  # of the text, or of the checksum
    path.write_text(f"{page[:place]}{'AB'[page[place] == 'A']}{page[place + 1 :]}", encoding="utf-8", newline="")
    assert heedful("info", path).code == 3
