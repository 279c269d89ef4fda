"""The Transformer trained without padding, against the same model in float64 and with padding."""

from copy import deepcopy
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from heedful.attention.interface import Need
from heedful.cpu.availability import loops_problem
from heedful.inspection.capture import capture
from heedful.layers.cpu.accelerate import accelerate
from heedful.models.cpu_forms import CPU_FORMS
from heedful.models.inputs import TokenInputs
from heedful.models.transformer import Transformer, TransformerConfig
from heedful.models.transformer_cpu import MAX_PACKED_LENGTH
from heedful.text.vocabulary import PAD
from tests.models.tiny import changed, make_model, make_sources, make_targets

TINY = TransformerConfig(num_encoder_layers=1, num_decoder_layers=1, model_size=8, num_heads=2, feedforward_size=10)


def accelerated(model: Transformer) -> Transformer:
    accelerate(model, CPU_FORMS)
    return model


class Run(NamedTuple):
    features: Tensor
    gradients: dict[str, Tensor]
    is_packed: bool


def run(model: Transformer, need: tuple[Need, ...] = (), dtype: torch.dtype | None = torch.bfloat16) -> Run:
    """Features, and gradients of a loss of real positions alone."""
    source, lengths = make_sources((5, 3, 9, 1))
    target_in = make_targets(4)
    target_in[1, 2:] = PAD
    target_in[3, 1:] = PAD
    real = target_in != PAD
    with torch.autocast("cpu", dtype or torch.bfloat16, enabled=dtype is not None):
        decoded = model(TokenInputs(source, lengths), target_in, need)
    slope = torch.linspace(-1.0, 1.0, decoded.features.numel()).view(decoded.features.shape)
    loss = (decoded.features.double() * slope.double())[real].sum()
    gradients = dict(zip(*zip(*model.named_parameters(), strict=True), strict=True))
    found = torch.autograd.grad(loss, list(gradients.values()), materialize_grads=True)
    is_packed = not decoded.attended
    return Run((decoded.features * real[..., None]).detach(), dict(zip(gradients, found, strict=True)), is_packed)


def distance(one: Tensor, other: Tensor) -> float:
    return float((one.double() - other.double()).norm() / other.double().norm().clamp(min=1e-9))


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_without_padding_it_is_the_same_model(norm: str, positions: str):
    if reason := loops_problem():
        pytest.skip(reason)
    config = changed(TINY, norm=norm, positions=positions, num_decoder_layers=2, model_size=32, num_heads=4)
    torch.manual_seed(0)
    model = accelerated(config.build(11, 11, is_shared=True).eval())
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter, std=0.3)
    exact, packed = run(deepcopy(model).double(), dtype=None), run(model)
    padded = run(model, need=("weights",))
    assert [exact.is_packed, packed.is_packed, padded.is_packed] == [False, True, False]
    # As near to the model in float64 as with padding: what is left is rounding to bfloat16.
    assert distance(padded.features, exact.features) <= 0.01
    assert distance(packed.features, exact.features) <= 0.01
    assert packed.gradients.keys() == exact.gradients.keys()
    for name, gradient in packed.gradients.items():
        assert distance(padded.gradients[name], exact.gradients[name]) <= 0.05, name
        assert distance(gradient, exact.gradients[name]) <= 0.05, name


def test_padding_is_left_out_in_mixed_training_alone():
    if reason := loops_problem():
        pytest.skip(reason)
    model = accelerated(make_model(TINY, is_shared=True).float().train())
    assert run(model).is_packed
    assert not run(model, dtype=None).is_packed
    assert not run(model, need=("weights",)).is_packed
    assert not run(accelerated(changed(TINY, attention_dropout=0.1).build(11, 11, is_shared=True).train())).is_packed
    with capture(model) as seen:
        assert not run(model).is_packed
    assert seen.calls
    source, lengths = make_sources((5,))
    with torch.autocast("cpu", torch.bfloat16):
        # One source for several targets, long targets, and weights of another kind.
        assert model(TokenInputs(source, lengths), make_targets(3)).attended
        assert model(TokenInputs(source, lengths), make_targets(1, length=MAX_PACKED_LENGTH + 1)).attended
        assert not model(TokenInputs(source, lengths), make_targets(1, length=MAX_PACKED_LENGTH)).attended
        model.decoder_layers[0].cross_attention.bfloat16()
        assert model(TokenInputs(source, lengths), make_targets(1)).attended
