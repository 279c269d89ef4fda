"""Training steps of a hierarchical classifier whose encoders read all sequences at once, or in padded blocks.

    python benchmarks/ragged_recurrence.py [--steps 9] [--documents 40] [--threads 1]

Both sides see the same batches in turn. Sentences are log-normal in length, 16 words at the median, and documents have
two to twelve. In blocks, sequences of similar length are padded to the longest.
"""

import argparse
import statistics
import time
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn import functional

from heedful.layers.ragged_recurrence import run_ragged
from heedful.layers.recurrent import BidirectionalEncoder
from heedful.models import hierarchical
from heedful.models.hierarchical import HierarchicalConfig
from heedful.models.inputs import TokenInputs
from heedful.text.vocabulary import EOS

NUM_TOKENS = 4_000


def run_blocks(encoder: BidirectionalEncoder, items: Tensor, lengths: Tensor) -> Tensor:
    """As `run_ragged`, in blocks of sequences of similar length."""
    starts = lengths.cumsum(0) - lengths
    order = torch.argsort(lengths, descending=True, stable=True)
    places: list[Tensor] = []
    states: list[Tensor] = []
    for block in hierarchical._blocks(lengths[order]):
        rows = order[block]
        own = lengths[rows]
        positions = torch.arange(int(own[0]))
        real = positions < own[:, None]
        indices = torch.where(real, starts[rows][:, None] + positions, 0)
        states.append(encoder(items[indices], own)[real])
        places.append(indices[real])
    return torch.cat(states)[torch.argsort(torch.cat(places))]


def make_batch(num_documents: int) -> TokenInputs:
    documents: list[Tensor] = []
    for _ in range(num_documents):
        sizes = torch.exp(2.8 + 0.8 * torch.randn(int(torch.randint(2, 13, ())))).clamp(1, 200).long().tolist()
        parts = [torch.cat((torch.randint(4, NUM_TOKENS, (size,)), torch.tensor([EOS]))) for size in sizes]
        documents.append(torch.cat(parts))
    return TokenInputs(
        torch.nn.utils.rnn.pad_sequence(documents, batch_first=True), torch.tensor([len(each) for each in documents])
    )


def main() -> None:
    """Print seconds per step of both, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=9)
    parser.add_argument("--documents", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    model = HierarchicalConfig(dropout=0.0).build(NUM_TOKENS, 2)
    sides = {"at once": run_ragged, "in blocks": run_blocks}
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for step in range(options.steps + 1):
        batch, labels = make_batch(options.documents), torch.randint(2, (options.documents,))
        losses: list[float] = []
        for name, run in sides.items():
            started = time.perf_counter()
            with patch.object(hierarchical, "run_ragged", run):
                loss = functional.cross_entropy(model.scores(model.encode(batch)), labels)
            loss.backward()
            model.zero_grad(set_to_none=True)
            losses.append(float(loss.detach()))
            if step:
                seconds[name].append(time.perf_counter() - started)
        if abs(losses[0] - losses[1]) > 1e-5:
            raise ValueError(f"losses differ: {losses}")
    print(f"{options.threads} threads, {options.documents} documents a batch, {options.steps} steps")
    for name, found in seconds.items():
        print(f"{name:10} {statistics.median(found):8.3f} s a step")
    ratios = sorted(slow / fast for fast, slow in zip(*seconds.values(), strict=True))
    print(f"ratio      {statistics.median(ratios):8.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")


if __name__ == "__main__":
    main()
