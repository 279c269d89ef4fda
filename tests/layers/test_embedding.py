import pytest
import torch

from heedful.layers.embedding import Embedding, OutputLayer
from heedful.text.vocabulary import PAD


def test_rows_are_looked_up_and_scaled():
    embedding = Embedding(7, 4, scale=3.0)
    ids = torch.tensor([[5, 1], [6, PAD]])
    assert torch.equal(embedding(ids), 3.0 * embedding.weight[ids])
    assert embedding.weight[PAD].tolist() == [0.0] * 4


def test_the_spread_of_the_table():
    torch.manual_seed(0)
    assert float(Embedding(2000, 64).weight.detach().std()) == pytest.approx(64**-0.5, rel=0.02)
    assert float(Embedding(2000, 64, std=0.1).weight.detach().std()) == pytest.approx(0.1, rel=0.02)


def test_padding_gets_no_gradient():
    embedding = Embedding(4, 2)
    embedding(torch.tensor([PAD, 2, 2])).sum().backward()
    assert embedding.weight.grad is not None
    assert embedding.weight.grad.tolist() == [[0, 0], [0, 0], [2, 2], [0, 0]]


def test_logits_are_products_with_the_rows():
    output = OutputLayer(5, 3, bias=True)
    torch.nn.init.normal_(output.bias)  # type: ignore[arg-type]
    features = torch.randn(2, 4, 3)
    wanted = torch.einsum("btf,vf->btv", features, output.weight) + output.bias
    assert float((output(features) - wanted).detach().abs().max()) <= 1e-6


def test_a_tied_weight_is_one_parameter():
    embedding = Embedding(5, 3)
    output = OutputLayer(5, 3, bias=False, tied_to=embedding)
    assert output.weight is embedding.weight
    assert output.bias is None
    assert OutputLayer(5, 3, bias=False).weight is not embedding.weight
