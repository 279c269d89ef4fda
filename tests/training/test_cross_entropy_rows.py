"""The compiled loop against plain operations and against float64."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from heedful.cpu import threads
from heedful.cpu.availability import loops_problem
from heedful.training import cross_entropy_rows
from heedful.training.cross_entropy_rows import RowLosses, take_losses


def draw(num_rows: int = 70, vocabulary: int = 37, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(num_rows)
    logits = 3.0 * torch.randn(num_rows, vocabulary, generator=generator)
    bias = torch.randn(vocabulary, generator=generator)
    return logits.to(dtype), bias, torch.randint(0, vocabulary, (num_rows,), generator=generator)


def exact(logits: Tensor, bias: Tensor | None, gold: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    """Losses, gold log probabilities and gradients by autograd in float64."""
    wide = logits.double().requires_grad_()
    scores = wide if bias is None else wide + bias.double()
    losses = functional.cross_entropy(scores, gold, reduction="none", label_smoothing=smoothing)
    (gradient,) = torch.autograd.grad(losses.sum(), wide)
    return losses.detach(), torch.log_softmax(scores.detach(), dim=-1)[range(len(gold)), gold], gradient


@pytest.fixture(params=["loops", "operations"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "operations":
        monkeypatch.setattr(cross_entropy_rows, "loops_problem", lambda: "not wanted")
    elif reason := loops_problem():
        pytest.skip(reason)
    return str(request.param)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("shape", [(70, 37), (1, 1000), (3, 1), (33, 16)])
@pytest.mark.usefixtures("way")
def test_it_is_the_formula(shape: tuple[int, int], smoothing: float, has_bias: bool, dtype: torch.dtype):
    logits, bias, gold = draw(*shape, dtype)
    given_bias = bias if has_bias else None
    losses, log_probs, gradient = exact(logits, given_bias, gold, smoothing)
    place = logits.clone()
    found = take_losses(place, given_bias, gold, smoothing, wants_gradient=True)
    assert found.losses.dtype == found.gold_log_probs.dtype == torch.float32
    assert torch.allclose(found.losses.double(), losses, rtol=1e-5, atol=1e-5)
    assert torch.allclose(found.gold_log_probs.double(), log_probs, rtol=1e-5, atol=1e-5)
    assert place.dtype == dtype
    rounding = 2.0**-8 if dtype == torch.bfloat16 else 2.0**-20
    assert bool(((place.double() - gradient).abs() <= rounding * gradient.abs() + 1e-7).all())
    if has_bias:
        assert found.bias_gradient is not None
        assert torch.allclose(found.bias_gradient.double(), gradient.sum(dim=0), rtol=1e-4, atol=1e-5)
    else:
        assert found.bias_gradient is None


@pytest.mark.usefixtures("way")
def test_hits_are_tokens_that_no_other_beats():
    logits = torch.tensor([[1.0, 3.0, 2.0], [1.0, 3.0, 2.0], [2.0, 2.0, -9.0], [-5.0, -4.0, -4.5]])
    found = take_losses(logits, None, torch.tensor([1, 2, 1, 1]), 0.1, wants_gradient=False)
    assert found.is_correct.tolist() == [True, False, True, True]


@pytest.mark.parametrize("far", [200.0, 3e4])
@pytest.mark.usefixtures("way")
def test_numbers_far_from_the_largest_count_for_nothing(far: float):
    logits = torch.tensor([[0.0, -far, -far], [far, 0.0, 0.0]])
    place = logits.clone()
    found = take_losses(place, None, torch.tensor([0, 1]), 0.0, wants_gradient=True)
    assert found.losses.tolist() == [0.0, far]
    assert place.tolist() == [[0.0, 0.0, 0.0], [1.0, -1.0, 0.0]]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("place", [0, 5, 36])
@pytest.mark.usefixtures("way")
def test_what_is_not_finite_shows_in_the_loss_of_its_row_alone(place: int, bad: float):
    logits, _, gold = draw()
    logits[2, place] = bad
    gold[2] = 7
    losses = take_losses(logits, None, gold, 0.1, wants_gradient=True).losses
    assert not math.isfinite(float(losses[2]))
    assert bool(torch.isfinite(losses[[i for i in range(len(gold)) if i != 2]]).all())


def results(num_threads: int, monkeypatch: pytest.MonkeyPatch) -> tuple[RowLosses, Tensor]:
    logits, bias, gold = draw(200, 50)
    with monkeypatch.context() as patch:
        patch.setattr(threads, "num_threads", lambda: num_threads)
        return take_losses(logits, bias, gold, 0.1, wants_gradient=True), logits


def test_it_is_the_same_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch):
    (one, first), (three, second) = (results(num, monkeypatch) for num in (1, 3))
    assert torch.equal(first, second)
    for each, other in zip(one, three, strict=True):
        assert each is not None
        assert other is not None
        assert torch.equal(each, other)


@pytest.mark.usefixtures("way")
def test_no_rows():
    found = take_losses(torch.empty(0, 5), torch.ones(5), torch.empty(0, dtype=torch.int64), 0.1, wants_gradient=True)
    assert found.losses.shape == (0,)
    assert found.bias_gradient is not None
    assert found.bias_gradient.tolist() == [0.0] * 5
