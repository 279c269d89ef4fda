"""Constructs that the package may not contain: checks that vanish, platform encodings, pickles, code from data."""

import ast
from collections.abc import Callable, Mapping

import pytest

from tests.architecture.package import Module, dotted, last_name, read_package, unexcused

# "dotted module: rule" -> why the module may.
EXCEPTIONS: dict[str, str] = {
    "heedful.layers.hugging_face: numeric_masks": "read from masks of transformers, which has it, and made a bool mask",
    "heedful.cpu.numba_cache: pickle": "machine code that Numba pickles, read once its checksum agrees",
}

PICKLES = frozenset({"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"})
PICKLING_CALLS = frozenset({"torch.load", "torch.save", "torch.serialization.load", "torch.serialization.save"})
UNSAFE_YAML = frozenset({"load", "load_all", "unsafe_load", "unsafe_load_all", "full_load", "full_load_all"})
# `open` as a function takes the mode second and defaults to text; as a method it takes it first.
OPENING_FUNCTIONS = frozenset({"open", "io.open", "os.fdopen", "codecs.open"})
COMPRESSED = frozenset({"gzip.open", "bz2.open", "lzma.open"})
OTHER_OPENS = frozenset(
    {"os.open", "webbrowser.open", "Image.open", "PIL.Image.open", "tarfile.open", "task.open", "learned.open"}
)
# Finite stand-ins for minus infinity: at least this large, and a power of ten or the end of a float's range.
SMALLEST_MASK = 1e4


def bans_assert(node: ast.AST) -> str | None:
    if isinstance(node, ast.Assert):
        return "assert vanishes under -O: raise from heedful.errors"
    return None


def bans_splitlines(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute) and node.attr == "splitlines":
        return r"splitlines also cuts at U+2028, \x0b and others: split at \n"
    return None


def bans_platform_text(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Call):
        return None
    keywords = {keyword.arg for keyword in node.keywords}
    last, name = last_name(node.func) or _attribute(node.func), dotted(node.func)
    if last == "read_text" and not node.args and "encoding" not in keywords:
        return "read_text without encoding"
    if last == "write_text" and not (keywords >= {"newline"} and (len(node.args) > 1 or "encoding" in keywords)):
        return "write_text without encoding and newline"
    if last == "TextIOWrapper" and not keywords >= {"encoding", "newline"}:
        return "TextIOWrapper without encoding and newline"
    if last not in {"open", "fdopen"} or name in OTHER_OPENS or keywords >= {"encoding", "newline"}:
        return None
    mode = _mode(node, position=1 if name in OPENING_FUNCTIONS | COMPRESSED else 0)
    if mode is None:
        mode = "rb" if name in COMPRESSED else "r"
    is_binary = "b" in mode or (name in COMPRESSED and "t" not in mode)
    return None if is_binary else "text opened without encoding and newline"


def _attribute(node: ast.AST) -> str:
    """The attribute that is called, where what it is taken from is no name, as in ``folder().open()``."""
    return node.attr if isinstance(node, ast.Attribute) else ""


def _mode(call: ast.Call, position: int) -> str | None:
    given = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    given += call.args[position : position + 1]
    if not given:
        return None
    return str(given[0].value) if isinstance(given[0], ast.Constant) else ""


def bans_pickle(node: ast.AST) -> str | None:
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module:
        names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    elif isinstance(node, ast.Attribute):
        names = [dotted(node)]
    elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
        is_refused = isinstance(node.value, ast.Constant) and node.value.value is False
        return None if is_refused else "allow_pickle runs code from the file"
    if any(name.partition(".")[0] in PICKLES or name in PICKLING_CALLS for name in names):
        return "a pickle runs code when it is read: use safetensors, .npy or JSON"
    return None


def bans_evaluation(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Call):
        return None
    name = dotted(node.func)
    if name in {"eval", "exec", "builtins.eval", "builtins.exec"}:
        return "text is run as code"
    if name.startswith("yaml.") and last_name(node.func) in UNSAFE_YAML:
        return "YAML may build any object: read TOML or JSON"
    return None


