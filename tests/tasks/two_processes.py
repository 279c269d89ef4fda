"""Training by two processes, which must give the model of one."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from heedful.predictors.table import load
from tests.architecture.package import SOURCE
from tests.requests import make_request, train

PLAIN = ("training.average=0", "training.optimizer.kind=sgd")
"""Settings under which sums in another order make no large difference."""


def assert_two_processes_agree(task: str, data: Path, folder: Path, settings: tuple[str, ...]) -> None:
    """Train by one process and by two, and compare the weights."""
    settings = (*settings, *PLAIN)
    train(make_request((data,), folder / "one", task=task, settings=settings), _ignore, _ignore, _ignore)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "heedful"]
    command += ["train", str(data), "--task", task, "--out", str(folder / "two"), "--quiet"]
    for setting in settings:
        command += ["--set", setting]
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    first, second = (dict(load(folder / name).model().named_parameters()) for name in ("one", "two"))
    assert first.keys() == second.keys()
    for name, parameter in first.items():
        assert torch.allclose(parameter, second[name], atol=1e-5), name


def _ignore(_: Any) -> None:
    pass
