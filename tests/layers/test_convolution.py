from typing import TypeVar

import numpy as np
import pytest
import torch
from torch import nn

from heedful.errors import UsageError
from heedful.layers.convolution import ConvolutionalEncoder, GatedConvolution
from tests.models.by_hand import convolutional_encoder, convolved

Module = TypeVar("Module", bound=nn.Module)
LENGTHS = torch.tensor([6, 3, 1])
REAL = torch.arange(6) < LENGTHS[:, None]


def perturbed(module: Module) -> Module:
    """The same module in float64 with no parameter at a special value."""
    torch.manual_seed(0)
    for parameter in module.double().parameters():
        nn.init.normal_(parameter, std=0.5)
    return module.eval()


def draw(size: int) -> torch.Tensor:
    return torch.randn(3, 6, size, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("width", [1, 3, 5])
def test_a_convolution_is_gehrings_equation(width: int):
    layer, inputs = perturbed(GatedConvolution(4, width)), draw(4)
    p = {f"layer.{name}": parameter.detach().numpy() for name, parameter in layer.named_parameters()}
    outputs = layer(inputs, REAL).detach().numpy()
    for row, length in enumerate(LENGTHS.tolist()):
        wanted = convolved(p, "layer", list(inputs[row, :length].numpy()), width)
        assert np.abs(outputs[row, :length] - np.stack(wanted)).max() <= 1e-14


def test_a_convolution_is_pytorchs():
    layer, inputs = perturbed(GatedConvolution(4, 3)), draw(4)
    weight = layer.weight.unflatten(1, (3, 4)).transpose(1, 2)
    theirs = nn.functional.conv1d(inputs.mT, weight, layer.bias, padding=1).mT
    wanted = (nn.functional.glu(theirs, dim=-1) + inputs) * 0.5**0.5
    everything = torch.ones(3, 6, dtype=torch.bool)
    assert float((layer(inputs, everything) - wanted).detach().abs().max()) <= 1e-14


def test_the_encoder_is_gehrings_equations():
    encoder, embedded = perturbed(ConvolutionalEncoder(4, 5, 2, 3, 10)), draw(4)
    p = {name: parameter.detach().numpy() for name, parameter in encoder.named_parameters()}
    keys, values = (part.detach().numpy() for part in encoder(embedded, LENGTHS))
    for row, length in enumerate(LENGTHS.tolist()):
        wanted = convolutional_encoder(p, "", list(embedded[row, :length].numpy()), 2, 3)
        assert np.abs(keys[row, :length] - np.stack(wanted[0])).max() <= 1e-13
        assert np.abs(values[row, :length] - np.stack(wanted[1])).max() <= 1e-13


def test_padding_reaches_neither_values_nor_gradients():
    encoder, embedded = perturbed(ConvolutionalEncoder(4, 5, 3, 3, 10)), draw(4).requires_grad_()
    filled = embedded.detach().clone()
    filled[~REAL] = 1e3
    keys, values = encoder(embedded, LENGTHS)
    other_keys, other_values = encoder(filled, LENGTHS)
    assert torch.equal(keys[REAL], other_keys[REAL])
    assert torch.equal(values[REAL], other_values[REAL])
    (gradient,) = torch.autograd.grad((keys + values)[REAL].sum(), embedded)
    assert bool((gradient[~REAL] == 0.0).all())
    assert bool((gradient[REAL] != 0.0).all())


def test_an_output_sees_as_far_as_its_layers_reach():
    encoder = perturbed(ConvolutionalEncoder(4, 5, 2, 3, 20))
    embedded = torch.randn(1, 12, 4, dtype=torch.float64, requires_grad=True)
    keys, _ = encoder(embedded, torch.tensor([12]))
    (gradient,) = torch.autograd.grad(keys[0, 6].sum(), embedded)
    assert (gradient[0] != 0.0).any(dim=-1).nonzero().flatten().tolist() == [4, 5, 6, 7, 8]


def test_variance_stays():
    torch.manual_seed(0)
    layer = GatedConvolution(256, 3)
    vectors = torch.randn(4, 50, 256)
    outputs = layer(vectors, torch.ones(4, 50, dtype=torch.bool))
    # A gate halves and the sum of two is scaled: weights of variance 4 / n make up for the gate.
    assert float(outputs.detach().var()) == pytest.approx(1.0, rel=0.25)


def test_dropout_is_of_training_alone():
    encoder, embedded = perturbed(ConvolutionalEncoder(4, 5, 2, 3, 10, dropout=0.5)), draw(4)
    assert torch.equal(encoder(embedded, LENGTHS)[0], encoder(embedded, LENGTHS)[0])
    encoder.train()
    assert not torch.equal(encoder(embedded, LENGTHS)[0], encoder(embedded, LENGTHS)[0])


def test_longer_than_the_table_is_refused():
    with pytest.raises(UsageError, match="6 tokens, but the table has 5"):
        ConvolutionalEncoder(4, 5, 1, 3, 5)(torch.zeros(1, 6, 4), torch.tensor([6]))
