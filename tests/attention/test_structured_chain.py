"""Marginals of chains against the sum over all sequences of states."""

import itertools
import math

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from heedful.attention.structured_chain import binary_chain_log_odds, linear_chain_marginals, log_sum, shares
from heedful.errors import ShapeError

SCORES = torch.tensor([0.5, -0.2, 1.0], dtype=torch.float64)
TRANSITION = torch.tensor([[0.1, -0.3], [-0.3, 0.4]], dtype=torch.float64)


def draw(*shape: int, seed: int = 0, scale: float = 1.0, dtype: torch.dtype = torch.float64) -> Tensor:
    return (scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)).to(dtype)


def with_state_0(scores: Tensor) -> Tensor:
    return torch.stack([torch.zeros_like(scores), scores], dim=-1)


def enumerate_chain(
    unary: Tensor, steps: Tensor, places: list[int], start: Tensor, stop: Tensor
) -> tuple[list[list[float]], float]:
    """Marginals and log normalizer of the chain of some places, as sums over all sequences."""
    num_positions, num_states = unary.shape
    sums = [[0.0] * num_states for _ in range(num_positions)]
    total = 0.0
    for states in itertools.product(range(num_states), repeat=len(places)):
        score = sum(float(unary[place, state]) for place, state in zip(places, states, strict=True))
        for (_, here), (place, there) in itertools.pairwise(zip(places, states, strict=True)):
            score += float(steps[place - 1, here, there])
        if states:
            score += float(start[states[0]]) + float(stop[states[-1]])
        total += math.exp(score)
        for place, state in zip(places, states, strict=True):
            sums[place][state] += math.exp(score)
    return [[value / total for value in row] for row in sums], math.log(total)


def test_the_numbers_of_the_paper_notes():
    chain = linear_chain_marginals(with_state_0(SCORES), TRANSITION)
    assert chain.log_normalizer.exp().item() == pytest.approx(19.823332, abs=5e-7)
    assert chain.weights[:, 1].tolist() == pytest.approx([0.679374, 0.633946, 0.772368], abs=5e-7)
    log_odds, log_normalizer = binary_chain_log_odds(SCORES, TRANSITION)
    assert log_normalizer.exp().item() == pytest.approx(19.823332, abs=5e-7)
    assert log_odds.sigmoid().tolist() == pytest.approx([0.679374, 0.633946, 0.772368], abs=5e-7)


@pytest.mark.parametrize("num_states", [1, 2, 3])
@pytest.mark.parametrize("num_positions", [1, 2, 3, 4])
def test_every_subset_of_positions_equals_the_sum_over_sequences(num_positions: int, num_states: int):
    allowed = torch.tensor(list(itertools.product([False, True], repeat=num_positions)))
    unary = draw(len(allowed), num_positions, num_states, scale=2.0)
    steps = draw(num_positions - 1, num_states, num_states, seed=1, scale=2.0)
    start, stop = draw(num_states, seed=2), draw(num_states, seed=3)
    batched = steps.expand(len(allowed), *steps.shape)
    chain = linear_chain_marginals(unary, batched, allowed, start, stop)
    for row, places in enumerate(allowed):
        weights, log_normalizer = enumerate_chain(unary[row], steps, places.nonzero().flatten().tolist(), start, stop)
        torch.testing.assert_close(chain.weights[row], torch.tensor(weights, dtype=torch.float64))
        assert chain.log_normalizer[row].item() == pytest.approx(log_normalizer, abs=1e-12)


@pytest.mark.parametrize("num_positions", [1, 2, 4])
def test_two_states_give_the_same_as_log_odds(num_positions: int):
    allowed = torch.tensor(list(itertools.product([False, True], repeat=num_positions)))
    scores = draw(len(allowed), num_positions, scale=3.0)
    for num_steps in {1, num_positions - 1}:
        transition = draw(len(allowed), num_steps, 2, 2, seed=1, scale=2.0)
        start, stop = draw(len(allowed), 2, seed=2), draw(2, seed=3)
        chain = linear_chain_marginals(with_state_0(scores), transition, allowed, start, stop)
        log_odds, log_normalizer = binary_chain_log_odds(scores, transition, allowed, start, stop)
        torch.testing.assert_close(log_odds.sigmoid().masked_fill(~allowed, 0.0), chain.weights[..., 1])
        torch.testing.assert_close(log_normalizer, chain.log_normalizer)


