"""Training steps of small models in float32 and bfloat16, in turn on the same batches.

    python benchmarks/precision.py [--threads 2] [--seconds 12]

The corpus is generated here. Floor: products of matrices in bfloat16 take a third to a half of their time in float32 on
a processor with AVX-512 BF16, and all else of a step takes as long in both. `heedful.training.precision` draws the line
between the two where the ratio is about 1.
"""

import argparse
import statistics
import time

import numpy as np
import torch

from heedful.config.base import validate
from heedful.data.batching import PairSampler
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.models import rnnsearch, transformer
from heedful.training.config import TrainingConfig
from heedful.training.distributed import SingleProcess
from heedful.training.memory_settings import tuned_process, use_large_pages
from heedful.training.pair_step import PairStep
from heedful.training.train_state import TrainState

PRESETS = {**transformer.PRESETS, **rnnsearch.PRESETS}
NUM_PAIRS = 20_000
WARM_STEPS = 8
"""Kernels are generated for shapes that come for the first time."""
ROWS = (
    ("mini", 100, 1024),
    ("mini", 1000, 1024),
    ("rnnsearch-tiny", 100, 1024),
    ("rnnsearch-tiny", 100, 4096),
    ("tiny", 100, 2048),
    ("tiny", 4000, 2176),
    ("small", 4000, 2176),
)
"""Preset, size of the vocabulary, positions of a batch."""


def make_corpus(vocabulary: int) -> EncodedCorpus:
    """Draw pairs of 3 to 80 tokens, 15 on average."""
    generator = np.random.default_rng(0)
    lengths = np.clip(generator.gamma(9.0, 15 / 9, NUM_PAIRS).astype(int), 3, 80)

    def draw() -> EncodedSide:
        return EncodedSide.of([generator.integers(4, vocabulary, length).tolist() for length in lengths])

    return EncodedCorpus(draw(), draw())


def make_state(preset: str, vocabulary: int, precision: str) -> TrainState:
    """Make a training of one precision."""
    model = PRESETS[preset].build(vocabulary, vocabulary, True)
    settings = {"precision": precision, "optimizer": {"kind": "muon", "learning_rate": 0.01}}
    return TrainState(PairStep(model, 0.1), validate(TrainingConfig, settings, "training"), SingleProcess())


def main() -> None:
    """Print target tokens per second of both precisions, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=12.0)
    options = parser.parse_args()
    use_large_pages()  # as the command does
    torch.set_num_threads(options.threads)
    with tuned_process():
        for preset, vocabulary, batch_tokens in ROWS:
            states = [make_state(preset, vocabulary, precision) for precision in ("float32", "bfloat16")]
            rates: list[list[float]] = [[], []]
            batches = iter(PairSampler(make_corpus(vocabulary), batch_tokens, 1))
            step, end = 0, time.monotonic() + options.seconds
            while time.monotonic() < end or step <= WARM_STEPS:
                batch, step = next(batches), step + 1
                for state, measured in zip(states, rates, strict=True):
                    started = time.perf_counter()
                    state.differentiate([batch], batch.num_units)
                    state.update(step, 0.0)
                    if step > WARM_STEPS:
                        measured.append(batch.num_units / (time.perf_counter() - started))
            ratio = statistics.median(b / a for a, b in zip(*rates, strict=True))
            size = sum(parameter.numel() for parameter in states[0].model.parameters())
            medians = [statistics.median(measured) for measured in rates]
            print(
                f"{preset:15} {vocabulary:5} tokens, batches of {batch_tokens}: {size:9,} parameters, "
                f"float32 {medians[0]:7.0f}, bfloat16 {medians[1]:7.0f} target tokens/s, ratio {ratio:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
