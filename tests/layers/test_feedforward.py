import math

import pytest
import torch
from torch import nn

from heedful.layers.feedforward import FeedForward


def test_it_is_two_convolutions_of_width_one():
    torch.manual_seed(0)
    layer = FeedForward(6, 11).double()
    nn.init.normal_(layer.inner.bias)
    nn.init.normal_(layer.outer.bias)
    inner, outer = nn.Conv1d(6, 11, kernel_size=1).double(), nn.Conv1d(11, 6, kernel_size=1).double()
    for convolution, linear in ((inner, layer.inner), (outer, layer.outer)):
        convolution.load_state_dict({"weight": linear.weight[..., None], "bias": linear.bias})
    vectors = torch.randn(3, 5, 6, dtype=torch.float64, requires_grad=True)
    wanted = outer(inner(vectors.mT).relu()).mT
    given = layer(vectors)
    assert float((given - wanted).detach().abs().max()) <= 1e-14
    factor = torch.randn_like(wanted)
    gradients = [
        torch.autograd.grad((output * factor).sum(), [vectors, *parameters])
        for output, parameters in ((given, layer.parameters()), (wanted, [*inner.parameters(), *outer.parameters()]))
    ]
    for one, two in zip(*gradients, strict=True):
        assert float((one - two.view_as(one)).abs().max()) <= 1e-13


def test_it_is_the_equation_by_single_numbers():
    torch.manual_seed(1)
    layer = FeedForward(3, 4).double()
    nn.init.normal_(layer.inner.bias)
    nn.init.normal_(layer.outer.bias)
    w1, b1, w2, b2 = (parameter.tolist() for parameter in layer.parameters())

    def linear(rows: list[list[float]], bias: list[float], x: list[float]) -> list[float]:
        return [
            math.fsum([b, *(w * v for w, v in zip(row, x, strict=True))]) for row, b in zip(rows, bias, strict=True)
        ]

    x = [0.5, -1.0, 2.0]
    hidden = [max(0.0, number) for number in linear(w1, b1, x)]
    assert 0 < hidden.count(0.0) < 4
    assert layer(torch.tensor(x).double()).tolist() == pytest.approx(linear(w2, b2, hidden), abs=1e-14)


def test_each_position_is_mapped_for_itself():
    layer = FeedForward(4, 8)
    vectors = torch.randn(1, 6, 4, requires_grad=True)
    (gradient,) = torch.autograd.grad(layer(vectors)[0, 2].sum(), vectors)
    assert gradient[0].abs().sum(dim=-1).count_nonzero() == 1


def test_dropout_is_of_the_hidden_layer_and_of_training_alone():
    torch.manual_seed(0)
    layer = FeedForward(4, 1000, dropout=0.5)
    nn.init.constant_(layer.inner.weight, 0.0)
    nn.init.constant_(layer.inner.bias, 1.0)
    nn.init.constant_(layer.outer.weight, 1.0)
    vectors = torch.zeros(1, 1, 4)
    assert layer.eval()(vectors).flatten().tolist() == [1000.0] * 4
    trained = layer.train()(vectors).detach().flatten()
    assert float(trained[0]) == pytest.approx(1000.0, abs=150)
    assert float(trained[0]) != 1000.0
    assert trained.tolist() == [float(trained[0])] * 4  # the same hidden units for all outputs


def test_swish_is_its_formula():
    layer = FeedForward(6, 11, activation="swish").double()
    vectors = torch.randn(3, 6, dtype=torch.float64)
    inner = layer.inner(vectors)
    assert torch.allclose(layer(vectors), layer.outer(inner / (1 + (-inner).exp())), atol=1e-12)
