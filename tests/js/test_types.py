"""Types of the package in JavaScript: TypeScript finds no error in its comments, and they are those it declares."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.js.node import MODULES, PACKAGE, TYPE_OPTIONS, changed_package
from tests.thorough import thinned

TSC = shutil.which("tsc") or shutil.which("tsc", path=MODULES / ".bin")
needs_typescript = pytest.mark.skipif(TSC is None, reason="needs TypeScript, which make js installs with npm")
pytestmark = needs_typescript


def errors(package: Path, *options: str, file: str = "index.js") -> str:
    """Messages of TypeScript; the types of ONNX Runtime are left out, because it may not be installed."""
    (package / "runtime.d.ts").write_text("declare module 'onnxruntime-web';\n", encoding="utf-8")
    command = (str(TSC), *TYPE_OPTIONS, "--allowJs", *options, file, "runtime.d.ts")
    return subprocess.run(command, cwd=package, capture_output=True, encoding="utf-8", check=False).stdout


def differences(package: Path) -> str:
    """Messages of TypeScript about the declared types beside those of the modules."""
    (package / "index.d.ts").rename(package / "declared.d.ts")
    shutil.copy(Path(__file__).with_name("types.ts"), package)
    return errors(package, file="types.ts")


def test_types_are_right_and_a_wrong_one_is_found(tmp_path: Path):
    shutil.copytree(PACKAGE, tmp_path / "right", ignore=shutil.ignore_patterns("runtime"))
    assert errors(tmp_path / "right", "--checkJs") == ""
    wrong = changed_package(tmp_path / "wrong", "faults.js", "return hasLoop(output)", "return 7 + hasLoop(output)")
    assert "faults.js" in errors(wrong, "--checkJs")


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


def test_what_is_declared_is_what_the_modules_have(tmp_path: Path):
    shutil.copytree(PACKAGE, tmp_path / "right", ignore=shutil.ignore_patterns("runtime"))
    assert differences(tmp_path / "right") == ""


@pytest.mark.parametrize("number", thinned(range(len(WRONG)), 7))
def test_a_declaration_that_has_drifted_is_found(number: int, tmp_path: Path):
    text, other, check = WRONG[number]
    found = differences(changed_package(tmp_path / "wrong", "index.d.ts", text, other))
    lines = Path(__file__).with_name("types.ts").read_text("utf-8").splitlines()
    (line,) = (index for index, one in enumerate(lines, 1) if one.startswith(f"  {check}: true"))
    assert f"types.ts({line}," in found, found
