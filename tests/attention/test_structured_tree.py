"""Marginals of projective trees against the sum over all trees."""

import itertools
import math

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.graph import saved_tensors_hooks

from heedful.attention.structured_tree import projective_tree_marginals
from heedful.errors import ShapeError

PAPER = {
    (0, 1): 0.517968,
    (0, 2): 0.277588,
    (0, 3): 0.563112,
    (1, 2): 0.299659,
    (1, 3): 0.174290,
    (2, 1): 0.269154,
    (2, 3): 0.262598,
    (3, 1): 0.212878,
    (3, 2): 0.422753,
}


def draw(*shape: int, seed: int = 0, scale: float = 1.0, dtype: torch.dtype = torch.float64) -> Tensor:
    return (scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)).to(dtype)


def projective_trees(num_words: int) -> list[tuple[int, ...]]:
    """All trees as the heads of words 1, 2, ...: each word hangs on the root, and under each arc are descendants."""

    def is_above(heads: tuple[int, ...], head: int, word: int) -> bool:
        for _ in range(num_words + 1):
            if word == head:
                return True
            word = heads[word - 1] if word else 0
        return False

    def is_tree(heads: tuple[int, ...]) -> bool:
        words = range(1, num_words + 1)
        return all(is_above(heads, 0, word) for word in words) and all(
            is_above(heads, head, between)
            for word, head in zip(words, heads, strict=True)
            for between in range(min(head, word) + 1, max(head, word))
        )

    everything = itertools.product(range(num_words + 1), repeat=num_words)
    return [heads for heads in everything if is_tree(heads)]


def enumerate_trees(scores: Tensor) -> tuple[Tensor, float]:
    """Marginals and log normalizer of one sentence, as sums over all trees."""
    marginals, total = torch.zeros_like(scores), 0.0
    for heads in projective_trees(len(scores) - 1):
        value = math.exp(sum(float(scores[head, word]) for word, head in enumerate(heads, start=1)))
        total += value
        for word, head in enumerate(heads, start=1):
            marginals[head, word] += value
    return (marginals / total if total else marginals), math.log(total) if total else -math.inf


def test_the_numbers_of_the_paper_notes():
    head, dependent = torch.arange(4.0, dtype=torch.float64)[:, None], torch.arange(4.0, dtype=torch.float64)
    tree = projective_tree_marginals(0.1 * head - 0.2 * dependent + 0.05 * head * dependent)
    assert tree.log_normalizer.item() == pytest.approx(1.910049, abs=5e-7)
    for (i, j), probability in PAPER.items():
        assert tree.weights[i, j].item() == pytest.approx(probability, abs=5e-7)
    assert tree.weights.count_nonzero() == len(PAPER)


@pytest.mark.parametrize(("num_words", "num_trees"), [(0, 1), (1, 1), (2, 3), (3, 12), (4, 55), (5, 273)])
def test_scores_of_zero_count_the_trees(num_words: int, num_trees: int):
    tree = projective_tree_marginals(torch.zeros(num_words + 1, num_words + 1, dtype=torch.float64))
    assert tree.log_normalizer.exp().item() == pytest.approx(num_trees)


@pytest.mark.parametrize("num_words", [1, 2, 3, 4])
def test_marginals_equal_the_sum_over_trees(num_words: int):
    scores = draw(3, num_words + 1, num_words + 1, scale=2.0)
    tree = projective_tree_marginals(scores)
    for row in range(3):
        marginals, log_normalizer = enumerate_trees(scores[row])
        torch.testing.assert_close(tree.weights[row], marginals)
        assert tree.log_normalizer[row].item() == pytest.approx(log_normalizer, abs=1e-12)


def test_forbidden_arcs_are_in_no_tree():
    generator = torch.Generator().manual_seed(4)
    scores = draw(40, 4, 4).masked_fill(torch.rand(40, 4, 4, generator=generator) < 0.4, -torch.inf).requires_grad_()
    tree = projective_tree_marginals(scores)
    expected = [enumerate_trees(scores[row].detach()) for row in range(40)]
    torch.testing.assert_close(tree.weights.detach(), torch.stack([marginals for marginals, _ in expected]))
    torch.testing.assert_close(tree.log_normalizer.tolist(), [log_normalizer for _, log_normalizer in expected])
    impossible = tree.log_normalizer == -torch.inf
    assert 0 < impossible.sum() < 40
    (tree.weights.square().sum() + tree.log_normalizer[~impossible].sum()).backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert not scores.grad[impossible].any()


