"""Order of collectives: no exchange between processes stands in a loop whose order may differ between them.

Sets, mappings (those read from a file are filled in a random order) and listings of folders are in another order in
each process. A collective for each of their entries pairs tensors that do not belong together, or aborts the process.
"""

import ast
from collections.abc import Iterator, Sequence

import pytest

from tests.architecture.package import Module, definitions, dotted, read_package

EXCHANGES = frozenset(
    "broadcast broadcast_object_list all_reduce all_gather all_gather_into_tensor all_gather_object all_to_all "
    "all_to_all_single reduce reduce_scatter reduce_scatter_tensor scatter gather gather_object send recv barrier "
    "full_tensor redistribute distribute_tensor first".split()
)
MAPS = frozenset({"map", "imap", "starmap", "tree_map"})
"""Functions that call their first argument for each entry of the others."""
KEEPS_ORDER = frozenset({"enumerate", "zip", "reversed", "list", "tuple", "iter", "next"})
"""Functions whose result is as ordered as their arguments."""
ORDERED_CALLS = frozenset({"sorted", "range", "count", "parameters", "named_parameters", "modules", "named_modules"})
ORDERED_TYPES = frozenset({"Sequence", "list", "tuple", "Generator", "Iterator"})


def is_talking(module: Module) -> bool:
    """Whether a module knows of other processes."""
    return any(f"{name} import" in module.text for name in ("training.distributed", "training.sharding")) or (
        "torch.distributed" in module.text or "import distributed" in module.text
    )


def collectives(modules: Sequence[Module]) -> frozenset[str]:
    """Names of all functions that exchange something, directly or through one another."""
    calls = {
        definition.node.name: calls_in(definition.node)
        for module in modules
        for definition in definitions(module)
        if isinstance(definition.node, ast.FunctionDef)
    }
    found = EXCHANGES
    while larger := {name for name, called in calls.items() if called & found} - found:
        found |= larger
    return found


def calls_in(node: ast.AST) -> frozenset[str]:
    return frozenset(
        called.func.attr if isinstance(called.func, ast.Attribute) else dotted(called.func)
        for called in ast.walk(node)
        if isinstance(called, ast.Call)
    )


def is_ordered(expression: ast.expr, scope: ast.AST, above: frozenset[str] = frozenset()) -> bool:
    """Whether an expression has one order in all processes, as far as a scope shows.

    Args:
        above: names that are being looked at, which say nothing of themselves.
    """
    match expression:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return all(is_ordered(one.value, scope, above) for one in elements if isinstance(one, ast.Starred))
        case ast.ListComp(generators=generators) | ast.GeneratorExp(generators=generators):
            return all(is_ordered(each.iter, scope, above) for each in generators)
        case ast.Call(func=function, args=arguments):
            name = function.attr if isinstance(function, ast.Attribute) else dotted(function)
            if name in KEEPS_ORDER:
                return all(is_ordered(each, scope, above) for each in arguments)
            return name in ORDERED_CALLS or _is_declared_ordered(name)
        case ast.Name(id=name):
            if name in above:
                return True
            declared = [
                dotted(argument.annotation) in ORDERED_TYPES
                for argument in ast.walk(scope)
                if isinstance(argument, ast.arg) and argument.arg == name and argument.annotation is not None
            ]
            values = [is_ordered(value, scope, above | {name}) for value in _assigned(name, scope)]
            return bool(declared or values) and all(values) and (bool(values) or all(declared))
    return False


def _assigned(name: str, scope: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == name for to in node.targets):
            yield node.value


def _is_declared_ordered(name: str) -> bool:
    return any(
        definition.node.returns is not None and dotted(definition.node.returns) in ORDERED_TYPES
        for module in read_package()
        if is_talking(module)
        for definition in definitions(module)
        if isinstance(definition.node, ast.FunctionDef) and definition.node.name == name
    )


