"""Tables of parameters in the reference have a row for each parameter of the signature, and no other row."""

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.architecture.package import ROOT

ROW = re.compile(r"^ {4}\*{0,2}(\w.*?):\s", re.MULTILINE)


@pytest.fixture(scope="module")
def reference() -> Iterator[Any]:
    """The module that writes the pages of the reference."""
    sys.path.insert(0, str(ROOT / "docs"))
    yield importlib.import_module("site_reference")
    sys.path.remove(str(ROOT / "docs"))


def rows(docstring: str, section: str) -> list[str]:
    """Names that a section of a docstring describes."""
    part = re.search(rf"^{section}:\n((?: .*\n|\n)*)", f"{docstring}\n", re.MULTILINE)
    return ROW.findall(part[1]) if part else []


def docstring_of(value: Callable[..., Any]) -> str:
    """Docstring of a function; of a class, its own and that of its constructor, which may be inherited."""
    texts = [vars(value).get("__doc__") or "", value.__init__.__doc__ or ""] if isinstance(value, type) else []
    return "\n\n".join(map(inspect.cleandoc, texts or [value.__doc__ or ""]))


def faults(value: Callable[..., Any]) -> list[str] | None:
    """Parameters without a row and rows without a parameter; None without a table.

    Fields of a data class, which are the parameters of its constructor, stand among its attributes.
    """
    docstring = docstring_of(value)
    described = rows(docstring, "Args")
    fields = rows(docstring, "Attributes") if isinstance(value, type) else []
    if not described and not fields:
        return None
    names = [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]
    if not described and not {*fields} & {*names}:
        return None
    lacking = [f"{name}: no row" for name in names if name not in (*described, *fields)]
    return lacking + [f"{name}: no such parameter" for name in described if name not in names]


def callables(name: str, value: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    """A public function or class, and the public methods that a class defines."""
    if callable(value):
        yield name, value
    for own, method in vars(value).items() if isinstance(value, type) else ():
        function = inspect.unwrap(getattr(method, "__func__", method))
        if inspect.isfunction(function) and not own.startswith("_"):
            yield f"{name}.{own}", function


def test_every_parameter_has_a_row(reference: Any):
    found: dict[str, list[str]] = {}
    for module in (*reference.PUBLIC, *reference.PARTS):
        loaded = importlib.import_module(module)
        for public in reference.public_names(module):
            for name, value in callables(f"{module}.{public}", getattr(loaded, public)):
                if (wrong := faults(value)) is not None:
                    found[name] = wrong
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert len(found) > 140


def described(*names: str) -> Callable[..., Any]:
    """Function of the parameters x, y and more, of which a docstring describes some."""

    def function(x: int, y: int = 0, **more: int) -> None: ...

    lines = [f"    {name}: number,\n        of any size." for name in names]
    function.__doc__ = "\n".join(["Add.", "", "Args:", *lines, "", "Returns:", "    sum: of all."])
    return function


@pytest.mark.parametrize(
    ("names", "wrong"),
    [
        (["x", "y"], ["more: no row"]),
        (["more", "y"], ["x: no row"]),
        (["x", "y", "more", "z"], ["z: no such parameter"]),
        (["x, y", "more"], ["x: no row", "y: no row", "x, y: no such parameter"]),
    ],
)
def test_an_incomplete_table_is_refused(names: Sequence[str], wrong: list[str]):
    assert faults(described(*names)) == wrong


def test_a_complete_table_and_none_at_all_are_taken():
    assert faults(described("x", "y", "more")) == []
    assert faults(described()) is None


class Base:
    """Base."""

    def __init__(self, size: int, width: int) -> None:
        """Make it.

        Args:
            size: features.
        """


class Derived(Base):
    """Class whose constructor is inherited.

    Attributes:
        fitted: result.
    """

    def bound(self, text: str, least: int = 0) -> None:
        """Bind.

        Args:
            least: bound.
        """

    @classmethod
    def made(cls, text: str) -> None:
        """Make one.

        Args:
            cls: class.
            text: text.
        """


@dataclass
class Pair:
    """Data class.

    Attributes:
        one: first.
    """

    one: int
    other: int


def test_constructors_and_methods_are_read():
    found = {name: faults(value) for kind in (Derived, Pair) for name, value in callables(kind.__name__, kind)}
    assert found == {
        "Derived": ["width: no row"],
        "Derived.bound": ["text: no row"],
        "Derived.made": ["cls: no such parameter"],
        "Pair": ["other: no row"],
    }