def test_every_word_has_one_head_and_the_root_none():
    weights = projective_tree_marginals(draw(5, 30, 30, scale=30.0, dtype=torch.float32)).weights
    torch.testing.assert_close(weights.sum(dim=-2)[:, 1:], torch.ones(5, 29))
    assert not weights[..., 0].any()
    assert not weights.diagonal(dim1=-2, dim2=-1).any()
    assert weights.min() >= 0.0
    assert weights.max() <= 1.0


def test_padding_batch_and_order_change_nothing():
    lengths = torch.tensor([5, 2, 1, 0, 3])
    scores = draw(5, 6, 6, scale=2.0)
    nodes = torch.arange(6)
    real = (nodes[:, None] <= lengths[:, None, None]) & (nodes <= lengths[:, None, None])
    spoilt = scores.masked_fill(~real, torch.nan).requires_grad_()
    together = projective_tree_marginals(spoilt, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = projective_tree_marginals(scores[row, : length + 1, : length + 1])
        torch.testing.assert_close(together.weights[row, : length + 1, : length + 1], alone.weights)
        torch.testing.assert_close(together.log_normalizer[row], alone.log_normalizer)
    assert not together.weights[~real].any()
    (together.weights.square().sum() + together.log_normalizer.sum()).backward()
    assert spoilt.grad is not None
    assert not spoilt.grad[~real].any()
    assert spoilt.grad[0].any()
    order = torch.tensor([4, 2, 0, 3, 1])
    reordered = projective_tree_marginals(scores[order], lengths[order])
    assert torch.equal(reordered.weights, together.weights[order])
    assert torch.equal(reordered.log_normalizer, together.log_normalizer[order])


def test_leading_axes_align_from_the_left():
    scores, lengths = draw(2, 3, 4, 4), torch.tensor([3, 2], dtype=torch.int32)
    tree = projective_tree_marginals(scores, lengths)
    assert tree.weights.shape == (2, 3, 4, 4)
    for item, head in itertools.product(range(2), range(3)):
        alone = projective_tree_marginals(scores[item, head], lengths[item])
        torch.testing.assert_close(tree.weights[item, head], alone.weights)
        torch.testing.assert_close(tree.log_normalizer[item, head], alone.log_normalizer)


def test_gradients_are_exact_and_so_are_theirs():
    scores, lengths = draw(3, 5, 5).requires_grad_(), torch.tensor([4, 2, 0])

    def marginals(scores: Tensor) -> tuple[Tensor, Tensor]:
        return tuple(projective_tree_marginals(scores, lengths))

    assert gradcheck(marginals, (scores,))
    assert gradgradcheck(marginals, (scores,), fast_mode=True)


def test_marginals_are_the_gradient_of_the_log_normalizer_to_any_order():
    scores = draw(2, 5, 5).requires_grad_()
    tree = projective_tree_marginals(scores)
    (gradient,) = torch.autograd.grad(tree.log_normalizer.sum(), scores, create_graph=True)
    torch.testing.assert_close(gradient, tree.weights)
    direction = draw(2, 5, 5, seed=1)
    (first,) = torch.autograd.grad((tree.weights * direction).sum(), scores, retain_graph=True)
    (second,) = torch.autograd.grad((gradient * direction).sum(), scores)
    torch.testing.assert_close(first, second)


def test_an_infinite_gradient_where_a_weight_is_zero_does_no_harm():
    scores = draw(2, 4, 4).requires_grad_()
    weights = projective_tree_marginals(scores, torch.tensor([3, 1])).weights
    torch.special.entr(weights).sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert scores.grad.any()


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e4])
def test_single_precision_is_close_to_double_at_any_scale(scale: float):
    scores = draw(4, 25, 25, scale=scale, dtype=torch.float32).requires_grad_()
    tree, exact = projective_tree_marginals(scores), projective_tree_marginals(scores.double())
    # A score itself is known to 2^-24 of its size only, and a tree has 24 of them.
    tolerance = 3e-6 * max(1.0, scale)
    torch.testing.assert_close(tree.weights.double(), exact.weights, rtol=0.0, atol=tolerance)
    torch.testing.assert_close(tree.log_normalizer.double(), exact.log_normalizer, rtol=2e-6, atol=0.0)
    (tree.weights.square().sum() + tree.log_normalizer.sum()).backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


