"""Sums over alignments equal those over a list of all alignments, in likelihood and in gradient."""

from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor

from heedful.attention.alignment_sums import (
    alignment_posteriors,
    best_alignment,
    sum_alignments,
)
from heedful.attention.kernels.alignments.cpu_ops import fast_alignment_sums

Sums = Callable[[Tensor, Tensor], Tensor]
KINDS = ("any", "monotonic", "free")


def drawn(kind: str, batch: int = 3, num_steps: int = 4, size: int = 3, scale: float = 2.0) -> tuple[Tensor, Tensor]:
    """Log emissions and log transitions in float64; free = the next position does not depend on the one before."""
    generator = torch.Generator().manual_seed(len(kind))
    emissions = scale * torch.randn(batch, num_steps, size, generator=generator, dtype=torch.float64)
    scores = scale * torch.randn(
        batch, num_steps, 1 if kind == "free" else size, size, generator=generator, dtype=torch.float64
    )
    if kind == "monotonic":
        scores = scores.masked_fill(torch.ones(size, size).tril(-1).bool(), -torch.inf)
    return emissions, torch.log_softmax(scores, dim=-1)


def listed(emissions: Tensor, transitions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """By the list of all alignments: log p(y), posterior of each position, and the most probable alignment."""
    batch, num_steps, size = emissions.shape
    paths = list(product(range(size), repeat=num_steps))
    scores = []
    for path in paths:
        total = emissions.new_zeros(batch)
        before = 0
        for i, j in enumerate(path):
            total = total + transitions[:, i, before if transitions.shape[2] > 1 else 0, j] + emissions[:, i, j]
            before = j
        scores.append(total)
    table = torch.stack(scores, dim=1)
    shares = torch.softmax(table, dim=1)
    posterior = torch.stack(
        [
            torch.stack([shares[:, [n for n, path in enumerate(paths) if path[i] == j]].sum(1) for j in range(size)], 1)
            for i in range(num_steps)
        ],
        dim=1,
    )
    return torch.logsumexp(table, dim=1), posterior, torch.tensor(paths)[table.argmax(dim=1)]


def agrees_with_the_list(sums: Sums, kind: str) -> None:
    """Log p(y) and its gradients are those of the sum over the list."""
    emissions, transitions = (each.requires_grad_() for each in drawn(kind))
    weight = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    found, wanted = sums(emissions, transitions), listed(emissions, transitions)[0]
    assert float((found - wanted).detach().abs().max()) <= 1e-10
    inputs = [emissions, transitions]
    slopes = torch.autograd.grad((found * weight).sum(), inputs)
    for one, other in zip(slopes, torch.autograd.grad((wanted * weight).sum(), inputs), strict=True):
        possible = other != 0.0
        assert float((one - other).abs().max()) <= 1e-10
        assert bool(possible.any())


def plain(emissions: Tensor, transitions: Tensor) -> Tensor:
    return sum_alignments(emissions, transitions).log_probs.sum(dim=1)


def compiled(emissions: Tensor, transitions: Tensor) -> Tensor:
    return fast_alignment_sums(emissions, transitions).log_probs.sum(dim=1)


@pytest.mark.parametrize("sums", [plain, compiled])
@pytest.mark.parametrize("kind", KINDS)
def test_likelihood_and_gradients_are_those_of_all_alignments(sums: Sums, kind: str):
    agrees_with_the_list(sums, kind)


def best_alone(emissions: Tensor, transitions: Tensor) -> Tensor:
    """Plants a maximum where a sum belongs."""
    path = best_alignment(emissions, transitions)
    before = torch.nn.functional.pad(path[:, :-1], (1, 0))
    rows, steps = torch.arange(len(path))[:, None], torch.arange(path.shape[1])
    before = before if transitions.shape[2] > 1 else torch.zeros_like(before)
    return (transitions[rows, steps, before, path] + emissions[rows, steps, path]).sum(dim=1)


def any_start(emissions: Tensor, transitions: Tensor) -> Tensor:
    """Plants a first position that is as probable as any other."""
    first = torch.logsumexp(transitions[:, :1], dim=2, keepdim=True) - torch.tensor(transitions.shape[2]).log()
    return plain(emissions, torch.cat((first.expand(transitions[:, :1].shape), transitions[:, 1:]), dim=1))


def turned(emissions: Tensor, transitions: Tensor) -> Tensor:
    """Plants transitions from the later position to the earlier one."""
    return plain(emissions, transitions.mT)


@pytest.mark.parametrize("fault", [best_alone, any_start, turned])
def test_wrong_sums_are_refused(fault: Sums):
    with pytest.raises(AssertionError):
        agrees_with_the_list(fault, "monotonic")


@pytest.mark.parametrize("kind", KINDS)
def test_posteriors_and_best_alignment_are_those_of_the_list(kind: str):
    emissions, transitions = drawn(kind)
    _, posterior, best = listed(emissions, transitions)
    real = torch.ones(emissions.shape[:2], dtype=torch.bool)
    assert float((alignment_posteriors(emissions, transitions, real) - posterior).abs().max()) <= 1e-10
    assert torch.equal(best_alignment(emissions, transitions), best)
    real[1, 2:] = False
    shorter = alignment_posteriors(emissions, transitions, real)
    wanted = listed(emissions[1:2, :2], transitions[1:2, :2])[1]
    assert float((shorter[1:2, :2] - wanted).abs().max()) <= 1e-10
    assert float(shorter[1, 2:].abs().max()) == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_later_tokens_change_no_earlier_ones(kind: str):
    emissions, transitions = drawn(kind)
    whole = sum_alignments(emissions, transitions)
    first = sum_alignments(emissions[:, :2], transitions[:, :2])
    assert torch.equal(whole.log_probs[:, :2], first.log_probs)
    assert torch.equal(whole.log_priors[:, :2], first.log_priors)
    assert float((whole.log_priors.exp().sum(-1) - 1.0).abs().max()) <= 1e-12


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_compiled_sums_are_those_of_operations_where_probabilities_are_extreme(dtype: torch.dtype):
    emissions, transitions = (each.to(dtype) for each in drawn("monotonic", 9, 30, 12, scale=8.0))
    assert float(transitions[transitions > -torch.inf].min()) < -20.0
    inputs = [
        (one.clone().requires_grad_(), other.clone().requires_grad_()) for one, other in [(emissions, transitions)] * 2
    ]
    tolerance = 2e-4 if dtype == torch.float32 else 1e-9
    fast, slow = fast_alignment_sums(*inputs[0]), sum_alignments(*inputs[1])
    assert float((fast.log_probs - slow.log_probs).detach().abs().max()) <= tolerance
    assert float((fast.log_priors.exp() - slow.log_priors.exp()).detach().abs().max()) <= tolerance
    weight = torch.linspace(0.5, 2.0, 30, dtype=dtype)
    slopes = [
        torch.autograd.grad((sums.log_probs * weight).sum(), own)
        for sums, own in zip((fast, slow), inputs, strict=True)
    ]
    for one, other in zip(*slopes, strict=True):
        assert float((one - other).abs().max()) <= tolerance * float(other.abs().max())


def test_tokens_that_no_position_likes_have_finite_gradients():
    emissions, transitions = drawn("monotonic", 2, 6, 4)
    emissions = emissions.float()
    emissions[:, 2, 1:] = -400.0
    emissions[:, :2, 0] = -300.0
    transitions = transitions.float().requires_grad_()
    emissions.requires_grad_()
    log_probs = fast_alignment_sums(emissions, transitions).log_probs
    slopes = torch.autograd.grad(log_probs.sum(), [emissions, transitions])
    assert bool(log_probs.isfinite().all())
    assert all(bool(slope.isfinite().all()) for slope in slopes)


def test_second_derivatives_are_those_of_operations():
    emissions, transitions = drawn("monotonic")

    def total(*inputs: Tensor) -> Tensor:
        return compiled(*inputs).square().sum()

    assert torch.autograd.gradgradcheck(total, [each.requires_grad_() for each in (emissions, transitions)])
