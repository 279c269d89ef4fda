"""Reference: every public name has an example that runs, every command one that is a command line of its options."""

import ast
import importlib
import inspect
import re
import shlex
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from heedful.cli.main import COMMANDS, RENAMED
from tests.architecture.package import ROOT
from tests.blocks import options

# Names whose example needs a model, a corpus or a package that is not installed everywhere.
SKIPPED = {
    *("Captioner", "Classifier", "Translation", "Translator", "compare", "load", "pipeline", "train", "widget"),
    *("BackboneEncoder", "TextClassifier", "TextRegressor", "store_weights"),
}


@pytest.fixture(scope="module")
def reference() -> Iterator[Any]:
    """The module that writes the pages of the reference."""
    sys.path.insert(0, str(ROOT / "docs"))
    yield importlib.import_module("site_reference")
    sys.path.remove(str(ROOT / "docs"))


def examples(value: Any) -> str:
    """Docstrings of a name and of its own methods."""
    own = vars(value).values() if isinstance(value, type) else ()
    return "\n".join(
        inspect.getdoc(each) or "" for each in (value, *own) if callable(each) or isinstance(each, property)
    )


def lacking(module: str, names: list[str]) -> list[str]:
    """Names of a module without words, or without an example that runs."""
    loaded = importlib.import_module(module)
    found: list[str] = []
    for name in names:
        value = getattr(loaded, name)
        if not callable(value):
            continue  # a table: its value is its documentation
        lines = [line for line in examples(value).split("\n") if line.strip().startswith(">>>")]
        runs = [line for line in lines if "+SKIP" not in line]
        if not lines or not (runs or name in SKIPPED) or not inspect.getdoc(value):
            found.append(f"{module}.{name}")
    return found


def test_every_public_name_has_an_example_that_runs(reference: Any):
    names = {module: reference.public_names(module) for module in (*reference.PUBLIC, *reference.PARTS)}
    assert [line for module, own in names.items() for line in lacking(module, own)] == []
    assert sum(map(len, names.values())) > 120
    assert SKIPPED <= {name for own in names.values() for name in own}


@pytest.mark.parametrize("page", ["README", "docs/guide", "docs/extending"])
def test_every_name_that_a_page_imports_is_in_the_reference(page: str, reference: Any):
    code = re.findall(r"^```python\n(.*?)^```$", (ROOT / f"{page}.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    lines = [node for text in code for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    used = {(node.module or "", each.name) for node in lines for each in node.names}
    own = {(module, name) for module, name in used if module.partition(".")[0] == "heedful"}
    public = {
        (module, name) for module in (*reference.PUBLIC, *reference.PARTS) for name in reference.public_names(module)
    }
    assert own - public == set()
    assert own


def test_a_name_without_an_example_is_found(monkeypatch: pytest.MonkeyPatch):
    import heedful.errors

    class Silent(Exception):
        """Error without an example."""

    monkeypatch.setattr(heedful.errors, "Silent", Silent, raising=False)
    assert lacking("heedful.errors", ["UsageError", "Silent"]) == ["heedful.errors.Silent"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples_with_options_that_exist(name: str):
    path = ROOT / "src" / "heedful" / "cli" / f"{RENAMED.get(name, name)}.py"
    text = ast.get_docstring(ast.parse(path.read_bytes())) or ""
    lines = [line.strip() for line in text.split("\n") if line.startswith(f"  heedful {name}")]
    assert lines, "no example"
    for line in lines:
        words = shlex.split(line.partition("  #")[0].replace("|", " "))
        used = {word.partition("=")[0] for word in words if word.startswith("-") and len(word) > 1}
        assert used <= options(name), (line, used - options(name))


def test_the_pages_of_the_reference_name_everything(reference: Any):
    commands, python, formats = reference.commands(), reference.python(), reference.formats()
    assert [page.title for page in commands.children] == [*COMMANDS]
    assert all("Usage: heedful" in page.text for page in commands.children)
    blocks = "\n".join(page.text for page in python.children)
    assert all(
        f"::: {module}.{name}\n" in blocks
        for module in (*reference.PUBLIC, *reference.PARTS)
        for name in reference.public_names(module)
    )
    assert formats.text.count("\n| ") > 15


def test_the_routes_are_those_of_the_server(reference: Any):
    pytest.importorskip("fastapi")
    text = reference.http().text
    for route in ("POST /translate", "POST /v2/translate", "GET /languages", "POST /translate_file"):
        assert f"`{route}`" in text
