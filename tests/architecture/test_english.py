"""Docstrings begin with the noun that a thing is: never with What, Of, Those or How."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.package import ROOT

FOLDERS = ("src", "docs", "benchmarks", "examples")
RIDDLE = re.compile(r"(What|Of|Those|How)\b")


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of every docstring: of modules, classes, functions, and of fields (a text after an assignment)."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        is_described = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for index, statement in enumerate(body):
            follows_field = index > 0 and isinstance(body[index - 1], ast.Assign | ast.AnnAssign)
            is_first = index == 0 and is_described
            if (is_first or follows_field) and isinstance(statement, ast.Expr):
                value = statement.value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield statement.lineno, value.value


def riddles(text: str, name: str) -> list[str]:
    """Docstrings of a file that begin with one of the words."""
    return [
        f"{name}:{line}: {docstring.strip().partition(chr(10))[0]}"
        for line, docstring in docstrings(ast.parse(text))
        if RIDDLE.match(docstring.strip())
    ]


def headers(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and module docstring, as source text, of every file in a folder."""
    for path in sorted(folder.rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), f'"""{ast.get_docstring(ast.parse(path.read_bytes())) or ""}"""'


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_begin_with_the_thing(folder: str):
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert paths
    found = [line for path in paths for line in riddles(path.read_bytes().decode("utf-8"), str(path.relative_to(ROOT)))]
    assert found == []


def test_headers_of_tests_begin_with_the_thing():
    found = [name for name, header in headers(ROOT / "tests") if RIDDLE.match(header.strip('"').strip())]
    assert found == []


PLANTED = '''"""{}"""
class Score:
    """{}"""

    size: int = 1
    """{}"""

    def lower(self) -> None:
        """{}"""
        self.lowered = 1
        """{}"""
'''
NOUNS = ["Scores.", "Score function.", "Width of a vector.", "Lower the score.", "Whether it was lowered."]


@pytest.mark.parametrize("word", ["What", "Of", "Those", "How"])
@pytest.mark.parametrize("position", range(5))
def test_a_riddle_is_refused_wherever_it_stands(word: str, position: int):
    texts = [*NOUNS]
    texts[position] = f"{word} the rows."
    assert len(riddles(PLANTED.format(*texts), "planted.py")) == 1


def test_nouns_are_taken():
    assert riddles(PLANTED.format(*NOUNS), "planted.py") == []
    assert riddles('"""Offers."""\nTEXT = "x"\nprint("What a text that is no docstring")\n', "planted.py") == []
