"""Speed of the package in JavaScript beside Transformers.js: same weights and lengths, WebAssembly in Node, one thread.

    heedful import opus                    # a Marian folder, or a Transformer of heedful with model.norm=post
    npm install --prefix build/javascript --ignore-scripts @huggingface/transformers@4.3.0
    python benchmarks/javascript.py opus.model sources.txt [--num 200] [--length 40] [--rounds 3] [--batch 16]

Both search greedily with weights of 32 bits, for outputs of at most `--length` tokens, each in a process of its own, by
turns. Counted is processor time, which other programs change little, and beside it time by the clock, without loading
and five sentences before. With `--batch 16`, both get so many sentences in a call. Each has the ONNX Runtime that it
comes with: ours 1.22.0, Transformers.js a development version of 1.31.0; with --same-runtime, both have the latter.
"""

import argparse
import json
import statistics
import subprocess
import sys
from itertools import islice
from pathlib import Path
from shutil import rmtree
from typing import Any, Final

from heedful.cli.messages import Messages
from heedful.cli.web_export import export_web
from heedful.export.huggingface import Described
from heedful.export.transformers_js import export_transformers_js
from heedful.predictors.table import load
from heedful.predictors.translator import Translator

NUM_WARM: Final = 5
KINDS: Final = ("processor time", "by the clock")
COMMON: Final = """
import { readFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
const [modules, other, model, list, length, batch, isOwn] = process.argv.slice(2);
const at = (path) => import(pathToFileURL(path));
"""
OURS: Final = """
const { gunzip } = await at(`${other}/archive.js`), { load } = await at(`${other}/load.js`);
let ort;
if (isOwn === 'true') {
  ({ ort } = await at(`${other}/runtime/ort.js`));
  ort.env.wasm.wasmBinary = await gunzip(await readFile(`${other}/runtime/ort.wasm.gz`));
} else ort = await at(`${modules}/onnxruntime-web/dist/ort.node.min.mjs`);
ort.env.wasm.numThreads = 1;
const loaded = await load(await readFile(`${model}.tgz`), { ort });
const search = { max_length_ratio: 0, max_length_offset: Number(length) };
const translate = async (texts) => (await loaded.translate(texts, { beam: 1, search })).map((one) => one.text);
"""
THEIRS: Final = """
const ort = await at(`${modules}/onnxruntime-web/dist/ort.node.min.mjs`);
// Transformers.js takes native code in Node, unless the program has a runtime of its own.
const wasm = { executionProviders: ['wasm'], intraOpNumThreads: 1 };
const create = (graph, options) => ort.InferenceSession.create(graph, { ...options, ...wasm });
globalThis[Symbol.for('onnxruntime')] = { ...ort, InferenceSession: { create } };
const dist = `${modules}/@huggingface/transformers/dist`;
const { AutoModelForSeq2SeqLM, AutoTokenizer, env } = await at(`${dist}/transformers.node.mjs`);
Object.assign(env, { localModelPath: '.', allowRemoteModels: false, useWasmCache: false });
ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmPaths = pathToFileURL(`${modules}/onnxruntime-web/dist/`).href;
const tokenizer = await AutoTokenizer.from_pretrained(model);
const loaded = await AutoModelForSeq2SeqLM.from_pretrained(model, { dtype: 'fp32', device: 'auto' });
const translate = async (texts) => {
  const inputs = tokenizer(texts, { padding: true });
  const ids = await loaded.generate({ ...inputs, max_new_tokens: Number(length), num_beams: 1 });
  return tokenizer.batch_decode(ids, { skip_special_tokens: true });
};
"""
MEASURE: Final = """
const [warm, sources] = JSON.parse(await readFile(list, 'utf8')), outputs = [];
await translate(warm);
const begun = process.cpuUsage(), clock = performance.now();
const size = Number(batch);
for (let at = 0; at < sources.length; at += size) outputs.push(...await translate(sources.slice(at, at + size)));
const { user, system } = process.cpuUsage(begun);
const wall = performance.now() - clock;
console.log(JSON.stringify({ milliseconds: [(user + system) / 1000, wall], outputs }));
"""


def measured(folder: Path, program: str, *values: Any) -> tuple[list[float], list[str]]:
    """Milliseconds of processor time of all sources, those by the clock, and the outputs."""
    (folder / "program.mjs").write_text(COMMON + program + MEASURE, encoding="utf-8")
    words = ["node", "program.mjs", *map(str, values)]
    done = subprocess.run(words, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["milliseconds"], answer["outputs"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("sources", type=Path)
    parser.add_argument("--num", type=int, default=200)
    parser.add_argument("--length", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=1, help="sentences in a call")
    parser.add_argument("--same-runtime", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path("build/javascript"))
    wanted = parser.parse_args()
    folder = wanted.folder.resolve()
    translator = load(wanted.model, engine="onnx", kind=Translator)
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    described = Described(tokenizers, translator.text.max_tokens, translator.search)
    rmtree(folder / "model", ignore_errors=True)
    export_transformers_js(translator.model(), described, folder / "model")
    export_web(translator, "js", Messages(True), folder / "model.tgz", "float32")
    with wanted.sources.open(encoding="utf-8") as file:
        sources = [line.strip() for line in islice(file, wanted.num + NUM_WARM)]
    (folder / "sources.json").write_text(json.dumps([sources[:NUM_WARM], sources[NUM_WARM:]]), encoding="utf-8")
    package = Path(__file__).parents[1] / "src" / "heedful" / "js"
    common = folder / "node_modules", package, "model", "sources.json", wanted.length, wanted.batch
    ratios: list[list[float]] = []
    for _ in range(wanted.rounds):
        ours, outputs = measured(folder, OURS, *common, str(not wanted.same_runtime).lower())
        theirs, others = measured(folder, THEIRS, *common)
        # The last token of Transformers.js is EOS, whatever the model says.
        same = sum(one.startswith(other.strip()) for one, other in zip(outputs, others, strict=True))
        ratios.append([other / one for one, other in zip(ours, theirs, strict=True)])
        for kind, one, other, ratio in zip(KINDS, ours, theirs, ratios[-1], strict=True):
            print(
                f"{kind}: heedful {one / len(outputs):.1f} ms a sentence, Transformers.js {other / len(outputs):.1f}: "
                f"{ratio:.2f} times as fast"
            )
        print(f"{same} of {len(outputs)} outputs the same", flush=True)
    for kind, column in zip(KINDS, zip(*ratios, strict=True), strict=True):
        print(f"{kind}: median of {len(ratios)} rounds: {statistics.median(column):.2f}")


if __name__ == "__main__":
    main()