def bans_numeric_masks(node: ast.AST) -> str | None:
    complaint = "a number stands for minus infinity: use a bool mask"
    if isinstance(node, ast.Attribute) and node.attr == "min" and "finfo" in dotted(node.value).lower():
        return complaint
    if not (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)):
        return None
    operand = node.operand
    if isinstance(operand, ast.Attribute) and operand.attr == "max" and "finfo" in dotted(operand.value).lower():
        return complaint
    value = operand.value if isinstance(operand, ast.Constant) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value < SMALLEST_MASK:
        return None
    digits = f"{value:.15e}".partition("e")[0].rstrip("0").rstrip(".")
    is_end_of_range = value in {65504, 65500} or 3.3e38 < value < 3.5e38
    return complaint if digits == "1" or is_end_of_range else None


RULES: Mapping[str, Callable[[ast.AST], str | None]] = {
    "assert": bans_assert,
    "splitlines": bans_splitlines,
    "platform_text": bans_platform_text,
    "pickle": bans_pickle,
    "evaluation": bans_evaluation,
    "numeric_masks": bans_numeric_masks,
}


def violations(module: Module) -> dict[str, str]:
    """What in a module is refused: "dotted module: rule" -> the first place and the complaint."""
    found: dict[str, str] = {}
    for node in ast.walk(module.tree):
        for rule, ban in RULES.items():
            complaint = ban(node)
            if complaint is not None:
                line = getattr(node, "lineno", 0)
                found.setdefault(f"{module.name}: {rule}", f"{module.name}:{line}: {complaint}")
    return found


def test_the_package_contains_none_of_it():
    found: dict[str, str] = {}
    for module in read_package():
        found |= violations(module)
    assert unexcused(found, EXCEPTIONS) == []


REFUSED = {
    "assert": ["assert x", "def f():\n    assert x, 'why'"],
    "splitlines": ["text.splitlines()", "path.read_text('utf-8').splitlines(keepends=True)", "map(str.splitlines, a)"],
    "platform_text": [
        "open(p)",
        "open(p, 'w', encoding='utf-8')",
        "open(p, mode)",
        "open(p, mode='r', newline='')",
        "p.open()",
        "(a / b).open('w')",
        "gzip.open(p, 'rt')",
        "p.read_text()",
        "p.write_text(t)",
        "p.write_text(t, encoding='utf-8')",
        "(a / b).write_text(t, 'utf-8')",
        "io.TextIOWrapper(stream)",
        "os.fdopen(number, 'w')",
    ],
    "pickle": [
        "import pickle",
        "import dill as d",
        "from pickle import loads",
        "from torch import load",
        "torch.load(p, weights_only=True)",
        "torch.save(x, p)",
        "np.load(p, allow_pickle=True)",
        "np.load(p, allow_pickle=trusted)",
    ],
    "evaluation": ["eval(text)", "exec(code)", "builtins.exec(code)", "yaml.load(f)", "yaml.unsafe_load(f)"],
    "numeric_masks": [
        "scores.masked_fill(~mask, -1e9)",
        "-1e4",
        "-10_000.0",
        "-1e30",
        "-65504.0",
        "-3.4028235e38",
        "-1_000_000_000",
        "torch.finfo(x.dtype).min",
        "np.finfo(np.float32).min",
        "finfo.min",
        "-torch.finfo(x.dtype).max",
    ],
}
TAKEN = [
    "raise DataError('x')",
    "text.split('\\n')",
    "open(p, 'rb')",
    "open(p, mode='wb')",
    "open(p, 'w', encoding='utf-8', newline='\\n')",
    "p.open('rb')",
    "gzip.open(p)",
    "os.open(p, os.O_RDONLY)",
    "os.fdopen(number, 'wb')",
    "p.read_text('utf-8')",
    "p.write_text(t, encoding='utf-8', newline='\\n')",
    "import torch\ntorch.no_grad()",
    "np.load(p, allow_pickle=False)",
    "model.eval()",
    "re.compile(x)",
    "yaml.safe_load(f)",
    "float('-inf')",
    "-1.0",
    "-12345.678",
    "-1e-9",
    "1e9",
    "x.min()",
    "torch.finfo(x.dtype).tiny",
    "'assert eval( pickle'",
]


@pytest.mark.parametrize(("rule", "text"), [(rule, text) for rule, texts in REFUSED.items() for text in texts])
def test_the_rule_refuses(rule: str, text: str):
    assert list(violations(Module("m", text))) == [f"m: {rule}"]


@pytest.mark.parametrize("text", TAKEN)
def test_the_rules_take(text: str):
    assert violations(Module("m", text)) == {}


def test_every_rule_has_a_canary():
    assert set(REFUSED) == set(RULES)
