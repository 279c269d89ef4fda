"""`heedful translate` of a Transformer of base shape beside CTranslate2 alone and Hugging Face's generate.

    OMP_NUM_THREADS=1 python benchmarks/decode_ctranslate2.py TOKENIZER_MODEL SOURCE [--limit 500] [--length 16]

The base shape of Vaswani et al. 2017, normalised after each sub-layer, with random weights and the tokenizer of
TOKENIZER_MODEL, is written as model folder, CTranslate2's engine in eight bits, and a folder for transformers; all
outputs have --length tokens. Every side reads lines and writes lines, on input sorted by length; they take turns, chunk
by chunk. CTranslate2 alone runs with several batch sizes, and the best counts. Lines for which it says filling or a
start mark, as random weights do and trained ones do not, are left out, for heedful searches them a second time. Needs
transformers, unless --no-peer.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ctranslate2
import torch

from heedful.cli.options import use_threads
from heedful.config.base import validate
from heedful.engines.ctranslate2 import token_names
from heedful.models.store import save_model
from heedful.models.transformer import PRESETS
from heedful.predictors.table import load
from heedful.search.config import SearchConfig
from heedful.tasks.experiment import Experiment, build_model
from heedful.text.tokenizer import TextConfig
from heedful.text.vocabulary import BOS, EOS, PAD

CHUNK = 250
BATCH_TOKENS = (512, 1024, 2048)

Decode = Callable[[list[str]], list[str]]


def make_model(tokenizer_model: Path, folder: Path, has_peer: bool) -> Path:
    given = load(tokenizer_model)
    path = folder / "base.model"
    if path.exists():
        return path
    path.mkdir(parents=True)
    name = given.source_tokenizer.save(path, "tokenizer")
    config = PRESETS["base"].model_copy(update={"norm": "post"})
    experiment = Experiment(model=config, text=TextConfig(), search=SearchConfig())
    model = build_model(
        experiment, (len(given.source_tokenizer), len(given.target_tokenizer), experiment.text.is_shared)
    )
    facts = {"languages": ["", ""], "source_tokenizer": name, "target_tokenizer": name}
    save_model(path, experiment, dict(model.named_parameters()), facts)
    command = [sys.executable, "-m", "heedful", "export", str(path), "--quiet"]
    subprocess.run([*command, "--to", "ctranslate2", "--int8"], check=True)
    if has_peer:
        subprocess.run([*command, str(folder / "base.hf"), "--to", "huggingface"], check=True)
    return path


def ours(path: Path, beam: int, length: int) -> Decode:
    translator = load(path, engine="ctranslate2-int8")
    tree = {"beam": beam, "max_length_ratio": 0.0, "max_length_offset": length}
    search = validate(SearchConfig, tree, "search")
    return lambda lines: [found.text for found in translator.stream(lines, search)]


def alone(path: Path, beam: int, length: int, batch_tokens: int, threads: int) -> tuple[Decode, Decode]:
    """CTranslate2 alone as a decoder, and a test for lines without special tokens in their outputs."""
    tokenizer = load(path).source_tokenizer
    names = token_names(len(tokenizer))
    ids = {name: token for token, name in enumerate(names)}
    engine = ctranslate2.Translator(str(path / "engines" / "ctranslate2-int8"), device="cpu", intra_threads=threads)

    def search(lines: list[str]) -> list[list[str]]:
        found = engine.translate_batch(
            [[names[token] for token in (*tokenizer.encode(line), EOS)] for line in lines],
            beam_size=beam,
            length_penalty=1.0,
            max_batch_size=batch_tokens,
            batch_type="tokens",
            max_decoding_length=length,
        )
        return [each.hypotheses[0] for each in found]

    def decode(lines: list[str]) -> list[str]:
        return [tokenizer.decode([ids[name] for name in output]) for output in search(lines)]

    def usual(lines: list[str]) -> list[str]:
        marks = {names[PAD], names[BOS]}
        return [line for line, output in zip(lines, search(lines), strict=True) if marks.isdisjoint(output)]

    return decode, usual


def peer(folder: Path, beam: int, length: int) -> Decode:
    import warnings

    from transformers import MarianMTModel, MarianTokenizer

    warnings.simplefilter("ignore")
    tokenizer, model = MarianTokenizer.from_pretrained(folder), MarianMTModel.from_pretrained(folder).eval()

    def decode(lines: list[str]) -> list[str]:
        texts: list[str] = []
        for start in range(0, len(lines), 64):
            batch = tokenizer(lines[start : start + 64], return_tensors="pt", padding=True)
            with torch.inference_mode():
                found = model.generate(
                    **batch,
                    num_beams=beam,
                    max_new_tokens=length,
                    min_new_tokens=length,
                    forced_eos_token_id=None,
                    do_sample=False,
                )
            texts += tokenizer.batch_decode(found, skip_special_tokens=True)
        return texts

    return decode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--limit", type=int, default=500)
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--folder", type=Path, help="keep the models there")
    parser.add_argument("--only-make", action="store_true", help="make the models and time nothing")
    parser.add_argument("--no-peer", action="store_true", help="leave transformers out")
    parser.add_argument("--wall", action="store_true", help="seconds of the clock instead of the processor's")
    given = parser.parse_args()
    use_threads(0)
    threads = torch.get_num_threads()
    clock = time.perf_counter if given.wall else time.process_time
    lines = [line for line in given.source.read_text(encoding="utf-8").split("\n") if line.strip()][: given.limit]
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        path = make_model(given.model, folder, not given.no_peer)
        if given.only_make:
            return
        tokenizer = load(path).source_tokenizer
        lines.sort(key=lambda line: len(tokenizer.encode(line)))
        for beam in (4, 1):
            each = {"heedful": ours(path, beam, given.length)}
            kept = lines
            for tokens in BATCH_TOKENS:
                each[f"CTranslate2 {tokens}"], usual = alone(path, beam, given.length, tokens, threads)
                kept = usual(lines) if tokens == BATCH_TOKENS[0] else kept
            if not given.no_peer:
                each["transformers"] = peer(folder / "base.hf", beam, given.length)
            seconds = dict.fromkeys(each, 0.0)
            found: dict[str, list[str]] = {name: [] for name in each}
            for run in each.values():
                run(kept[:8])
            for place, start in enumerate(range(0, len(kept), CHUNK)):
                # There and back: who comes first is slower.
                for name, run in list(each.items())[:: -1 if place % 2 else 1]:
                    started = clock()
                    found[name] += run(kept[start : start + CHUNK])
                    seconds[name] += clock() - started
            best = min(taken for name, taken in seconds.items() if name.startswith("CTranslate2"))
            print(f"\nbeam {beam}, {len(kept)} sentences of {given.length} tokens, {threads} threads", flush=True)
            for name, taken in seconds.items():
                same = sum(one == two for one, two in zip(found["heedful"], found[name], strict=True))
                speed = f"{len(kept) / taken:8.1f} sentences a second   heedful {taken / seconds['heedful']:5.2f}x"
                print(f"{name:18} {speed}   {same} outputs as heedful's", flush=True)
            print(f"heedful against the best of CTranslate2: {best / seconds['heedful']:.3f}x", flush=True)


if __name__ == "__main__":
    main()
