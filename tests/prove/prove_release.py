"""Release: sdist and wheel are built, checked, installed into fresh environments, and tried outside of the source tree.

`make release` does so with the Python of .venv; ARGS="python3.12 python3.13" names others. What is published is
the content of dist/.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.architecture.package import ROOT

LARGEST: Final = 2_000_000
"""Bytes of a wheel."""
DEMO: Final = ("demo", "--quiet")
USES: Final = (
    ("--version",),
    ("list", "scores"),
    ("translate", "dates.model", "March 5th, 2021"),
    ("info", "dates.model"),
)


def run(*command: str | Path, folder: Path = ROOT) -> str:
    """Run a program without our source tree in its path; what it printed.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    print("$", *command, flush=True)
    done = subprocess.run(
        [*map(str, command)], cwd=folder, env=environment, check=False, capture_output=True, text=True
    )
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n")
        raise subprocess.CalledProcessError(done.returncode, done.args)
    return done.stdout


def build(out: Path) -> Path:
    """Build both forms, the wheel from the sdist, and check their metadata; the wheel.

    Raises:
        AssertionError: the wheel is large, or has files that are no part of the package.
    """
    shutil.rmtree(out, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", out, ROOT)
    (wheel,) = out.glob("*.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", *out.iterdir())
    size = wheel.stat().st_size
    assert size <= LARGEST, f"{wheel.name}: {size} bytes, at most {LARGEST}"
    names = zipfile.ZipFile(wheel).namelist()
    strange = [name for name in names if not name.startswith(("heedful/", "heedful-"))]
    assert not strange, strange
    print(f"{wheel.name}: {size:,} bytes, {len(names)} files")
    return wheel


def prove(wheel: Path, python: str, folder: Path) -> None:
    """Install the wheel for a Python, train the demo's model and use it.

    Raises:
        AssertionError: the package comes from elsewhere, or its output is wrong.
    """
    run(python, "-m", "venv", folder / "venv")
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    constraints = ROOT / "constraints.txt"
    run(programs / "python", "-m", "pip", "install", "--quiet", "--constraint", constraints, f"{wheel}[train]")
    where = run(programs / "python", "-c", "import heedful; print(heedful.__file__)", folder=folder)
    assert str(folder) in where, where
    print(run(programs / "heedful", *DEMO, folder=folder).strip()[-300:])
    shown = [run(programs / "heedful", *words, folder=folder) for words in USES]
    assert "2021-03-05" in shown[2], shown[2]
    print(f"{python}: {shown[0].strip()} trains and translates")


def main(pythons: Sequence[str]) -> int:
    """Build, and try each Python.

    Returns:
        The exit code: 0.
    """
    wheel = build(ROOT / "dist")
    for python in pythons or [sys.executable]:
        with tempfile.TemporaryDirectory() as folder:
            prove(wheel, python, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
