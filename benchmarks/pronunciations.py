"""Time of a pronunciation: of words one at a time, of many together, and of reading a lexicon that is known.

    heedful train ron.tsv --minutes 5 --out ron.model
    OMP_NUM_THREADS=1 python benchmarks/pronunciations.py ron.model words.txt [--beam 1] [--limit 500] [--known F]

Times are of the processor (all threads together), so that other processes count little, and each is followed by what it
is a multiple of, which was timed in the same run: of words one at a time, the graphs alone, run as often as the outputs
are long on arrays of one word, without a search; of many together, the same for their batches as rows of one length; of
a lexicon, its lines alone, read and not divided. The engine is ONNX Runtime, without PyTorch.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from heedful.cli.lexicon import read_known
from heedful.cli.lines import text_lines
from heedful.engines.engine import DEFAULT_BATCH_TOKENS
from heedful.engines.onnx import Graphs
from heedful.errors import UsageError
from heedful.predictors.pronouncer import Pronouncer
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.search.inputs import as_inputs
from heedful.text.encoding import encode_source
from heedful.text.vocabulary import BOS

ROUNDS = 3
"""Number of repetitions; the fastest one counts."""


def seconds(work: Callable[[], object]) -> float:
    """Processor time of a function, the least of several."""
    times: list[float] = []
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def run_graphs(graphs: Graphs, sources: Sequence[Sequence[int]], num_steps: int, beam: int) -> None:
    """Encode sources, and take steps with the same token again and again."""
    inputs = as_inputs([np.array(ids, dtype=np.int64) for ids in sources])
    memory = graphs.run("encode", inputs.named_arrays())
    rows = np.arange(len(inputs))[:, None], np.zeros((len(inputs), beam), dtype=np.int64)
    state = {name: memory[name][rows] for name in graphs.state_names}
    memory |= {"memory.lengths": inputs.num_positions, "tokens": np.full((len(inputs), beam), BOS)}
    outputs = ["log_probs", *(f"next.{name}" for name in graphs.state_names)]
    for _ in range(num_steps):
        after = graphs.run("step", memory | state, outputs)
        state = {name: after[f"next.{name}"] for name in graphs.state_names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("words", type=Path, help="file of words, one per line")
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--limit", type=int, default=500, help="words one at a time; ten times as many together")
    parser.add_argument("--known", type=Path, help="lexicon to read")
    options = parser.parse_args()
    translator = load(options.model, engine="onnx")
    if not isinstance(translator, Translator):
        raise UsageError(f"{options.model}: not a model of translation")
    graphs = Graphs(options.model / "engines" / "onnx")
    if not graphs.in_arrays:
        raise UsageError(f"{options.model}: its vocabulary is too large for one of phones")
    beam, words = options.beam, [line.strip() for line in text_lines([options.words])]

    def encoded(some: Sequence[str]) -> list[Sequence[int]]:
        return [encode_source(translator.source_tokenizer, word, translator.text)[0] for word in some]

    few, many = words[: options.limit], words[: 10 * options.limit]
    found = translator.translate(few, beam=beam)
    lengths = [len(translator.target_tokenizer.encode(output.text)) + 1 for output in found]
    alone = seconds(lambda: [translator.translate([word], beam=beam) for word in few])
    floor = seconds(lambda: [run_graphs(graphs, [ids], n, beam) for ids, n in zip(encoded(few), lengths, strict=True)])
    print(
        f"one at a time, beam {beam}: {1000 * alone / len(few):.2f} ms a word, {alone / floor:.2f} times its graphs "
        f"({1000 * floor / len(few):.2f} ms, {np.mean(lengths):.1f} steps)"
    )
    pronouncer = Pronouncer(translator)
    together = seconds(lambda: [*pronouncer.pronounce(many, beam=beam)])
    ordered = sorted(encoded(many), key=len, reverse=True)
    size, steps = max(1, DEFAULT_BATCH_TOKENS // (round(np.mean([*map(len, ordered)])) * beam)), round(np.mean(lengths))
    batches = [ordered[start : start + size] for start in range(0, len(ordered), size)]
    floor = seconds(lambda: [run_graphs(graphs, batch, steps, beam) for batch in batches])
    print(
        f"together, beam {beam}: {len(many) / together:,.0f} words a second of one processor, {together / floor:.2f} "
        f"times their graphs"
    )
    if options.known:
        reading = seconds(lambda: read_known(options.known))
        lines = seconds(lambda: sum(1 for _ in text_lines([options.known])))
        number = len(read_known(options.known))
        print(f"lexicon of {number:,} words: {reading:.3f} s, {reading / lines:.2f} times its lines")
    print(f"PyTorch was {'loaded' if 'torch' in sys.modules else 'not loaded'}")


if __name__ == "__main__":
    main()
