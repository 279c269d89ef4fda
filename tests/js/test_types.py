"""Types of the package in JavaScript, which its comments name: TypeScript finds no error in them."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.js.node import MODULES, PACKAGE, TYPE_OPTIONS, changed_package

TSC = shutil.which("tsc") or shutil.which("tsc", path=MODULES / ".bin")
needs_typescript = pytest.mark.skipif(TSC is None, reason="needs TypeScript, which make js installs with npm")


def errors(package: Path) -> str:
    """What TypeScript says; the types of ONNX Runtime are left out, because it may not be installed."""
    (package / "runtime.d.ts").write_text("declare module 'onnxruntime-web';\n", encoding="utf-8")
    command = (str(TSC), *TYPE_OPTIONS, "--allowJs", "--checkJs", "index.js", "runtime.d.ts")
    return subprocess.run(command, cwd=package, capture_output=True, encoding="utf-8", check=False).stdout


@needs_typescript
def test_types_are_right_and_a_wrong_one_is_found(tmp_path: Path):
    shutil.copytree(PACKAGE, tmp_path / "right", ignore=shutil.ignore_patterns("runtime"))
    assert errors(tmp_path / "right") == ""
    wrong = changed_package(tmp_path / "wrong", "faults.js", "return hasLoop(output)", "return 7 + hasLoop(output)")
    assert "faults.js" in errors(wrong)
