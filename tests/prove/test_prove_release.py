"""Pythons for which a release is tried: those that run, not those that a version manager only knows by name."""

import os
import sys
from pathlib import Path

import pytest

from tests.prove import prove_release
from tests.prove.pythons import pythons, version

pytestmark = pytest.mark.skipif(os.name == "nt", reason="stands in for programs by scripts of Unix")


def stand_in(path: Path, lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{lines}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Machine whose python3.12 and python3.13 are shims, one of which has a Python behind it, in two versions."""
    shims, root = tmp_path / "shims", tmp_path / "pyenv"
    stand_in(shims / "python3.11", "echo 3.11")
    for name in ("python3.12", "python3.13", "python3.14"):
        stand_in(shims / name, "echo command not found >&2; exit 127")
    stand_in(shims / "pyenv", f"echo {root}")
    for name, answer in (("3.12.1", "3.12"), ("3.12.10", "3.12"), ("3.13.0t", "3.13"), ("3.14.0", "3.12")):
        stand_in(root / "versions" / name / "bin/python", f"echo {answer}")
    stand_in(root / "versions/3.12.11/bin/python", "exit 1")  # such as one without ensurepip
    monkeypatch.setenv("PATH", str(shims))
    return tmp_path


def test_pythons_behind_shims_that_run_nothing_are_found(machine: Path):
    assert [*pythons()] == [str(machine / "shims/python3.11"), str(machine / "pyenv/versions/3.12.10/bin/python")]


def test_without_pyenv_those_of_the_search_path_are_taken(machine: Path):
    (machine / "shims/pyenv").unlink()
    assert [*pythons()] == [str(machine / "shims/python3.11")]
    stand_in(machine / "shims/pyenv", "exit 1")
    assert [*pythons()] == [str(machine / "shims/python3.11")]


def test_the_python_of_these_tests_has_its_version():
    assert version(sys.executable) == f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert version("no-such-python") == ""


def test_versions_are_listed_or_named(machine: Path, capsys: pytest.CaptureFixture[str]):
    assert prove_release.main(["--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert prove_release.main(["--list", "3.12", "python3.12", "python", "3.14"]) == 0
    kept = str(machine / "pyenv/versions/3.12.10/bin/python")
    assert capsys.readouterr().out.split() == [kept, kept, "python", "3.14"]


def test_what_is_built_is_tried_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "dist").mkdir()
    wheel = tmp_path / "dist/heedful-1.0.0-py3-none-any.whl"
    wheel.touch()
    tried: list[tuple[Path, str]] = []
    monkeypatch.setattr(prove_release, "ROOT", tmp_path)
    monkeypatch.setattr(prove_release, "build", lambda out: pytest.fail("built again"))
    monkeypatch.setattr(prove_release, "prove", lambda wheel, python, folder: tried.append((wheel, python)))
    assert prove_release.main(["--built", "python"]) == 0
    assert tried == [(wheel, "python")]
