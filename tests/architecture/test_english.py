"""Docstrings begin with a noun, not with What, Of, Those or How; local names are nouns, not given or found."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.package import ROOT

FOLDERS = ("src", "docs", "benchmarks", "examples")
RIDDLE = re.compile(r"(What|Of|Those|How)\b")
VAGUE = {"given", "found", "made", "place", "held", "kept", "taken", "told", "asked"}


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


def vague_names(text: str, name: str) -> list[str]:
    """Parameters and local names of a file's functions that say how a value came about, not which value it is."""
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.Lambda))
    nodes = {node for function in functions for node in ast.walk(function)}
    names = [(node.lineno, node.arg) for node in nodes if isinstance(node, ast.arg)]
    names += [(n.lineno, n.id) for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return [f"{name}:{line}: {word}" for line, word in sorted(names) if word in VAGUE]


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


def test_local_names_are_nouns():
    paths = sorted((ROOT / "src").rglob("*.py"))
    assert [line for path in paths for line in vague_names(path.read_bytes().decode("utf-8"), path.name)] == []


@pytest.mark.parametrize("word", sorted(VAGUE))
@pytest.mark.parametrize(
    "planted",
    [
        "def f({}): pass",
        "def f():\n    {} = 1",
        "def f():\n    return [1 for {} in x]",
        "def f():\n    def g():\n        for {} in x: pass",
        "f = lambda {}: 1",
    ],
)
def test_a_vague_local_name_is_refused(word: str, planted: str):
    assert len(vague_names(planted.format(word), "planted.py")) == 1
    assert vague_names(planted.format("scores"), "planted.py") == []


def test_words_that_name_no_local_value_are_taken():
    assert (
        vague_names("class State:\n    place: int\n\ndef f(x):\n    return x.given(kept=x.found)\n", "planted.py") == []
    )
