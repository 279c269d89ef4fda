"""The tree in the README is the tree on disk, every line with a word on what the file is for."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.package import ROOT, SOURCE

BEGIN, END = "<!-- tree -->", "<!-- /tree -->"
# Indentation in blanks or in the strokes of `tree`, a name, then a comment.
LINE = re.compile(r"(?P<indent>[\s│├└─|`+-]*)(?P<name>[^\s#]+)\s*(?:#\s*)?(?P<comment>.*)")


def files_on_disk(package: Path) -> set[str]:
    """Folders (with a closing slash) and files of a package, relative to it.

    An `__init__.py` is not one of them: its folder's line stands for it.
    """
    found: set[str] = set()
    for path in package.rglob("*"):
        if "__pycache__" in path.parts or path.name in {"__init__.py", "py.typed"} or path.suffix == ".pyc":
            continue
        if path.is_file():
            name = path.relative_to(package)
            found |= {name.as_posix(), *(f"{parent.as_posix()}/" for parent in name.parents if parent.name)}
    found |= {f"{path.parent.relative_to(package).as_posix()}/" for path in package.rglob("*/__init__.py")}
    return found


def read_tree(readme: str) -> dict[str, str]:
    """The lines between the markers: path relative to src/heedful -> comment; folders end in a slash."""
    _, _, rest = readme.partition(BEGIN)
    block, end, _ = rest.partition(END)
    if not end:
        raise ValueError(f"README.md has no block between {BEGIN} and {END}")
    found: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in block.split("\n"):
        if not line.strip() or line.strip().startswith("```"):
            continue
        match = LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"README tree: cannot read {line!r}")
        depth, name = len(match["indent"]), match["name"]
        while above and above[-1][0] >= depth:
            above.pop()
        path = (above[-1][1] if above else "") + name
        if name.endswith("/"):
            above.append((depth, path))
        found[path] = match["comment"].strip()
    prefix = next((path for path in found if path in {"src/heedful/", "heedful/"}), "")
    return {path.removeprefix(prefix): comment for path, comment in found.items() if path != prefix}


def differences(readme: str, package: Path) -> list[str]:
    """What the README's tree says otherwise than the disk."""
    listed, present = read_tree(readme), files_on_disk(package)
    # Files that are not Python (pages, styles) may be summed up in the line of their folder.
    needed = {name for name in present if name.endswith((".py", "/"))}
    return [
        *(f"{name}: on disk, not in the README's tree" for name in sorted(needed - set(listed))),
        *(f"{name}: in the README's tree, not on disk" for name in sorted(set(listed) - present)),
        *(f"{name}: no comment in the README's tree" for name, comment in listed.items() if not comment),
    ]


def draw(package: Path) -> str:
    """A tree to paste into the README, its comments the first lines of the docstrings."""

    def below(folder: Path, indent: str) -> Iterator[str]:
        for path in sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name)):
            if path.is_dir() and (path / "__init__.py").exists():
                yield f"{indent + path.name + '/':<34}{_summary(path / '__init__.py')}"
                yield from below(path, indent + "  ")
            elif path.suffix == ".py" and path.name != "__init__.py":
                yield f"{indent + path.name:<34}{_summary(path)}"

    return "\n".join([BEGIN, "```", "src/heedful/", *below(package, "  "), "```", END])


def _summary(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_bytes())) or ""
    return docstring.partition("\n")[0].rstrip(".")


def test_the_readme_shows_the_tree_on_disk():
    path = ROOT / "README.md"
    if not path.exists():
        pytest.skip("README.md is not written yet")
    found = differences(path.read_bytes().decode("utf-8"), SOURCE / "heedful")
    assert found == [], "as drawn from the docstrings:\n" + draw(SOURCE / "heedful")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name in ("config.py", "__init__.py", "py.typed", "text/__init__.py", "data/corpus.py", "page/page.css"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b'"""What it does."""\n' if name.endswith(".py") else b"")
    return tmp_path


PLAIN = """
```
src/heedful/
  config.py     TOML in
  page/         one page, with its styles
  text/         text in
    corpus.py   # pairs
```
"""
STROKES = """
src/heedful/            the package
├── config.py           TOML in
├── page/               one page
│   └── page.css        its styles
└── text/               text in
    └── corpus.py       pairs
"""


@pytest.mark.parametrize(
    "tree", [PLAIN, STROKES, PLAIN.replace("src/heedful/\n", "")], ids=["plain", "strokes", "bare"]
)
def test_a_right_tree_is_taken(tree: str, package: Path):
    assert differences(f"# heedful\n{BEGIN}{tree}{END}\nmore/ text\n", package) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("    corpus.py   # pairs\n", "", "data/corpus.py: on disk"),
        ("    corpus.py", "  corpus.py", "corpus.py: in the README's tree, not on disk"),
        ("corpus.py   # pairs", "corpus.py", "data/corpus.py: no comment"),
        ("config.py", "configuration.py", "config.py: on disk"),
        ("  text/         text in\n    corpus.py   # pairs\n", "", "text/: on disk"),
    ],
)
def test_a_wrong_tree_is_refused(old: str, new: str, complaint: str, package: Path):
    assert old in PLAIN
    found = differences(BEGIN + PLAIN.replace(old, new) + END, package)
    assert any(line.startswith(complaint) for line in found), found


def test_a_readme_without_a_tree_is_refused(package: Path):
    with pytest.raises(ValueError, match="no block"):
        differences("# heedful\n", package)


def test_the_tree_drawn_from_docstrings_is_right(package: Path):
    (package / "page" / "__init__.py").write_bytes(b'"""One page."""\n')
    assert differences(draw(package), package) == []
