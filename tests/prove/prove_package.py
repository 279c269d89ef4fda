"""Proof that the npm package is small and clean, and runs as packed: in Node 20 and 22, bundled, and with types.

`python -m tests.prove.prove_package MODEL SOURCE` packs `heedful/js`, and installs it from the package, with the tools
that check it, in a folder of its own; what a program prints there is compared with what Python says.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Final

from heedful.cli.messages import Messages
from heedful.cli.web_export import export_web
from heedful.export.web_runtime import VERSION
from heedful.predictors.table import load
from heedful.predictors.translator import Translator

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
OPTIONS: Final = ("--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "--skipLibCheck")


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
    run(folder, str(tools / "tsc"), *OPTIONS, "--lib", "es2024,dom", "typed.ts")
    options = ("--lib", "es2024,dom", "--allowJs", "--checkJs")
    run(folder, str(tools / "tsc"), *OPTIONS, *options, "package/index.js")
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
    return is_right


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
