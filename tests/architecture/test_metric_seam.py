"""A metric is added with one file and a line in the table: a toy one, in a copy of the package, selects the model."""

import json
import shutil
from pathlib import Path

from tests.architecture.package import SOURCE
from tests.architecture.test_task_seam import add_line, run_commands
from tests.cli.command import heedful

METRIC = '''
"""Toy metric: the number of evaluations so far."""

import numpy as np


class Toy:
    name = "toy"
    unit = "points"
    higher_is_better = True

    count = 0

    def statistics(self, hypotheses, references):
        type(self).count += 1
        return np.full((len(hypotheses), 1), self.count / len(hypotheses))

    def scores(self, totals):
        return totals[..., 0]

    def signature(self, references):
        return "toy"


class Low(Toy):
    name = "low"
    higher_is_better = False
    count = 0
'''


def package(folder: Path) -> Path:
    """A copy of the package, with the loops it has compiled, and the toy metrics."""
    shutil.copytree(SOURCE / "heedful", folder / "heedful")
    metrics = folder / "heedful" / "evaluation" / "metrics"
    (metrics / "toy.py").write_text(METRIC, encoding="utf-8")
    text = (metrics / "table.py").read_text(encoding="utf-8")
    text = add_line(text, "import", "from heedful.evaluation.metrics.toy import Low, Toy")
    text = add_line(text, "METRICS", '    "toy": lambda setting: Toy(), "low": lambda setting: Low(),')
    (metrics / "table.py").write_text(text, encoding="utf-8")
    return folder


def training(folder: Path, metric: str) -> tuple[object, ...]:
    """The command of a training of three validations that is selected by a toy metric."""
    (folder / "pairs.tsv").write_text("".join(f"a{n}\t{n}c\n" for n in range(40)), encoding="utf-8")
    sizes = ("embedding_size", "hidden_size", "maxout_size")
    settings = [f"model.{size}=8" for size in sizes] + [
        "training.export=false",
        "training.max_steps=3",
        "training.validate_every=1",
    ]
    options = [word for setting in (*settings, f"training.select_by={metric}") for word in ("--set", setting)]
    return ("train", folder / "pairs.tsv", "--out", folder / metric, *options)


def test_a_toy_metric_selects_the_model_in_its_direction(tmp_path: Path):
    wanted = {"toy": [True, True, True], "low": [True, False, False]}
    commands = [training(tmp_path, metric) for metric in wanted]
    for done, (metric, best) in zip(run_commands(package(tmp_path / "source"), *commands), wanted.items(), strict=True):
        assert done.code == 0, done.err
        text = (tmp_path / metric / "run/metrics.jsonl").read_text(encoding="utf-8")
        lines = [json.loads(line) for line in text.splitlines()]
        assert [line["scores"][metric] for line in lines] == [1, 2, 3]
        assert [line["is_best"] for line in lines] == best


def test_without_its_line_it_is_refused(tmp_path: Path):
    done = heedful(*training(tmp_path, "toy"))
    assert done.code == 2
    assert "toy" in done.err
