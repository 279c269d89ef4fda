"""Copied source tokens: the mixture of See et al. 2017, eq. 9, in training, in steps and in ONNX."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from heedful.config.base import merge
from heedful.errors import ConfigError
from heedful.models.inputs import TokenInputs
from heedful.models.interface import Decoded, Seq2Seq
from heedful.tasks.experiment import Experiment
from heedful.text.vocabulary import EOS, PAD
from heedful.training.copy_cross_entropy import copy_cross_entropy
from heedful.training.pair_step import PairStep
from tests.models.tiny import CONFIGS, changed, make_model, make_sources, make_targets

KINDS = {
    "rnnsearch": changed(CONFIGS["rnnsearch"], has_copy=True),
    "luong": changed(CONFIGS["luong"], has_copy=True),
    "luong with coverage": changed(CONFIGS["luong-coverage"], has_copy=True),
    "transformer": changed(CONFIGS["transformer-pre"], has_copy=True),
}


def make(name: str) -> Seq2Seq:
    return make_model(KINDS[name], is_shared=True)


def mixture(model: Seq2Seq, decoded: Decoded, source: torch.Tensor) -> np.ndarray:
    """P(w) by loops."""
    p = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    features = decoded.features.detach().numpy()
    weights = decoded.attended[model.alignment].weights
    weights = (weights.mean(dim=1) if weights.dim() == 4 else weights).detach().numpy()
    logits = model.logits(decoded.features).detach().numpy()
    result = np.zeros(logits.shape)
    for row, t in np.ndindex(*logits.shape[:2]):
        vocabulary = np.exp(logits[row, t] - logits[row, t].max())
        generate = 1.0 / (1.0 + np.exp(-(p["copy_gate.weight"][0] @ features[row, t] + p["copy_gate.bias"][0])))
        result[row, t] = generate * vocabulary / vocabulary.sum()
        for position, token in enumerate(source[row].tolist()):
            result[row, t, token] += (1.0 - generate) * weights[row, t, position]
    return result


@pytest.mark.parametrize("name", KINDS)
def test_it_is_the_papers_equation(name: str):
    model = make(name)
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    decoded = model(TokenInputs(source, lengths), target_in, need=("weights",))
    wanted = mixture(model, decoded, source)
    assert np.abs(model.log_probs(decoded).exp().detach().numpy() - wanted).max() <= 1e-12
    assert np.abs(wanted.sum(axis=-1) - 1.0).max() <= 1e-12 or name == "luong"  # local-p weighs less than 1


@pytest.mark.parametrize("is_prepared", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_steps_are_the_whole(name: str, is_prepared: bool):
    model = make(name)
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    whole = model.log_probs(model(TokenInputs(source, lengths), target_in))
    memory = model.encode(TokenInputs(source, lengths))
    state = model.start(memory)
    memory = model.prepare_steps(memory) if is_prepared else memory
    for position, tokens in enumerate(target_in.T):
        decoded, state = model.step(tokens[:, None], state, memory)
        assert torch.allclose(model.log_probs(decoded)[:, 0], whole[:, position], atol=1e-10)


@pytest.mark.parametrize("name", KINDS)
def test_the_loss_is_that_of_the_mixture(name: str):
    model = make(name).train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    model.eval()  # no dropout; the gradient is the same
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    target_out = torch.cat((target_in[:, 1:], torch.full((len(source), 1), EOS)), dim=1)
    target_out[1, 3:] = PAD
    real = target_out != PAD
    result = PairStep(model, 0.0)(source, lengths, target_in, target_out)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    gradients = torch.autograd.grad(result.total, parameters, allow_unused=True)
    log_probs = model.log_probs(model(TokenInputs(source, lengths), target_in))
    plain = -log_probs.gather(-1, target_out[..., None])[..., 0][real].sum()
    assert result.total.item() == pytest.approx(plain.item(), rel=1e-10)
    assert result.log_likelihood.item() == pytest.approx(-plain.item(), rel=1e-10)
    expected = torch.autograd.grad(plain, parameters, allow_unused=True)
    for gradient, wanted in zip(gradients, expected, strict=True):
        assert (gradient is None) == (wanted is None)
        if gradient is not None and wanted is not None:
            assert torch.allclose(gradient, wanted, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("has_bias", [False, True])
def test_fused_rows_have_the_gradient_of_plain_operations(dtype: torch.dtype, has_bias: bool):
    generator = torch.Generator().manual_seed(0)
    features, weight, bias = (
        torch.randn(*shape, dtype=dtype, generator=generator, requires_grad=True) for shape in ((7, 5), (9, 5), (9,))
    )
    gold = torch.tensor([0, 3, 8, 8, 1, 2, 4])
    generated = torch.rand(7, dtype=dtype, generator=generator).log().requires_grad_()
    copied = (0.5 * torch.rand(7, dtype=dtype, generator=generator)).log().requires_grad_()
    inputs = [features, weight, *([bias] if has_bias else []), generated, copied]
    fused = copy_cross_entropy(features, weight, bias if has_bias else None, gold, generated, copied).total
    logits = torch.nn.functional.linear(features, weight, bias if has_bias else None)
    picked = torch.log_softmax(logits, dim=-1).gather(1, gold[:, None])[:, 0]
    plain = -torch.logaddexp(generated + picked, copied).sum()
    assert fused.item() == pytest.approx(plain.item(), rel=1e-5)
    pairs = zip(torch.autograd.grad(fused, inputs), torch.autograd.grad(plain, inputs), strict=True)
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in pairs)


def test_two_vocabularies_are_refused():
    with pytest.raises(ConfigError, match="one vocabulary"):
        make_model(KINDS["rnnsearch"])
    table = merge(Experiment().model_dump(), {"model": {"has_copy": True}, "text": {"shared": False}})
    with pytest.raises(ValidationError, match=r"model\.has_copy: copied tokens need one vocabulary"):
        Experiment(**table)  # type: ignore[arg-type]
