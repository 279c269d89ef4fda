import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import nn

from heedful.training.optimizer import OptimizerConfig, make_optimizer, restore_optimizer, store_optimizer
from heedful.training.schedule import ScheduleConfig


def make(kind: str, **values: float) -> tuple[nn.Linear, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Linear(3, 2).double()
    return model, make_optimizer(model, OptimizerConfig.model_validate({"kind": kind, **values}))


def gradients(num: int) -> list[np.ndarray]:
    generator = np.random.default_rng(5)
    return [generator.normal(size=(2, 3)) for _ in range(num)]


def run(model: nn.Linear, optimizer: torch.optim.Optimizer, given: list[np.ndarray]) -> np.ndarray:
    for gradient in given:
        model.weight.grad = torch.from_numpy(gradient)
        model.bias.grad = torch.zeros(2, dtype=torch.float64)
        optimizer.step()
    return model.weight.detach().numpy().copy()


def test_adadelta_is_the_papers_formula():
    model, optimizer = make("adadelta")
    weight = model.weight.detach().numpy().copy()
    mean_squared, mean_change = np.zeros((2, 3)), np.zeros((2, 3))
    for gradient in gradients(6):
        mean_squared = 0.95 * mean_squared + 0.05 * gradient**2
        change = -np.sqrt(mean_change + 1e-6) / np.sqrt(mean_squared + 1e-6) * gradient
        mean_change = 0.95 * mean_change + 0.05 * change**2
        weight += change
    # Both epsilons are inside the roots: the first step is sqrt(1e-6 / (0.05 g^2 + 1e-6)) g.
    assert np.abs(run(model, optimizer, gradients(6)) - weight).max() <= 1e-14


def test_what_is_not_given_is_the_papers():
    adadelta, sgd, adam = (OptimizerConfig.model_validate({"kind": kind}) for kind in ("adadelta", "sgd", "adam"))
    assert (adadelta.learning_rate, adadelta.rho, adadelta.epsilon) == (1.0, 0.95, 1e-6)
    assert (adam.beta1, adam.beta2, adam.epsilon) == (0.9, 0.98, 1e-9)
    assert sgd.learning_rate == 1.0
    assert [config.schedule.kind for config in (adadelta, sgd, adam)] == ["constant", "constant", "inverse_sqrt"]
    assert (adadelta.schedule.warmup_steps, sgd.schedule.warmup_steps) == (0, 0)
    assert OptimizerConfig() == adam


def test_what_is_given_stands():
    given = {"kind": "sgd", "learning_rate": 0.7, "schedule": {"kind": "halving", "halve_after": 5, "halve_every": 0.5}}
    config = OptimizerConfig.model_validate(given)
    assert config.learning_rate == 0.7
    assert (config.schedule.kind, config.schedule.halve_after, config.schedule.halve_every) == ("halving", 5, 0.5)
    assert config.schedule.warmup_steps == 0  # what is not given beside it is still the paper's
    assert OptimizerConfig(kind="sgd", schedule=ScheduleConfig(kind="cosine")).schedule.kind == "cosine"
    assert OptimizerConfig(kind="adadelta", epsilon=1e-4).epsilon == 1e-4
    # A resolved configuration survives being read again.
    assert OptimizerConfig.model_validate(config.model_dump(mode="json")) == config


def test_what_is_no_optimizer_is_refused():
    for given in ({"kind": "rmsprop"}, {"kind": ["sgd"]}, "sgd", {"kind": "sgd", "schedule": 3}):
        with pytest.raises(ValidationError):
            OptimizerConfig.model_validate(given)


def test_adam_is_the_papers_formula():
    model, optimizer = make("adam", learning_rate=0.1)
    weight = model.weight.detach().numpy().copy()
    first, second = np.zeros((2, 3)), np.zeros((2, 3))
    for step, gradient in enumerate(gradients(6), start=1):
        first = 0.9 * first + 0.1 * gradient
        second = 0.98 * second + 0.02 * gradient**2
        weight -= 0.1 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.98**step)) + 1e-9)
    assert np.abs(run(model, optimizer, gradients(6)) - weight).max() <= 1e-13


def test_sgd_is_plain():
    model, optimizer = make("sgd", learning_rate=0.5)
    wanted = model.weight.detach().numpy() - 0.5 * sum(gradients(4))
    assert np.abs(run(model, optimizer, gradients(4)) - wanted).max() <= 1e-14


def test_decay_shrinks_matrices_and_nothing_else():
    model, optimizer = make("adam", learning_rate=0.1, weight_decay=0.5)
    before = model.weight.detach().clone(), model.bias.detach().clone()
    run(model, optimizer, [np.zeros((2, 3))])
    assert torch.allclose(model.weight, before[0] * 0.95)
    assert torch.equal(model.bias, before[1])


def test_a_model_without_biases_has_one_group():
    assert len(make_optimizer(nn.Linear(2, 2, bias=False), OptimizerConfig()).param_groups) == 1


@pytest.mark.parametrize("kind", ["adam", "muon", "adadelta", "sgd"])
@pytest.mark.parametrize("num_before", [0, 1, 3])
def test_a_stored_state_goes_on_as_if_nothing_had_been(kind: str, num_before: int):
    model, optimizer = make(kind)
    run(model, optimizer, gradients(6)[:num_before])
    order = ["weight", "bias"]
    stored = {name: tensor.clone() for name, tensor in store_optimizer(optimizer, order).items()}
    assert all(isinstance(tensor, torch.Tensor) for tensor in stored.values())
    assert {name.rpartition(".")[0] for name in stored} == (set(order) if num_before and kind != "sgd" else set())
    other, restored = make(kind)
    other.load_state_dict(model.state_dict())
    restore_optimizer(restored, stored, order)
    rest = gradients(6)[num_before:]
    assert np.array_equal(run(other, restored, rest), run(model, optimizer, rest))


@pytest.mark.parametrize(
    ("kind", "name"), [("sgd", "momentum"), ("adam", "rho"), ("adadelta", "beta1"), ("adam", "momentum")]
)
def test_settings_of_another_optimizer_are_refused(kind: str, name: str):
    with pytest.raises(ValidationError, match=f"{kind} has no {name}"):
        OptimizerConfig.model_validate({"kind": kind, name: 0.5})
