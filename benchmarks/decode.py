"""Sentences a second of every engine of a model, on the same sentences, and how many greedy outputs differ.

    OMP_NUM_THREADS=1 python benchmarks/decode.py MODEL SOURCE [--beam 5] [--limit 200] [--compare 1000]

Engines are those that `heedful export` put into the model folder, and PyTorch. They take turns, chunk by chunk; seconds
are of the processor (all threads together), so that other processes count little. CTranslate2's own beam search, which
is not ours and which `translate` therefore does not take, is timed as well, and its outputs are compared.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import ctranslate2
import numpy as np
import torch
from numpy.typing import NDArray

from heedful.cli.options import use_threads
from heedful.engines.ctranslate2 import token_names
from heedful.engines.engine import decode_sorted
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.search.config import SearchConfig, with_outputs
from heedful.text.encoding import encode_source
from heedful.text.lines import read_lines
from heedful.text.vocabulary import EOS

CHUNK = 100

Sources = Sequence[NDArray[np.int64]]
Decode = Callable[[Sources, SearchConfig], list[tuple[int, ...]]]


def engines(model: Path, batch_tokens: int) -> dict[str, Decode]:
    """Every engine of a model: from sources to the ids of the best outputs."""
    names = ["torch", *load(model).backends.exported]

    def decoder(name: str) -> Decode:
        translator = load(model, engine=name)

        def decode(sources: Sources, config: SearchConfig) -> list[tuple[int, ...]]:
            backend = translator.backends.searching(config)
            if backend.supports(config, False):
                return own_beam(model / "engines" / name, sources, config, batch_tokens)
            found = decode_sorted(backend, sources, config, batch_tokens=batch_tokens)
            return [each[0].token_ids for each in found]

        return decode

    return {name: decoder(name) for name in names}


loaded: dict[Path, ctranslate2.Translator] = {}


def own_beam(folder: Path, sources: Sources, config: SearchConfig, batch_tokens: int) -> list[tuple[int, ...]]:
    """CTranslate2's own search, with the same beam and length penalty."""
    threads = torch.get_num_threads()
    if folder not in loaded:
        loaded[folder] = ctranslate2.Translator(str(folder), device="cpu", intra_threads=threads)
    translator = loaded[folder]
    names = token_names(1 + max(int(ids.max()) for ids in sources))
    found = translator.translate_batch(
        [[names[token] for token in ids] for ids in sources],
        beam_size=config.beam,
        length_penalty=config.alpha,
        max_batch_size=max(1, batch_tokens // config.beam),
        batch_type="tokens",
        max_decoding_length=200,
        suppress_sequences=[["<pad>"], ["<s>"]],
    )
    return [tuple(int(name) if name.isdecimal() else 1 for name in each.hypotheses[0]) for each in found]


def sentences(translator: Translator, path: Path, limit: int) -> Sources:
    with path.open("rb") as stream:
        lines = [line for line in read_lines(stream, str(path)) if line.strip()][:limit]
    found = [encode_source(translator.source_tokenizer, line, translator.text)[0] for line in lines]
    return [ids for ids in found if ids.tolist() != [EOS]]


def time_all(each: dict[str, Decode], sources: Sources, config: SearchConfig) -> None:
    seconds = dict.fromkeys(each, 0.0)
    outputs: dict[str, list[tuple[int, ...]]] = {name: [] for name in each}
    for decode in each.values():
        decode(sources[:10], config)  # loads, and warms up
    for start in range(0, len(sources), CHUNK):
        for name, decode in each.items():
            started = time.process_time()
            outputs[name] += decode(sources[start : start + CHUNK], config)
            seconds[name] += time.process_time() - started
    print(f"\nbeam {config.beam}, {len(sources)} sentences, {torch.get_num_threads()} threads")
    for name, taken in seconds.items():
        differing = sum(one != two for one, two in zip(outputs["torch"], outputs[name], strict=True))
        speed = f"{len(sources) / taken:8.1f} sentences a processor second   {seconds['torch'] / taken:5.2f}x torch"
        print(f"{name:18} {speed}   {differing:5d} outputs differ", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--compare", type=int, default=1000, help="sentences whose greedy outputs are compared")
    parser.add_argument("--batch-tokens", type=int, default=4096)
    given = parser.parse_args()
    use_threads(0)
    translator = load(given.model)
    sources = sentences(translator, given.source, max(given.limit, given.compare))
    each = engines(given.model, given.batch_tokens)
    time_all(each, sources[: given.limit], with_outputs(translator.search, given.beam))
    time_all(each, sources[: given.compare], with_outputs(translator.search, 1))


if __name__ == "__main__":
    main()
