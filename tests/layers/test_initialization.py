import pytest
import torch
from torch import nn

from heedful.layers.embedding import Embedding
from heedful.layers.initialization import draw_small, draw_uniform
from heedful.layers.recurrent import GatedRecurrentUnit, LongShortTermMemory


def make() -> nn.ModuleDict:
    parts = {"embedding": Embedding(50, 40), "lstm": LongShortTermMemory(40, 30), "gru": GatedRecurrentUnit(40, 30)}
    return nn.ModuleDict(parts | {"linear": nn.Linear(40, 50), "norm": nn.LayerNorm(40)})


def test_uniform_fills_the_range_and_no_more():
    torch.manual_seed(0)
    model = make()
    draw_uniform(model, 0.08)
    for name, parameter in model.named_parameters():
        values = parameter.detach()
        assert 0.07 < float(values.abs().max()) <= 0.08 * (1 + 1e-6), name
        assert abs(float(values.mean())) < 0.025, name
    assert bool((model["embedding"].weight[0] == 0.0).all())


def test_small_is_normal_orthogonal_and_zero():
    torch.manual_seed(0)
    model = make()
    draw_small(model, 0.02)
    for name, parameter in model.named_parameters():
        values = parameter.detach()
        if name.endswith(("gates_map", "candidate_map")):
            for block in values.split(30):
                assert torch.allclose(block @ block.T, torch.eye(30), atol=1e-5), name
        elif values.dim() == 1:
            assert bool((values == 0.0).all()), name
        else:
            assert float(values.std()) == pytest.approx(0.02, rel=0.1), name
    assert bool((model["embedding"].weight[0] == 0.0).all())


@pytest.mark.parametrize("draw", [lambda model: draw_uniform(model, 0.1), draw_small])
def test_what_has_no_numbers_stays_as_it_is(draw):
    with torch.device("meta"):
        model = make()
    draw(model)
    assert all(parameter.is_meta for parameter in model.parameters())
