"""Proof that Transformers.js loads what `heedful export --to transformers.js` writes, and says what Python says.

`python -m tests.prove.prove_transformers_js SOURCES` exports a small Transformer of random weights, or the MODEL of
`--model`, to both layouts of Hugging Face, generates greedily with `transformers` in Python and with the package
`@huggingface/transformers` of npm in Node, and compares the outputs, token by token and as texts.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings
from itertools import islice
from pathlib import Path
from shutil import rmtree
from typing import Any, Final

from heedful.export.huggingface import Described, export_huggingface
from heedful.export.transformers_js import export_transformers_js
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.search.config import SearchConfig
from heedful.text.tokenizer import PieceTokenizer
from tests.export.test_huggingface import build

PACKAGE: Final = "@huggingface/transformers@4.3.0"
MOST: Final = 250
PROGRAM: Final = """
import { readFile } from 'node:fs/promises';
import { AutoModelForSeq2SeqLM, AutoTokenizer, env } from '@huggingface/transformers';

const [folder, sources, dtype] = process.argv.slice(2);
Object.assign(env, { localModelPath: '.', allowRemoteModels: false });
const tokenizer = await AutoTokenizer.from_pretrained(folder);
const model = await AutoModelForSeq2SeqLM.from_pretrained(folder, { dtype });
const outputs = [];
for (const source of JSON.parse(await readFile(sources, 'utf8'))) {
  const inputs = tokenizer(source);
  const [ids] = (await model.generate({ ...inputs, max_length: 40 })).tolist();
  const text = tokenizer.decode(ids, { skip_special_tokens: true });
  outputs.push({ read: inputs.input_ids.tolist()[0].map(Number), ids: ids.map(Number), text });
}
console.log(JSON.stringify(outputs));
"""


def described(model: Path | None, sources: list[str]) -> tuple[Any, Described]:
    """A model, and its description."""
    if model is not None:
        translator = load(model, engine="torch", kind=Translator)
        tokenizers = translator.source_tokenizer, translator.target_tokenizer
        return translator.model(), Described(tokenizers, translator.text.max_tokens, translator.search)
    tokenizer = PieceTokenizer.train(sources, 500, "NFC")
    return build(len(tokenizer), len(tokenizer)), Described((tokenizer, tokenizer), MOST, SearchConfig())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--num", type=int, default=500)
    parser.add_argument("--folder", type=Path, default=Path("build/transformers_js"))
    wanted = parser.parse_args()
    folder = wanted.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with wanted.sources.open(encoding="utf-8") as file:
        sources = [line.strip() for line in islice(file, wanted.num)]
    for name in ("python", "javascript"):
        rmtree(folder / name, ignore_errors=True)
    model, description = described(wanted.model, sources)
    export_huggingface(model, description, folder / "python")
    export_transformers_js(model, description, folder / "javascript")
    (folder / "sources.json").write_text(json.dumps(sources), encoding="utf-8")
    (folder / "program.mjs").write_text(PROGRAM, encoding="utf-8")
    if not (folder / "node_modules").exists():
        subprocess.run(["npm", "install", "--silent", "--ignore-scripts", "--prefix", str(folder), PACKAGE], check=True)

    from transformers import MarianMTModel, MarianTokenizer

    theirs = MarianMTModel.from_pretrained(folder / "python").eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = MarianTokenizer.from_pretrained(folder / "python")
    expected: list[Any] = []
    for source in sources:
        inputs = tokenizer(source, return_tensors="pt")
        ids = theirs.generate(**inputs, num_beams=1, do_sample=False, max_length=40)[0].tolist()
        text = tokenizer.decode(ids, skip_special_tokens=True, use_source_tokenizer=False)
        expected.append((inputs["input_ids"][0].tolist(), ids, text))
    is_right = True
    for dtype in ("fp32", "q8"):
        started = time.perf_counter()
        words = ["node", "program.mjs", "javascript", "sources.json", dtype]
        done = subprocess.run(words, cwd=folder, capture_output=True, encoding="utf-8", check=False)
        if done.returncode:
            print(done.stderr[-2000:])
            return 1
        outputs = json.loads(done.stdout.splitlines()[-1])
        rows = [*zip(expected, outputs, strict=True)]
        read, ids, texts = (
            sum(ours[index] == other[key] for ours, other in rows) for index, key in enumerate(("read", "ids", "text"))
        )
        seconds = time.perf_counter() - started
        both = sum(ours[0] == other["read"] and ours[1] == other["ids"] for ours, other in rows)
        print(
            f"{dtype}: of {len(rows)}: {read} sources the same, and of these {both} outputs; of all {ids} outputs, "
            f"{texts} as texts; {seconds:.0f} s"
        )
        is_right &= dtype != "fp32" or both == read
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
