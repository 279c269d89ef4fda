"""Structured attention as normalizers, alone and within `attend`."""

import itertools

import pytest
import torch
from torch import Tensor, nn

from heedful.attention.dispatch import attend
from heedful.attention.interface import Normalizer
from heedful.attention.masks import Mask, causal, padding, window
from heedful.attention.scores import Dot
from heedful.attention.structured import LinearChain, NormalizedLinearChain, ProjectiveTree
from heedful.attention.structured_chain import linear_chain_marginals
from heedful.attention.structured_tree import projective_tree_marginals
from heedful.errors import NeedError, ShapeError

SCORES = torch.tensor([[0.5, -0.2, 1.0]], dtype=torch.float64)
TRANSITION = torch.tensor([[0.1, -0.3], [-0.3, 0.4]], dtype=torch.float64)
UNEVEN = torch.tensor([[0.3, -1.2], [0.4, 2.0]], dtype=torch.float64)


def draw(*shape: int, seed: int = 0, scale: float = 1.0, dtype: torch.dtype = torch.float64) -> Tensor:
    return (scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)).to(dtype)


def written_out(mask: Mask, num_queries: int, num_keys: int, num_leading: int = 1) -> Tensor:
    return mask.rows(num_queries, num_keys, torch.device("cpu")).allowed(num_leading, num_keys)


NORMALIZERS: list[Normalizer] = [LinearChain(UNEVEN), NormalizedLinearChain(UNEVEN), ProjectiveTree()]


def test_the_numbers_of_the_paper_notes():
    chain = LinearChain(TRANSITION).normalize(SCORES, None)
    assert chain.weights[0].tolist() == pytest.approx([0.679374, 0.633946, 0.772368], abs=5e-7)
    assert chain.log_normalizer is not None
    assert chain.log_normalizer.exp().item() == pytest.approx(19.823332, abs=5e-7)
    doubled = 2.0 * NormalizedLinearChain(TRANSITION).normalize(SCORES, None).weights
    assert doubled[0].tolist() == pytest.approx([0.651463, 0.607901, 0.740636], abs=5e-7)


def test_without_transitions_a_chain_is_the_sigmoid():
    scores = draw(2, 3, 4)
    weights = LinearChain(torch.zeros(2, 2, dtype=torch.float64)).normalize(scores, None).weights
    torch.testing.assert_close(weights, scores.sigmoid())


def test_every_row_is_a_chain_of_its_allowed_keys():
    scores, ends = draw(2, 4, 5, scale=2.0), draw(2, 2, seed=1)
    allowed = torch.rand(2, 4, 5, generator=torch.Generator().manual_seed(2)) < 0.6
    chain = LinearChain(UNEVEN, ends[0], ends[1]).normalize(scores, allowed)
    for item, query in itertools.product(range(2), range(4)):
        kept = scores[item, query][allowed[item, query]]
        alone = linear_chain_marginals(
            torch.stack([torch.zeros_like(kept), kept], -1), UNEVEN, start=ends[0], stop=ends[1]
        )
        torch.testing.assert_close(chain.weights[item, query][allowed[item, query]], alone.weights[:, 1])
        assert chain.log_normalizer is not None
        torch.testing.assert_close(chain.log_normalizer[item, query], alone.log_normalizer)
    assert not chain.weights[~allowed].any()


def test_the_normalized_chain_sums_to_one_even_where_marginals_underflow():
    scores = draw(2, 3, 6, scale=2.0)
    allowed = torch.tensor([6, 2])[:, None, None] > torch.arange(6)
    marginals = LinearChain(UNEVEN).normalize(scores, allowed).weights
    weights = NormalizedLinearChain(UNEVEN).normalize(scores, allowed).weights
    torch.testing.assert_close(weights, marginals / marginals.sum(-1, keepdim=True))
    tiny = (scores.float() - 1e4).requires_grad_()
    weights = NormalizedLinearChain(UNEVEN.float()).normalize(tiny, allowed).weights
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3))
    weights.square().sum().backward()
    assert tiny.grad is not None
    assert tiny.grad.isfinite().all()


