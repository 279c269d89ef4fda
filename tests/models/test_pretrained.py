from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from heedful.data.pretrained_vectors import Pretrained, Side
from heedful.errors import ConfigError
from heedful.models.interface import Seq2Seq
from heedful.models.pretrained import place_vectors
from heedful.text.vectors import Coverage
from heedful.training.optimizer import OptimizerConfig, make_optimizer
from heedful.training.pair_step import PairStep
from tests.models.tiny import CONFIGS, NUM_SOURCE_TOKENS, NUM_TARGET_TOKENS, make_model, make_sources, make_targets

SIZES = {"source": NUM_SOURCE_TOKENS, "target": NUM_TARGET_TOKENS}
KINDS = ("transformer-bias", "transformer-learned", "rnnsearch", "luong", "sutskever")


def given(side: Side, size: int, is_frozen: bool = False, path: str = "a.vec", num_tokens: int = 0) -> Pretrained:
    rows = np.random.default_rng(len(side)).normal(3.0, 40.0, (num_tokens or SIZES[side], size)).astype(np.float32)
    return Pretrained(side, Path(path), rows, Coverage(1, 1, 0, 1, 1, 0, ()), is_frozen)


def size_of(model: Seq2Seq) -> int:
    weight = model.get_parameter("source_embedding.weight")
    return weight.shape[1]


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("name", KINDS)
def test_directions_stay_and_the_spread_is_the_models(name: str, side: Side):
    model = make_model(name)
    other = model.get_parameter(f"{'target' if side == 'source' else 'source'}_embedding.weight").clone()
    weight = model.get_parameter(f"{side}_embedding.weight")
    spread = float(weight.detach().std())
    one = given(side, size_of(model))
    place_vectors(model, [one])
    factor = spread / float(one.rows.std(ddof=1))
    assert weight[1:].detach().numpy() == pytest.approx(one.rows[1:] * factor, rel=1e-5)
    assert not weight[0].any()
    assert weight.requires_grad
    assert torch.equal(model.get_parameter(f"{'target' if side == 'source' else 'source'}_embedding.weight"), other)


@pytest.mark.parametrize("name", CONFIGS)
def test_frozen_vectors_stay_and_all_else_is_trained(name: str):
    model = make_model(name)
    size = size_of(model)
    place_vectors(model, [given("source", size, is_frozen=True), given("target", size, is_frozen=True)])
    frozen = {id(model.get_parameter(f"{side}_embedding.weight")) for side in SIZES}
    before = {key: parameter.detach().clone() for key, parameter in model.named_parameters()}
    source, lengths = make_sources()
    target = make_targets(len(lengths))
    step = PairStep(model.train(), 0.1)
    optimizer = make_optimizer(step, OptimizerConfig())
    step(source, lengths, target, target.roll(-1, dims=1)).total.backward()
    nn.utils.clip_grad_norm_(step.parameters(), 1.0)
    optimizer.step()
    for key, parameter in model.named_parameters():
        if id(parameter) in frozen:
            assert torch.equal(parameter, before[key]), key
        else:
            assert not torch.equal(parameter, before[key]) or parameter.grad is None or not parameter.grad.any(), key


def test_what_does_not_fit_is_said():
    model = make_model("rnnsearch")
    with pytest.raises(ConfigError, match=r"source_vectors: a\.vec has vectors of 3 numbers, .* has 5; set model\.em"):
        place_vectors(model, [given("source", 3)])
    shared = make_model("transformer-pre", is_shared=True)
    both = [given(side, 8, path=f"{side}.vec", num_tokens=NUM_SOURCE_TOKENS) for side in ("source", "target")]
    with pytest.raises(ConfigError, match=r"both sides share one table, which uses source\.vec already"):
        place_vectors(shared, both)
    place_vectors(shared, [given(side, 8, num_tokens=NUM_SOURCE_TOKENS) for side in ("source", "target")])
    place_vectors(shared, [])

    class Blind(nn.Module):
        pass

    with pytest.raises(ConfigError, match="no single embedding of the source"):
        place_vectors(Blind(), [given("source", 3)])  # type: ignore[arg-type]