def test_a_shared_transition_is_one_for_every_step_and_item():
    unary, transition = draw(2, 3, 4, 3), draw(3, 3, seed=1)
    shared = linear_chain_marginals(unary, transition)
    written_out = linear_chain_marginals(unary, transition.expand(2, 3, 3, 3, 3))
    torch.testing.assert_close(shared.weights, written_out.weights)
    torch.testing.assert_close(shared.log_normalizer, written_out.log_normalizer)
    assert shared.weights.shape == (2, 3, 4, 3)
    assert shared.log_normalizer.shape == (2, 3)


def test_padding_batch_and_order_change_nothing():
    transition, lengths = draw(3, 3, seed=1), torch.tensor([5, 2, 1, 0])
    unary = draw(4, 5, 3)
    allowed = torch.arange(5) < lengths[:, None]
    together = linear_chain_marginals(unary, transition, allowed)
    for row, length in enumerate(lengths.tolist()):
        alone = linear_chain_marginals(unary[row, :length], transition)
        torch.testing.assert_close(together.weights[row, :length], alone.weights)
        torch.testing.assert_close(together.log_normalizer[row], alone.log_normalizer)
        assert not together.weights[row, length:].any()
    order = torch.tensor([2, 0, 3, 1])
    reordered = linear_chain_marginals(unary[order], transition, allowed[order])
    assert torch.equal(reordered.weights, together.weights[order])
    assert torch.equal(reordered.log_normalizer, together.log_normalizer[order])


def test_what_stands_where_nothing_is_allowed_never_shows():
    allowed = torch.tensor([[False, True, False, True], [False] * 4])
    scores = draw(2, 4)
    spoilt = scores.masked_fill(~allowed, torch.nan).requires_grad_()
    transition = TRANSITION.clone().requires_grad_()
    clean, _ = binary_chain_log_odds(scores, TRANSITION, allowed)
    log_odds, log_normalizer = binary_chain_log_odds(spoilt, transition, allowed)
    general = linear_chain_marginals(with_state_0(spoilt), transition, allowed)
    torch.testing.assert_close(log_odds[allowed], clean[allowed])
    assert log_normalizer[1].item() == general.log_normalizer[1].item() == 0.0
    (log_odds.sigmoid()[allowed].sum() + log_normalizer.sum() + (general.weights[..., 1] ** 2).sum()).backward()
    assert spoilt.grad is not None
    assert torch.equal(spoilt.grad != 0, allowed)
    assert transition.grad is not None
    assert transition.grad.isfinite().all()


def test_gradients_are_exact_and_so_are_theirs():
    allowed = torch.tensor([[True, True, False, True], [True, True, True, True], [False] * 4])
    unary, steps = draw(3, 4, 3).requires_grad_(), draw(1, 3, 3, 3, seed=1).requires_grad_()
    ends = [draw(3, seed=seed).requires_grad_() for seed in (2, 3)]
    scores, transition = draw(3, 4).requires_grad_(), draw(2, 2, seed=1).requires_grad_()

    def general(unary: Tensor, steps: Tensor, start: Tensor, stop: Tensor) -> tuple[Tensor, Tensor]:
        return tuple(linear_chain_marginals(unary, steps, allowed, start, stop))

    def binary(scores: Tensor, transition: Tensor) -> tuple[Tensor, Tensor]:
        log_odds, log_normalizer = binary_chain_log_odds(scores, transition, allowed)
        return log_odds.masked_fill(~allowed, 0.0), log_normalizer

    for check in (gradcheck, gradgradcheck):
        assert check(general, (unary, steps, *ends), fast_mode=True)
        assert check(binary, (scores, transition))


