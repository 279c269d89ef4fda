"""Import rules: names from the module that defines them, layers in one direction, no PyTorch at run time."""

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Collection, Container, Iterable, Mapping
from pathlib import Path
from typing import Any

import grimp
import pytest

from tests.architecture.package import ROOT, SOURCE, Module, read_package

# What runs a model; DESIGN: none of it reaches torch or numba.
RUN_TIME = frozenset(
    {"errors", "config", "files", "text", "data", "search", "engines", "evaluation", "pages", "predictors"}
    | {"serving"}
)


def imports_from_packages(module: Module, packages: Container[str], modules: Container[str]) -> list[str]:
    """Imports that take a name from a package's `__init__` instead of from the module that defines it."""
    found: list[str] = []
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            found.append(f"{module.name}:{node.lineno}: relative import: write the whole dotted name")
        elif node.module in packages:
            found += [
                f"{module.name}:{node.lineno}: {alias.name} comes from {node.module}'s __init__: name its own module"
                for alias in node.names
                if f"{node.module}.{alias.name}" not in modules
            ]
    return found


def test_names_are_imported_from_the_module_that_defines_them():
    modules = read_package()
    names = {module.name for module in modules}
    packages = {name.rpartition(".")[0] for name in names} - {""}
    found = [line for module in modules for line in imports_from_packages(module, packages, names)]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "from heedful.text import read_lines",
        "from heedful import load",
        "def f():\n    from heedful.text import corpus, read_lines",
        "from heedful.text import *",
        "from . import corpus",
        "from .corpus import read_lines",
    ],
)
def test_an_import_from_an_init_is_refused(text: str):
    packages, modules = {"heedful", "heedful.text"}, {"heedful", "heedful.text", "heedful.text.corpus"}
    assert len(imports_from_packages(Module("heedful.cli.train", text), packages, modules)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "from heedful.text.corpus import read_lines",
        "from heedful.text import corpus",
        "from heedful import text",
        "from heedful.version import __version__",
        "import heedful.text.corpus",
        "from numpy import ndarray",
    ],
)
def test_an_import_from_a_module_is_taken(text: str):
    packages, modules = {"heedful", "heedful.text"}, {"heedful", "heedful.text", "heedful.text.corpus"}
    assert imports_from_packages(Module("heedful.cli.train", text), packages, modules) == []


def contracts() -> list[dict[str, Any]]:
    return tomllib.loads((ROOT / "pyproject.toml").read_bytes().decode())["tool"]["importlinter"]["contracts"]


def training_imports(modules: Iterable[Module]) -> list[str]:
    """What the training loop imports of texts and data: the interfaces of batches, and nothing of pairs."""
    found: list[str] = []
    for module in modules:
        if not module.name.startswith("heedful.training.") or module.name in LOSSES:
            continue
        for node in ast.walk(module.tree):
            name = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            if name.startswith(("heedful.data", "heedful.text", "heedful.tasks")) and name != "heedful.data.batch":
                found.append(f"{module.name}: {name}")
            if name == "heedful.models.interface":
                found.append(f"{module.name}: {name}")
    return found


LOSSES = tuple(f"heedful.training.{name}" for name in ("pair_step", "label_step", "sequence_loss", "padded_batches"))
"""The losses of single tasks, which tasks choose and nothing else in training imports."""


def test_training_knows_nothing_of_pairs():
    assert training_imports(read_package()) == []


@pytest.mark.parametrize(
    "line",
    [
        "from heedful.data.batching import PairBatch",
        "from heedful.text.vocabulary import EOS",
        "from heedful.models.interface import Seq2Seq",
        "def f():\n    from heedful.data.encoded import EncodedCorpus",
    ],
)
def test_a_pair_in_training_is_refused(line: str):
    assert len(training_imports([Module("heedful.training.loop", line)])) == 1
    assert training_imports([Module("heedful.training.pair_step", line), Module("heedful.data.prepare", line)]) == []


