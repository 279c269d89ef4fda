"""Batches of labelled texts."""

from itertools import islice

import numpy as np

from heedful.data.batch import Position
from heedful.data.corpus import Pair
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.data.labelled import LabelledTexts, LabelSampler, make_label_batch
from heedful.search.inputs import TokenArrays

TEXTS = [[4] * (1 + row % 7) + [3] for row in range(50)]
LABELS = [[row % 3] for row in range(50)]
CORPUS = EncodedCorpus(EncodedSide.of(TEXTS), EncodedSide.of(LABELS))


def test_rows_without_text_or_label_are_left_out():
    pairs = [Pair("a", "x ", 1), Pair(" ", "x", 2), Pair("b", "", 3), Pair("c", "y", 4)]
    assert LabelledTexts.of(pairs) == LabelledTexts(["a", "c"], ["x", "y"])


def test_a_batch_is_padded_and_its_parts_no_wider_than_they_need():
    batch = make_label_batch(CORPUS, np.array([0, 2]), TokenArrays)
    ids, lengths, labels = (array.tolist() for array in batch.arrays())
    assert ids == [[4, 3, 0, 0], [4, 4, 4, 3]]
    assert (lengths, labels) == ([2, 4], [0, 2])
    assert (len(batch), batch.num_units, len(batch.arrays())) == (2, 2, 3)
    first = batch.rows(slice(0, 1))
    assert first.arrays()[0].tolist() == [[4, 3]]
    assert first.labels.tolist() == [0]


def test_every_text_comes_once_an_epoch_and_a_position_is_enough_to_go_on():
    sampler = LabelSampler(CORPUS, 24, 3, TokenArrays)
    number = sampler.num_batches(0)
    epoch = list(islice(sampler, number))
    assert sum(len(batch) for batch in epoch) == 50
    assert all(batch.arrays()[0].size <= 24 for batch in epoch)
    assert sampler.position == Position(0, number)
    again = LabelSampler(CORPUS, 24, 3, TokenArrays)
    again.position = Position(0, 2)
    for one, other in zip(epoch[2:], again, strict=False):
        assert one.arrays()[0].tolist() == other.arrays()[0].tolist()
        assert one.labels.tolist() == other.labels.tolist()
