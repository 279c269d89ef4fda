"""Training steps of the small Transformer against a plain torch.nn.Transformer loop, on the same batches.

    python benchmarks/training_step.py [--steps 12] [--batch-tokens 4096]

The corpus is generated here (sentence lengths like those of image descriptions, 8,000 types); both sides see the same
batches, in turn, so that a machine that slows down slows both. Floor: the model's matrix products on real tokens,
forward and twice backward, at the rate of a product of the typical shape measured in the same run.
"""

import argparse
import math
import statistics
import time

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from heedful.models.transformer import PRESETS
from heedful.text.batching import Batch, BatchSampler
from heedful.text.encoded import EncodedCorpus, EncodedSide
from heedful.training.loss import TrainingStep
from heedful.training.precision import autocast, resolve_precision

VOCABULARY, NUM_PAIRS = 8_000, 20_000


class Plain(nn.Module):
    """What people write first: nn.Transformer, padding masks, logits of everything, cross_entropy."""

    def __init__(self, size: int = 256) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, size)
        nn.init.normal_(self.embedding.weight, std=size**-0.5)
        self.inner = nn.Transformer(size, 4, 3, 3, 1024, 0.1, batch_first=True, norm_first=True)
        places = torch.arange(512)[:, None] / 10_000 ** (torch.arange(0, size, 2) / size)
        self.register_buffer("places", torch.stack([places.sin(), places.cos()], -1).flatten(1))

    def forward(self, source: Tensor, target_in: Tensor, target_out: Tensor) -> Tensor:
        """Give the mean loss of a batch."""
        x = self.embedding(source) * 16 + self.places[: source.shape[1]]
        y = self.embedding(target_in) * 16 + self.places[: target_in.shape[1]]
        future = torch.ones(target_in.shape[1], target_in.shape[1], dtype=torch.bool).triu(1)
        features = self.inner(
            x, y, tgt_mask=future, src_key_padding_mask=source == 0, memory_key_padding_mask=source == 0,
            tgt_key_padding_mask=target_out == 0, tgt_is_causal=True,
        )  # fmt: skip
        logits = functional.linear(features, self.embedding.weight)
        return functional.cross_entropy(logits.flatten(0, 1), target_out.flatten(), ignore_index=0, label_smoothing=0.1)


def make_corpus(length: int = 0) -> EncodedCorpus:
    """Draw sentence pairs whose lengths go together as those of translations do, or all of one length."""
    generator = np.random.default_rng(0)
    source = np.clip(generator.gamma(9.0, 1.6, NUM_PAIRS).astype(int), 4, 60)
    target = np.clip((source * generator.normal(1.0, 0.18, NUM_PAIRS)).astype(int), 4, 60)
    extents = [np.full(NUM_PAIRS, length)] * 2 if length else [source, target]
    sides = [[generator.integers(4, VOCABULARY, extent).tolist() for extent in side] for side in extents]
    return EncodedCorpus(*(EncodedSide.of(side) for side in sides))


def products_floor(batch: Batch) -> float:
    """Operations of the model's own products on real tokens, forward and both backward products."""
    size, hidden, layers = 256, 1024, 3
    source, target = int(batch.source_lengths.sum()), batch.num_target_tokens
    encoder = layers * (4 * size * size + 2 * size * hidden)
    decoder = layers * (6 * size * size + 2 * size * hidden)
    cross = layers * 2 * size * size
    return 3 * 2 * (source * (encoder + cross) + target * (decoder + size * VOCABULARY))


def main() -> None:
    """Run both loops in turn and print tokens per second, their ratio and the share of the floor."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    options = parser.parse_args()
    torch.manual_seed(0)
    ours = TrainingStep(PRESETS["small"].build(VOCABULARY, VOCABULARY, True), 0.1)
    plain = Plain()
    precision = resolve_precision("auto", torch.device("cpu"))
    optimizers = [torch.optim.AdamW(m.parameters(), 1e-4, betas=(0.9, 0.98), fused=m is ours) for m in (ours, plain)]
    batches = iter(BatchSampler(make_corpus(), options.batch_tokens, 0))
    rates: list[list[float]] = [[], []]
    shares: list[float] = []
    features, weight = torch.randn(2, 4096, 256, dtype=torch.float32)[0], torch.randn(1024, 256)
    if precision == "bfloat16":
        features, weight = features.bfloat16(), weight.bfloat16()
    for step in range(options.steps + 2):
        batch = next(batches)
        tensors = [torch.from_numpy(a) for a in (batch.source, batch.source_lengths, batch.target_in, batch.target_out)]
        for side, model in enumerate((ours, plain)):
            started = time.perf_counter()
            if model is ours:
                with autocast(precision, torch.device("cpu")):
                    sums = ours(*tensors)
                loss = sums.total / batch.num_target_tokens
            else:
                loss = plain(tensors[0], tensors[2], tensors[3])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizers[side].step()
            optimizers[side].zero_grad(set_to_none=True)
            seconds = time.perf_counter() - started
            if step >= 2:
                rates[side].append(batch.num_target_tokens / seconds)
                if model is ours:
                    started = time.perf_counter()
                    functional.linear(features, weight)
                    rate = 2 * features.shape[0] * weight.numel() / (time.perf_counter() - started)
                    shares.append(products_floor(batch) / rate / seconds)
    medians = [statistics.median(side) for side in rates]
    share, ratio = statistics.median(shares), statistics.median(a / b for a, b in zip(*rates, strict=True))
    print(
        f"{torch.get_num_threads()} threads, {precision}, {options.batch_tokens} tokens a batch, {options.steps} steps"
    )
    print(
        f"heedful              {medians[0]:8.0f} target tokens/s; its products alone would take {share:.0%} of the step"
    )
    print(f"plain nn.Transformer {medians[1]:8.0f} target tokens/s (same length buckets)")
    print(f"ratio                {ratio:8.2f}")
    if not math.isfinite(medians[0]):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
