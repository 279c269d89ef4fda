import pytest
import torch
from torch.nn import functional

from heedful.layers.feedforward import FeedForward


def test_it_is_two_convolutions_of_width_one():
    torch.manual_seed(0)
    layer = FeedForward(6, 11).double()
    torch.nn.init.normal_(layer.inner.bias)
    torch.nn.init.normal_(layer.outer.bias)
    vectors = torch.randn(3, 5, 6, dtype=torch.float64)
    hidden = functional.conv1d(vectors.mT, layer.inner.weight[..., None], layer.inner.bias).relu()
    wanted = functional.conv1d(hidden, layer.outer.weight[..., None], layer.outer.bias).mT
    assert float((layer(vectors) - wanted).detach().abs().max()) <= 1e-14


def test_each_position_is_mapped_for_itself():
    layer = FeedForward(4, 8)
    vectors = torch.randn(1, 6, 4, requires_grad=True)
    (gradient,) = torch.autograd.grad(layer(vectors)[0, 2].sum(), vectors)
    assert gradient[0].abs().sum(dim=-1).count_nonzero() == 1


def test_dropout_is_of_the_hidden_layer_and_of_training_alone():
    layer = FeedForward(4, 1000, dropout=0.5)
    torch.nn.init.constant_(layer.inner.weight, 0.0)
    torch.nn.init.constant_(layer.inner.bias, 1.0)
    torch.nn.init.constant_(layer.outer.weight, 1.0)
    vectors = torch.zeros(1, 1, 4)
    assert layer.eval()(vectors).flatten().tolist() == [1000.0] * 4
    trained = layer.train()(vectors).detach().flatten()
    assert float(trained[0]) == pytest.approx(1000.0, abs=150)
    assert float(trained[0]) != 1000.0
    assert trained.tolist() == [float(trained[0])] * 4  # the same hidden units for all outputs
