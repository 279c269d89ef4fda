"""A small package with a kernel that inlines a function of another module, and processes that call the kernel."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.architecture.package import ROOT

KERNEL = """
from {module} import {decorator}
from toykernels.inner import weighed

@{decorator}({options})
def total(numbers):
    result = numbers.dtype.type(0)
    for i in range(len(numbers)):
        result += weighed(numbers[i])
    return result
"""
INNER = """
from numba import njit
from toykernels.constants import WEIGHT

@njit
def weighed(number):
    return WEIGHT * number
"""
CALL = """
import json, sys
import heedful
{before}
import numpy as np
from toykernels.kernel import total
results = [float(total(np.arange(10, dtype=name))) for name in sys.argv[1:]]
print(json.dumps([results, sum(total.stats.cache_hits.values())]))
"""
OURS = {"module": "heedful.cpu.numba_cache", "decorator": "cached_njit", "options": ""}
NUMBAS = {"module": "numba", "decorator": "njit", "options": "cache=True"}


def make(root: Path, weight: int = 3, decorator: dict[str, str] | None = None) -> None:
    """Write the package; the kernel's result for float32 and float64 is 45 times the weight."""
    folder = root / "toykernels"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_bytes(b"")
    (folder / "kernel.py").write_bytes(KERNEL.format(**(decorator or OURS)).encode())
    (folder / "inner.py").write_bytes(INNER.encode())
    (folder / "constants.py").write_bytes(f"WEIGHT = {weight}\n".encode())


def start(root: Path, *dtypes: str, before: str = "") -> "subprocess.Popen[str]":
    """Start a process that calls the kernel, after a statement; its cache is `root / "cache" / "heedful"`."""
    path = os.pathsep.join([str(root), str(ROOT / "src")])
    environment = os.environ | {
        "PYTHONPATH": path,
        "NUMBA_CACHE_DIR": str(root / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-c", CALL.format(before=before), *dtypes]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process: "subprocess.Popen[str]") -> tuple[list[float], int]:
    """The results, and how many kernels came from the cache."""
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, f"{process.returncode}: {err}"
    results, num_hits = json.loads(out)
    return results, num_hits


def call(root: Path, *dtypes: str) -> tuple[list[float], int]:
    return end(start(root, *dtypes))


def kernels(root: Path) -> list[Path]:
    """Files of the cache."""
    return sorted((root / "cache").rglob("*.kernel"))
