"""Names that the code of a lesson uses, for the table of concepts, whose column of code has no others."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path


def code_cells(path: Path) -> list[str]:
    """Code of a lesson, cell by cell.

    Args:
        path: lesson in the percent format.
    """
    parts = re.split(r"^# %%(.*)\n", path.read_bytes().decode("utf-8"), flags=re.MULTILINE)
    return [text for head, text in zip(parts[1::2], parts[2::2], strict=True) if "[markdown]" not in head]


def used_names(path: Path) -> dict[str, int]:
    """Names that a lesson uses, beyond importing them.

    Args:
        path: lesson in the percent format.

    Returns:
        Number of the first code cell by dotted name (`torch.nn.functional.one_hot`), by name of a function or class of
        the lesson itself (`softmax`), and by name with one argument (`heedful.attention.Softmax(temperature=5.0)`).
        Functions of the lesson are in the cell that defines them.
    """
    trees = [ast.parse(cell) for cell in code_cells(path)]
    known = {alias: name for tree in trees for alias, name in _imported(tree)}
    own = {
        node.name: number
        for number, tree in enumerate(trees)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }
    found: dict[str, int] = {}
    for number, tree in enumerate(trees):
        for node in ast.walk(tree):
            for name in _names(node, known, own):
                found.setdefault(name, own.get(name, number))
    return found


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            package = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            yield from ((each.asname or each.name, package + each.name) for each in node.names)


def _names(node: ast.AST, known: dict[str, str], own: dict[str, int]) -> Iterator[str]:
    """Name that a node is, or names with an argument that it calls."""
    if isinstance(node, ast.Call):
        name = _name(node.func, known, own)
        for one in node.keywords if name else ():
            if one.arg and not any(isinstance(part, ast.Name) for part in ast.walk(one.value)):
                value = ast.unparse(one.value).replace("'", '"')
                yield f"{name}({one.arg}={value})"
    elif name := _name(node, known, own):
        yield name


def _name(node: ast.AST, known: dict[str, str], own: dict[str, int]) -> str:
    """Dotted name of an expression, or the name of a function of the lesson; empty for anything else."""
    if isinstance(node, ast.Attribute):
        before = _name(node.value, known, {})
        return f"{before}.{node.attr}" if before else ""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return known.get(node.id) or (node.id if node.id in own else "")
    return ""
