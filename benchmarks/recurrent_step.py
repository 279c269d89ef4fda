"""Training steps of RNNsearch with the compiled additive kernel and with plain operations, on the same batches.

    python benchmarks/recurrent_step.py [--steps 9] [--batch-tokens 2048] [--length 0]

Both sides see the same batches in turn. The corpus is generated here; --length gives all sentences one length, for
additive attention takes a larger part of the step where they are long.
"""

import argparse
import statistics
import time
from unittest.mock import patch

import torch
from torch import nn
from training_step import VOCABULARY, make_corpus

from heedful.attention import dispatch
from heedful.attention.kernels.plain import PlainScores
from heedful.attention.tiled_attention import Tiled
from heedful.data.batching import PairSampler
from heedful.layers.cpu.accelerate import accelerate
from heedful.models.cpu_forms import CPU_FORMS
from heedful.models.rnnsearch import PRESETS
from heedful.training.pair_step import PairStep
from heedful.training.precision import autocast, resolve_precision


def main() -> None:
    """Print target tokens per second of both, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=9)
    parser.add_argument("--batch-tokens", type=int, default=2048)
    parser.add_argument("--length", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(0)
    model = PairStep(PRESETS["rnnsearch"].build(VOCABULARY, VOCABULARY, False), 0.1)
    accelerate(model, CPU_FORMS)  # as training does
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    batches = iter(PairSampler(make_corpus(options.length), options.batch_tokens, 0))
    precision = resolve_precision("auto", torch.device("cpu"))
    sides = {"compiled": dispatch.KERNELS, "plain": (Tiled(PlainScores()),)}
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for step in range(options.steps + 1):
        batch = next(batches)
        tensors = [torch.from_numpy(a) for a in (batch.source, batch.source_lengths, batch.target_in, batch.target_out)]
        for name, kernels in sides.items():
            started = time.perf_counter()
            with patch.object(dispatch, "KERNELS", kernels), autocast(precision, torch.device("cpu")):
                loss = model(*tensors).total / batch.num_units
            with patch.object(dispatch, "KERNELS", kernels):
                loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            if step >= 1:
                rates[name].append(batch.num_units / (time.perf_counter() - started))
    ratio = statistics.median(a / b for a, b in zip(*rates.values(), strict=True))
    print(
        f"{torch.get_num_threads()} threads, {precision}, {options.batch_tokens} tokens a batch, {options.steps} steps"
    )
    for name, found in rates.items():
        print(f"{name:9} {statistics.median(found):8.0f} target tokens/s")
    print(f"ratio     {ratio:8.2f}")


if __name__ == "__main__":
    main()
