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
"""A toy task: whether a text is long."""

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


@dataclass(frozen=True)
class ToyData(Prepared):
    batch: ToyBatch


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
        labels = np.array([int(len(text) > 30) for text in texts])
        batch = ToyBatch(np.stack([*map(features, texts)]), labels)
        np.savez(folder / "run" / "toy.npz", features=batch.features, labels=labels)
        return ToyData((3,), {}, (f"{len(texts)} texts",), len(texts), "3 letters", (), batch)

    def data_defaults(self, data, experiment):
        optimizer = {"learning_rate": 0.05, "schedule": {"warmup_steps": 1}}
        return {"training": {"batch_tokens": 64, "validate_every": 1, "select_by": "loss", "optimizer": optimizer}}

    def trial_sizes(self, experiment):
        return (3,)

    def sampler(self, experiment, folder, data):
        return ToySampler(folder)

    def step(self, experiment, model):
        return ToyStep(model)

    def validator(self, data, experiment):
        inputs, labels = map(torch.from_numpy, data.batch.arrays())
        return lambda model: Validation({"loss": float(functional.cross_entropy(model(inputs), labels).detach())})
'''

PREDICTOR = '''
"""The predictor of the toy task."""

import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from heedful.data.corpus import find_pairs
from heedful.data.prepare import EvaluationSet
from heedful.engines.exported import FOLDER, Parity, commit_engine, find_exported
from heedful.evaluation.evaluate import evaluate
from heedful.files.atomic_write import temporary_path
from heedful.models.store import load_model
from heedful.predictors.interface import Predictor
from heedful.tasks.toy import features


class ToyPredictor(Predictor):
    metrics = ("exact_match",)
    engine_kinds = ("onnx",)

    def __init__(self, folder, device="cpu", engine="torch", ensemble=()):
        self.folder = folder

    @property
    def exported(self):
        return find_exported(self.folder, 250)

    def model(self):
        return load_model(self.folder, (3,), "cpu")

    def measure(self, items, metrics=(), beam=0):
        return evaluate(self.predict(items.sources), items.references, items.sources, metrics=["exact_match"])

    def predict(self, sources):
        rows = torch.stack([torch.from_numpy(features(text)) for text in sources])
        return ["long" if number else "short" for number in self.model()(rows).argmax(-1).tolist()]

    def read_items(self, paths, columns):
        return EvaluationSet.of(find_pairs(paths, columns))

    def _writer(self, request):
        return self.write

    def write(self):
        path = self.folder.path / FOLDER / "onnx"
        path.parent.mkdir(exist_ok=True)
        weight, bias = (each.detach().numpy() for each in self.model().output.parameters())
        tensors = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "b")]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])
        node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)
        graph = helper.make_graph([node], "toy", [x], [y], tensors)
        with temporary_path(path, is_folder=True) as temporary:
            onnx.save(helper.make_model(graph), temporary / "toy.onnx")
            facts = {"precision": "float32", "max_length": 250, "heedful": "1"}
            commit_engine(self.folder, "onnx", temporary, facts, Parity(0.0, 1, 1, 1))
        return self.exported["onnx"]

    def run_graphs(self, folder):
        import onnxruntime

        onnxruntime.InferenceSession(folder / "toy.onnx").run(None, {"x": torch.ones(2, 3).numpy()})
'''

GRID = """
title = "Toys"
baseline = "one"
[base.training]
max_steps = 2
[[rows]]
name = "one"
model = { kind = "toy" }
[[rows]]
name = "other"
model = { kind = "toy" }
training = { seed = 2 }
"""

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


def test_a_toy_task_goes_on_and_is_evaluated_exported_packed_and_compared(package: Path, tmp_path: Path):
    model, texts, grid = tmp_path / "m", tmp_path / "texts.tsv", tmp_path / "grid.toml"
    rows = [f"{'abc' * n}{n}\t{'long' if n > 9 else 'short'}\n" for n in range(20)]
    texts.write_text("".join(rows), encoding="utf-8")
    grid.write_text(GRID, encoding="utf-8")
    command = ("train", texts, "--task", "toy", "--out", model)
    first, again, info, tasks, scores, exported, refused, packed, table = run_commands(
        package,
        (*command, "--set", "training.max_steps=1"),
        (*command, "--set", "training.max_steps=200"),
        ("info", model),
        ("list", "tasks"),
        ("evaluate", model, texts, "--format", "json"),
        ("export", model, "--to", "onnx"),
        ("export", model, "--to", "js"),
        ("pack", model, "-o", tmp_path / "m.zip"),
        ("compare", grid, texts, "--task", "toy", "--dev", texts, "--out", tmp_path / "compared"),
    )
    assert first.code == 0, first.err
    assert again.code == 0, again.err
    assert "resuming at step 1" in again.err
    facts = json.loads((model / "heedful.json").read_text(encoding="utf-8"))
    assert (facts["task"], facts["kind"]) == ("toy", "toy")
    assert "toy" in info.out
    assert "A toy task" in tasks.out
    assert scores.code == 0, scores.err
    assert json.loads(scores.out)["results"][0]["score"] > 80.0
    assert exported.out.startswith(f"{model / 'engines' / 'onnx'}: "), exported
    assert (refused.code, refused.errors[0].endswith("JavaScript cannot run yet; use heedful serve")) == (2, True)
    assert "engines onnx" in packed.out, packed
    assert table.code == 0, table.err
    assert "other" in table.out


def test_without_its_lines_it_is_refused(tmp_path: Path):
    (tmp_path / "texts.tsv").write_text("a\tb\n" * 20, encoding="utf-8")
    done = heedful("train", tmp_path / "texts.tsv", "--task", "toy", "--out", tmp_path / "m")
    assert done.code == 2
    assert "--task toy: no such task" in done.err