def loops(node: ast.AST) -> Iterator[tuple[list[ast.expr], list[ast.AST]]]:
    """What each loop runs over, and what it does."""
    for each in ast.walk(node):
        if isinstance(each, ast.For):
            yield [each.iter], list(each.body)
        elif isinstance(each, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            made = [each.key, each.value] if isinstance(each, ast.DictComp) else [each.elt]
            tests = [test for part in each.generators for test in part.ifs]
            inner = [part.iter for part in each.generators[1:]]
            yield [part.iter for part in each.generators], [*made, *tests, *inner]
        elif isinstance(each, ast.Call) and dotted(each.func).rpartition(".")[2] in MAPS and each.args:
            called = each.args[0]
            yield each.args[1:], [called if isinstance(called, ast.Lambda) else ast.Call(called, [], [])]
        elif isinstance(each, ast.While):
            popped = [call for call in ast.walk(each) if isinstance(call, ast.Call) and _pops(call)]
            yield [*popped], list(each.body)


def _pops(call: ast.Call) -> bool:
    """Whether a call takes some entry out of a set or a mapping; `pop(0)` and `popleft()` are those of sequences."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
    return name in ("popitem", "next") or (name == "pop" and not call.args)


def unordered(modules: Sequence[Module]) -> list[str]:
    """Loops with a collective whose order may differ between processes."""
    talking = [module for module in modules if is_talking(module)]
    exchanging = collectives(talking)
    return [
        f"{module.name}.{definition.node.name}, line {over.lineno}: {ast.unparse(over)} has no order that is the same "
        f"in all processes, but {', '.join(sorted(called))} exchanges something for each: use sorted()"
        for module in talking
        for definition in definitions(module)
        if isinstance(definition.node, ast.FunctionDef)
        for overs, body in loops(definition.node)
        if (called := frozenset[str]().union(*(calls_in(part) for part in body)) & exchanging)
        for over in overs
        if not is_ordered(over, definition.node)
    ]


def test_every_loop_with_a_collective_has_one_order():
    assert unordered(read_package()) == []


@pytest.mark.parametrize(
    "loop",
    [
        "for name, tensor in tensors.items(): whole(tensor)",
        "for name in set(names): whole(name)",
        "for name in {1, 2}: whole(name)",
        "for name in tensors: whole(name)",
        "for path in folder.iterdir(): ranks.first(path)",
        "for path in folder.glob('*'): indirect(path)",
        "{name: whole(tensor) for name, tensor in tensors.items()}",
        "[whole(tensor) for tensor in zip(names, tensors.values())]",
        "[indirect(tensor) for group in names for tensor in tensors[group]]",
        "list(map(whole, tensors.values()))",
        "[*map(whole, set(names))]",
        "any(map(lambda tensor: whole(tensor), tensors.values()))",
        "while tensors: whole(tensors.popitem()[1])",
        "while waiting: whole(waiting.pop())",
        "for name in [*tensors]: whole(name)",
        "for name in (*tensors.items(),): whole(name)",
        "names = sorted(names); names = set(names)\n    for name in names: whole(name)",
        "[0 for tensor in tensors if whole(tensor)]",
        "{key: 0 for key in tensors for name in [whole(key)]}",
        "entries = iter(tensors)\n    while True: whole(next(entries))",
        "tree_map(whole, tensors)",
        "pool.map(whole, tensors.values())",
        "for name in tensors: torch.distributed.all_gather_object(names, name)",
    ],
)
def test_a_loop_without_one_is_found(loop: str):
    text = "from heedful.training.sharding import whole\nimport torch.distributed\n"
    text += "def whole(tensor): return tensor.full_tensor()\ndef indirect(tensor): return whole(tensor)\n"
    text += f"def restore(names: list[str], tensors: Mapping[str, Tensor]):\n    {loop}\n"
    assert unordered([Module("planted", text)]) != []


def test_loops_that_have_one_pass():
    text = "from heedful.training.sharding import whole\n"
    text += "def restore(names: list[str], tensors: Mapping[str, Tensor], model):\n"
    ordered = ("sorted(tensors)", "names", "range(3)", "model.parameters()", "enumerate(names)", "[names, *names]")
    for over in ordered:
        text += f"    for name in {over}: whole(name)\n"
    assert unordered([Module("planted", text.replace("whole(name)", "name.full_tensor()"))]) == []
