"""Public functions say what they do.

Every public method is documented, or overrides one of ours that is (ruff sees to functions and classes). The first line
of a public function or method is an order: "Return the ...", not "Returns" or "The ...". Properties are nouns.
"""

import ast
from collections.abc import Iterable

import pytest

from tests.architecture.package import Module, classes, definitions, last_name, read_package

# Decorators whose function is documented elsewhere: at the getter, at the implementation, at the overridden method.
DOCUMENTED_ELSEWHERE = frozenset({"setter", "deleter", "overload", "override"})


def undocumented(modules: Iterable[Module]) -> list[str]:
    """Dotted names of the public methods without a docstring of their own or of a class of ours above."""
    known = classes(modules)

    def is_documented_above(name: str, method: str) -> bool:
        above = [base for base in known[name].bases if base in known and base != name]
        return any(_documents(known[base].node, method) or is_documented_above(base, method) for base in above)

    return [
        f"{name}.{method.name}"
        for name, entry in known.items()
        if not entry.node.name.startswith("_") and isinstance(entry.owner, ast.Module | ast.ClassDef)
        for method in _methods(entry.node)
        if not method.name.startswith("_")
        and not {last_name(mark) for mark in method.decorator_list} & DOCUMENTED_ELSEWHERE
        and ast.get_docstring(method) is None
        and not is_documented_above(name, method.name)
    ]


def _methods(node: ast.ClassDef) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]


def _documents(node: ast.ClassDef, method: str) -> bool:
    attributes = {
        item.target.id for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }
    return method in attributes or any(item.name == method and ast.get_docstring(item) for item in _methods(node))


NO_VERBS = frozenset("A An All Any Each How If It Its One Or That The These This What When Where Whether Which".split())


def not_imperative(module: Module) -> list[str]:
    """Public functions whose docstring does not begin with a verb that tells the function what to do."""
    found: list[str] = []
    for definition in definitions(module):
        node, owner = definition.node, definition.owner
        if isinstance(node, ast.ClassDef) or not isinstance(owner, ast.Module | ast.ClassDef):
            continue
        is_private = any(part.startswith("_") for part in definition.name.split("."))
        is_property = any("property" in last_name(mark) for mark in node.decorator_list)
        first = (ast.get_docstring(node) or "Do").split()[0].rstrip(".,:")
        is_third_person = first.endswith("s") and not first.endswith("ss")
        if not is_private and not is_property and (first in NO_VERBS or is_third_person or not first[0].isupper()):
            found.append(f"{definition.name}: begins with {first!r}")
    return found


def test_first_lines_are_imperative():
    assert [line for module in read_package() for line in not_imperative(module)] == []


@pytest.mark.parametrize("line", ["Returns the sum.", "The sum.", "Whether it is.", "`x` plus one.", "sum up."])
def test_a_line_that_is_no_order_is_refused(line: str):
    for text in ('def f():\n    """{}"""', 'class A:\n    def f(self):\n        """{}"""'):
        assert len(not_imperative(Module("m", text.format(line)))) == 1


@pytest.mark.parametrize("line", ["Return the sum.", "Pass it on.", "Number the rows."])
def test_an_order_is_taken(line: str):
    assert not_imperative(Module("m", f'def f():\n    """{line}"""')) == []


def test_nouns_are_taken_where_they_belong():
    text = 'def _f():\n    """The sum."""\nclass A:\n    @cached_property\n    def f(self):\n        """The sum."""'
    assert not_imperative(Module("m", text)) == []


def test_public_methods_are_documented():
    assert undocumented(read_package()) == []


REFUSED = {
    "method": "class A:\n    def f(self): ...",
    "forward": "class A(nn.Module):\n    def forward(self, x): ...",
    "overriding_an_undocumented": "class _A:\n    def f(self): ...\nclass B(_A):\n    def f(self): ...",
    "property": "class A:\n    @property\n    def f(self): ...",
}
TAKEN = {
    "documented": 'class A:\n    def f(self):\n        """Do."""',
    "private": "class A:\n    def _f(self): ...\nclass _B:\n    def f(self): ...",
    "local": "def g():\n    class A:\n        def f(self): ...",
    "overriding": 'class A:\n    def f(self):\n        """Do."""\nclass B(A): ...\nclass C(B):\n    def f(self): ...',
    "setter": 'class A:\n    @property\n    def f(self):\n        """Do."""\n    @f.setter\n    def f(self, x): ...',
}


@pytest.mark.parametrize("canary", REFUSED)
def test_the_rule_refuses(canary: str):
    assert len(undocumented([Module("m", REFUSED[canary])])) == 1


@pytest.mark.parametrize("sample", TAKEN)
def test_the_rule_takes(sample: str):
    assert undocumented([Module("m", TAKEN[sample])]) == []
