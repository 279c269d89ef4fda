"""Proof that the npm package is small and clean, and runs as packed, in Node 20 and 22 and in Chromium.

`python -m tests.prove.prove_package MODEL SOURCE` packs `heedful/js`, and installs it from the package, with the tools
that check it, in a folder of its own; what a program prints there is compared with what Python says.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from heedful.cli.messages import Messages
from heedful.cli.web_export import export_web
from heedful.export.web_runtime import VERSION
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from tests.js.node import TYPE_OPTIONS
from tests.pages.browser import Tab, chromium
from tests.prove.served import POLICY, served

MOST_BYTES: Final = 200_000
TOOLS: Final = (
    "publint@0.3",
    "@arethetypeswrong/cli@0.18",
    "esbuild@0.28",
    "typescript@5",
    f"onnxruntime-web@{VERSION}",
)
NODES: Final = ("20", "22")
PROGRAM: Final = """
import { readFile } from 'node:fs/promises';
import { load, ModelError } from 'heedful';

const model = await load(await readFile(process.argv[2]));
const [one] = await model.translate([process.argv[3]], { beam: 5, attention: true });
const refused = await load(new Uint8Array([1, 2, 3])).catch((error) => error instanceof ModelError && error.code);
console.log(JSON.stringify([one.text, one.attention.length, refused]));
await model.release();
"""
TYPED: Final = """
import { load, type ClassificationModel } from 'heedful';

export async function translated(bytes: Uint8Array): Promise<string> {
  const model = await load(bytes);
  return (await model.translate(['a'], { beam: 5 }))[0].alternatives[0].text;
}
export async function labelled(address: string): Promise<[string, number]> {
  const model = await load<ClassificationModel>(address);
  return (await model.classify(['a']))[0].probabilities[0];
}
"""
PAGE: Final = """
import { load } from 'heedful';

const model = await load('model.tgz');
const [one] = await model.translate([document.body.dataset.source], { beam: 5, attention: true });
const found = document.createElement('pre');
found.id = 'found';
found.textContent = JSON.stringify([one.text, one.attention.length]);
document.body.append(found);
"""
WASM: Final = "ort-wasm-simd-threaded.jsep.wasm"


def run(folder: Path, *words: str) -> str:
    """Run a program in the folder, and return what it prints."""
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, encoding="utf-8").stdout


def prove_package(model: Path, source: str, folder: Path) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    package = folder / "package"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(str(files("heedful").joinpath("js")), package, ignore=shutil.ignore_patterns("runtime"))
    (packed,) = json.loads(run(package, "npm", "pack", "--json", "--pack-destination", str(folder)))
    print(f"npm pack: {packed['size']:,} bytes, {packed['entryCount']} files")
    npm = ("npm", "install", "--silent", "--no-audit", "--no-fund")
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    run(folder, *npm, *TOOLS, str(folder / packed["filename"]))
    tools = folder / "node_modules" / ".bin"
    run(package, str(tools / "publint"), "--strict")
    run(folder, str(tools / "attw"), packed["filename"], "--profile", "esm-only", "--no-color")
    (folder / "typed.ts").write_text(TYPED, encoding="utf-8")
    run(folder, str(tools / "tsc"), *TYPE_OPTIONS, "typed.ts")
    run(folder, str(tools / "tsc"), *TYPE_OPTIONS, "--allowJs", "--checkJs", "package/index.js")
    print("publint, attw (profile esm-only), tsc: clean")

    translator = load(model, engine="onnx", kind=Translator)
    print(export_web(translator, "js", Messages(True), folder / "model.tgz", "float32"))
    (ours,) = translator.translate([source], beam=5, segments=None, attention=True)
    assert ours.attention is not None
    expected = [ours.text, len(ours.attention), "damaged"]
    (folder / "program.mjs").write_text(PROGRAM, encoding="utf-8")
    bundle = ("--bundle", "--format=esm", "--platform=node", "--external:onnxruntime-web", "--outfile=bundled.mjs")
    run(folder, str(tools / "esbuild"), "program.mjs", *bundle, "--log-level=warning")
    is_right = packed["size"] <= MOST_BYTES
    for version in NODES:
        place = folder / f"node{version}"
        place.mkdir(exist_ok=True)
        run(place, *npm, "--prefix", str(place), f"node@{version}")
        node = place / "node_modules" / ".bin" / "node"
        for program in ("program.mjs", "bundled.mjs"):
            got = json.loads(run(folder, str(node), program, "model.tgz", source).splitlines()[-1])
            is_right &= got == expected
            print(
                f"Node {run(folder, str(node), '--version').strip()}, {program}: {'right' if got == expected else got}"
            )
    return is_right & prove_bundle(folder, tools, source, expected[:2])


def prove_bundle(folder: Path, tools: Path, source: str, expected: list[Any]) -> bool:
    """Bundle the package and ONNX Runtime for browsers, and translate in Chromium."""
    site = folder / "site"
    shutil.rmtree(site, ignore_errors=True)
    site.mkdir()
    (folder / "page.js").write_text(PAGE, encoding="utf-8")
    bundle = ("--bundle", "--format=esm", "--platform=browser", "--outfile=site/page.js", "--log-level=warning")
    run(folder, str(tools / "esbuild"), "page.js", *bundle)
    shutil.copy(folder / "node_modules/onnxruntime-web/dist" / WASM, site)
    shutil.copy(folder / "model.tgz", site)
    body = f'<body data-source="{escape(source)}"><script type="module" src="page.js"></script></body>'
    (site / "index.html").write_text(f'<!DOCTYPE html><meta charset="utf-8">{body}', encoding="utf-8")
    with served(site, POLICY) as address, chromium() as browser:
        tab = Tab(browser, f"{address}/index.html", ready="#found")
        got = json.loads(tab.page.locator("#found").inner_text())
        tab.close()
    size = sum(path.stat().st_size for path in (site / "page.js", site / WASM))
    print(f"Chromium, bundle of {size / 1e6:.1f} MB with its WebAssembly: {'right' if got == expected else got}")
    return got == expected


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="model that translates")
    parser.add_argument("source", help="text that it translates")
    parser.add_argument("--folder", type=Path, default=Path("build/package"))
    wanted = parser.parse_args()
    os.environ.setdefault("npm_config_update_notifier", "false")
    try:
        return 0 if prove_package(wanted.model, wanted.source, wanted.folder.resolve()) else 1
    except subprocess.CalledProcessError as error:
        print(f"{' '.join(map(str, error.cmd))}\n{error.stdout}{error.stderr}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