def run_contracts(source: Path, folder: Path) -> tuple[int, str]:
    """Check the package in `source` by the contracts of pyproject.toml, from `folder`: exit status and output."""
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--no-cache", "--config", str(ROOT / "pyproject.toml")],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(source), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def unguarded(present: Iterable[str], guarded: Iterable[str]) -> set[str]:
    """Parts of the package that run models, are there, and are not held to the contract that forbids torch."""
    return {f"heedful.{name}" for name in RUN_TIME & set(present)} - set(guarded)


def test_the_import_contracts_hold(tmp_path: Path):
    status, output = run_contracts(SOURCE, tmp_path)
    assert status == 0, output


def test_all_that_runs_models_is_under_the_contract():
    (forbidden,) = [contract for contract in contracts() if contract["type"] == "forbidden"]
    assert set(forbidden["forbidden_modules"]) == {"torch", "numba"}
    present = [path.stem for path in (SOURCE / "heedful").iterdir()]
    assert unguarded(present, forbidden["source_modules"]) == set()


def test_a_part_outside_the_contract_is_refused():
    assert unguarded(["text", "serving", "models"], ["heedful.text"]) == {"heedful.serving"}


PLANTED = {
    "nothing": ("data/corpus.py", "import heedful.errors\n", None),
    "upward": ("data/corpus.py", "import heedful.search\n", "One direction BROKEN"),
    "sibling": ("training/loop.py", "import heedful.export\n", "One direction BROKEN"),
    "undeclared": ("novelty.py", "", "heedful.novelty"),
    "torch": ("search/beam.py", "def f():\n    import torch\n", "only run BROKEN"),
    "numba_indirectly": ("evaluation/report.py", "import heedful.attention\n", "only run BROKEN"),
}


@pytest.mark.parametrize("canary", PLANTED)
def test_the_contracts_refuse(canary: str, tmp_path: Path):
    (layers,) = [contract["layers"] for contract in contracts() if contract["type"] == "layers"]
    package = tmp_path / "heedful"
    for name in {part.strip(" ()") for layer in layers for part in layer.split("|")}:
        (package / name).mkdir(parents=True)
        (package / name / "__init__.py").write_bytes(b"import numba\n" if name == "attention" else b"")
    (package / "__init__.py").write_bytes(b"")
    file, text, complaint = PLANTED[canary]
    (package / file).write_bytes(text.encode())
    status, output = run_contracts(tmp_path, tmp_path)
    assert status == (0 if complaint is None else 1), output
    assert complaint is None or complaint in output


def import_cycles(imports: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Groups of modules each of which is reached from itself, by what each module imports."""
    reached = {module: set(targets) for module, targets in imports.items()}
    for middle in imports:
        for targets in reached.values():
            if middle in targets:
                targets |= reached[middle]
    groups = {
        tuple(sorted(other for other in targets if module in reached.get(other, ())))
        for module, targets in reached.items()
    }
    return [list(group) for group in sorted(groups) if group]


def test_no_files_import_each_other():
    # Imports inside functions and those for type checkers count too.
    graph = grimp.build_graph("heedful", exclude_type_checking_imports=False, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imports) > 200
    assert import_cycles(imports) == []


def test_a_cycle_is_found():
    imports = {"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a"], "e": ["e"]}
    assert import_cycles(imports) == [["b", "c"], ["e"]]


def test_translation_imports_neither_evaluation_nor_pages_nor_readers_of_documents():
    """They take as long to import as the rest, and a single sentence needs none of them."""
    code = (
        "import heedful.cli.decoding, heedful.predictors.translator, sys; "
        "print(*(name for name in sys.modules if name.startswith(('heedful.evaluation.', 'heedful.pages.', "
        "'heedful.data.prepare', 'heedful.documents.'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {*done.stdout.split()} == {
        "heedful.documents.interface",
        "heedful.documents.table",
        "heedful.evaluation.shown",
    }