def test_extreme_scores_choose_the_best_tree():
    best = (0, 1, 4, 2)  # heads of words 1 to 4
    scores = torch.full((5, 5), -1e4)
    for word, head in enumerate(best, start=1):
        scores[head, word] = 1e4
    tree = projective_tree_marginals(scores)
    assert tree.log_normalizer.item() == 4e4
    assert tree.weights[list(best), [1, 2, 3, 4]].tolist() == [1.0] * 4
    assert tree.weights.sum().item() == 4.0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_wide_and_given_back(dtype: torch.dtype):
    scores = draw(2, 24, 24, scale=3.0, dtype=dtype)
    tree = projective_tree_marginals(scores)
    assert tree.weights.dtype == tree.log_normalizer.dtype == dtype
    exact = projective_tree_marginals(scores.double()).weights
    torch.testing.assert_close(tree.weights.double(), exact, rtol=0.0, atol=torch.finfo(dtype).eps / 2)


def test_what_all_heads_of_a_word_share_costs_no_digits():
    scores = (draw(4, 20, 20) + 1e4 * draw(4, 1, 20, seed=1)).float()
    tree, exact = projective_tree_marginals(scores), projective_tree_marginals(scores.double())
    torch.testing.assert_close(tree.weights.double(), exact.weights, rtol=0.0, atol=3e-6)


def test_scores_of_arcs_that_cannot_be_never_show():
    scores = draw(2, 5, 5)
    spoilt = scores.clone()
    spoilt[..., 0] = torch.nan
    spoilt.diagonal(dim1=-2, dim2=-1).fill_(torch.inf)
    spoilt.requires_grad_()
    tree = projective_tree_marginals(spoilt)
    assert torch.equal(tree.weights, projective_tree_marginals(scores).weights)
    tree.weights.square().sum().backward()
    assert spoilt.grad is not None
    assert not spoilt.grad[..., 0].any()
    assert not spoilt.grad.diagonal(dim1=-2, dim2=-1).any()


def test_training_keeps_no_more_than_the_square_of_the_words():
    def num_kept(num_nodes: int) -> int:
        kept: list[int] = []

        def count(tensor: Tensor) -> Tensor:
            kept.append(tensor.numel())
            return tensor

        with saved_tensors_hooks(count, lambda tensor: tensor):
            projective_tree_marginals(draw(num_nodes, num_nodes).requires_grad_()).weights.square().sum()
        return sum(kept)

    assert num_kept(24) <= 4 * num_kept(12) <= 4 * 5 * 12**2


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 4, 4), (2, 1, 1)])
def test_empty_axes(shape: tuple[int, ...]):
    scores = torch.zeros(shape, requires_grad=True)
    tree = projective_tree_marginals(scores)
    assert torch.equal(tree.weights, torch.zeros(shape))
    assert torch.equal(tree.log_normalizer, torch.zeros(shape[:-2]))
    tree.weights.sum().backward()


@pytest.mark.parametrize(
    ("shape", "lengths"), [((3,), None), ((3, 4), None), ((2, 0, 0), None), ((3, 3), [2]), ((2, 3, 3), [[2], [1]])]
)
@pytest.mark.wrong_shapes
def test_axes_that_do_not_fit_are_refused(shape: tuple[int, ...], lengths: list[int] | None):
    with pytest.raises(ShapeError, match="tree: "):
        projective_tree_marginals(torch.zeros(shape), None if lengths is None else torch.tensor(lengths))
