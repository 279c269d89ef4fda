"""A class is abstract or final: nothing inherits working code from a class that works by itself."""

import ast
from collections.abc import Iterable

import pytest

from tests.architecture.package import Module, classes, dotted, last_name, read_package, unexcused

# What inherits from these is plain data or an exception: it needs no @final, and the families may have members below.
FAMILIES = frozenset({"Config", "Record", "BaseException", "Exception", "Warning"})
DATA_BASES = frozenset({"NamedTuple", "TypedDict", "Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})

# Dotted name -> why the class is neither abstract nor final.
EXCEPTIONS: dict[str, str] = {
    "heedful.attention.simplex._EntmaxFunction": "autograd functions have a metaclass that ABC conflicts with",
    "heedful.attention.structured_tree._InsideOutsideFunction": "as _EntmaxFunction",
}


def is_abstract(node: ast.ClassDef) -> bool:
    """Whether a class says of itself that it is abstract: ABC, Protocol or an abstract method."""
    if any(last_name(base) in {"ABC", "Protocol"} for base in node.bases):
        return True
    if any(keyword.arg == "metaclass" and last_name(keyword.value) == "ABCMeta" for keyword in node.keywords):
        return True
    methods = [item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
    return any(last_name(mark) == "abstractmethod" for method in methods for mark in method.decorator_list)


def neither_abstract_nor_final(modules: Iterable[Module]) -> dict[str, str]:
    """The classes that break the rule: dotted name -> complaint."""
    known = classes(modules)
    inherited = {base for entry in known.values() for base in entry.bases}

    def in_family(name: str) -> bool:
        last = name.rpartition(".")[2]
        is_root = last in FAMILIES or (name not in known and last.endswith(("Error", "Exception")))
        return is_root or (name in known and any(in_family(base) for base in known[name].bases))

    found: dict[str, str] = {}
    for name, entry in known.items():
        marks = {dotted(mark) for mark in entry.node.decorator_list}
        is_final = bool(marks & {"final", "typing.final"})
        is_data = bool(marks & {"dataclass", "dataclasses.dataclass"}) or any(
            base.rpartition(".")[2] in DATA_BASES for base in entry.bases
        )
        if is_final and name in inherited:
            found[name] = f"{name}: is @final, yet a class inherits from it"
        elif is_final or is_abstract(entry.node) or in_family(name):
            continue
        elif name in inherited:
            found[name] = f"{name}: works by itself and is inherited from: make it abstract, or hold it instead"
        elif not is_data:
            found[name] = f"{name}: is neither abstract nor @final"
    return found


def test_classes_are_abstract_or_final():
    assert unexcused(neither_abstract_nor_final(read_package()), EXCEPTIONS) == []


REFUSED = {
    "plain": "class A: ...",
    "module": "class A(nn.Module): ...",
    "inherited": "class A: ...\n@final\nclass B(A): ...",
    "inherited_record": "@dataclass\nclass A: ...\n@dataclass\nclass B(A): ...",
    "inherited_final": "@final\nclass A: ...\n@final\nclass B(A): ...",
    "in_a_function": "def f():\n    class A: ...",
    "same_name_elsewhere": "@final\nclass Outer:\n    class A(ABC): ...\nclass A: ...",
    "overriding_only": "class Base(ABC): ...\nclass A(Base):\n    def run(self): ...",
}
TAKEN = {
    "final": "@final\nclass A(nn.Module): ...",
    "final_by_module": "@typing.final\nclass A: ...",
    "abstract": "class A(nn.Module, ABC): ...\n@final\nclass B(A): ...",
    "abstract_method": "class A(nn.Module):\n    @abstractmethod\n    def f(self): ...\n@final\nclass B(A): ...",
    "protocol": "class A(Protocol[T]): ...",
    "data": "@dataclass(frozen=True)\nclass A: ...\nclass B(NamedTuple): ...\nclass C(StrEnum): ...",
    "config": "class A(Config): ...\nclass B(A): ...",
    "record": "class State(Record): ...\n@dataclass\nclass B(State): ...",
    "exceptions": "class A(Exception): ...\nclass B(A, ValueError): ...\nclass C(B): ...",
}


@pytest.mark.parametrize("canary", REFUSED)
def test_the_rule_refuses(canary: str):
    assert len(neither_abstract_nor_final([Module("m", REFUSED[canary])])) == 1


@pytest.mark.parametrize("sample", TAKEN)
def test_the_rule_takes(sample: str):
    assert neither_abstract_nor_final([Module("m", TAKEN[sample])]) == {}
