"""ONNX Runtime that the package takes where the caller names none: in Node that for Node, if it is there."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from heedful.export.archive import compressed
from heedful.search.config import SearchConfig
from tests.js.node import NODE, PACKAGE

pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node")

PROGRAM = """
import { readFile } from 'node:fs/promises';
import { load } from 'heedful';

const refused = await load(await readFile('model.tgz')).catch((error) => error);
console.log(JSON.stringify([refused.code, refused.message]));
"""
STUB = "exports.InferenceSession = { create: async () => { throw new Error('NAME was asked'); } };\n"
HIDDEN = "const runtime = { InferenceSession: { create: async () => { throw new Error('NAME was asked'); } } };\n"
STUBS = {
    "": STUB,
    "hidden": f"{HIDDEN}module['exports'] = runtime;\n",
    "broken": "throw new Error('libonnxruntime.so.1: cannot open shared object file');\n",
    "incomplete": "require('onnxruntime-common');\n",
}
"""A module whose exports Node sees, one whose exports are in its default, one whose machine code does not run here, and
one beside which another is missing."""
SAID = "ONNX Runtime does not run encode.onnx: {} was asked"
NEITHER = "ONNX Runtime is not found beside this package; npm install onnxruntime-web"
CASES = (
    (("web",), SAID.format("onnxruntime-web")),
    (("node",), SAID.format("onnxruntime-node")),
    (("node", "web"), SAID.format("onnxruntime-node")),
    (("node hidden", "web"), SAID.format("onnxruntime-node")),
    (("node broken", "web"), SAID.format("onnxruntime-web")),
    (("node broken",), "onnxruntime-node is there, but does not start: libonnxruntime.so.1: cannot open"),
    (("node incomplete",), "onnxruntime-node is there, but does not start: Cannot find module 'onnxruntime-common'"),
    ((), NEITHER),
)


def installed(folder: Path, *stubs: str) -> Path:
    """Put the package and stubs of runtimes beside a model, as npm would."""
    modules = folder / "node_modules"
    shutil.copytree(PACKAGE, modules / "heedful", ignore=shutil.ignore_patterns("runtime"))
    for stub in stubs:
        kind, _, fault = stub.partition(" ")
        own = modules / f"onnxruntime-{kind}"
        own.mkdir()
        (own / "package.json").write_text(f'{{"name": "{own.name}", "main": "index.js"}}', encoding="utf-8")
        (own / "index.js").write_text(STUBS[fault].replace("NAME", own.name), encoding="utf-8")
    search = SearchConfig().model_dump(mode="json")
    facts = {"format": 3, "task": "translation", "max_tokens": 9, "search": search}
    (folder / "model.tgz").write_bytes(compressed({"model.json": json.dumps(facts).encode(), "encode.onnx": b"graph"}))
    (folder / "program.mjs").write_text(PROGRAM, encoding="utf-8")
    return folder


@pytest.mark.parametrize(("stubs", "said"), CASES, ids=[" and ".join(stubs) or "none" for stubs, _ in CASES])
def test_the_runtime_is_that_for_node_if_it_starts(stubs: tuple[str, ...], said: str, tmp_path: Path):
    folder = installed(tmp_path, *stubs)
    environment = {name: value for name, value in os.environ.items() if name != "NODE_PATH"}
    command = [str(NODE), "program.mjs"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=True)
    code, message = json.loads(done.stdout)
    assert code == "runtime"
    assert said in message
    assert ("does not start" in message) == ("does not start" in said)


def test_without_webassembly_there_is_one_error_and_none_that_nobody_catches(tmp_path: Path):
    """Node itself needs it, for `Response`, and fails where no caller sees it."""
    folder = installed(tmp_path, "web")
    command = [str(NODE), "--jitless", "program.mjs"]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    code, message = json.loads(done.stdout)
    assert code == "runtime"
    assert message.startswith("WebAssembly is switched off here, ")


def test_a_browser_looks_for_the_runtime_of_browsers_alone(tmp_path: Path):
    """The runtime for Node is not asked for where there is no `process`, as in browsers, even if it is installed."""
    folder = installed(tmp_path, "node", "web")
    (folder / "program.mjs").write_text(PROGRAM.replace("const refused", "delete globalThis.process;\nconst refused"))
    done = subprocess.run([str(NODE), "program.mjs"], cwd=folder, capture_output=True, encoding="utf-8", check=True)
    assert json.loads(done.stdout) == ["runtime", SAID.format("onnxruntime-web")]
