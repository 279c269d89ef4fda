"""Translation with a vocabulary shortlist beside CTranslate2 alone, with the same trained weights.

    heedful export MODEL --to ctranslate2 --shortlist
    heedful export MODEL --to onnx --shortlist  # for --engine onnx
    OMP_NUM_THREADS=1 python benchmarks/decode_shortlist.py MODEL SOURCE REFERENCE [--engine ctranslate2] [--limit 1000]

Every side reads lines and writes lines, on input sorted by length, and they take turns, chunk by chunk. CTranslate2
alone runs its own `translate_batch` on the engine's files with several batch sizes, of which the fastest counts. The
floor is the time of CTranslate2's decoder without its output layer, which a shortlist makes small.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import ctranslate2
import sacrebleu
import torch

from heedful.cli.options import use_threads
from heedful.config.base import validate
from heedful.engines.ctranslate2 import token_names
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.search.config import SearchConfig
from heedful.text.vocabulary import EOS

CHUNK = 250
BATCH_TOKENS = (256, 512, 1024, 2048)

Decode = Callable[[list[str]], list[str]]


def ours(translator: Translator, beam: int, has_shortlist: bool) -> Decode:
    tree = translator.search.model_dump(mode="json") | {"beam": beam, "shortlist": has_shortlist}
    search = validate(SearchConfig, tree, "search")
    return lambda lines: [each.text for each in translator.stream(lines, search)]


def alone(translator: Translator, folder: Path, beam: int, batch_tokens: int, threads: int) -> Decode:
    source, target = translator.source_tokenizer, translator.target_tokenizer
    names = token_names(max(len(source), len(target)))
    ids = {name: token for token, name in enumerate(names)}
    engine = ctranslate2.Translator(str(folder), device="cpu", intra_threads=threads)

    def decode(lines: list[str]) -> list[str]:
        results = engine.translate_batch(
            [[names[token] for token in (*source.encode(line), EOS)] for line in lines],
            beam_size=beam,
            length_penalty=1.0,
            max_batch_size=batch_tokens,
            batch_type="tokens",
            max_decoding_length=translator.text.max_tokens,
        )
        return [target.decode([ids[name] for name in each.hypotheses[0]]) for each in results]

    return decode


def main() -> None:
    """Print sentences per second and BLEU of each side."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--engine", default="ctranslate2")
    parser.add_argument("--limit", type=int, default=1000)
    options = parser.parse_args()
    use_threads(0)
    threads = torch.get_num_threads()
    texts, references = (
        path.read_text(encoding="utf-8").split("\n")[: options.limit] for path in (options.source, options.reference)
    )
    translator = load(options.model, engine=options.engine, kind=Translator)
    order = sorted(range(len(texts)), key=lambda index: len(translator.source_tokenizer.encode(texts[index])))
    lines, references = [texts[index] for index in order], [references[index] for index in order]
    folder = options.model / "engines" / "ctranslate2"
    for beam in (4, 1):
        sides = {
            "heedful, shortlist": ours(translator, beam, True),
            "heedful": ours(translator, beam, False),
            **{
                f"CTranslate2 alone, {tokens} tokens": alone(translator, folder, beam, tokens, threads)
                for tokens in BATCH_TOKENS
            },
        }
        seconds = dict.fromkeys(sides, 0.0)
        outputs: dict[str, list[str]] = {name: [] for name in sides}
        for decode in sides.values():
            decode(lines[:8])
        for number, start in enumerate(range(0, len(lines), CHUNK)):
            # The side that comes first changes, because it finds the caches cold.
            for name, decode in list(sides.items())[:: -1 if number % 2 else 1]:
                started = time.process_time()
                outputs[name] += decode(lines[start : start + CHUNK])
                seconds[name] += time.process_time() - started
        best = min(value for name, value in seconds.items() if name.startswith("CTranslate2"))
        print(f"\nbeam {beam}, {len(lines)} sentences, {threads} threads, against the fastest of CTranslate2 alone")
        for name, value in seconds.items():
            bleu = sacrebleu.corpus_bleu(outputs[name], [references]).score
            print(f"{name:32} {len(lines) / value:8.1f} sentences/s  {best / value:5.2f}x  BLEU {bleu:.2f}", flush=True)


if __name__ == "__main__":
    main()
