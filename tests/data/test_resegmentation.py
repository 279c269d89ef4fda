"""Random segmentations: the same text, the promised probability, and the same draws after a resume."""

import numpy as np
import pytest

from heedful.data.batching import PairSampler
from heedful.data.encoded import EncodedCorpus, EncodedSide, Ids
from heedful.data.random_changes import RandomChanges
from heedful.data.resegmentation import Resegmentation

# 9 = 7 + 8 = (5 + 6) + 8; 5, 6 and 8 cannot be split.
SPLITS = np.zeros((10, 3), dtype=np.int32)
SPLITS[7, :2] = 5, 6
SPLITS[9, :2] = 7, 8
ATOMS = {9: [5, 6, 8], 7: [5, 6], 8: [8], 6: [6], 5: [5], 3: [3]}


def atoms(ids: Ids) -> list[int]:
    return [atom for index in ids.tolist() for atom in ATOMS[index]]


def drawn(probability: float, longest: int = 1000, seed: int = 0) -> list[list[int]]:
    sequences = [np.array(ids, dtype=np.uint16) for ids in ([9, 3], [5, 3], [3], [7, 9, 7, 9, 3])]
    resegmentation = Resegmentation(SPLITS, probability, longest)
    resegmented = resegmentation(sequences, np.random.default_rng(seed))
    assert [atoms(ids) for ids in resegmented] == [atoms(ids) for ids in sequences]
    return [ids.tolist() for ids in resegmented]


def test_nothing_or_all_is_split():
    assert drawn(0.0) == [[9, 3], [5, 3], [3], [7, 9, 7, 9, 3]]
    assert drawn(1.0) == [[5, 6, 8, 3], [5, 3], [3], [5, 6, 5, 6, 8, 5, 6, 5, 6, 8, 3]]


def test_no_sequence_grows_beyond_the_longest():
    assert drawn(1.0, longest=6) == [[5, 6, 8, 3], [5, 3], [3], [7, 9, 7, 9, 3]]


def test_the_texts_stay_the_same_in_every_draw():
    draws = {str(drawn(0.5, seed=seed)) for seed in range(30)}
    assert len(draws) > 10


def test_no_sequences():
    assert Resegmentation(SPLITS, 0.5, 10)([], np.random.default_rng(0)) == []


def test_a_piece_and_its_parts_are_split_with_the_probability():
    ids = [np.full(40_000, 9)]
    (split,) = Resegmentation(SPLITS, 0.3, 1_000_000)(ids, np.random.default_rng(1))
    counts = np.bincount(split, minlength=10)
    assert counts[9] / 40_000 == pytest.approx(0.7, abs=0.01)
    assert counts[7] / 40_000 == pytest.approx(0.3 * 0.7, abs=0.01)
    assert counts[5] / 40_000 == pytest.approx(0.3 * 0.3, abs=0.01)


def sampler() -> PairSampler:
    sequences = [[9] * (1 + i % 4) + [3] for i in range(40)]
    corpus = EncodedCorpus(EncodedSide.of(sequences), EncodedSide.of(sequences))
    resegmentation = Resegmentation(SPLITS, 0.5, 100)
    return PairSampler(corpus, 30, 5, RandomChanges((resegmentation, resegmentation)))


def test_a_resumed_training_draws_the_same_segmentations_and_each_epoch_others():
    whole = sampler()
    batches, positions = [], []
    for batch in whole:
        batches.append(batch)
        positions.append(whole.position)
        if whole.position.epoch == 2:
            break
    start = len(batches) // 3
    later = sampler()
    later.position = positions[start - 1]
    for expected, batch in zip(batches[start:], later, strict=False):
        for one, other in zip(expected.arrays(), batch.arrays(), strict=True):
            np.testing.assert_array_equal(one, other)
    lengths = [
        sum(int(b.source_lengths.sum()) for b, p in zip(batches, positions, strict=True) if p.epoch == e)
        for e in (0, 1)
    ]
    assert lengths[0] != lengths[1]
    assert any(batch.source_lengths.tolist() != batch.target_lengths.tolist() for batch in batches)
