"""First steps of those who take part, and of the course: their blocks are right, and their figures agree."""

import re
import shlex

import pytest

from tests.architecture.package import ROOT
from tests.architecture.test_documents import makefile_targets
from tests.blocks import blocks, blocks_of, lines_of

MINUTES = re.compile(r"`make test`[^.;]*?,? (\w+) minutes on two cores")


def page(name: str) -> str:
    return (ROOT / name).read_bytes().decode("utf-8")


def steps() -> list[list[str]]:
    """Words of the command lines of CONTRIBUTING."""
    shell = [block for block in blocks_of(page("CONTRIBUTING.md")) if block.kind == "sh"]
    return [shlex.split(line.command) for block in shell for line in lines_of(block)]


def test_whoever_takes_part_installs_runs_one_test_and_then_all():
    clone, into, install, test, check = steps()
    assert clone[:2] == ["git", "clone"]
    assert into == ["cd", clone[-1]]
    assert (install, check) == (["make", "install"], ["make", "check"])
    assert {install[1], check[1]} <= makefile_targets()
    assert test[:3] == [".venv/bin/python", "-m", "pytest"]
    assert [(ROOT / path).is_file() for path in test[3:]] == [True]


def test_the_gate_takes_the_same_time_everywhere():
    (readme,) = MINUTES.findall(page("README.md"))
    assert MINUTES.findall(page("CONTRIBUTING.md")) == [readme]


@pytest.mark.parametrize("name", ["docs/course/README.md", "docs/course/README.zh.md"])
def test_the_code_of_the_page_on_the_course_works(name: str, capsys: pytest.CaptureFixture[str]):
    text = page(name)
    codes = blocks(text, "python")
    assert len(codes) == len(blocks_of(text)) == 1
    for code in codes:
        exec(compile(code, name, "exec"), {})
    assert capsys.readouterr().out
