"""Marginals by loops of a graph equal those by loops of Python, and the sums over all trees."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from heedful.attention.structured import ProjectiveTree
from heedful.attention.structured_tree import projective_tree_marginals, shifted_arcs
from heedful.attention.structured_tree_graph import exported_tree_marginals
from tests.attention.test_structured_tree import draw, projective_trees
from tests.thorough import sampled, thorough

LENGTHS = torch.tensor([4, 2, 1, 0, 3])
Marginals = Callable[[Tensor, Tensor, bool], tuple[Tensor, Tensor]]


def by_graph(scores: Tensor, lengths: Tensor, is_single_root: bool) -> tuple[Tensor, Tensor]:
    chart = shifted_arcs(scores, lengths)
    weights, log_normalizer = exported_tree_marginals(chart.arcs, chart.lengths, is_single_root)
    return weights, log_normalizer + chart.shift


def enumerated(scores: Tensor, is_single_root: bool) -> tuple[Tensor, float]:
    """Marginals and log normalizer of one sentence, as sums over the trees with one dependent of the root or any."""
    marginals, total = torch.zeros_like(scores), 0.0
    for heads in projective_trees(len(scores) - 1):
        if is_single_root and heads and heads.count(0) > 1:
            continue
        value = math.exp(sum(float(scores[head, word]) for word, head in enumerate(heads, start=1)))
        total += value
        for word, head in enumerate(heads, start=1):
            marginals[head, word] += value
    return marginals / total, math.log(total)


def check(marginals: Marginals, is_single_root: bool) -> None:
    scores = draw(5, 5, 5, scale=2.0)
    weights, log_normalizer = marginals(scores, LENGTHS, is_single_root)
    for row, length in enumerate(LENGTHS.tolist()):
        size = length + 1
        expected, total = enumerated(scores[row, :size, :size], is_single_root)
        torch.testing.assert_close(weights[row, :size, :size], expected, atol=1e-12, rtol=0)
        assert not weights[row, size:].any()
        assert not weights[row, :, size:].any()
        assert log_normalizer[row].item() == pytest.approx(total, abs=1e-12)


@sampled(2)
@pytest.mark.parametrize("is_single_root", [False, True])
@pytest.mark.parametrize("marginals", [by_graph, projective_tree_marginals])
def test_marginals_are_sums_over_trees(marginals: Marginals, is_single_root: bool):
    check(marginals, is_single_root)


def test_other_roots_and_other_lengths_are_refused():
    with pytest.raises(AssertionError):
        check(lambda scores, lengths, _: by_graph(scores, lengths, False), True)
    with pytest.raises(AssertionError):
        check(lambda scores, lengths, single: by_graph(scores, lengths.clamp(max=3), single), False)


@thorough
def test_arcs_that_no_tree_has_are_no_numbers():
    arcs = draw(6, 4, 4).masked_fill(torch.rand(6, 4, 4, generator=torch.Generator().manual_seed(1)) < 0.4, -torch.inf)
    lengths = torch.full((6,), 3)
    for is_single_root in (False, True):
        weights, log_normalizer = by_graph(arcs, lengths, is_single_root)
        tree = projective_tree_marginals(arcs, lengths, is_single_root)
        torch.testing.assert_close(weights, tree.weights)
        torch.testing.assert_close(log_normalizer, tree.log_normalizer)
        assert not weights.isnan().any()


def test_a_single_root_has_one_dependent_among_masked_words():
    lengths = torch.tensor([5, 3, 2, 1])
    allowed = (torch.arange(5) < lengths[:, None, None]) & (torch.arange(5)[:, None] < lengths[:, None, None])
    weights = ProjectiveTree(is_single_root=True).normalize(draw(4, 5, 5), allowed).weights
    torch.testing.assert_close(weights[:3, :, 0].sum(dim=-1), torch.ones(3, dtype=torch.float64))
    several = ProjectiveTree().normalize(draw(4, 5, 5), allowed).weights
    assert (several[:2, :, 0].sum(dim=-1) > 1.0).all()
