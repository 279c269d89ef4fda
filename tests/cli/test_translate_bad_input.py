"""Odd and hostile input to `heedful translate`, row by row of the table in docs/reliability.md."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from heedful.files.atomic_write import digest
from heedful.models.interface import Seq2Seq
from heedful.text.vocabulary import EOS
from tests.architecture.package import ROOT
from tests.cli.command import Done, heedful
from tests.cli.conftest import Trained
from tests.seal import write_sealed
from tests.thorough import thorough

MOST = 24
"""Tokens that the model takes."""


def lines_of(done: Done) -> list[str]:
    assert done.code == 0, done.err
    return done.out.split("\n")[:-1]


@pytest.mark.parametrize("text", ["\n", "\n\n\n", " \n\t\n\u3000\n", "\u2028\n", "   ", "abc\n\n \ncab\n"])
def test_blank_lines_stay_where_they_are(trained: Trained, text: str):
    lines = text.removesuffix("\n").split("\n")
    for more in (["--exact"], ["--align", "--format", "jsonl"]):
        found = lines_of(heedful("translate", trained.model, *more, stdin=text.encode()))
        assert len(found) == len(lines)
        written = [json.loads(line)["text"] if "jsonl" in more else line for line in found]
        assert not any(output for output, line in zip(written, lines, strict=True) if not line.strip())


@pytest.mark.parametrize(
    ("length", "is_cut"), [(MOST - 2, False), (MOST - 1, False), (MOST, True), (MOST + 1, True), (100 * MOST, True)]
)
def test_what_is_too_long_is_cut_and_told(trained: Trained, length: int, is_cut: bool):
    done = heedful("translate", trained.model, "--format", "jsonl", "a" * length)
    (line,) = lines_of(done)
    assert json.loads(line)["was_cut"] is is_cut
    assert (f"argument:1: cut after {MOST} tokens" in done.err) is is_cut


@pytest.mark.parametrize(
    "options",
    [
        ["--beam", 60],
        ["--beam", 40, "--nbest", 50, "--exact"],
        ["--nbest", 7, "--beam", 2],
        ["--temperature", 0],
        ["--top-p", 1],
        ["--top-p", 1e-9],
        ["--top-k", 100_000],
        ["--min-p", 1],
        ["--temperature", 0, "--nbest", 1],
    ],
)
def test_edges_that_are_taken(trained: Trained, options: list[object]):
    assert lines_of(heedful("translate", trained.model, *options, "abc", "", "fed"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--beam", 0], "--beam"),
        (["--beam", -1], "--beam"),
        (["--beam", "many"], "--beam"),
        (["--nbest", 0], "--nbest"),
        (["--temperature", -1], "--temperature"),
        (["--temperature", "nan"], "temperature"),
        (["--temperature", "inf"], "temperature"),
        (["--top-p", 0], "top_p"),
        (["--top-p", -0.1], "--top-p"),
        (["--top-p", 1.1], "--top-p"),
        (["--min-p", 2], "--min-p"),
        (["--top-k", -1], "--top-k"),
        (["--seed", -1], "--seed"),
        (["--batch-tokens", 0], "--batch-tokens"),
        (["--temperature", 0, "--nbest", 3], "temperature 0 draws the same output"),
        (["--prefix", "日"], "vocabulary has no token"),
        (["--require", "日"], "vocabulary has no token"),
        (["--require", " "], "blank"),
        (["--require", "A", "--ban", "A"], "banned"),
        (["--require", "A" * 40], "room"),
        (["--prefix", "A" * 40], "at most 24"),
        (["--require", "A", "--sample"], "sampling cannot guarantee"),
        (["--engine", "onnx"], "has no engine onnx"),
        (["--engine", "tensorrt"], "unknown"),
    ],
)
def test_edges_that_are_refused(trained: Trained, options: list[object], words: str):
    done = heedful("translate", trained.model, *options, "abc")
    assert (done.code, done.out) == (2, ""), done
    assert words in done.err
    assert len(done.errors) == 1
    assert "Traceback" not in done.err


def test_a_model_that_never_ends_is_ended(trained: Trained, monkeypatch: pytest.MonkeyPatch):
    plain = Seq2Seq.logits

    def logits(self: Seq2Seq, features: torch.Tensor) -> torch.Tensor:
        scored = plain(self, features)
        scored[..., EOS] = -torch.inf
        return scored

    monkeypatch.setattr(Seq2Seq, "logits", logits)
    for more in ([], ["--exact"], ["--sample"]):
        found = lines_of(heedful("translate", trained.model, "--engine", "torch", *more, "abc", "fedcba", ""))
        assert [len(line) for line in found] == [3 + 4, 6 + 4, 0]


def rewritten(trained: Trained, folder: Path, change: Callable[[dict[str, np.ndarray]], None]) -> Path:
    """The model with other weights, under a manifest that is right."""
    model = folder / "m"
    shutil.copytree(trained.model, model)
    path = next(model.glob("model-*.safetensors"))
    weights = load_file(path)
    change(weights)
    save_file(weights, path)
    signed(model, path.name)
    return model


def signed(model: Path, *names: str) -> None:
    manifest = json.loads((model / "heedful.json").read_text(encoding="utf-8"))
    manifest["files"] |= {name: digest(model / name) for name in names}
    write_sealed(model / "heedful.json", manifest)


def missing(weights: dict[str, np.ndarray]) -> None:
    del weights[next(iter(weights))]


def extra(weights: dict[str, np.ndarray]) -> None:
    weights["more"] = np.zeros(3, dtype=np.float32)


def other_shape(weights: dict[str, np.ndarray]) -> None:
    name = next(iter(weights))
    weights[name] = np.zeros((2, 3), dtype=np.float32)


def other_type(weights: dict[str, np.ndarray]) -> None:
    name = next(iter(weights))
    weights[name] = weights[name].astype(np.float64)


@pytest.mark.parametrize("change", [missing, extra, other_shape, other_type])
def test_weights_that_do_not_fit_are_refused(trained: Trained, tmp_path: Path, change: Callable[..., None]):
    done = heedful("translate", rewritten(trained, tmp_path, change), "abc")
    assert (done.code, done.out) == (3, ""), done
    assert "does not fit" in done.errors[0]


def test_broken_numbers_are_told(trained: Trained, tmp_path: Path):
    def broken(weights: dict[str, np.ndarray]) -> None:
        for tensor in weights.values():
            tensor[...] = np.nan

    for more in ([], ["--exact"]):
        done = heedful("translate", rewritten(trained, tmp_path / str(len(more)), broken), *more, "abc")
        assert done.code == 4, done
        assert "NaN" in done.errors[0]


def no_tensors(path: Path) -> None:
    path.write_bytes(b"")


def huge_header(path: Path) -> None:
    path.write_bytes((2**62).to_bytes(8, "little") + b"{}")


def huge_tensor(path: Path) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [10**6, 10**6], "data_offsets": [0, 4 * 10**12]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)


def a_pickle(path: Path) -> None:
    path.write_bytes(b"\x80\x04\x95\x1e\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93.")


@pytest.mark.parametrize("damage", [no_tensors, huge_header, huge_tensor, a_pickle])
def test_files_that_are_no_weights_are_refused(trained: Trained, tmp_path: Path, damage: Callable[[Path], None]):
    model = tmp_path / "m"
    shutil.copytree(trained.model, model)
    path = next(model.glob("model-*.safetensors"))
    damage(path)
    signed(model, path.name)
    done = heedful("translate", model, "abc")
    assert (done.code, done.out) == (3, ""), done
    assert path.name in done.errors[0]


def test_a_swapped_tokenizer_is_refused(trained: Trained, tmp_path: Path):
    model = tmp_path / "m"
    shutil.copytree(trained.model, model)
    path = next(model.glob("tokenizer*.json"))
    tokens = path.read_text(encoding="utf-8")
    path.write_text(tokens.replace('"a"', '"~"').replace('"b"', '"a"').replace('"~"', '"b"'), encoding="utf-8")
    done = heedful("translate", model, "abc")
    assert (done.code, done.out) == (3, "")
    assert f"{path.name}: changed since it was written" in done.errors[0]


@pytest.mark.parametrize(
    "text", ['[model]\nkind = "os.system"\n', "[model]\nclass_name = 'os.system'\n", "[[[", "[text]\nmax_tokens = -1\n"]
)
def test_a_hostile_configuration_is_refused(trained: Trained, tmp_path: Path, text: str):
    model = tmp_path / "m"
    shutil.copytree(trained.model, model)
    (model / "config.toml").write_text(text, encoding="utf-8")
    signed(model, "config.toml")
    done = heedful("translate", model, "abc")
    assert (done.code in (2, 3), done.out) == (True, ""), done
    assert len(done.errors) == 1
    assert "Traceback" not in done.err


def test_exact_lines_do_not_depend_on_others(trained: Trained):
    lines = ["abc", "a", "", "deadbeef", "fa"]
    together = lines_of(heedful("translate", trained.model, "--exact", "--format", "jsonl", *lines))
    for index, line in enumerate(lines):
        (alone,) = lines_of(heedful("translate", trained.model, "--exact", "--format", "jsonl", line))
        assert json.loads(alone) | {"line": index + 1} == json.loads(together[index])


@thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a shell")
def test_a_reader_that_closes_the_pipe_ends_it_quietly(trained: Trained):
    command = f"yes abc | head -n 3000 | {sys.executable} -m heedful translate {trained.model} --beam 1 | head -n 1"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment, check=False)
    assert len(done.stdout.split("\n")) == 2
    assert done.stderr == ""
