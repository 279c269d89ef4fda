"""docs/layout.md: its layers are those of the import contract, its tree the package, with a line on each file."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.package import ROOT, SOURCE

PYPROJECT = """
[[tool.importlinter.contracts]]
type = "layers"
layers = ["cli", "(serving)", "text | data", "errors"]
"""
PAGE = "# Layout\n<!-- layers -->\n<!-- /layers -->\nFiles\n<!-- tree -->\n<!-- /tree -->\nmore\n"


@pytest.fixture(scope="module")
def layout() -> dict[str, Any]:
    """The names of docs/make_layout.py."""
    return runpy.run_path(str(ROOT / "docs" / "make_layout.py"))


def read(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


def undescribed(layout: dict[str, Any], package: Path) -> list[str]:
    """Modules and packages whose docstring has no first line for the tree."""
    return [str(path.relative_to(package)) for path in package.rglob("*.py") if not layout["summary"](path)]


def test_the_page_is_what_the_script_makes(layout: dict[str, Any]):
    page = read(ROOT / "docs" / "layout.md")
    expected = layout["fill"](page, read(ROOT / "pyproject.toml"), SOURCE / "heedful")
    assert page == expected, "run: python docs/make_layout.py"


def test_every_file_is_described(layout: dict[str, Any]):
    assert undescribed(layout, SOURCE / "heedful") == []


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "toy"
    for name in ("config.py", "__init__.py", "text/__init__.py", "text/lines.py", "page/page.css"):
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_bytes(f'"""The file {name}.\n\nMore."""\n'.encode())
    return folder


def test_layers_and_tree_of_a_small_package(layout: dict[str, Any], package: Path):
    page = layout["fill"](PAGE, PYPROJECT, package)
    assert "1. `errors`\n2. `text` and `data`\n3. `serving` (not there yet)\n4. `cli`\n" in page
    lines = [line.split(maxsplit=1) for line in page.partition("<!-- tree -->")[2].split("\n")]
    assert ["config.py", "The file config.py"] in lines
    assert ["text/", "The file text/__init__.py"] in lines
    assert ["lines.py", "The file text/lines.py"] in lines
    assert "page.css" not in page
    assert page.endswith("<!-- /tree -->\nmore\n")
    assert layout["fill"](page, PYPROJECT, package) == page


def test_a_page_that_is_out_of_date_is_seen(layout: dict[str, Any], package: Path):
    page = layout["fill"](PAGE, PYPROJECT, package)
    (package / "text" / "more.py").write_bytes(b'"""A new file."""\n')
    assert layout["fill"](page, PYPROJECT, package) != page
    assert layout["fill"](page, PYPROJECT.replace("text | data", "data"), package) != page


def test_a_file_without_a_docstring_is_named(layout: dict[str, Any], package: Path):
    (package / "text" / "more.py").write_bytes(b"MORE = 1\n")
    assert undescribed(layout, package) == ["text/more.py"]


@pytest.mark.parametrize("marker", ["<!-- layers -->\n", "<!-- /tree -->\n"])
def test_a_page_without_its_markers_is_refused(layout: dict[str, Any], package: Path, marker: str):
    with pytest.raises(ValueError, match="blocks marked are"):
        layout["fill"](PAGE.replace(marker, ""), PYPROJECT, package)


def test_a_configuration_without_layers_is_refused(layout: dict[str, Any], package: Path):
    with pytest.raises(ValueError, match="expected one contract"):
        layout["fill"](PAGE, PYPROJECT.replace("layers", "forbidden"), package)
