"""Programs of this project that documents name: the file exists, and so does every option that is given to it."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.architecture.package import ROOT
from tests.architecture.test_documents import FENCE, documents

OF_THEIR_TIME = {"CHANGELOG.md", "docs/log.md"}
"""Pages whose names are those of the time."""
CODE = re.compile(r"`([^`]+)`")
INDENTED = re.compile(r"^ {4,}(\S.*)$", re.MULTILINE)
COMMAND = re.compile(r"(?:^|[\s;&|(])python3? (?:-m (tests\.[\w.]+)|(\S+\.py))([^\n;|&>)]*)", re.MULTILINE)
IMPORTED = re.compile(r"^(?:from|import) ((?:benchmarks|tests|examples)\.[\w.]+|_\w+)", re.MULTILINE)


class Command(NamedTuple):
    """Command line that runs a program of this project."""

    program: str
    """Path from the root of the project."""
    options: tuple[str, ...]


def commands(text: str) -> Iterator[Command]:
    """Commands of a document, in blocks and in its sentences."""
    prose = FENCE.sub("", text)
    blocks = [match[0].replace("\\\n", " ") for match in FENCE.finditer(text)]
    for part in [*blocks, *INDENTED.findall(prose), *(" ".join(code.split()) for code in CODE.findall(prose))]:
        for module, path, rest in COMMAND.findall(part):
            words = shlex.split(rest.partition(" #")[0], posix=False)
            options = tuple(word.partition("=")[0] for word in words if word.startswith("--"))
            yield Command(path or module.replace(".", "/") + ".py", options)


def source(program: Path) -> str:
    """Text of a program and of what it imports from beside it."""
    text = program.read_bytes().decode("utf-8")
    parts = [text]
    for name in IMPORTED.findall(text):
        below = ROOT / (name.replace(".", "/") + ".py")
        beside = program.parent / f"{name}.py"
        parts += [path.read_bytes().decode("utf-8") for path in (below, beside) if path.is_file()]
    return "\n".join(parts)


def has_option(text: str, option: str) -> bool:
    """True for an option that the program adds, as it is or from a list of names."""
    return f'"{option}"' in text or ('f"--{' in text and f'"{option.removeprefix("--")}"' in text)


def faults(text: str) -> list[str]:
    """Programs that are not there, and options that a program does not have."""
    complaints: list[str] = []
    for command in commands(text):
        path = ROOT / command.program
        if not path.is_file():
            complaints.append(f"no {command.program}")
            continue
        own = source(path)
        complaints += [f"{command.program}: no {option}" for option in command.options if not has_option(own, option)]
    return complaints


PAGES = [path for path in documents() if path.relative_to(ROOT).as_posix() not in OF_THEIR_TIME]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_programs_and_options_exist(page: Path):
    assert faults(page.read_bytes().decode("utf-8")) == []


def test_most_commands_are_seen():
    found = [command for page in PAGES for command in commands(page.read_bytes().decode("utf-8"))]
    assert len({command.program for command in found if command.program.startswith("benchmarks/")}) > 35
    assert sum(len(command.options) for command in found) > 50


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```sh\npython benchmarks/none.py --all\n```\n", "no benchmarks/none.py"),
        ("```sh\npython benchmarks/page.py one \\\n  --none 1\n```\n", "benchmarks/page.py: no --none"),
        ("with `OMP_NUM_THREADS=1 python benchmarks/page.py\n--none=1` here", "benchmarks/page.py: no --none"),
        ("run `python -m tests.prove.prove_none`", "no tests/prove/prove_none.py"),
        ("so:\n\n    python benchmarks/none.py\n", "no benchmarks/none.py"),
        ("`cd x && python3 benchmarks/none.py`", "no benchmarks/none.py"),
    ],
)
def test_a_fault_is_seen(text: str, complaint: str):
    assert faults(text) == [complaint]


@pytest.mark.parametrize(
    "text", ["`python -m pytest --none`", "`python -m venv .venv`", "`python examples/write_pairs.py # --none`"]
)
def test_what_is_right_or_not_ours_is_taken(text: str):
    assert faults(text) == []
