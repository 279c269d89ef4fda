"""Upper bound of the gain if waiting sources replaced finished ones within a batch.

    OMP_NUM_THREADS=1 python benchmarks/refilling.py MODEL SOURCE [--engine torch] [--beam 5] [--limit 500]

Finished sources leave their batch, so a batch shrinks, and a row of a small batch costs more than one of a full batch.
Refilled, all steps would be as cheap for each row as those of full batches are. Both are of one run: the seconds that
all steps took, and those that they would have taken at the price of a row in the fullest third of steps. What the
encoder takes, what refilling itself would cost, and that hypotheses of different lengths do not fit into one array of
a Transformer's keys, is left out: the gain is an upper bound.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful.cli.options import use_threads
from heedful.engines.engine import Stepwise, decode_sorted
from heedful.predictors.table import load
from heedful.search.config import with_outputs
from heedful.search.inputs import InputArrays
from heedful.search.interface import Engine, StepScores
from heedful.text.encoding import encode_source
from heedful.text.lines import read_lines
from heedful.text.vocabulary import EOS

IntArray = NDArray[np.int64]


class Timed:
    """An engine, and what each of its steps took: rows, and seconds of the processor from step to step."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.steps: list[tuple[int, float]] = []
        self._rows = 0
        self._since = 0.0

    def start(self, inputs: InputArrays, num_hypotheses: int) -> object:
        self.close()
        return self.engine.start(inputs, num_hypotheses)

    def step(
        self, state: object, tokens: IntArray, parents: IntArray | None, keep: IntArray | None
    ) -> tuple[StepScores, object]:
        self.close()
        self._rows, self._since = len(tokens), time.process_time()
        return self.engine.step(state, tokens, parents, keep)

    def close(self) -> None:
        """Count the step that is over, with the search's own work."""
        if self._rows:
            self.steps.append((self._rows, time.process_time() - self._since))
        self._rows = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--engine", default="torch")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--limit", type=int, default=500)
    given = parser.parse_args()
    use_threads(0)
    translator = load(given.model, engine=given.engine)
    config = with_outputs(translator.search, given.beam)
    backend = translator.backends.searching(config)
    if not isinstance(backend, Stepwise):
        raise SystemExit(f"{backend.name} searches by itself")
    with given.source.open("rb") as stream:
        lines = [line for line, _ in zip(read_lines(stream, str(given.source)), range(given.limit), strict=False)]
    sources = [encode_source(translator.source_tokenizer, line, translator.text)[0] for line in lines]
    sources = [ids for ids in sources if ids.tolist() != [EOS]]
    timed = Timed(backend.make_engine(False))
    watched = Stepwise(backend.name, lambda _: timed, backend.max_length)
    decode_sorted(watched, sources[:20], config)  # warms up
    timed.close()
    timed.steps.clear()
    started = time.process_time()
    decode_sorted(watched, sources, config)
    timed.close()
    whole = time.process_time() - started
    rows, seconds = (np.array(column) for column in zip(*timed.steps, strict=True))
    full = rows >= np.quantile(rows, 2 / 3)
    price = seconds[full].sum() / rows[full].sum()
    saved = seconds.sum() - price * rows.sum()
    print(
        f"{given.engine}, beam {given.beam}, {len(sources)} sentences: {whole:.2f} s, steps {seconds.sum():.2f} s, "
        f"{rows.mean():.0f} rows in a step, {rows[full].mean():.0f} in the fullest; "
        f"at their price {price * rows.sum():.2f} s: at most {whole / (whole - saved):.3f} times as fast"
    )


if __name__ == "__main__":
    main()
