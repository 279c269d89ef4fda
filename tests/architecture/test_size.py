"""Modules, functions and parameter lists stay small enough to be read at once."""

import ast

import pytest

from tests.architecture.package import Function, Module, definitions, read_package, unexcused

MODULE_LINES = 450
KERNEL_LINES = 600
FUNCTION_LINES = 50
FORWARD_PARAMETERS = 8
CONSTRUCTOR_PARAMETERS = 12

# Dotted name -> why it may be larger than that.
PROGRAM = "one program of a GPU: what it loops over stays in registers, which no function of it can be given"
EXCEPTIONS: dict[str, str] = {
    f"heedful.attention.kernels.{name}": PROGRAM
    for name in (
        "additive.triton_kernels.score_tile",
        "additive.triton_kernels.gradient_tile",
        "fused.triton_kernels.attend_rows",
        "fused.triton_kernels.slope_rows",
        "distance.triton_kernels.distance_gradient",
    )
}


def num_lines(function: Function) -> int:
    """Lines of a function without its docstring and without the functions in it, which are counted for themselves."""
    lines = set(range(function.lineno, (function.end_lineno or function.lineno) + 1))
    for node in ast.walk(function):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node is not function:
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None:
        lines -= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(lines)


def num_parameters(method: Function) -> int:
    """Parameters besides `self`; ``*args`` and ``**kwargs`` are one each."""
    given = method.args
    variable = [argument for argument in (given.vararg, given.kwarg) if argument is not None]
    return len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs) + len(variable) - 1


def oversized(module: Module) -> dict[str, str]:
    """What in a module is too large: dotted name -> complaint."""
    found: dict[str, str] = {}
    limit = KERNEL_LINES if module.name.startswith("heedful.attention.kernels.") else MODULE_LINES
    # Examples are read with the class that they show, and do not make a module harder to read.
    lines = sum(not line.lstrip().startswith(">>>") for line in module.text.splitlines())
    if lines > limit:
        found[module.name] = f"{module.name}: {lines} lines, at most {limit}"
    for definition in definitions(module):
        node = definition.node
        if isinstance(node, ast.ClassDef):
            continue
        if num_lines(node) > FUNCTION_LINES:
            found[definition.name] = f"{definition.name}: {num_lines(node)} lines, at most {FUNCTION_LINES}"
        most = {"forward": FORWARD_PARAMETERS, "__init__": CONSTRUCTOR_PARAMETERS}.get(node.name)
        if isinstance(definition.owner, ast.ClassDef) and most is not None and num_parameters(node) > most:
            found[definition.name] = f"{definition.name}: {num_parameters(node)} parameters, at most {most}"
    return found


def test_nothing_is_too_large():
    found: dict[str, str] = {}
    for module in read_package():
        found |= oversized(module)
    assert unexcused(found, EXCEPTIONS) == []


def _function(lines: int, docstring_lines: int = 0) -> str:
    docstring = ['    """First.', *["    more"] * (docstring_lines - 2), '    """'] if docstring_lines else []
    return "\n".join(["def f(x):", *docstring, *["    x += 1"] * (lines - 1)]) + "\n"


CANARIES = {
    "module": ("heedful.text.large", "x = 1\n" * 451, "451 lines"),
    "kernel": ("heedful.attention.kernels.large", "x = 1\n" * 601, "601 lines"),
    "function": ("m", _function(51), "51 lines"),
    "method": ("m", "class A:\n" + "".join(f"    {line}\n" for line in _function(51).split("\n")), "51 lines"),
    "forward": ("m", "class A:\n    def forward(self, a, b, c, d, e, f, *, g, h, i): ...\n", "9 parameters"),
    "constructor": ("m", "class A:\n    def __init__(self, " + ", ".join("abcdefghijkl") + ", **m): ...\n", "13 par"),
}


@pytest.mark.parametrize("canary", CANARIES)
def test_the_rule_refuses(canary: str):
    name, text, complaint = CANARIES[canary]
    (found,) = oversized(Module(name, text)).values()
    assert complaint in found


def test_the_rule_takes_what_is_just_small_enough():
    nested = "def outer():\n" + "".join(f"    {line}\n" for line in _function(50).split("\n")) + "    x = 1\n" * 45
    parameters = "class A:\n    def forward(self, a, b, c, d, e, f, *, g, h): ...\n"
    texts = [_function(50), _function(50, docstring_lines=30), nested, parameters, "x = 1\n" * 450]
    assert [oversized(Module("m", text)) for text in texts] == [{}] * len(texts)
    assert oversized(Module("heedful.attention.kernels.fast", "x = 1\n" * 600)) == {}
