"""Classes outside the package: trained, stored, and opened where the user names them, and nowhere else."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.attention.interface import Score
from heedful.config.plugins import allow_code, import_class, is_custom, named_code
from heedful.errors import FileRefused, UsageError
from tests.architecture.package import ROOT
from tests.seal import write_sealed
from tests.thorough import thorough

MINE = """
from typing import Literal

import torch
from torch import nn

from heedful.attention.interface import PreparedKey, Score
from heedful.attention.lowered import LoweredDot
from heedful.attention.softmax import Softmax
from heedful.models.rnn_encoder_decoder import RNNEncoderDecoderConfig

print("imported", flush=True)

class Diagonal(Score):
    def __init__(self, query_size, key_size, hidden_size=0):
        super().__init__(query_size, key_size, hidden_size)
        self.weight = nn.Parameter(torch.ones(min(query_size, key_size)))

    def prepare(self, key):
        return PreparedKey(key[..., : len(self.weight)])

    def lower(self, query, prepared, inverse_temperature=1.0):
        return LoweredDot(query[..., : len(self.weight)] * self.weight * inverse_temperature, prepared.key)

class MyConfig(RNNEncoderDecoderConfig):
    kind: Literal["mine:MyConfig"] = "mine:MyConfig"
"""
WORKERS = '''
"""`heedful translate` with workers that stand in for those of Ray: a process that gets its work as bytes."""

import pickle
import subprocess
import sys
from pathlib import Path

from heedful.cli import many_files
from heedful.cli.main import main

WORK = """
import pickle, sys
opener, shards = pickle.load(open(sys.argv[1], "rb"))
translate = opener.load()
for shard in shards:
    translate(shard)
"""


def run_elsewhere(shards, opener, files, messages):
    path = Path("work").resolve()
    path.write_bytes(pickle.dumps((opener, shards)))
    subprocess.run([sys.executable, "-c", WORK, path], cwd="elsewhere", check=True)
    return shards


many_files.find_spec = lambda name: True
many_files.run_with_ray = run_elsewhere
sys.exit(main(["translate", *sys.argv[1:]]))
'''
ONE_AFTER_THE_OTHER = """
import json, sys
from heedful.cli.main import main

for words in json.loads(sys.argv[1]):
    print(json.dumps(["code", main(words)]))
"""
QUICK = [
    "training.export=false",
    "training.max_steps=2",
    "training.batch_tokens=256",
    "training.validate_every=2",
    "text.source_units=characters",
]


def run(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return python(folder, "-m", "heedful", *words)


def python(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment,
    )


def train_mine(folder: Path, *settings: str) -> Path:
    """Train a model with code from beside it for two steps."""
    (folder / "mine.py").write_text(MINE)
    (folder / "pairs.tsv").write_text("".join(f"{n}\t{n * 7}\n" for n in range(300)))
    set_all = [part for each in (*QUICK, "text.target_units=characters", *settings) for part in ("--set", each)]
    trained = run(folder, "train", "pairs.tsv", "--quiet", "--threads", "1", "--out", "m", *set_all)
    assert trained.returncode == 0, trained.stderr
    return folder / "m"


def test_a_model_of_a_class_outside_is_opened_where_its_code_is_named(tmp_path: Path):
    word = "mine:MyConfig"
    model = train_mine(tmp_path, "model.kind=mine:MyConfig", "model.hidden_size=8")
    assert json.loads((model / "heedful.json").read_text())["code"] == [word]
    # In one process, whose second command names the code, so that the first has not imported it.
    commands = (["translate", "m", "12"], ["translate", "m", "12", "--code", word, "--quiet"])
    done = python(tmp_path, "-c", ONE_AFTER_THE_OTHER, json.dumps(commands))
    lines = done.stdout.splitlines()
    assert lines[:2] == ['["code", 3]', "imported"], done.stderr
    assert lines[-1] == '["code", 0]', done.stderr
    assert f"add --code {word}" in done.stderr


@thorough
def test_a_model_with_a_score_outside_is_opened_where_its_code_is_named(tmp_path: Path):
    word = "mine:Diagonal"
    train_mine(tmp_path, "model.kind=luong", "model.attention.score=mine:Diagonal", "model.hidden_size=8")
    assert json.loads((tmp_path / "m/heedful.json").read_text())["code"] == [word]
    refused = run(tmp_path, "translate", "m", "12")
    assert refused.returncode == 3
    permission = f"if you trust it, add --code {word}, or in Python code=['{word}']"
    assert refused.stderr.strip() == f"heedful: error: m: needs the code of {word}; {permission}"
    # Describing and packing a model runs none of its code.
    described = run(tmp_path, "info", "m")
    assert (described.returncode, described.stderr) == (0, "")
    assert f"{word}; to run the model, add --code {word}" in described.stdout
    packed = run(tmp_path, "pack", "m", "-o", "packed")
    assert (packed.returncode, packed.stderr) == (0, "")
    assert "imported" not in described.stdout + packed.stdout
    assert "imported" not in refused.stdout
    opened = run(tmp_path, "translate", "m", "12", "--code", word, "--quiet")
    assert opened.returncode == 0, opened.stderr
    script = f"import heedful; print(len(heedful.load('m', code=['{word}']).translate(['12'])))"
    loaded = python(tmp_path, "-c", script)
    assert loaded.stdout.split()[-1] == "1", loaded.stderr
    # So are the workers that translate many files, other processes in other folders.
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "lines.txt").write_text("12\n34\n")
    (tmp_path / "workers.py").write_text(WORKERS)
    shared = python(tmp_path, "workers.py", "m", "--ray", "lines.txt", "--output", "out", "--code", word)
    assert shared.returncode == 0, shared.stderr
    lines = run(tmp_path, "translate", "m", "12", "34", "--code", word, "--quiet")
    assert (tmp_path / "out/lines.txt").read_text() == lines.stdout.replace("imported\n", "")
    # A folder that does not say so is refused as well, and its module is not imported.
    manifest = json.loads((tmp_path / "m/heedful.json").read_text())
    del manifest["code"]
    write_sealed(tmp_path / "m/heedful.json", manifest)
    sly = run(tmp_path, "translate", "m", "12")
    assert sly.returncode == 3
    assert f"add --code {word}" in sly.stderr
    assert "imported" not in sly.stdout


def test_what_is_a_name_of_a_class():
    assert is_custom("mine.scores:Mine")
    for word in ("additive", "mine.scores", ":Mine", "mine:", "C:\\temp", "a b:C", "mine:x.y"):
        assert not is_custom(word), word
    tree = {
        "model": {"kind": "luong", "attention": {"score": "a.b:C", "bias": "f:G", "normalizer": "d:E"}},
        "text": {"note": "x:y"},
    }
    assert named_code(tree) == {"a.b:C", "d:E", "f:G"}


def test_only_what_was_named_is_imported():
    with pytest.raises(FileRefused, match="add --code json:Decoder"):
        import_class("json:Decoder", Score)
    allow_code(["json:JSONDecoder", "json:Nothing", "no_such_module_at_all:Mine"])
    with pytest.raises(UsageError, match="not a subclass of Score"):
        import_class("json:JSONDecoder", Score)
    with pytest.raises(UsageError, match="no such class"):
        import_class("json:Nothing", Score)
    with pytest.raises(UsageError, match="no_such_module_at_all"):
        import_class("no_such_module_at_all:Mine", Score)
    with pytest.raises(UsageError, match="expected module:Class"):
        allow_code(["additive"])
