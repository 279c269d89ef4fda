"""The gate of a machine with and without npm or apt, run dry: programs of the system are stood in for."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.package import ROOT
from tests.architecture.test_workflows import jobs_of, shell_lines

pytestmark = pytest.mark.skipif(
    os.name == "nt" or not shutil.which("make") or not shutil.which("bash"), reason="needs make and a shell of Unix"
)
NEEDED: Final = ("bash", "chmod", "cp", "dirname", "env", "mkdir", "rm", "sed", "sh", "timeout", "touch")
"""Programs that stay as they are."""
RECORD: Final = '#!/bin/sh\necho "$(basename "$0") $*" >> "$RECORD"\n'


def stand_in(folder: Path, name: str, more: str = "") -> None:
    """Program that writes its arguments down, and may do more."""
    path = folder / name
    path.write_text(RECORD.replace('$(basename "$0")', name) + more, encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Folder of all programs that a command finds."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in NEEDED:
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return folder


def run(programs: Path, *command: str) -> tuple[int, str, list[str]]:
    """Exit status of a command, what it printed, and the calls of the programs that are stood in for."""
    record = programs.parent / "record"
    record.write_text("", encoding="utf-8")
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={"PATH": str(programs), "RECORD": str(record)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, record.read_text("utf-8").splitlines()


def make(programs: Path, target: str) -> tuple[int, str, list[str]]:
    """As `run`, for a target in an environment that is installed, with its tools stood in for."""
    folder = programs.parent
    (folder / "venv/bin").mkdir(parents=True)
    stand_in(folder / "venv/bin", "python")
    for name in ("venv/.installed-train", "venv/.installed-dev"):
        (folder / name).touch()
    (folder / "ort.js").touch()
    places = f"VENV={folder / 'venv'}", f"RUNTIME={folder / 'ort.js'}", f"NPM={folder / 'npm'}"
    return run(programs, str(shutil.which("make")), "--silent", target, *places)


@pytest.mark.parametrize("is_right", [True, False], ids=["installed", "refused"])
def test_tests_have_their_types_where_npm_is_and_none_is_needed(programs: Path, is_right: bool):
    stand_in(programs, "npm", "" if is_right else "exit 1\n")
    code, printed, calls = make(programs, "test")
    assert code == 0, printed
    (npm,) = [call for call in calls if call.startswith("npm ")]
    assert "typescript@5" in npm
    assert f"--prefix {programs.parent / 'npm'}" in npm
    assert ("types are not checked" in printed) != is_right
    assert calls[-1].endswith(" tests src")


def test_types_that_are_installed_are_not_asked_for_again(programs: Path):
    stand_in(programs, "npm")
    (programs.parent / "npm/node_modules/typescript").mkdir(parents=True)
    code, printed, calls = make(programs, "test")
    assert (code, [call for call in calls if call.startswith("npm ")]) == (0, []), printed


def test_without_npm_the_tests_run_all_the_same(programs: Path):
    code, printed, calls = make(programs, "test")
    assert code == 0, printed
    assert calls[-1].endswith(" tests src")


def test_javascript_is_tested_whole(programs: Path):
    stand_in(programs, "npm")
    code, printed, calls = make(programs, "js")
    assert code == 0, printed
    tests = (ROOT / "tests/export").glob("test_*.py")
    wanted = {each.name for each in tests if re.match(r"test_(archive|html|transformers_js)", each.name)}
    assert {"test_html.py", "test_html_labels.py", "test_transformers_js.py"} < wanted
    assert {Path(word).name for word in calls[-1].split() if word.endswith(".py")} == wanted
    assert " tests/js " in calls[-1]


def test_javascript_without_npm_is_skipped_with_a_reason(programs: Path):
    code, printed, calls = make(programs, "js")
    assert (code, calls) == (0, []), printed
    assert "skipped: npm is not installed" in printed


PACKAGES: Final = {"chromium", "nodejs", "npm"}


def continuous(programs: Path) -> tuple[int, str, list[str]]:
    stand_in(programs, "make")
    return run(programs, str(programs / "bash"), ".ci/run")


@pytest.mark.parametrize("refused", ["", "update", "npm", "install"])
def test_the_gate_installs_a_browser_and_node_where_it_may(programs: Path, refused: str):
    stand_in(programs, "apt-get", f'case " $* " in *" {refused} "*) exit 100;; esac\n' if refused else "")
    code, printed, calls = continuous(programs)
    assert (code, calls[-1]) == (0, "make test"), printed
    if refused != "update":
        installed = [call.split()[-1] for call in calls if call.startswith("apt-get install")]
        assert {*installed} == PACKAGES
    assert printed.count("could not be installed") == {"npm": 1, "install": 3}.get(refused, 0)


def test_the_gate_asks_for_no_package_that_is_there_or_that_nothing_installs(programs: Path):
    code, printed, calls = continuous(programs)
    assert (code, calls, printed) == (0, ["make test"], "")
    stand_in(programs, "apt-get")
    for name in ("chromium", "node", "npm"):
        stand_in(programs, name)
    assert continuous(programs) == (0, "", ["make test"])


@pytest.mark.parametrize("is_right", [True, False], ids=["installed", "refused"])
def test_a_node_that_is_too_old_is_replaced_or_leaves(programs: Path, is_right: bool):
    node = programs / "node"
    old = f"[ $4 = nodejs ] && echo 'echo v18.20.4' > {node} && chmod +x {node}\nexit 0\n"
    stand_in(programs, "apt-get", f"[ $1 = remove ] && rm {node} && exit\n" + old)
    stand_in(programs, "npm", "" if is_right else "exit 1\n")
    stand_in(programs, "chromium")
    code, printed, calls = continuous(programs)
    assert (code, calls[-1]) == (0, "make test"), printed
    (npm,) = [call for call in calls if call.startswith("npm ")]
    assert "node@22" in npm
    assert node.exists() == is_right
    assert ("the tests of JavaScript will skip" in printed) != is_right


def test_the_workflow_has_node_and_the_runtime_before_the_tests():
    job = jobs_of((ROOT / ".github/workflows/tests.yml").read_text("utf-8"))["test"]
    used = [step.get("uses", "").partition("@")[0] for step in job["steps"]]
    assert "actions/setup-node" in used
    lines = [*shell_lines(job)]
    (place,) = [index for index, line in enumerate(lines) if line.startswith("make runtime")]
    assert "pytest" in " ".join(lines[place + 1 :])
    assert "pytest" not in " ".join(lines[:place])
