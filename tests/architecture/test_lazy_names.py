"""Packages that offer names of their modules: all of them, loaded on first use, known to type checkers."""

import ast
import importlib
import inspect
from collections.abc import Collection, Iterable, Mapping

import pytest

from tests.architecture.package import SOURCE, Module, definitions, read_package
from tests.architecture.test_fresh_process import HEAVY, LOADED, run

PACKAGES = ("heedful", "heedful.attention", "heedful.layers")


def typed_names(module: Module) -> dict[str, tuple[str, str]]:
    """What a package imports for type checkers: name -> (module, name there)."""
    found: dict[str, tuple[str, str]] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for line in node.body:
                assert isinstance(line, ast.ImportFrom), ast.unparse(line)
                found |= {alias.asname or alias.name: (line.module or "", alias.name) for alias in line.names}
    return found


def unoffered(modules: Iterable[Module], prefix: str, offered: Collection[str]) -> list[str]:
    """Public classes of a package's modules that it does not offer."""
    return [
        definition.name
        for module in modules
        if module.name.startswith(f"{prefix}.")
        for definition in definitions(module)
        if definition.owner is module.tree
        and isinstance(definition.node, ast.ClassDef)
        and not definition.node.name.startswith("_")
        and definition.node.name not in offered
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_a_package_loads_nothing_heavy(package: str):
    assert run(LOADED, [f"import {package}", HEAVY], SOURCE) == []


def test_a_name_brings_what_it_needs():
    code = "from heedful.attention import NadarayaWatsonRegressor"
    assert run(LOADED, [code, ("torch", "numpy")], SOURCE) == ["numpy"]
    assert run(LOADED, ["from heedful.layers import Residual", ("torch",)], SOURCE) == ["torch"]


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_is_what_type_checkers_think(name: str):
    package = importlib.import_module(name)
    (module,) = [module for module in read_package() if module.name == name]
    typed = typed_names(module)
    assert {*typed} == {*package.__all__} - {"__version__"}
    for offered, (source, there) in typed.items():
        assert getattr(package, offered) is getattr(importlib.import_module(source), there)
    assert dir(package) == sorted(package.__all__)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_name_that_is_not_there(name: str):
    package = importlib.import_module(name)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'attned'"):
        _ = package.attned


def test_modules_are_still_found_below_their_package():
    code = "import heedful.regression.estimator as module\nassert module.toy_data\nimport heedful.layers.residual"
    assert run(LOADED, [code, ()], SOURCE) == []


def unoffered_members(table: Mapping[str, object], offered: Collection[str]) -> list[str]:
    return [name for name, member in table.items() if getattr(member, "__name__", "") not in offered]


def test_every_score_mask_and_normalizer_is_offered():
    import heedful.attention as package
    from heedful.attention.masks import MASKS
    from heedful.attention.normalizers import NORMALIZERS
    from heedful.attention.scores import SCORES

    missing = [unoffered_members(table, package.__all__) for table in (SCORES, NORMALIZERS, MASKS)]
    assert missing == [[], [], []], "name them in heedful/attention/__init__.py"
    assert unoffered_members({"dot": SCORES["dot"], "cosine": SCORES["cosine"]}, {"Dot"}) == ["cosine"]


def test_the_table_of_masks_is_complete():
    from heedful.attention import masks

    makers = [
        name
        for name, function in inspect.getmembers(masks, inspect.isfunction)
        if inspect.signature(function).return_annotation is masks.Mask
    ]
    assert sorted(masks.MASKS) == sorted(makers)


def test_every_layer_is_offered():
    import heedful.layers as package

    # Fast forms are no layers: `accelerate` puts them into a model.
    modules = [module for module in read_package() if not module.name.startswith("heedful.layers.cpu.")]
    missing = unoffered(modules, "heedful.layers", package.__all__)
    assert missing == [], "name them in heedful/layers/__init__.py"


def test_a_layer_that_is_not_offered_is_found():
    text = "class A: ...\nclass _B: ...\ndef f(): ...\nif True:\n    class C: ...\n"
    modules = [Module("heedful.layers.novel", text), Module("heedful.models.novel", text)]
    assert unoffered(modules, "heedful.layers", {"C"}) == ["heedful.layers.novel.A"]
