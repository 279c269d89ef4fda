import json
import re
import shutil
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from heedful.cli.info import num_parameters
from heedful.errors import FileRefused
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
