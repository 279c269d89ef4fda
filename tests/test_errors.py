"""Errors of packages that are not installed: never a bare ModuleNotFoundError from a public function."""

import subprocess
import sys

import pytest

from heedful.errors import EXTRAS, MissingExtra, missing_extra, needed_for
from tests.architecture.package import SOURCE
from tests.cli.conftest import Trained

SCRIPT = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "numba"):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
import heedful, heedful.attention, heedful.layers
from heedful.errors import MissingExtra

MODEL, DATA = {model!r}, {data!r}
for call in {calls!r}:
    try:
        eval(call)
    except MissingExtra as error:
        assert "needs PyTorch: pip install" in str(error), call
    else:
        raise AssertionError(call)
"""
CALLS = [
    "heedful.train(DATA)",
    "heedful.compare('grid.toml', DATA)",
    "heedful.attention.attend",
    "heedful.layers.MultiheadAttention",
    "heedful.load(MODEL).model()",
    "heedful.load(MODEL).translate(['a'])",
    "heedful.load(MODEL).align([('a', 'b')])",
    "heedful.load(MODEL).score([('a', 'b')])",
    "heedful.load(MODEL).evaluate(DATA)",
    "heedful.load(MODEL, engine='torch').translate(['a'])",
]


def test_every_public_function_says_how_to_install_pytorch(trained: Trained):
    script = SCRIPT.format(model=str(trained.model), data=str(trained.data), calls=CALLS)
    environment = {"PYTHONPATH": str(SOURCE), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("package", EXTRAS)
def test_a_missing_part_of_an_optional_package_names_its_extra(package: str):
    with pytest.raises(MissingExtra, match=rf"this needs .*\[{EXTRAS[package]}\]"), needed_for("this"):
        raise ModuleNotFoundError(name=f"{package}.part")


def test_another_missing_module_is_a_bug():
    assert missing_extra(ModuleNotFoundError(name="heedful.missing"), "this") is None
    with pytest.raises(ModuleNotFoundError), needed_for("this"):
        raise ModuleNotFoundError(name="heedful.missing")