def test_axes_of_the_transition_align_from_the_left():
    scores, transition, ends = draw(2, 3, 4, 5), draw(1, 3, 2, 2, seed=1), draw(2, 2, seed=2)
    chain = LinearChain(transition, ends).normalize(scores, None)
    for item, head in itertools.product(range(2), range(3)):
        alone = LinearChain(transition[0, head], ends[item]).normalize(scores[item, head], None)
        torch.testing.assert_close(chain.weights[item, head], alone.weights)
    with pytest.raises(ShapeError, match="leading axes"):
        LinearChain(draw(2, 3, 4, 2, 2)).normalize(scores, None)


def test_a_chain_learns_its_transition_through_attend():
    transition = nn.Parameter(UNEVEN.clone())
    query, key = draw(2, 3, 4).requires_grad_(), draw(2, 5, 4, seed=1)
    lengths = torch.tensor([5, 0])
    attended = attend(
        query,
        key,
        key,
        score=Dot(4, 4),
        mask=padding(lengths),
        normalizer=LinearChain(transition),
        need=("weights", "log_normalizer"),
    )
    assert attended.weights is not None
    assert attended.log_normalizer is not None
    torch.testing.assert_close(attended.context, attended.weights @ key)
    # An empty row is zero, as under any normalizer.
    assert not attended.context[1].any()
    assert attended.log_normalizer[1].tolist() == [-torch.inf] * 3
    attended.context.square().sum().backward()
    assert transition.grad is not None
    assert transition.grad.isfinite().all()
    assert transition.grad.all()
    assert query.grad is not None
    assert not query.grad[1].any()
    with pytest.raises(NeedError):
        attend(query, key, key, score=Dot(4, 4), normalizer=LinearChain(transition), need=("entropy",))


def test_a_tree_reads_its_head():
    # Row i holds the chances of every node to be the head of i: the transpose of [head, dependent].
    scores = draw(2, 5, 5)
    square = ProjectiveTree().normalize(scores, None).weights
    torch.testing.assert_close(square, projective_tree_marginals(scores.mT).weights.mT)
    torch.testing.assert_close(square.sum(-1), torch.tensor([[0.0, 1.0, 1.0, 1.0, 1.0]] * 2, dtype=torch.float64))
    # The root asks nothing, so its row may be missing.
    without_root = ProjectiveTree().normalize(scores[:, 1:], None).weights
    torch.testing.assert_close(without_root, square[:, 1:])


@pytest.mark.parametrize("num_queries", [5, 6])
def test_a_mask_of_padding_takes_words_out_of_the_tree(num_queries: int):
    lengths = torch.tensor([6, 3, 1, 0])
    scores = draw(4, num_queries, 6).requires_grad_()
    allowed = written_out(padding(lengths), num_queries, 6)
    weights = ProjectiveTree().normalize(scores, allowed).weights
    for row, length in enumerate(lengths.tolist()):
        queries = max(length - (6 - num_queries), 0)
        if length:
            alone = ProjectiveTree().normalize(scores[row, :queries, :length], None).weights
            torch.testing.assert_close(weights[row, :queries, :length], alone)
        assert not weights[row, queries:].any()
        assert not weights[row, :, length:].any()
    (gradient,) = torch.autograd.grad(weights.square().sum(), scores)
    assert gradient.isfinite().all()
    assert gradient[0].any()
    assert not gradient[2:].any()


def test_nodes_that_nobody_may_attend_leave_a_tree_of_the_others():
    scores = draw(6, 6)
    present = torch.tensor([True, True, False, True, False, True])
    weights = ProjectiveTree().normalize(scores, present[None, :]).weights
    alone = ProjectiveTree().normalize(scores[present][:, present], None).weights
    torch.testing.assert_close(weights[present][:, present], alone)
    assert weights.count_nonzero() == alone.count_nonzero()
    # A word that may have no head is no part of the tree either.
    headless = present[:, None].expand(6, 6)
    torch.testing.assert_close(ProjectiveTree().normalize(scores, headless).weights, weights)
    # Nor is there a tree without its root, whoever else is there.
    assert not ProjectiveTree().normalize(scores, ~present[None, :]).weights.any()


