"""Pythons of this machine that heedful supports: those on the search path, and those that pyenv keeps beside it."""

import itertools
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MINORS: Final = (11, 12, 13, 14)
ASKED: Final = "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])"
"""Code that a Python runs which can make environments; a shim of a version that is not chosen runs nothing."""


def version(program: str | Path) -> str:
    """Version of a Python, such as 3.12; empty if it does not run, or cannot make an environment."""
    try:
        done = subprocess.run([program, "-c", ASKED], check=False, capture_output=True, text=True)
    except OSError:
        return ""
    return "" if done.returncode else done.stdout.strip()


def kept_by_pyenv(minor: int) -> Iterator[Path]:
    """Programs of a version of Python in pyenv's folder, the newest first."""
    pyenv = shutil.which("pyenv")
    if not pyenv:
        return
    done = subprocess.run([pyenv, "root"], check=False, capture_output=True, text=True)
    kept = Path(done.stdout.strip()) / "versions"
    if done.returncode or not kept.is_dir():
        return
    folders = [each for each in kept.iterdir() if re.fullmatch(rf"3\.{minor}\.\d+", each.name)]
    for folder in sorted(folders, key=lambda each: int(each.name.rpartition(".")[2]), reverse=True):
        yield from (path for path in (folder / "bin/python", folder / "python.exe") if path.exists())


def programs(minor: int) -> Iterator[str]:
    """Programs of a version of Python that run: that of the search path, then those of pyenv."""
    on_path = shutil.which(f"python3.{minor}")
    for program in [*filter(None, [on_path]), *kept_by_pyenv(minor)]:
        if version(program) == f"3.{minor}":
            yield str(program)


def pythons() -> Iterator[str]:
    """One program for each version from 3.11 on that is here and runs."""
    for minor in MINORS:
        yield from itertools.islice(programs(minor), 1)


def named(name: str) -> str:
    """Program of a version, such as 3.12 or python3.12, that runs; any other name, or one of no such program, stays."""
    match = re.fullmatch(r"(?:python)?3\.(\d+)", name)
    return next(programs(int(match[1])), name) if match else name
