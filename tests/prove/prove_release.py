"""Release: sdist and wheel are built, checked, installed into fresh environments, and tried outside of the source tree.

`make release` does so with every Python from 3.11 on that is here; ARGS="3.12" takes that one alone, and
ARGS="--list" lists them. With `--built`, dist/ is tried as it is. What is published is the content of dist/.
"""

import argparse
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
from tests.prove.pythons import named, pythons

LARGEST: Final = 2_000_000
"""Bytes of a wheel, without the runtime for browsers."""
RUNTIME: Final = "heedful/js/runtime/"
SAMPLES: Final = ROOT / "tests/samples/formats"
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
        [*map(str, command)],
        cwd=folder,
        env=environment,
        check=False,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n")
        raise subprocess.CalledProcessError(done.returncode, done.args)
    return done.stdout


def build(out: Path) -> Path:
    """Build both forms and check their metadata; the wheel.

    Raises:
        AssertionError: the wheel is large, or has files that are no part of the package.
    """
    shutil.rmtree(out, ignore_errors=True)
    for form in ("--sdist", "--wheel"):  # a wheel of the sdist would have no runtime for browsers
        run(sys.executable, "-m", "build", form, "--outdir", out, ROOT)
    (wheel,) = out.glob("*.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", *out.iterdir())
    files = zipfile.ZipFile(wheel).infolist()
    names = [each.filename for each in files]
    size = wheel.stat().st_size - sum(each.compress_size for each in files if each.filename.startswith(RUNTIME))
    assert size <= LARGEST, f"{wheel.name}: {size} bytes, at most {LARGEST}"
    assert "heedful/manual/guide.zh.md" in names
    has_runtime = (ROOT / "src" / RUNTIME).is_dir()
    assert has_runtime == any(name.startswith(RUNTIME) for name in names), f"runtime for browsers: {has_runtime}"
    strange = [name for name in names if not name.startswith(("heedful/", "heedful-"))]
    assert not strange, strange
    print(f"{wheel.name}: {size:,} bytes, {len(names)} files")
    return wheel


def environment(python: str, folder: Path, what: str) -> Path:
    """Install a package for a Python into a fresh environment; the folder of its programs."""
    run(python, "-m", "venv", folder)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    run(programs / "python", "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", what)
    return programs


def prove(wheel: Path, python: str, folder: Path) -> None:
    """Install wheel and sdist for a Python, train the demo's model with the one, and use it with the other alone.

    Raises:
        AssertionError: the package comes from elsewhere, its output is wrong, or it needs more than it installs.
    """
    train = environment(python, folder / "train", f"{wheel}[train]")
    where = run(train / "python", "-c", "import heedful; print(heedful.__file__)", folder=folder)
    assert str(folder) in where, where
    print(run(train / "heedful", *DEMO, folder=folder).strip()[-300:])
    used = [run(train / "heedful", *words, folder=folder) for words in USES]
    assert "2021-03-05" in used[2], used[2]
    for sample in sorted(path for path in SAMPLES.iterdir() if path.is_dir()):  # models of all stored formats
        assert len(run(train / "heedful", "translate", sample, "12", folder=folder).splitlines()) == 1, sample
    (source,) = wheel.parent.glob("*.tar.gz")
    core = environment(python, folder / "core", str(source))
    assert run(core / "heedful", *USES[2], folder=folder) == used[2]
    assert "train" in run(core / "heedful", "docs", "start", folder=folder)
    alone = "import importlib.util as u; print(u.find_spec('torch'), u.find_spec('numba'))"
    assert run(core / "python", "-c", alone, folder=folder).split() == ["None", "None"]
    print(f"{python}: {used[0].strip()} trains and translates; what pip installs by itself translates alike")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, and try each Python.

    Returns:
        The exit code: 0.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "pythons", nargs="*", help="programs or versions; by default every Python from 3.11 on that is here"
    )
    parser.add_argument("--built", action="store_true", help="try what is in dist/, and build nothing")
    parser.add_argument("--list", action="store_true", help="print the programs, and do nothing")
    given = parser.parse_args(arguments)
    chosen = [named(each) for each in given.pythons] or [*pythons()] or [sys.executable]
    if given.list:
        print(*chosen, sep="\n")
        return 0
    (wheel,) = (ROOT / "dist").glob("*.whl") if given.built else [build(ROOT / "dist")]
    for python in chosen:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            prove(wheel, python, Path(folder).resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
