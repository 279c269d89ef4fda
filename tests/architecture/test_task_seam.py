"""A task is added with files of its own and lines in tables: a toy one, in a copy of the package, trains a step."""

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.architecture.package import SOURCE
from tests.cli.command import Done, heedful

MODEL = '''
"""A toy model: one linear layer over counts of letters."""

from collections.abc import Mapping
from typing import Final, Literal

from torch import Tensor, nn

from heedful.config.base import Config


class ToyConfig(Config):
    kind: Literal["toy"] = "toy"

    def build(self, num_features: int) -> "Toy":
        return Toy(num_features)


PRESETS: Final[Mapping[str, ToyConfig]] = {"toy": ToyConfig()}


class Toy(nn.Module):
    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.output = nn.Linear(num_features, 2)

    def forward(self, features: Tensor) -> Tensor:
        return self.output(features)
'''

TASK = '''
"""A toy task: whether a text has an even number of letters."""

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from heedful.data.batch import Position
from heedful.data.corpus import find_pairs
from heedful.tasks.interface import Prepared, Task
from heedful.training.progress import Validation
from heedful.training.loss import LossSum, TrainingStep


def features(text):
    return np.array([text.count(letter) for letter in "abc"], dtype=np.float32)


@dataclass(frozen=True)
class ToyBatch:
    features: np.ndarray
    labels: np.ndarray

    def __len__(self):
        return len(self.labels)

    @property
    def num_units(self):
        return len(self.labels)

    def arrays(self):
        return self.features, self.labels

    def rows(self, kept):
        return ToyBatch(self.features[kept], self.labels[kept])


class ToySampler:
    unit = "points"

    def __init__(self, folder):
        held = np.load(folder / "run" / "toy.npz")
        self.batch = ToyBatch(held["features"], held["labels"])
        self.position = Position(0, 0)

    def num_batches(self, epoch):
        return 1

    def __iter__(self):
        while True:
            self.position = Position(self.position.epoch + 1, 0)
            yield self.batch


class ToyStep(TrainingStep):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *tensors):
        inputs, labels = tensors
        scores = self.model(inputs)
        total = functional.cross_entropy(scores, labels, reduction="sum")
        right = (scores.argmax(-1) == labels).sum()
        return LossSum(total, -total.detach(), right, labels.new_tensor(len(labels)))


class ToyTask(Task):
    name = "toy"
    default_preset = "toy"
    command = "info"
    kinds = frozenset({"toy"})
    higher_is_better = {"loss": False}

    def find(self, paths):
        return {"train": find_pairs(paths.data, paths.columns)}

    def prepare(self, files, experiment, folder, paths):
        texts = [pair.source for pair in files["train"]]
        labels = np.array([len(text) % 2 for text in texts])
        np.savez(folder / "run" / "toy.npz", features=np.stack([*map(features, texts)]), labels=labels)
        return Prepared((3,), {}, (f"{len(texts)} texts",), len(texts), "3 letters", ())

    def data_defaults(self, data, experiment):
        return {"training": {"batch_tokens": 64, "validate_every": 1, "select_by": "loss"}}

    def trial_sizes(self, experiment):
        return (3,)

    def sampler(self, experiment, folder, data):
        return ToySampler(folder)

    def step(self, experiment, model):
        return ToyStep(model)

    def validator(self, data, experiment):
        return lambda model: Validation({"loss": float(sum(p.sum() for p in model.parameters()).detach())})
'''

PREDICTOR = '''
"""The predictor of the toy task."""

from heedful.predictors.interface import Predictor


class ToyPredictor(Predictor):
    def __init__(self, folder, device="cpu", engine="torch", ensemble=()):
        self.folder = folder

    def measure(self, items):
        raise NotImplementedError

    metrics = ()

    def predict(self, sources):
        raise NotImplementedError

    def read_items(self, paths, columns):
        raise NotImplementedError
'''

LINES = {
    "models/table.py": [
        ("import", "from heedful.models import toy"),
        ("AnyModelConfig = ", "AnyModelConfig = toy.ToyConfig | "),
        ("MODELS", '    "toy": toy.ToyConfig,'),
        ("PRESETS", "    **toy.PRESETS,"),
    ],
    "tasks/table.py": [("import", "from heedful.tasks.toy import ToyTask"), ("TASKS", '    "toy": ToyTask(),')],
    "predictors/table.py": [("PREDICTORS", '    "toy": ("toy", "ToyPredictor"),')],
}
"""By table, the lines that the toy task adds: an import, an entry of a literal, or a member of a union."""


def add_line(text: str, place: str, line: str) -> str:
    """Add an import, or the first entry of the table of a name."""
    if place.endswith(" = "):
        return text.replace(f"\n{place}", f"\n{line}", 1)
    lines = text.split("\n")
    for node in ast.parse(text).body:
        if place == "import" and isinstance(node, ast.ImportFrom):
            return "\n".join([*lines[: node.lineno - 1], line, *lines[node.lineno - 1 :]])
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == place:
            return "\n".join([*lines[: node.lineno], line, *lines[node.lineno :]])
    raise AssertionError(f"no {place} in the table")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package, with the loops it has compiled, and the toy task."""
    source = tmp_path_factory.mktemp("seam")
    shutil.copytree(SOURCE / "heedful", source / "heedful")
    for name, text in (("models/toy.py", MODEL), ("tasks/toy.py", TASK), ("predictors/toy.py", PREDICTOR)):
        (source / "heedful" / name).write_text(text, encoding="utf-8")
    for name, additions in LINES.items():
        table = source / "heedful" / name
        text = table.read_text(encoding="utf-8")
        for place, line in additions:
            text = add_line(text, place, line)
        table.write_text(text, encoding="utf-8")
    return source


COMMANDS = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from heedful.cli.main import main

ended = []
for words in json.loads(sys.argv[1]):
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in "oe")
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    for stream in (out, err):
        stream.flush()
    ended.append([code, *(stream.buffer.getvalue().decode() for stream in (out, err))])
print(json.dumps(ended))
"""


def run_commands(package: Path, *commands: Sequence[object]) -> list[Done]:
    """Run commands one after the other in a fresh process, which imports the package from a folder."""
    words = json.dumps([[*map(str, command)] for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, words],
        env=os.environ | {"PYTHONPATH": str(package), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Done(*ended) for ended in json.loads(done.stdout)]


def test_a_toy_task_trains_a_step_and_goes_on(package: Path, tmp_path: Path):
    (tmp_path / "texts.tsv").write_text("".join(f"{'abc' * n}{n}\tx\n" for n in range(20)), encoding="utf-8")
    command = ("train", tmp_path / "texts.tsv", "--task", "toy", "--out", tmp_path / "m")
    first, again, info, tasks = run_commands(
        package,
        (*command, "--set", "training.max_steps=1"),
        (*command, "--set", "training.max_steps=3"),
        ("info", tmp_path / "m"),
        ("list", "tasks"),
    )
    assert first.code == 0, first.err
    assert again.code == 0, again.err
    assert "resuming at step 1" in again.err
    facts = json.loads((tmp_path / "m" / "heedful.json").read_text(encoding="utf-8"))
    assert (facts["task"], facts["kind"]) == ("toy", "toy")
    assert "toy" in info.out
    assert "A toy task" in tasks.out


def test_without_its_lines_it_is_refused(tmp_path: Path):
    (tmp_path / "texts.tsv").write_text("a\tb\n" * 20, encoding="utf-8")
    done = heedful("train", tmp_path / "texts.tsv", "--task", "toy", "--out", tmp_path / "m")
    assert done.code == 2
    assert "--task toy: no such task" in done.err
