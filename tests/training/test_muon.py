"""Muon: orthogonalised momentum for matrices, Adam for the rest."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from heedful.models.table import PRESETS
from heedful.training.muon import COEFFICIENTS, NUM_ITERATIONS, Muon, orthogonalize, square_maps
from heedful.training.optimizer import OptimizerConfig, make_optimizer


def reference(matrix: np.ndarray) -> np.ndarray:
    """The iteration on singular values, one matrix in float64: s <- a s + b s^3 + c s^5."""
    a, b, c = COEFFICIENTS
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    values = values / np.sqrt((values**2).sum())
    for _ in range(NUM_ITERATIONS):
        values = a * values + b * values**3 + c * values**5
    return left @ np.diag(values) @ right


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def matches(orthogonal: Tensor, matrices: np.ndarray, tolerance: float) -> bool:
    wanted = np.stack([reference(each) for each in matrices])
    return bool(np.abs(orthogonal.double().numpy() - wanted).max() <= tolerance)


@pytest.mark.parametrize("shape", [(1, 16, 16), (3, 16, 40), (2, 64, 256)])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e6])
def test_singular_values_follow_the_iteration(
    shape: tuple[int, ...], dtype: torch.dtype, tolerance: float, scale: float
):
    matrices = random(*shape)
    assert matches(orthogonalize(torch.from_numpy(scale * matrices), dtype), matrices, tolerance)


def test_one_iteration_less_or_a_norm_of_all_matrices_is_rejected(monkeypatch: pytest.MonkeyPatch):
    matrices = random(2, 16, 40)
    monkeypatch.setattr("heedful.training.muon.NUM_ITERATIONS", NUM_ITERATIONS - 1)
    assert not matches(orthogonalize(torch.from_numpy(matrices), torch.float64), matrices, 1e-3)


def test_singular_values_end_near_one():
    for dtype in (torch.float32, torch.bfloat16):
        values = torch.linalg.svdvals(orthogonalize(torch.from_numpy(random(4, 32, 96)), dtype).double())
        assert 0.6 < float(values.min()) <= float(values.max()) < 1.3


def test_a_gradient_of_zeros_moves_nothing():
    assert not orthogonalize(torch.zeros(1, 16, 16), torch.float32).any()


def test_query_key_and_value_are_orthogonalised_by_themselves():
    assert [tuple(each.shape) for each in square_maps(torch.zeros(48, 16))] == [(16, 16)] * 3
    assert [tuple(each.shape) for each in square_maps(torch.zeros(32, 16))] == [(16, 16)] * 2
    assert [tuple(each.shape) for each in square_maps(torch.zeros(64, 16))] == [(64, 16)]
    assert [tuple(each.shape) for each in square_maps(torch.zeros(16, 48))] == [(16, 48)]


@pytest.mark.parametrize("shape", [(16, 16), (40, 16), (16, 40), (48, 16)])
def test_an_update_is_the_papers_formula(shape: tuple[int, int]):
    model = nn.Linear(shape[1], shape[0]).double()
    config = OptimizerConfig(kind="muon", learning_rate=0.1, momentum=0.9, weight_decay=0.5)
    optimizer = make_optimizer(model, config, torch.float64)
    weight, momentum = model.weight.detach().numpy().copy(), np.zeros(shape)
    for seed in range(5):
        gradient = random(*shape, seed=seed)
        model.weight.grad = torch.from_numpy(gradient)
        model.bias.grad = torch.zeros(shape[0], dtype=torch.float64)
        optimizer.step()
        momentum = 0.9 * momentum + 0.1 * gradient
        ahead = 0.9 * momentum + 0.1 * gradient
        parts = np.split(ahead, 3) if shape == (48, 16) else [ahead]
        longest = max(parts[0].shape)
        update = np.concatenate([reference(each) for each in parts])
        weight = weight * (1 - 0.1 * 0.5) - 0.1 * 0.2 * np.sqrt(longest) * update
    assert np.abs(model.weight.detach().numpy() - weight).max() <= 1e-12


def test_all_but_matrices_follow_adam():
    """Embeddings, output layers and vectors change as Adam changes them."""

    def trained(kind: str) -> dict[str, Tensor]:
        torch.manual_seed(0)
        model = PRESETS["mini"].build(40, 40, False).double()
        optimizer = make_optimizer(model, OptimizerConfig.model_validate({"kind": kind, "learning_rate": 0.1}))
        for seed in range(3):
            torch.manual_seed(seed)
            for parameter in model.parameters():
                parameter.grad = torch.randn_like(parameter)
            optimizer.step()
        return {name: parameter.detach() for name, parameter in model.named_parameters()}

    muon, adam = trained("muon"), trained("adam")
    same = {name for name in adam if torch.allclose(muon[name], adam[name], rtol=1e-9, atol=1e-9)}
    vectors = {name for name, value in adam.items() if value.dim() == 1}
    assert same == vectors | {"source_embedding.weight", "target_embedding.weight"}


def test_frozen_parameters_and_parameters_without_gradient_stay():
    model = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16))
    model[0].requires_grad_(False)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = make_optimizer(model, OptimizerConfig(kind="muon"))
    model[1](torch.ones(1, 16)).sum().backward()
    optimizer.step()
    changed = [not torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True)]
    assert changed == [False, False, True, True, False, False]
    assert isinstance(optimizer, Muon)


def test_steps_are_counted_on_the_device_of_the_parameter():
    # The device "meta" stands for a GPU: Adam's fused form refuses a count elsewhere.
    weight, bias = (nn.Parameter(torch.empty(shape, device="meta")) for shape in ((4, 3), (3,)))
    groups = [
        {"params": [weight], "is_matrix": True, "weight_decay": 0.0},
        {"params": [bias], "is_matrix": False, "weight_decay": 0.0},
    ]
    optimizer, resumed = (Muon(groups, 1e-3, 0.95, (0.9, 0.98), 1e-9) for _ in range(2))
    weight.grad, bias.grad = torch.empty_like(weight), torch.empty_like(bias)
    optimizer.step()
    assert optimizer.state[bias]["step"].device == bias.device
    state = optimizer.state_dict()
    state["state"][1]["step"] = torch.ones(())
    resumed.load_state_dict(state)
    assert resumed.state[bias]["step"].device == bias.device
