"""Modules that a fresh process loads: nothing heavy for a start, no PyTorch to run a model."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.architecture.package import SOURCE, read_package

HEAVY = ("torch", "numba", "ctranslate2", "onnxruntime", "onnx", "sacrebleu", "matplotlib", "transformers", "sklearn")
BLOCKED = ("torch", "numba")
RUN_TIME = ("errors", "config", "text", "search", "engines", "evaluation", "pages", "predictors", "serving")

# Runs `code`, then prints which of `heavy` it loaded.
LOADED = """
import json, sys
code, heavy = json.loads(sys.argv[1])
sys.argv = ["heedful", "--help"]
try:
    exec(code, {})
except SystemExit as stop:
    if stop.code:
        raise
print()
print(json.dumps([name for name in heavy if name in sys.modules]))
"""

# Imports `modules` one after the other where importing `blocked` raises, then prints what went wrong with each.
IMPORTED = """
import importlib, json, sys
modules, blocked = json.loads(sys.argv[1])

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ImportError(f"blocked: {name}")

sys.meta_path.insert(0, Blocker())
errors = {}
for name in modules:
    try:
        importlib.import_module(name)
    except Exception as error:
        errors[name] = [type(error).__name__, str(error), getattr(error, "name", None)]
print()
print(json.dumps(errors))
"""


def run(program: str, argument: object, source: Path) -> object:
    """Run a program in a fresh process that finds packages in `source`; what it printed last, from JSON."""
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(argument)],
        env=os.environ | {"PYTHONPATH": str(source), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.rpartition("\n\n")[2])


def import_failures(modules: Sequence[str], source: Path) -> dict[str, str]:
    """Modules that cannot be imported where torch and numba cannot: name -> error.

    What fails because an optional package is not installed here says nothing about torch and is left out.
    """
    ours = {name.partition(".")[0] for name in modules}
    errors = run(IMPORTED, [modules, BLOCKED], source)
    assert isinstance(errors, dict)
    return {
        name: f"{kind}: {message}"
        for name, (kind, message, missing) in errors.items()
        if kind != "ModuleNotFoundError" or not missing or missing.partition(".")[0] in ours
    }


def test_importing_heedful_loads_nothing_heavy():
    assert run(LOADED, ["import heedful", HEAVY], SOURCE) == []


def test_help_loads_nothing_heavy():
    if find_spec("heedful.cli.main") is None:
        pytest.skip("heedful.cli.main is not written yet")
    code = "from heedful.cli.main import main; main()"
    assert run(LOADED, [code, HEAVY], SOURCE) == []


def test_a_classifier_starts_without_what_only_other_tasks_need():
    code = "import heedful.cli.classify, heedful.predictors.classifier"
    others = (
        "search.beam",
        "engines.engine",
        "data.corpus",
        "data.batching",
        "data.answered_tables",
        "evaluation.labels",
    )
    assert run(LOADED, (code, [f"heedful.{name}" for name in others]), SOURCE) == []


def test_models_run_without_pytorch():
    names = [module.name for module in read_package() if f"{module.name}..".split(".")[1] in RUN_TIME]
    assert {"heedful.text", "heedful.search", "heedful.engines", "heedful.evaluation"} <= set(names)
    assert import_failures(names, SOURCE) == {}


def test_a_heavy_import_is_seen(tmp_path: Path):
    (tmp_path / "matplotlib.py").write_bytes(b"")
    assert run(LOADED, ["print('help')\nimport matplotlib\nraise SystemExit(0)", HEAVY], tmp_path) == ["matplotlib"]


def test_an_import_of_torch_is_seen(tmp_path: Path):
    texts = {
        "planted/__init__.py": "",
        "planted/direct.py": "import torch",
        "planted/indirect.py": "import planted.direct",
        "planted/lazy.py": "def f():\n    import torch",
        "planted/lost.py": "import planted.nowhere",
        "planted/optional.py": "import a_package_that_is_not_installed",
    }
    (tmp_path / "planted").mkdir()
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode())
    names = ["planted.direct", "planted.indirect", "planted.lazy", "planted.lost", "planted.optional"]
    failures = import_failures(names, tmp_path)
    assert list(failures) == ["planted.direct", "planted.indirect", "planted.lost"]
    assert failures["planted.indirect"] == "ImportError: blocked: torch"
