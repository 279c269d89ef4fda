"""Reference: every public name has an example that runs, every command one that is a command line of its options."""

import ast
import importlib
import inspect
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heedful.cli.main import COMMANDS, RENAMED
from tests.architecture.package import ROOT
from tests.blocks import options


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
    """Names of a module without words or an example; tests run all, those marked +SKIP in `tests.test_docstrings`."""
    loaded = importlib.import_module(module)
    found: list[str] = []
    for name in names:
        value = getattr(loaded, name)
        if not callable(value):
            continue  # a table: its value is its documentation
        if ">>>" not in examples(value) or not inspect.getdoc(value):
            found.append(f"{module}.{name}")
    return found


def test_every_public_name_has_an_example_that_runs(reference: Any):
    names = {module: reference.public_names(module) for module in (*reference.PUBLIC, *reference.PARTS)}
    assert [line for module, own in names.items() for line in lacking(module, own)] == []
    assert sum(map(len, names.values())) > 120


PAGES = ("README", *(f"docs/{name}" for name in ("guide", "extending", "page", "serve", "attention")))
DOCUMENTS = [ROOT / f"{page}.md" for page in PAGES] + sorted((ROOT / "docs" / "course").glob("*.py"))


def names_used(path: Path) -> set[tuple[str, str]]:
    """Names of heedful that the code of a document imports, or takes from the package."""
    text = path.read_bytes().decode("utf-8")
    code = [text] if path.suffix == ".py" else re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    used: set[tuple[str, str]] = set()
    for node in (node for each in code for node in ast.walk(ast.parse(each))):
        if isinstance(node, ast.ImportFrom):
            used |= {(node.module or "", each.name) for each in node.names}
        elif isinstance(node, ast.Import):
            used |= {(each.name, "") for each in node.names if "." in each.name}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "heedful":
            used.add(("heedful", node.attr))
    return {(module, name) for module, name in used if module.partition(".")[0] == "heedful"}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_every_name_that_a_document_uses_is_in_the_reference(path: Path, reference: Any):
    public = {
        (module, name) for module in (*reference.PUBLIC, *reference.PARTS) for name in reference.public_names(module)
    }
    assert names_used(path) - public == set()
    assert names_used(path) or path.stem == "serve"


def test_all_ways_of_using_a_name_are_seen(tmp_path: Path):
    (tmp_path / "lesson.py").write_text(
        "import heedful.a\nfrom heedful.b import C\nheedful.d()\nimport torch.e", "utf-8"
    )
    assert names_used(tmp_path / "lesson.py") == {("heedful.a", ""), ("heedful.b", "C"), ("heedful", "d")}


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


def test_the_first_page_of_python_says_where_each_name_is(reference: Any):
    page = reference.python()
    rows = re.findall(r"^\| \[`(\w+)`\]\((.+?)\.md#(.+?)\) \| (.+) \|$", page.text, re.MULTILINE)
    names = {
        f"{module}.{name}"
        for module in (*reference.PUBLIC, *reference.PARTS)
        for name in reference.public_names(module)
    }
    assert {anchor for _, _, anchor, _ in rows} == names
    assert len(rows) == len(names)
    assert [row[0].casefold() for row in rows] == sorted(row[0].casefold() for row in rows)
    texts = {child.address.rpartition("/")[2]: child.text for child in page.children}
    assert all(f"::: {anchor}\n" in texts[address] for _, address, anchor, _ in rows)
    assert {anchor: meaning for _, _, anchor, meaning in rows if len(meaning) < 9 or "new empty" in meaning} == {}
    assert "| [`attend`](heedful-attention-dispatch.md#heedful.attention.attend) |" in page.text


@pytest.mark.parametrize("part", ["python", "commands"])
def test_names_of_a_first_page_are_links_on_the_site(part: str, reference: Any):
    site_pages = importlib.import_module("site_pages")
    page = getattr(reference, part)()
    text = site_pages.rendered(page, site_pages.addresses([page]), set())
    rows = re.findall(r"^\| (\[?`.+?) \|", text, re.MULTILINE)
    assert len(rows) > 25
    addresses = {child.address.rpartition("/")[2] for child in page.children}
    assert [
        row for row in rows if not (found := re.match(r"\[`.+`\]\((.+?)\.md", row)) or found[1] not in addresses
    ] == []


def leads_of(pages: list[Any]) -> list[str]:
    """Paragraph below the title of each page."""
    return [page.text.split("\n\n")[1] for page in pages]


def test_every_python_page_has_a_lead_of_its_own(reference: Any):
    leads = leads_of(reference.python().children)
    assert len(leads) > 30
    assert len(set(leads)) == len(leads)
    assert [lead for lead in leads if not re.match(r"[A-Z].*\.$", lead) or lead.startswith(":::")] == []


def test_the_routes_are_those_of_the_server(reference: Any):
    pytest.importorskip("fastapi")
    text = reference.http().text
    for route in ("POST /translate", "POST /v2/translate", "GET /languages", "POST /translate_file"):
        assert f"\n### {route}\n" in text


def test_every_field_of_a_route_is_described(reference: Any):
    pytest.importorskip("fastapi")
    rows = [line.split("|") for line in reference.http().text.split("\n") if line.startswith("| `")]
    assert len(rows) > 30
    assert [row[1] for row in rows if not row[4].strip()] == []
