"""Worth of each part of a training step: the small Transformer's step with one part at a time taken away.

    python benchmarks/training_parts.py [--steps 12] [--batch-tokens 4096]

All variants take their steps in turn, on the sentences of `training_step.py`. The ratio is how many times as long a
target token takes without the part; parts overlap, so the ratios do not multiply to that of a plain loop. Kernels for
shapes of products are generated when they come for the first time, and then serve all variants: so the whole step sees
the shapes of some dozen batches before, as after the first minute of a training, and the turns begin with another
variant each time.
"""

import argparse
import ctypes
import statistics
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional
from training_step import VOCABULARY, WARM_STEPS, make_corpus, shuffled_batches, step_seconds

from heedful.data.batching import PairSampler
from heedful.layers.cpu.accelerate import accelerate
from heedful.models import transformer_cpu
from heedful.models.cpu_forms import CPU_FORMS
from heedful.models.transformer import PRESETS
from heedful.training.cross_entropy import CrossEntropy
from heedful.training.memory_settings import tuned_process, use_large_pages
from heedful.training.pair_step import PairStep
from heedful.training.precision import resolve_precision

KNOWN_BATCHES = 60
"""Batches of shapes that the whole step has seen before it is timed."""


@dataclass(frozen=True)
class Variant:
    """A training step without one of its parts."""

    name: str
    without: Callable[[], AbstractContextManager[object]] = nullcontext
    is_mixed: bool = True
    is_sorted: bool = True
    has_fused_update: bool = True


@contextmanager
def plain_loops() -> Generator[None]:
    """Normalisation, residual sums and losses by PyTorch's operations."""
    with (
        mock.patch("heedful.layers.cpu.layernorm.loops_problem", return_value="not wanted"),
        mock.patch("heedful.training.cross_entropy_rows.loops_problem", return_value="not wanted"),
    ):
        yield


@contextmanager
def memory_given_back() -> Generator[None]:
    """Begin with no memory but what is in use, as after steps whose memory went back to the system."""
    with suppress(OSError, AttributeError):  # of GNU's C library
        ctypes.CDLL(None).malloc_trim(0)
    yield


def logits_first(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gold: Tensor,
    smoothing: float = 0.0,
) -> CrossEntropy:
    """Loss of `linear_cross_entropy`, from all logits at once."""
    logits = functional.linear(features, weight, bias).float()
    total = functional.cross_entropy(logits, gold, reduction="sum", label_smoothing=smoothing)
    with torch.no_grad():
        log_probs = logits.log_softmax(dim=-1).gather(1, gold[:, None])[:, 0]
        return CrossEntropy(total, log_probs, (logits.argmax(dim=-1) == gold).sum())


VARIANTS = (
    Variant("whole"),
    Variant("products in float32", is_mixed=False),
    Variant("batches in any order", is_sorted=False),
    Variant(
        "all logits at once", without=partial(mock.patch, "heedful.training.loss.linear_cross_entropy", logits_first)
    ),
    Variant("no loops of our own", without=plain_loops),
    Variant(
        "padding in the model", without=partial(mock.patch.object, transformer_cpu, "is_packable", lambda *_: False)
    ),
    Variant("memory given back", without=memory_given_back),
    Variant("update in a loop", has_fused_update=False),
)


def main() -> None:
    """Run all variants in turn and print tokens per second and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    options = parser.parse_args()
    use_large_pages()  # as the command does
    precision = resolve_precision("auto", torch.device("cpu"))
    corpus = make_corpus()
    sampled, shuffled = (
        iter(PairSampler(corpus, options.batch_tokens, 0)),
        shuffled_batches(corpus, options.batch_tokens),
    )
    sides: list[tuple[Variant, nn.Module, torch.optim.Optimizer]] = []
    for variant in VARIANTS:
        torch.manual_seed(0)
        model = PairStep(PRESETS["small"].build(VOCABULARY, VOCABULARY, True), 0.1)
        accelerate(model, CPU_FORMS)  # as training does
        fused = {"fused": True} if variant.has_fused_update else {"foreach": False}
        sides.append((variant, model, torch.optim.AdamW(model.parameters(), 1e-4, betas=(0.9, 0.98), **fused)))
    costs: dict[str, list[float]] = {variant.name: [] for variant in VARIANTS}
    with tuned_process():
        for _ in range(KNOWN_BATCHES):
            step_seconds("heedful", *sides[0][1:], next(sampled), precision)
        for step in range(options.steps + WARM_STEPS):
            sorted_batch, any_batch = next(sampled), next(shuffled)
            first = step % len(sides)
            for variant, model, optimizer in (*sides[first:], *sides[:first]):
                batch = sorted_batch if variant.is_sorted else any_batch
                chosen = precision if variant.is_mixed else "float32"
                with variant.without():
                    seconds = step_seconds("heedful", model, optimizer, batch, chosen)
                if step >= WARM_STEPS:
                    costs[variant.name].append(seconds / batch.num_units)
    print(
        f"{torch.get_num_threads()} threads, {precision}, {options.batch_tokens} tokens a batch, {options.steps} steps"
    )
    for name, found in costs.items():
        ratio = statistics.median(a / b for a, b in zip(found, costs["whole"], strict=True))
        print(f"{name:22} {1 / statistics.median(found):8.0f} target tokens/s, {ratio:.2f} times as long")


if __name__ == "__main__":
    main()
