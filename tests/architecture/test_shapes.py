"""Shapes stand in annotations, which tests check at run time, and in docstrings, for people: both say the same."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.package import Function, Module, definitions, read_package

_BRACKET = re.compile(r"^\[([^\]]*)\]")
_ENTRY = re.compile(r"^    (\w+): (.*)$")
_WORD = re.compile(r"[\w.]+")


def described(function: Function) -> dict[str, str]:
    """Shapes in the docstring by parameter name; that of the result by "return"."""
    found: dict[str, str] = {}
    section = ""
    for line in (ast.get_docstring(function) or "").split("\n"):
        if line in ("Args:", "Returns:", "Raises:", "Yields:", "Example:"):
            section = line
        elif section == "Args:" and (entry := _ENTRY.match(line)) and (bracket := _BRACKET.match(entry[2])):
            found[entry[1]] = bracket[1]
        elif section == "Returns:":
            if bracket := _BRACKET.match(line.strip()):
                found["return"] = bracket[1]
            section = ""
    return found


def annotated(function: Function) -> dict[str, str]:
    """Shapes in the annotations, the first of each."""
    hints = {arg.arg: arg.annotation for arg in (*function.args.args, *function.args.kwonlyargs) if arg.annotation}
    if function.returns is not None:
        hints["return"] = function.returns
    return {name: shape for name, hint in hints.items() if (shape := _first_shape(hint)) is not None}


def _first_shape(hint: ast.expr) -> str | None:
    for node in ast.walk(hint):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2:
            kind, shape = node.slice.elts
            if ast.unparse(kind) == "Tensor" and isinstance(shape, ast.Constant) and isinstance(shape.value, str):
                return shape.value
    return None


def axes(text: str, is_annotation: bool) -> list[str]:
    """Axes in a common form: no marks of broadcasting, "..." for any number of axes, "_" for what is computed."""
    parts = text.split() if is_annotation else [part.strip() for part in text.split(",") if part.strip()]
    return [_axis(part) for part in parts]


def _axis(part: str) -> str:
    part = part.replace("#", "").removeprefix("1 or ")
    if part == "*":
        return "..."
    is_named = _WORD.fullmatch(part.removeprefix("*")) is not None
    return part if is_named else "_"


def differences(module: Module) -> Iterator[str]:
    """Functions whose docstring says another shape than their annotation."""
    for definition in definitions(module):
        if isinstance(definition.node, ast.ClassDef):
            continue
        words, hints = described(definition.node), annotated(definition.node)
        for name in words.keys() & hints.keys():
            # jaxtyping has no way to write two groups of axes.
            is_in_groups = hints[name] == "..." and words[name].count("*") > 1
            if not is_in_groups and axes(words[name], False) != axes(hints[name], True):
                yield f"{definition.name}: {name} is [{words[name]}] in words and {hints[name]!r} in the signature"


def test_docstrings_and_annotations_agree():
    assert [line for module in read_package() for line in differences(module)] == []


def toy(annotation: str, words: str) -> Module:
    docstring = f"F.\n\n    Args:\n        a: [{words}] numbers.\n    "
    text = f'def f(a: Float[Tensor, "{annotation}"]) -> None:\n    """{docstring}"""\n'
    return Module("heedful.toy", text)


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        ("*batch query key", "*batch, query, key"),
        ("*#batch #query key", "#*batch, 1 or query, key"),
        ("... size", "*, size"),
        ("batch _", "batch, 2 * hidden"),
        (" query", "query"),
        ("", ""),
    ],
)
def test_the_same_shape_in_both_forms(annotation: str, words: str):
    assert list(differences(toy(annotation, words))) == []


@pytest.mark.parametrize(
    ("annotation", "words"), [("query key", "key, query"), ("*batch query", "query"), ("batch size", "batch, length")]
)
def test_another_shape_is_seen(annotation: str, words: str):
    assert len(list(differences(toy(annotation, words)))) == 1
