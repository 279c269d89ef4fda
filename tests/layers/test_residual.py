from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from heedful.layers.residual import NormOrder, Residual


def layer_norm(vectors: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    mean = vectors.mean(dim=-1, keepdim=True)
    variance = (vectors - mean).square().mean(dim=-1, keepdim=True)
    return weight * (vectors - mean) / (variance + 1e-5).sqrt() + bias


def make(order: NormOrder, dropout: float = 0.0) -> Residual:
    torch.manual_seed(0)
    residual = Residual(5, dropout, order).double()
    nn.init.normal_(residual.norm.weight)
    nn.init.normal_(residual.norm.bias)
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


class BatchNorm(nn.Module):
    """Features made of mean 0 and variance 1 over all positions of all items, pads among them."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(size).double()

    def forward(self, vectors: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.norm((vectors + sublayer(vectors)).mT).mT


def largest_change(norm: nn.Module, alone: Tensor, batch: Tensor) -> float:
    """How far the first item's real vectors move when the rest of the batch stands beside them."""
    with torch.no_grad():
        one, among = norm(alone, torch.sin), norm(batch, torch.sin)
    return float((among[:1, : alone.shape[1]] - one).abs().max())


def neighbours(vectors: Tensor) -> Tensor:
    return torch.cat((vectors, 3.0 + 2.0 * torch.randn(4, *vectors.shape[1:], dtype=torch.float64)))


def padded(vectors: Tensor) -> Tensor:
    return torch.cat((vectors, torch.zeros(1, 6, vectors.shape[2], dtype=torch.float64)), dim=1)


@pytest.mark.parametrize("spoil", [neighbours, padded])
def test_layer_normalisation_treats_an_item_for_itself_and_batch_normalisation_does_not(
    spoil: Callable[[Tensor], Tensor],
):
    # Why sequences are normalised over features: what a sentence becomes may not depend on what it was batched with,
    # nor on how far it was padded for that.
    vectors = torch.randn(1, 4, 5, dtype=torch.float64)
    for order in ("post", "pre"):
        assert largest_change(make(order).train(), vectors, spoil(vectors)) <= 1e-14
    assert largest_change(BatchNorm(5).train(), vectors, spoil(vectors)) > 0.1


def test_layer_normalisation_is_the_same_in_training_and_batch_normalisation_is_not():
    vectors = 3.0 + 2.0 * torch.randn(2, 4, 5, dtype=torch.float64)

    def differs(norm: nn.Module) -> bool:
        with torch.no_grad():
            return not torch.equal(norm.train()(vectors, torch.sin), norm.eval()(vectors, torch.sin))

    assert not differs(make("post"))
    assert differs(BatchNorm(5))
