"""The package as text and syntax trees, for the rules in this folder."""

import ast
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One Python file; `name` is dotted and, for an `__init__.py`, the package's."""

    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=self.name)


@dataclass(frozen=True)
class Definition:
    """A function or class and where it stands: `name` is dotted from the package on."""

    name: str
    node: Function | ast.ClassDef
    owner: ast.AST
    """What it is defined in: a module, a class or a function."""


@cache
def read_package(source: Path = SOURCE) -> tuple[Module, ...]:
    """Read every module below `source`, in order of name."""
    found: list[Module] = []
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Module(name, path.read_bytes().decode("utf-8")))
    return tuple(found)


def definitions(module: Module) -> Iterator[Definition]:
    """Every function and class of a module, nested ones included."""

    def below(owner: ast.AST, prefix: str) -> Iterator[Definition]:
        for node in ast.iter_child_nodes(owner):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}.{node.name}"
                yield Definition(name, node, owner)
                yield from below(node, name)
            else:
                # A definition under `if` or `try` belongs to whatever that statement belongs to.
                for inner in below(node, prefix):
                    yield Definition(inner.name, inner.node, owner if inner.owner is node else inner.owner)

    yield from below(module.tree, module.name)


@dataclass(frozen=True)
class Class:
    """A class with the dotted names of its bases, followed through the module's imports where they lead somewhere."""

    node: ast.ClassDef
    owner: ast.AST
    bases: tuple[str, ...]


def classes(modules: Iterable[Module]) -> dict[str, Class]:
    """Every class of some modules by its dotted name."""
    found: dict[str, Class] = {}
    for module in modules:
        here = {definition.name: definition for definition in definitions(module)}
        imported = _imports(module)

        def resolve(name: str, scope: str, here: Container[str] = here, imported: Mapping[str, str] = imported) -> str:
            while scope:
                scope = scope.rpartition(".")[0]
                if f"{scope}.{name}" in here:
                    return f"{scope}.{name}"
            first, dot, rest = name.partition(".")
            return imported.get(first, first) + dot + rest

        for name, definition in here.items():
            if isinstance(definition.node, ast.ClassDef):
                bases = tuple(resolve(dotted(base), name) for base in definition.node.bases)
                found[name] = Class(definition.node, definition.owner, bases)
    return found


def _imports(module: Module) -> dict[str, str]:
    """Local name -> dotted name, for all imports of a module."""
    found: dict[str, str] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.asname: alias.name for alias in node.names if alias.asname}
    return found


def dotted(node: ast.AST) -> str:
    """The dotted name an expression spells, such as ``torch.load``; '' where it is no name.

    A subscript and a call are seen through: ``Generic[T]`` is Generic, ``dataclass(frozen=True)`` is dataclass.
    """
    if isinstance(node, ast.Subscript):
        return dotted(node.value)
    if isinstance(node, ast.Call):
        return dotted(node.func)
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""


def last_name(node: ast.AST) -> str:
    """The last part of `dotted`."""
    return dotted(node).rpartition(".")[2]


def unexcused(violations: Mapping[str, str], exceptions: Mapping[str, str]) -> list[str]:
    """What a rule found, less the exceptions; an exception that excuses nothing is itself reported."""
    stale = [
        f"{name}: listed as an exception, but keeps the rule: remove it"
        for name in exceptions
        if name not in violations
    ]
    return [text for name, text in violations.items() if name not in exceptions] + stale
