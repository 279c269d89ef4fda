"""Batches of new and older pairs."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from heedful.data.batch import Position
from heedful.data.batching import PairBatch
from heedful.data.corpus import find_pairs
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.data.mixing import Mix, MixedSampler


def corpus_of(first: int, number: int) -> EncodedCorpus:
    """Pairs of one token each, numbered from `first`, of different lengths."""
    ids = [[first + i] * (1 + i % 3) + [3] for i in range(number)]
    return EncodedCorpus(EncodedSide.of(ids), EncodedSide.of(ids))


def sampler(share: float = 0.5, num_new: int = 20, num_older: int = 100) -> MixedSampler:
    return MixedSampler(corpus_of(1000, num_new), corpus_of(2000, num_older), share, 24, seed=4)


def epoch_of(batches: MixedSampler, epoch: int) -> Counter[int]:
    """Number of occurrences of each pair in an epoch."""
    return Counter(int(row[0]) for indices in batches.plan(epoch) for row in batches.collect(indices).source)


@pytest.mark.parametrize(("share", "num_older"), [(0.5, 20), (0.2, 5), (0.75, 60), (0.99, 100)])
def test_an_epoch_has_each_new_pair_once_and_a_share_of_the_older_ones(share: float, num_older: int):
    counts = epoch_of(sampler(share), 0)
    assert set(counts.values()) == {1}
    assert sum(1 for token in counts if token < 2000) == 20
    assert sum(1 for token in counts if token >= 2000) == num_older


@pytest.mark.parametrize(("share", "num_older", "line"), [(0.8, 500, "33 %"), (0.8, 9000, "80 %"), (0.2, 500, "20 %")])
def test_the_share_that_is_told_is_that_of_an_epoch(share: float, num_older: int, line: str, tmp_path: Path):
    (tmp_path / "older.tsv").write_text("ja\tyes\n")
    text = Mix(num_older, 0).lines(find_pairs([tmp_path / "older.tsv"], (1, 2)), share, 1000)[0]
    assert f"{num_older:,} older pairs, mixed in as {line} of an epoch" in text
    assert ("would need more of them" in text) == (line == "33 %")


def test_older_pairs_change_with_the_epoch():
    batches = sampler()
    first, second = (epoch_of(batches, epoch) for epoch in (0, 1))
    assert first != second
    assert first == epoch_of(sampler(), 0)


def test_batches_go_on_from_any_position():
    whole = iter(sampler())
    batches: list[PairBatch] = [next(whole) for _ in range(12)]
    for start in (3, 9):
        later = sampler()
        position = sampler()
        ahead = iter(position)
        for _ in range(start):
            next(ahead)
        later.position = Position(*position.position)
        for expected, batch in zip(batches[start:], iter(later), strict=False):
            np.testing.assert_array_equal(batch.source, expected.source)
