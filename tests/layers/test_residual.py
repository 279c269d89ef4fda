import pytest
import torch
from torch import Tensor

from heedful.layers.residual import NormOrder, Residual


def layer_norm(vectors: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    mean = vectors.mean(dim=-1, keepdim=True)
    variance = (vectors - mean).square().mean(dim=-1, keepdim=True)
    return weight * (vectors - mean) / (variance + 1e-6).sqrt() + bias


def make(order: NormOrder, dropout: float = 0.0) -> Residual:
    torch.manual_seed(0)
    residual = Residual(5, dropout, order).double()
    torch.nn.init.normal_(residual.norm.weight)
    torch.nn.init.normal_(residual.norm.bias)
    return residual


@pytest.mark.parametrize("order", ["post", "pre"])
def test_it_is_the_formula(order: NormOrder):
    residual = make(order)
    vectors = torch.randn(2, 3, 5, dtype=torch.float64)
    parameters = (residual.norm.weight, residual.norm.bias)
    if order == "post":
        wanted = layer_norm(vectors + torch.sin(vectors), *parameters)
    else:
        wanted = vectors + torch.sin(layer_norm(vectors, *parameters))
    assert float((residual(vectors, torch.sin) - wanted).detach().abs().max()) <= 1e-14


@pytest.mark.parametrize("order", ["post", "pre"])
def test_dropout_is_of_the_sublayer_alone(order: NormOrder):
    residual = make(order, dropout=0.5)
    vectors = torch.randn(2, 3, 5, dtype=torch.float64)

    def sublayer(inputs: Tensor) -> Tensor:
        return torch.full_like(inputs, 3.0)

    torch.manual_seed(1)
    given = residual.train()(vectors, sublayer)
    if order == "pre":
        assert set((given - vectors).round(decimals=9).flatten().tolist()) == {0.0, 6.0}
    else:
        whole = layer_norm(vectors + 3.0, residual.norm.weight, residual.norm.bias)
        assert float((given - whole).detach().abs().max()) > 0.1
    assert torch.equal(residual.eval()(vectors, sublayer), residual(vectors, sublayer))