def test_a_mask_forbids_arcs():
    scores = draw(2, 5, 5)
    leftward = ProjectiveTree().normalize(scores, written_out(causal(), 5, 5)).weights
    forbidden = scores.masked_fill(torch.ones(5, 5).triu(1).bool(), -torch.inf)
    torch.testing.assert_close(leftward, projective_tree_marginals(forbidden.mT).weights.mT)
    assert leftward[:, 1:, 0].all()
    # No node but itself is in reach: no tree.
    assert not ProjectiveTree().normalize(scores, written_out(window(0, 0), 5, 5)).weights.any()


def test_a_tree_within_attend():
    words, lengths = draw(2, 3, 5, 4).requires_grad_(), torch.tensor([5, 3])
    attended = attend(
        words,
        words,
        words,
        score=Dot(4, 4),
        mask=padding(lengths),
        normalizer=ProjectiveTree(),
        need=("weights", "argmax", "entropy"),
    )
    assert attended.weights is not None
    assert attended.entropy is not None
    torch.testing.assert_close(attended.context, attended.weights @ words)
    (attended.context.square().sum() + attended.entropy.sum()).backward()
    assert words.grad is not None
    assert words.grad.isfinite().all()
    assert not words.grad[1, :, 3:].any()


@pytest.mark.parametrize("shape", [(3, 5), (5, 4), (0, 0)])
def test_a_tree_is_over_one_set_of_nodes(shape: tuple[int, int]):
    with pytest.raises(ShapeError, match="a tree needs"):
        ProjectiveTree().normalize(torch.zeros(shape), None)


@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=lambda normalizer: type(normalizer).__name__)
def test_weights_lie_where_they_should(normalizer: Normalizer):
    scores = draw(3, 7, 7, scale=20.0)
    allowed = torch.rand(3, 7, 7, generator=torch.Generator().manual_seed(1)) < 0.8
    allowed[2] = False
    for mask in (None, allowed):
        weights = normalizer.normalize(scores, mask).weights
        sums = weights.sum(-1)
        assert weights.min() >= 0.0
        assert weights.max() <= 1.0
        if normalizer.weights_lie_in == "sub-simplex":
            assert sums.max() <= 1.0 + 1e-12
        if normalizer.weights_lie_in == "simplex":
            full = torch.ones(3, 7, dtype=torch.bool) if mask is None else mask.any(-1)
            torch.testing.assert_close(sums, full.double())
        assert mask is None or not weights[~mask].any()


@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=lambda normalizer: type(normalizer).__name__)
def test_order_of_items_and_values_where_masked_change_nothing(normalizer: Normalizer):
    scores, allowed = draw(4, 5, 5), written_out(padding(torch.tensor([5, 0, 3, 2])), 5, 5)
    weights = normalizer.normalize(scores, allowed).weights
    spoilt = scores.masked_fill(~allowed, 1e6)
    assert torch.equal(normalizer.normalize(spoilt, allowed).weights, weights)
    order = torch.tensor([3, 1, 0, 2])
    assert torch.equal(normalizer.normalize(scores[order], allowed[order]).weights, weights[order])
    assert normalizer.inverse_temperature == 1.0


@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=lambda normalizer: type(normalizer).__name__)
def test_gradients_are_exact_under_a_mask(normalizer: Normalizer):
    allowed = torch.rand(2, 4, 4, generator=torch.Generator().manual_seed(3)) < 0.8
    allowed[..., 0] = True
    allowed[0, 2] = False
    scores = draw(2, 4, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda scores: normalizer.normalize(scores, allowed).weights, (scores,))


@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=lambda normalizer: type(normalizer).__name__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_weights_have_the_type_of_the_scores(normalizer: Normalizer, dtype: torch.dtype):
    scores = draw(2, 4, 4, dtype=dtype)
    weights = normalizer.normalize(scores, None).weights
    assert weights.dtype == dtype
    exact = normalizer.normalize(scores.double(), None).weights
    torch.testing.assert_close(weights.double(), exact, rtol=0.0, atol=4 * torch.finfo(dtype).eps)
