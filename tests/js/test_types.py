"""Types of the package in JavaScript: TypeScript finds no error in its comments, and they are those it declares."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.js.node import MODULES, PACKAGE, TYPE_OPTIONS, changed_package
from tests.thorough import is_thorough

TSC = shutil.which("tsc") or shutil.which("tsc", path=MODULES / ".bin")
needs_typescript = pytest.mark.skipif(TSC is None, reason="needs TypeScript, which make js installs with npm")
pytestmark = needs_typescript


def errors(folder: Path, *options: str, files: Sequence[str]) -> str:
    """Messages of TypeScript about packages in a folder, in one run of it, most of which reads the types of browsers.

    The types of ONNX Runtime are left out, because it may not be installed.
    """
    (folder / "runtime.d.ts").write_text("declare module 'onnxruntime-web';\n", encoding="utf-8")
    command = (str(TSC), *TYPE_OPTIONS, "--allowJs", *options, *files, "runtime.d.ts")
    return subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False).stdout


def with_declared(package: Path) -> Path:
    """A package whose declared types stand beside those of its modules, and the comparison of both."""
    (package / "index.d.ts").rename(package / "declared.d.ts")
    shutil.copy(Path(__file__).with_name("types.ts"), package)
    return package


def test_types_are_right_and_a_wrong_one_is_found(tmp_path: Path):
    shutil.copytree(PACKAGE, tmp_path / "right", ignore=shutil.ignore_patterns("runtime"))
    changed_package(tmp_path / "wrong", "faults.js", "return hasLoop(output)", "return 7 + hasLoop(output)")
    found = errors(tmp_path, "--checkJs", files=("right/index.js", "wrong/index.js")).splitlines()
    assert found
    assert [line for line in found if not line.startswith(("wrong/faults.js", " "))] == []


# Declarations, each with one in its place that is not that of the modules, and the check that fails.
WRONG = (
    ("  search?: Partial<SearchConfig>;\n", "", "TranslationModel"),
    ("  stopping: 'likely' | 'full' | 'certain';", "  stopping: string;", "TranslationModel"),
    (
        "translateText(text: string, options?: SearchOptions)",
        "translateText(text: string, options?: Omit<SearchOptions, 'search'>)",
        "TranslationModel",
    ),
    ("  wasCut: boolean;\n  sourcePieces", "  sourcePieces", "TranslationModel"),
    ("readonly languages: [string, string];", "readonly languages: string[];", "TranslationModel"),
    (
        "encode(texts: readonly string[], options?: { signal?: AbortSignal })",
        "encode(texts: readonly string[])",
        "ClassificationModel",
    ),
    ("  span: {", "  span?: {", "AnswerModel"),
    ("  grid: [number, number];", "  grid: number[];", "CaptionModel"),
    ("release(): Promise<void>;", "release(): void;", "CaptionModel"),
    ("  signal?: AbortSignal;\n}\n\n/**\n * Load", "}\n\n/**\n * Load", "load"),
    ("source: string | URL | ", "source: string | ", "load"),
    ("message: string, cause?: unknown);", "message: string);", "constructor_of_ModelError"),
    ("'picture' | 'memory';", "'picture';", "ModelError"),
    ("export class ModelError", "export const VERSION: string;\nexport class ModelError", "exports"),
)


FIRST = [*{check: number for number, (*_, check) in reversed([*enumerate(WRONG)])}.values()]
"""By check, the first declaration that fails it."""


@pytest.mark.parametrize("numbers", [FIRST, *map(is_thorough, ([number] for number in range(len(WRONG))))], ids=str)
def test_what_is_declared_is_what_the_modules_have_and_what_has_drifted_is_found(numbers: list[int], tmp_path: Path):
    shutil.copytree(PACKAGE, tmp_path / "right", ignore=shutil.ignore_patterns("runtime"))
    wrong = Path(shutil.copytree(tmp_path / "right", tmp_path / "wrong"))
    declared = (wrong / "index.d.ts").read_text("utf-8")
    for text, other, _ in (WRONG[number] for number in numbers):
        assert declared.count(text) == 1, text
        declared = declared.replace(text, other)
    (wrong / "index.d.ts").write_text(declared, encoding="utf-8", newline="\n")
    files = [f"{with_declared(tmp_path / name).name}/types.ts" for name in ("right", "wrong")]
    found = errors(tmp_path, files=files)
    lines = Path(__file__).with_name("types.ts").read_text("utf-8").splitlines()
    for number in numbers:
        *_, check = WRONG[number]
        (line,) = (index for index, one in enumerate(lines, 1) if one.startswith(f"  {check}: true"))
        assert f"wrong/types.ts({line}," in found, found
    assert "right/" not in found, found
