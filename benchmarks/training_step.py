"""Training steps of the small Transformer against a plain torch.nn.Transformer loop, on batches of as many tokens.

    python benchmarks/training_step.py [--steps 12] [--batch-tokens 4096]

The corpus is generated here (sentence lengths like those of image descriptions, 8,000 types). Plain loops take the same
batches, sorted by length, or as most people do whatever comes next until a batch is full. All take their steps in turn,
so that a machine that slows down slows all. Ceiling: the model's own matrix products on real tokens, forward and both
backward, each shape timed alone in the same run.
"""

import argparse
import math
import statistics
import time
from collections import Counter
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from heedful.data.batching import PairBatch, PairSampler, make_batch
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.layers.cpu.accelerate import accelerate
from heedful.models.cpu_forms import CPU_FORMS
from heedful.models.transformer import PRESETS
from heedful.training.memory_settings import tuned_process, use_large_pages
from heedful.training.pair_step import PairStep
from heedful.training.precision import autocast, resolve_precision

VOCABULARY, NUM_PAIRS = 8_000, 20_000
WARM_STEPS = 6
"""Kernels are generated for shapes that come for the first time."""


class Plain(nn.Module):
    """Model as people write it first: nn.Transformer, padding masks, logits of everything, cross_entropy."""

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


def shuffled_batches(corpus: EncodedCorpus, batch_tokens: int) -> Iterator[PairBatch]:
    """Pairs in any order, as many as fill a batch, padding counted."""
    held: list[int] = []
    longest = 0
    for index in np.random.default_rng(0).permutation(len(corpus)).tolist():
        longest = max(longest, len(corpus.source[index]), len(corpus.target[index]))
        if longest * (len(held) + 1) > batch_tokens:
            yield make_batch(corpus, np.array(held))
            held, longest = [], max(len(corpus.source[index]), len(corpus.target[index]))
        held.append(index)


def products(batch: PairBatch) -> Counter[tuple[int, int, int]]:
    """Shapes (rows, inputs, outputs) of the model's products on real tokens, and how many there are of each."""
    size, hidden, layers = 256, 1024, 3
    source, target = int(batch.source_lengths.sum()), batch.num_units
    return Counter(
        {
            (source, size, 3 * size): layers,  # queries, keys and values of the encoder
            (target, size, 3 * size): layers,
            (source, size, 2 * size): layers,  # keys and values that the decoder attends
            (source, size, size): layers,
            (target, size, size): 3 * layers,
            (source, size, hidden): layers,
            (source, hidden, size): layers,
            (target, size, hidden): layers,
            (target, hidden, size): layers,
            (target, size, VOCABULARY): 1,
        }
    )


def seconds_alone(shape: tuple[int, int, int], dtype: torch.dtype) -> float:
    """Seconds of a product and of both that give its gradients, as fast as they are once the machine has done them."""
    rows, inputs, outputs = shape
    features, weight = torch.randn(rows, inputs).to(dtype), torch.randn(outputs, inputs).to(dtype)
    gradient = torch.randn(rows, outputs).to(dtype)
    best = math.inf
    for _ in range(3):
        started = time.perf_counter()
        functional.linear(features, weight)
        gradient @ weight
        gradient.mT @ features
        best = min(best, time.perf_counter() - started)
    return best


def step_seconds(
    side: str, model: nn.Module, optimizer: torch.optim.Optimizer, batch: PairBatch, precision: str
) -> float:
    """Take one step."""
    tensors = [torch.from_numpy(a) for a in (batch.source, batch.source_lengths, batch.target_in, batch.target_out)]
    started = time.perf_counter()
    if side == "heedful":
        with autocast(precision, torch.device("cpu")):
            loss = model(*tensors).total / batch.num_units
    else:
        loss = model(tensors[0], tensors[2], tensors[3])
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return time.perf_counter() - started


def main() -> None:
    """Run the loops in turn and print tokens per second, ratios and the share of the ceiling."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    options = parser.parse_args()
    use_large_pages()  # as the command does
    torch.manual_seed(0)
    models = {"heedful": PairStep(PRESETS["small"].build(VOCABULARY, VOCABULARY, True), 0.1)}
    accelerate(models["heedful"], CPU_FORMS)  # as training does
    models |= {"plain, same batches": Plain(), "plain, any order": Plain()}
    precision = resolve_precision("auto", torch.device("cpu"))
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    optimizers = {
        side: torch.optim.AdamW(model.parameters(), 1e-4, betas=(0.9, 0.98), fused=side == "heedful")
        for side, model in models.items()
    }
    corpus = make_corpus()
    sampled, shuffled = (
        iter(PairSampler(corpus, options.batch_tokens, 0)),
        shuffled_batches(corpus, options.batch_tokens),
    )
    rates: dict[str, list[float]] = {side: [] for side in models}
    shares: list[float] = []
    with tuned_process():
        for step in range(options.steps + WARM_STEPS):
            sorted_batch, any_batch = next(sampled), next(shuffled)
            for side, model in models.items():
                batch = any_batch if side == "plain, any order" else sorted_batch
                seconds = step_seconds(side, model, optimizers[side], batch, precision)
                if step >= WARM_STEPS:
                    rates[side].append(batch.num_units / seconds)
                    if side == "heedful":
                        shapes = products(batch).items()
                        shares.append(sum(count * seconds_alone(shape, dtype) for shape, count in shapes) / seconds)
    print(
        f"{torch.get_num_threads()} threads, {precision}, {options.batch_tokens} tokens a batch, {options.steps} steps"
    )
    for side, found in rates.items():
        ratio = statistics.median(a / b for a, b in zip(rates["heedful"], found, strict=True))
        print(f"{side:20} {statistics.median(found):8.0f} target tokens/s, heedful {ratio:.2f} times as many")
    print(f"heedful's products alone take {statistics.median(shares):.0%} of its step")


if __name__ == "__main__":
    main()
