import math

import pytest
import torch

from heedful.attention.softmax import SOFTMAX, Softmax
from heedful.errors import ShapeError, UsageError

# reference values of softmax([1, 2, 3] / temperature)
TABLE = {0.5: [0.015876, 0.117310, 0.866813], 1.0: [0.090031, 0.244728, 0.665241], 2.0: [0.186324, 0.307196, 0.506480]}


@pytest.mark.parametrize("temperature", TABLE)
def test_softmax_with_temperature(temperature: float):
    softmax = Softmax(temperature)
    scores = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64) * softmax.inverse_temperature
    weights = softmax.normalize(scores, None).weights
    assert weights.tolist() == pytest.approx(TABLE[temperature], abs=5e-7)


def test_the_log_normalizer_is_the_log_of_the_sum_of_exponentials():
    scores = torch.tensor([[1.0, 2.0, 3.0], [1000.0, 1000.0, -7.0]], dtype=torch.float64)
    allowed = torch.tensor([[True, False, True], [True, True, True]])
    free, masked = (SOFTMAX.normalize(scores, mask).log_normalizer for mask in (None, allowed))
    assert free is not None
    assert masked is not None
    total = math.log(math.exp(1) + math.exp(2) + math.exp(3))
    assert free.tolist() == pytest.approx([total, 1000.0 + math.log(2)])
    assert masked.tolist() == pytest.approx([math.log(math.exp(1) + math.exp(3)), 1000.0 + math.log(2)])


def test_a_row_that_allows_nothing_is_zero_with_zero_gradient():
    scores = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64, requires_grad=True)
    allowed = torch.tensor([[False, False], [True, False]])
    normalized = SOFTMAX.normalize(scores, allowed)
    assert normalized.weights.tolist() == [[0.0, 0.0], [1.0, 0.0]]
    assert normalized.log_normalizer is not None
    assert normalized.log_normalizer.tolist() == [-math.inf, 3.0]
    (gradient,) = torch.autograd.grad(normalized.weights.sum() + normalized.log_normalizer[1], scores)
    assert gradient.tolist() == [[0.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan])
def test_a_temperature_that_is_not_above_zero_is_refused(temperature: float):
    for given in (temperature, torch.tensor(temperature)):
        with pytest.raises(UsageError, match="not above 0"):
            Softmax(given)


def test_a_temperature_is_one_number():
    with pytest.raises(ShapeError, match=r"must be one number, of shape \[\], got \[1\]"):
        Softmax(torch.ones(1))


def test_a_temperature_learns():
    temperature = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    scores = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)

    def weigh(temperature: torch.Tensor) -> torch.Tensor:
        softmax = Softmax(temperature)
        return softmax.weigh(scores * softmax.inverse_temperature, None)

    assert torch.autograd.gradcheck(weigh, (temperature,))


def test_temperature_to_zero_is_the_argmax_and_to_infinity_the_mean():
    scores = torch.tensor([1.0, 3.0, 2.0])
    cold, hot = (Softmax(t).weigh(scores * Softmax(t).inverse_temperature, None) for t in (1e-30, math.inf))
    assert cold.tolist() == [0.0, 1.0, 0.0]
    assert hot.tolist() == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e4, 1e8])
def test_scores_of_any_size_give_finite_weights(size: float, dtype: torch.dtype):
    scores = (torch.tensor([[1.0, -1.0, 0.5], [-3.0, -2.0, -1.0]]) * size).to(dtype)
    weights = SOFTMAX.normalize(scores, torch.tensor([True, True, False])).weights
    assert bool(torch.isfinite(weights).all())
    assert weights.float().sum(dim=-1).tolist() == pytest.approx([1.0, 1.0], abs=1e-2)