def test_marginals_are_the_gradient_of_the_log_normalizer():
    unary = draw(2, 5, 3).requires_grad_()
    chain = linear_chain_marginals(unary, draw(3, 3, seed=1))
    (gradient,) = torch.autograd.grad(chain.log_normalizer.sum(), unary)
    torch.testing.assert_close(gradient, chain.weights)


def test_a_forbidden_transition_never_happens():
    transition = torch.tensor([[0.0, 0.3], [-torch.inf, 0.2]], dtype=torch.float64)
    unary = draw(3, 2).requires_grad_()
    chain = linear_chain_marginals(unary, transition)
    # Once in state 1, always there: 4 sequences of 8 are left.
    weights, log_normalizer = enumerate_chain(
        unary.detach(), transition.expand(2, 2, 2), [0, 1, 2], torch.zeros(2), torch.zeros(2)
    )
    torch.testing.assert_close(chain.weights.detach(), torch.tensor(weights, dtype=torch.float64))
    assert chain.log_normalizer.item() == pytest.approx(log_normalizer)
    (chain.weights[:, 1] ** 2).sum().backward()
    assert unary.grad is not None
    assert unary.grad.isfinite().all()


def test_a_chain_without_any_possible_sequence_is_zero_and_not_nan():
    unary = draw(3, 2).requires_grad_()
    chain = linear_chain_marginals(unary, torch.full((2, 2), -torch.inf, dtype=torch.float64))
    assert chain.log_normalizer.item() == -torch.inf
    assert not chain.weights.any()
    chain.weights.sum().backward()
    assert unary.grad is not None
    assert not unary.grad.any()


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e4])
def test_single_precision_is_close_to_double_at_any_scale(scale: float):
    scores = draw(8, 200, scale=scale, dtype=torch.float32).requires_grad_()
    transition = draw(2, 2, seed=1, scale=scale, dtype=torch.float32)
    log_odds, log_normalizer = binary_chain_log_odds(scores, transition)
    exact, exact_normalizer = binary_chain_log_odds(scores.double(), transition.double())
    general = linear_chain_marginals(with_state_0(scores), transition)
    # A score itself is known to 2^-24 of its size only.
    tolerance = 2e-6 * max(1.0, scale)
    for weights in (log_odds.sigmoid(), general.weights[..., 1]):
        torch.testing.assert_close(weights.double(), exact.sigmoid(), rtol=0.0, atol=tolerance)
        assert weights.min() >= 0.0
        assert weights.max() <= 1.0
    for single in (log_normalizer, general.log_normalizer):
        torch.testing.assert_close(single.double(), exact_normalizer, rtol=2e-6, atol=0.0)
    (log_odds.sigmoid().square().sum() + general.weights.square().sum() + log_normalizer.sum()).backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


def test_extreme_scores_decide():
    scores = torch.tensor([1e4, -1e4, 1e4], dtype=torch.float32)
    log_odds, _ = binary_chain_log_odds(scores, TRANSITION.float())
    assert log_odds.sigmoid().tolist() == [1.0, 0.0, 1.0]
    # A transition of that size outvotes the scores: to stay pays 1e4 twice, and 1 is better once more.
    log_odds, log_normalizer = binary_chain_log_odds(scores / 1e4, torch.tensor([[1e4, 0.0], [0.0, 1e4]]))
    assert log_odds.sigmoid().tolist() == pytest.approx([1 / (1 + math.exp(-1.0))] * 3, abs=1e-3)
    assert log_normalizer.item() == pytest.approx(2e4, rel=1e-3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_wide_and_given_back(dtype: torch.dtype):
    unary, transition = draw(2, 40, 3, scale=3.0, dtype=dtype), draw(3, 3, seed=1, dtype=dtype)
    chain = linear_chain_marginals(unary, transition)
    exact = linear_chain_marginals(unary.double(), transition.double())
    assert chain.weights.dtype == chain.log_normalizer.dtype == dtype
    torch.testing.assert_close(chain.weights.double(), exact.weights, rtol=0.0, atol=torch.finfo(dtype).eps / 2)
    # Parameters of a narrower type than the scores are widened before anything is computed with them.
    narrow, wide = (binary_chain_log_odds(draw(2, 9), given[:2, :2]) for given in (transition, transition.double()))
    assert torch.equal(narrow[0], wide[0])


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (2, 3, 0)])
def test_empty_axes(shape: tuple[int, ...]):
    log_odds, log_normalizer = binary_chain_log_odds(torch.zeros(shape), torch.zeros(2, 2))
    chain = linear_chain_marginals(torch.zeros(*shape, 2), torch.zeros(2, 2))
    assert log_odds.shape == shape
    assert chain.weights.shape == (*shape, 2)
    assert torch.equal(log_normalizer, torch.zeros(shape[:-1]))
    assert torch.equal(chain.log_normalizer, torch.zeros(shape[:-1]))


