"""Regenerate the layers and the file tree of docs/layout.md: `python docs/make_layout.py`.

The layers come from the import contract in pyproject.toml, the tree from the first lines of module docstrings. They
stand between <!-- layers -->, <!-- /layers --> and <!-- tree -->, <!-- /tree -->; the rest is written by hand.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "layout.md"
BLOCK: Final = re.compile(r"(<!-- (layers|tree) -->\n).*?(<!-- /\2 -->)", re.DOTALL)
NAME_WIDTH: Final = 34


def summary(path: Path) -> str:
    """Read the one-line description of a module.

    Args:
        path: a Python file.

    Returns:
        The first line of its docstring without the final full stop; empty where it has none.
    """
    docstring = ast.get_docstring(ast.parse(path.read_bytes())) or ""
    return docstring.partition("\n")[0].rstrip(".")


def tree(package: Path, name: str) -> str:
    """Draw the file tree of a package.

    Args:
        package: its folder.
        name: the first line of the tree.

    Returns:
        Markdown: a fenced block with a line for each folder and file, modules before subpackages.
    """

    def below(folder: Path, indent: str) -> Iterator[str]:
        for path in sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name)):
            if path.is_dir() and (path / "__init__.py").exists():
                yield f"{indent + path.name + '/':<{NAME_WIDTH}}{summary(path / '__init__.py')}"
                yield from below(path, indent + "  ")
            elif path.suffix == ".py" and path.name != "__init__.py":
                yield f"{indent + path.name:<{NAME_WIDTH}}{summary(path)}"

    return "\n".join(["```", name, *below(package, "  "), "```", ""])


def layers(pyproject: str) -> str:
    """Write the import layers, lowest first.

    Args:
        pyproject: text of pyproject.toml.

    Returns:
        Markdown: one numbered line for each layer, siblings joined by "and".

    Raises:
        ValueError: there is not exactly one contract of the type `layers`.
    """
    contracts = tomllib.loads(pyproject)["tool"]["importlinter"]["contracts"]
    orders = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    if len(orders) != 1:
        raise ValueError(f"pyproject.toml: expected one contract of the type layers, got {len(orders)}")
    lines: list[str] = []
    for number, layer in enumerate(reversed(orders[0]), start=1):
        names = [name.strip() for name in layer.split("|")]
        shown = [f"`{name.strip('()')}`" + (" (not there yet)" if name.startswith("(") else "") for name in names]
        lines.append(f"{number}. {' and '.join(shown)}\n")
    return "".join(lines)


def fill(page: str, pyproject: str, package: Path) -> str:
    """Put the present layers and tree into the page.

    Args:
        page: text with both blocks marked.
        pyproject: text of pyproject.toml.
        package: folder of the package.

    Returns:
        The page as it should be.

    Raises:
        ValueError: the page does not mark each block once.
    """
    fresh = {"layers": layers(pyproject), "tree": tree(package, f"src/{package.name}/")}
    names = sorted(match[2] for match in BLOCK.finditer(page))
    if names != sorted(fresh):
        raise ValueError(f"layout.md: blocks marked are {', '.join(names) or 'none'}; expected {', '.join(fresh)}")
    return BLOCK.sub(lambda match: match[1] + fresh[match[2]] + match[3], page)


def main() -> int:
    """Write the page anew.

    Returns:
        The exit code: 0.
    """
    page = PAGE.read_bytes().decode("utf-8")
    pyproject = (ROOT / "pyproject.toml").read_bytes().decode("utf-8")
    PAGE.write_bytes(fill(page, pyproject, ROOT / "src" / "heedful").encode("utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
