"""Padding of documents: padded positions as a share of all those that are pooled in training; encoders have none.

    heedful train train.tsv --task classification --preset hierarchical --out imdb.model --set training.max_steps=1
    python benchmarks/document_padding.py imdb.model

In an epoch of training batches, every block that a level of the model would pool is counted in its place. With
--random, batches are not of similar documents, but of any 16. A third row is what one array [document, sentence, word]
for each batch would have.
"""

import argparse
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from torch import Tensor

from heedful.data.label_batches import LabelSampler
from heedful.layers.recurrent import BidirectionalEncoder
from heedful.models.hierarchical import HierarchicalConfig, Level, Sentences
from heedful.models.inputs import TokenInputs
from heedful.runs.request import merged_settings
from heedful.runs.settings import load_experiment
from heedful.tasks.table import find_task

BATCH_DOCUMENTS = 16
RUN = "heedful.models.hierarchical.run_ragged"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--random", action="store_true", help="batches of documents of any length")
    options = parser.parse_args()
    experiment = load_experiment(settings=merged_settings(options.model / "config.toml"))
    sampler = find_task("classification").sampler(experiment, options.model, None)
    if not isinstance(sampler, LabelSampler):
        raise TypeError(f"no batches of documents, but {type(sampler).__name__}")
    real: Counter[str] = Counter()
    computed: Counter[str] = Counter()
    model = HierarchicalConfig(embedding_size=1, hidden_size=1).build(1_000_000, 2)

    def count(name: str, num_real: int, num_computed: int) -> None:
        real[name] += num_real
        computed[name] += num_computed

    def pooled(level: Level, states: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        count("words" if level is model.words else "sentences", int(lengths.sum()), states[..., 0].numel())
        return states.new_zeros(len(states), 2), states.new_zeros(states.shape[:2])

    def encoded(encoder: BidirectionalEncoder, items: Tensor, lengths: Tensor) -> Tensor:
        return items.new_zeros(len(items), 2)

    batches = sampler.plan(0)
    if options.random:
        everything = np.random.default_rng(0).permutation(len(sampler.corpus))
        batches = np.array_split(everything, len(everything) // BATCH_DOCUMENTS)
    with mock.patch.object(Level, "_pooled", pooled), mock.patch(RUN, encoded), torch.no_grad():
        for indices in batches:
            tokens = TokenInputs(*map(torch.from_numpy, sampler.collect(indices).arrays()[:2]))
            model.encode(tokens)
            layout = Sentences.of(tokens)
            whole = len(layout.counts) * int(layout.counts.max()) * int(layout.lengths.max())
            count("one array of documents, sentences and words", int(tokens.lengths.sum()), whole)
    print(f"{len(batches):,} batches")
    for name, number in real.items():
        print(f"{name}: {number:,} real, {computed[name]:,} computed, {1 - number / computed[name]:.2%} padding")


if __name__ == "__main__":
    main()
