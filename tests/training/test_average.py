from math import lgamma

import numpy as np
import pytest
import torch
from torch import nn

from heedful.training.average import PolynomialAverage


def walk(exponent: float, num_steps: int) -> tuple[nn.Linear, PolynomialAverage, list[np.ndarray]]:
    """A model whose weight is drawn anew at each step, and all that it was."""
    generator = np.random.default_rng(0)
    model = nn.Linear(3, 2, bias=False).double()
    average = PolynomialAverage(model, exponent)
    history: list[np.ndarray] = []
    for step in range(1, num_steps + 1):
        history.append(generator.normal(size=(2, 3)))
        model.weight.data = torch.from_numpy(history[-1].copy())
        average = average if step > 1 else PolynomialAverage(model, exponent)
        average.update(step)
    return model, average, history


def share(step: int, last: int, exponent: float) -> float:
    """(g + 1) G(n) G(t + g) / (G(t) G(n + g + 1)): the weight of step t after n, for n > t or n = t."""
    return (exponent + 1) * np.exp(lgamma(last) - lgamma(step) + lgamma(step + exponent) - lgamma(last + exponent + 1))


@pytest.mark.parametrize("exponent", [1.0, 2.5, 8.0])
@pytest.mark.parametrize("num_steps", [1, 2, 7, 40])
def test_it_is_the_closed_form(exponent: float, num_steps: int):
    _, average, history = walk(exponent, num_steps)
    shares = [share(step, num_steps, exponent) for step in range(1, num_steps + 1)]
    assert sum(shares) == pytest.approx(1.0)
    wanted = sum(part * weight for part, weight in zip(shares, history, strict=True))
    assert np.abs(average.tensors()["weight"].numpy() - wanted).max() <= 1e-12


def test_it_covers_the_last_steps():
    shares = np.array([share(step, 1000, 8.0) for step in range(1, 1001)])
    assert shares[-250:].sum() > 0.9
    assert (np.diff(shares) > 0).all()


def test_the_model_has_it_for_a_while_and_then_its_own_again():
    model, average, history = walk(8.0, 5)
    with average.swapped_in():
        assert torch.equal(model.weight, average.tensors()["weight"])
        assert not np.array_equal(model.weight.detach().numpy(), history[-1])
    assert np.array_equal(model.weight.detach().numpy(), history[-1])


def test_the_weights_come_back_after_an_error_too():
    model, average, history = walk(8.0, 5)
    with pytest.raises(KeyError), average.swapped_in():
        raise KeyError
    assert np.array_equal(model.weight.detach().numpy(), history[-1])


def test_tied_weights_stay_tied():
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    model[1].weight = model[0].weight
    average = PolynomialAverage(model, 8.0)
    with torch.no_grad():
        model[0].weight += 1.0
    average.update(5)
    assert list(average.tensors()) == ["0.weight"]
    with average.swapped_in():
        assert model[1].weight is model[0].weight


def test_switched_off_it_is_nothing():
    model, average, history = walk(0.0, 3)
    assert average.tensors() == {}
    with average.swapped_in():
        assert np.array_equal(model.weight.detach().numpy(), history[-1])
    average.restore({})


def test_a_restored_average_goes_on():
    _, average, _ = walk(8.0, 4)
    other = nn.Linear(3, 2, bias=False).double()
    restored = PolynomialAverage(other, 8.0)
    restored.restore({"weight": average.tensors()["weight"].clone()})
    assert torch.equal(restored.tensors()["weight"], average.tensors()["weight"])


@pytest.mark.parametrize("exponent", [0.0, 8.0])
def test_the_evaluated_weights_hold_a_share_of_those_of_the_start(exponent: float):
    generator = torch.Generator().manual_seed(0)
    model = nn.Linear(3, 2).double()
    start = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    average = PolynomialAverage(model, exponent, start_share=0.25)
    for step in range(1, 4):
        for parameter in model.parameters():
            parameter.data = torch.randn(parameter.shape, dtype=torch.float64, generator=generator)
        average.update(step)
    trained = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    plain = average.tensors() or trained
    evaluated = average.evaluated()
    with average.swapped_in():
        for name, parameter in model.named_parameters():
            assert torch.equal(parameter, evaluated[name])
            assert torch.allclose(parameter, 0.75 * plain[name] + 0.25 * start[name], rtol=0.0, atol=1e-15)
    assert all(torch.equal(parameter, trained[name]) for name, parameter in model.named_parameters())