@pytest.mark.parametrize(
    "arguments",
    [
        {"transition": torch.zeros(3, 3)},
        {"transition": torch.zeros(1, 2, 2)},
        {"transition": torch.zeros(2, 2, 2, 2)},
        {"allowed": torch.ones(1, 1, 4, dtype=torch.bool)},
        {"start": torch.zeros(1, 1, 2)},
    ],
)
@pytest.mark.wrong_shapes
def test_axes_that_do_not_fit_are_refused(arguments: dict[str, Tensor]):
    given = {"transition": torch.zeros(2, 2)} | arguments
    with pytest.raises(ShapeError, match="chain: "):
        linear_chain_marginals(torch.zeros(2, 4, 2), **given)
    with pytest.raises(ShapeError, match="chain: "):
        binary_chain_log_odds(torch.zeros(2, 4), **given)


def test_sums_of_nothing_have_gradients():
    terms = torch.tensor([[0.0, -torch.inf], [-torch.inf, -torch.inf]], dtype=torch.float64, requires_grad=True)
    total = log_sum(terms, 1)
    assert total.tolist() == [0.0, -torch.inf]
    assert shares(terms, 1).tolist() == [[1.0, 0.0], [0.0, 0.0]]
    (gradient,) = torch.autograd.grad(total.masked_fill(total == -torch.inf, 0.0).sum(), terms, create_graph=True)
    assert gradient.tolist() == [[1.0, 0.0], [0.0, 0.0]]
    (second,) = torch.autograd.grad((gradient + shares(terms, 1)).square().sum(), terms)
    assert second.isfinite().all()


@pytest.mark.parametrize("has_mask", [False, True])
@pytest.mark.parametrize("transition_shape", [(2, 2), (3, 1, 1, 2, 2), (3, 2, 6, 2, 2)], ids=str)
def test_an_exported_chain_is_the_same(
    transition_shape: tuple[int, ...], has_mask: bool, monkeypatch: pytest.MonkeyPatch
):
    generator = torch.Generator().manual_seed(4)
    scores = torch.randn(3, 2, 7, generator=generator, dtype=torch.float64, requires_grad=True)
    transition = torch.randn(transition_shape, generator=generator, dtype=torch.float64)
    ends = torch.randn(2, 2, generator=generator, dtype=torch.float64)
    allowed = torch.rand(3, 1, 7, generator=generator) > 0.4
    allowed[0] = False
    real = allowed.expand(3, 2, 7) if has_mask else torch.ones(3, 2, 7, dtype=torch.bool)
    results: list[tuple[torch.Tensor, ...]] = []
    for is_exported in (False, True):
        monkeypatch.setattr(torch.compiler, "is_exporting", lambda is_exported=is_exported: is_exported)
        odds, total = binary_chain_log_odds(scores, transition, allowed if has_mask else None, *ends)
        (gradient,) = torch.autograd.grad(odds[real].square().sum() + total.sum(), scores)
        results.append((odds[real], total, gradient))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)
