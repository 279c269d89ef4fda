"""A metric is added with one file and a line in the table: a toy one, in a copy of the package, selects the model."""

import json
import shutil
from pathlib import Path

import pytest

from tests.architecture.package import SOURCE
from tests.architecture.test_task_seam import add_line, heedful

METRIC = '''
"""Toy metric: the number of evaluations so far."""

import numpy as np


class Toy:
    name = "toy"
    unit = "points"
    higher_is_better = HIGHER

    count = 0

    def statistics(self, hypotheses, references):
        Toy.count += 1
        return np.full((len(hypotheses), 1), Toy.count / len(hypotheses))

    def scores(self, totals):
        return totals[..., 0]

    def signature(self, references):
        return "toy"
'''


def package(folder: Path, higher_is_better: bool) -> Path:
    """A copy of the package, with the loops it has compiled, and the toy metric."""
    shutil.copytree(SOURCE / "heedful", folder / "heedful")
    metrics = folder / "heedful" / "evaluation" / "metrics"
    (metrics / "toy.py").write_text(METRIC.replace("HIGHER", str(higher_is_better)), encoding="utf-8")
    text = (metrics / "table.py").read_text(encoding="utf-8")
    text = add_line(text, "import", "from heedful.evaluation.metrics.toy import Toy")
    text = add_line(text, "METRICS", '    "toy": lambda setting: Toy(),')
    (metrics / "table.py").write_text(text, encoding="utf-8")
    return folder


def train(source: Path, folder: Path) -> tuple[int, str]:
    """Exit code and standard error of a training of three validations that is selected by the toy metric."""
    (folder / "pairs.tsv").write_text("".join(f"a{n}\t{n}c\n" for n in range(40)), encoding="utf-8")
    sizes = ("embedding_size", "hidden_size", "maxout_size")
    settings = [f"model.{size}=8" for size in sizes] + [
        "training.export=false",
        "training.max_steps=3",
        "training.validate_every=1",
    ]
    options = [word for setting in (*settings, "training.select_by=toy") for word in ("--set", setting)]
    done = heedful(source, "train", str(folder / "pairs.tsv"), "--out", str(folder / "m"), *options)
    return done.returncode, done.stderr


@pytest.mark.parametrize(("higher_is_better", "best"), [(True, [True, True, True]), (False, [True, False, False])])
def test_a_toy_metric_selects_the_model_in_its_direction(higher_is_better: bool, best: list[bool], tmp_path: Path):
    code, errors = train(package(tmp_path / "source", higher_is_better), tmp_path)
    assert code == 0, errors
    lines = [json.loads(line) for line in (tmp_path / "m/run/metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["scores"]["toy"] for line in lines] == [1, 2, 3]
    assert [line["is_best"] for line in lines] == best


def test_without_its_line_it_is_refused(tmp_path: Path):
    code, errors = train(SOURCE, tmp_path)
    assert code == 2
    assert "toy" in errors
