"""The package in JavaScript, run by Node from tests."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from heedful.export.web_runtime import has_runtime

NODE: Final = shutil.which("node")
PACKAGE: Final = Path(str(files("heedful").joinpath("js")))
MODULES: Final = Path(__file__).resolve().parents[2] / "build/npm/node_modules"
"""Folder in which `make js` installs TypeScript."""
QUICK_START: Final = "--liftoff-only"
"""Switch of V8 that compiles WebAssembly once and quickly, since no model of a test runs for long."""
TYPE_OPTIONS: Final = (
    *("--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "--skipLibCheck"),
    *("--lib", "es2024,dom"),
)
needs_runtime: Final = pytest.mark.skipif(
    not has_runtime(), reason="needs ONNX Runtime for browsers, which npm fetches: make runtime"
)
needs_node: Final = pytest.mark.skipif(
    NODE is None or not has_runtime(), reason="needs Node and ONNX Runtime for browsers: make runtime"
)


class Run(NamedTuple):
    """A model, and calls of the functions that run.mjs has."""

    archive: Path | str | dict[str, Any]
    """Its file or address; or the description of a tokenizer alone, with the most tokens that it may give."""
    calls: Sequence[Sequence[Any]]
    folder: Path = PACKAGE


def answers(*runs: Run) -> list[Any]:
    """Results of all calls, in order, from one process; a call that failed gives the code and the message."""
    given = [{**run._asdict(), "folder": str(run.folder)} for run in runs]
    request = {"runtime": str(PACKAGE / "runtime"), "runs": given}
    done = subprocess.run(
        [str(NODE), QUICK_START, str(Path(__file__).with_name("run.mjs"))],
        input=json.dumps(request, default=str),
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def changed_package(folder: Path, name: str, text: str, other: str) -> Path:
    """A copy of the package in which one expression of a module is another one."""
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("runtime"))
    content = (folder / name).read_text("utf-8")
    assert content.count(text) == 1, f"{name}: {text!r} stands there {content.count(text)} times"
    (folder / name).write_text(content.replace(text, other), encoding="utf-8", newline="\n")
    return folder
