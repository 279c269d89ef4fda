"""Monotonic attention: sums over all ways to walk, chunks by hand, and steps that continue a call."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from heedful.attention.monotonic import Chunkwise, HardMonotonic, Monotonic
from heedful.attention.softmax import Softmax
from heedful.errors import ShapeError, UsageError

SCORES = 2.0 * torch.randn(2, 5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
ALLOWED = torch.rand(2, 5, 7, generator=torch.Generator().manual_seed(2)) < 0.7


def chunks_by_hand(scores: Tensor, ends: Tensor, allowed: Tensor, width: int) -> Tensor:
    """Eq. 20 of MoChA for one query: the shares of each chunk, added up end by end."""
    weights = torch.zeros_like(scores)
    for end in range(len(scores)):
        chunk = [key for key in range(max(0, end - width + 1), end + 1) if allowed[key]]
        total = math.fsum(math.exp(scores[key]) for key in chunk)
        for key in chunk:
            weights[key] += ends[end] * math.exp(scores[key]) / total
    return weights


@pytest.mark.parametrize("kind", [Monotonic(noise=0.0), Monotonic(seed=3), HardMonotonic()])
def test_steps_go_on_where_the_call_before_ended(kind: Monotonic | HardMonotonic):
    if isinstance(kind, Monotonic) and kind.noise:
        rows = torch.arange(10).reshape(2, 5)
    else:
        rows = None
    whole, parts, previous = kind.normalize(SCORES, None, rows).weights, [], None
    for query in range(5):
        step = kind if previous is None else kind.after(previous)
        row = None if rows is None else rows[:, query : query + 1]
        parts.append(step.normalize(SCORES[:, query : query + 1], None, row).weights)
        previous = parts[-1][:, 0]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=0.0, atol=1e-15)


def test_a_query_that_may_attend_nothing_changes_nothing_for_the_next():
    allowed = torch.ones(2, 5, 7, dtype=torch.bool)
    allowed[:, 2] = False
    for kind in (Monotonic(noise=0.0), HardMonotonic()):
        weights = kind.normalize(SCORES, allowed).weights
        assert not weights[:, 2].any()
        without = kind.normalize(SCORES[:, [0, 1, 3, 4]], None).weights
        torch.testing.assert_close(weights[:, [0, 1, 3, 4]], without, rtol=0.0, atol=0.0)


def test_probabilities_near_zero_keep_their_digits():
    scores = torch.full((1, 3, 400), -30.0, dtype=torch.float64)
    scores[..., 390] = 30.0
    weights = Monotonic(noise=0.0).normalize(scores, None).weights
    assert weights[0, :, 390].min() > 1.0 - 1e-9
    assert weights[0, 0, 389] == pytest.approx(math.exp(-30.0), rel=1e-9)
    single = Monotonic(noise=0.0).normalize(scores.float(), None).weights
    torch.testing.assert_close(single, weights.float(), rtol=1e-5, atol=0.0)


def test_noise_is_standard_normal():
    weights = Monotonic(seed=5).normalize(torch.zeros(40_000, 1, 1, dtype=torch.float64), None).weights
    noise = torch.logit(weights.flatten())
    assert abs(noise.mean().item()) < 0.02
    assert abs(noise.std().item() - 1.0) < 0.02
    assert abs((noise.abs() < 1.0).double().mean().item() - 0.6827) < 0.01


@pytest.mark.parametrize("width", [1, 2, 3, 9])
def test_chunks_are_those_by_hand(width: int):
    ends = Monotonic(noise=0.0).normalize(SCORES, ALLOWED).weights.requires_grad_()
    found = Chunkwise(ends, width).normalize(SCORES, ALLOWED).weights
    for item in range(2):
        for query in range(5):
            case = (SCORES[item, query], ends[item, query].detach(), ALLOWED[item, query])
            expected = chunks_by_hand(*case, width)
            torch.testing.assert_close(found[item, query].detach(), expected, rtol=0.0, atol=1e-12)
    scores = SCORES.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda s, e: Chunkwise(e, width).normalize(s, ALLOWED).weights, (scores, ends))


def test_other_weights_are_no_chunks():
    ends = Monotonic(noise=0.0).normalize(SCORES, ALLOWED).weights
    wrong = Softmax().normalize(SCORES, ALLOWED).weights * ends.sum(dim=-1, keepdim=True)
    assert not torch.allclose(wrong, Chunkwise(ends, 2).normalize(SCORES, ALLOWED).weights, atol=1e-3)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match="weights of 3 keys before scores of 7"):
        Monotonic(torch.ones(2, 3)).normalize(SCORES, None)
    with pytest.raises(ShapeError, match="ends of 3 keys for scores of 7"):
        Chunkwise(torch.ones(2, 5, 3)).normalize(SCORES, None)
    with pytest.raises(ShapeError, match="offset"):
        Monotonic(offset=torch.zeros(2, 2)).normalize(SCORES, None)
    for make in (lambda: Monotonic(noise=-1.0), lambda: Chunkwise(SCORES, 0), lambda: Softmax().after(SCORES)):
        with pytest.raises(UsageError):
            make()


def test_an_offset_for_each_head_is_added():
    offset = torch.tensor([[0.0, 3.0]], dtype=torch.float64)
    both = torch.stack((SCORES, SCORES + 3.0), dim=1)
    given = Monotonic(noise=0.0, offset=offset).normalize(torch.stack((SCORES, SCORES), dim=1), None).weights
    torch.testing.assert_close(given, Monotonic(noise=0.0).normalize(both, None).weights, rtol=0.0, atol=1e-15)
    assert replace(Monotonic(), offset=offset).without_noise().offset is offset
