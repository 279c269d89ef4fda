"""The oracle itself, against numbers worked out by hand."""

import math

import pytest
import torch

from heedful.attention.pairs import AdditivePairs, DotPairs
from heedful.attention.reference import reference_softmax_attention


def test_dot_pairs_by_hand():
    pairs = DotPairs(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    context, weights = reference_softmax_attention(pairs, torch.tensor([[1.0], [10.0], [100.0]]), None)
    parts = [math.exp(1), math.exp(2), math.exp(3)]
    assert weights[0].tolist() == pytest.approx([part / sum(parts) for part in parts])
    assert float(context) == pytest.approx((parts[0] + 10 * parts[1] + 100 * parts[2]) / sum(parts))


def test_additive_pairs_by_hand():
    pairs = AdditivePairs(torch.tensor([[0.5]]), torch.tensor([[0.5], [-0.5]]), torch.tensor([2.0]))
    weights = reference_softmax_attention(pairs, torch.eye(2), None)[1]
    ratio = math.exp(2 * math.tanh(1.0))
    assert weights[0].tolist() == pytest.approx([ratio / (ratio + 1), 1 / (ratio + 1)])


def test_masked_keys_count_for_nothing_and_an_empty_row_is_zero():
    pairs = DotPairs(torch.zeros(2, 1), torch.zeros(3, 1))
    allowed = torch.tensor([[True, False, True], [False, False, False]])
    context, weights = reference_softmax_attention(pairs, torch.tensor([[1.0], [50.0], [3.0]]), allowed)
    assert weights.tolist() == [[0.5, 0.0, 0.5], [0.0, 0.0, 0.0]]
    assert context.tolist() == [[2.0], [0.0]]


def test_huge_scores_do_not_overflow():
    pairs = DotPairs(torch.tensor([[1e4]]), torch.tensor([[1.0], [2.0]]))
    assert reference_softmax_attention(pairs, torch.eye(2), None)[1].tolist() == [[0.0, 1.0]]
