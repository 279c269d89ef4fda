"""Optimizers of the papers, by name."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from heedful.config.base import Config
from heedful.layers.embedding import Embedding, OutputLayer
from heedful.layers.positions import LearnedPositions
from heedful.training.muon import Muon
from heedful.training.schedule import ScheduleConfig

_USUAL: Final[Mapping[str, Mapping[str, Any]]] = {
    "muon": {"learning_rate": 1e-2, "schedule": {}},
    "adadelta": {"learning_rate": 1.0, "epsilon": 1e-6, "schedule": {"kind": "constant", "warmup_steps": 0}},
    "sgd": {"learning_rate": 1.0, "schedule": {"kind": "constant", "warmup_steps": 0}},
}
"""Defaults of the papers for each kind; Adam's are the defaults of the fields."""

_OWN: Final[Mapping[str, tuple[str, ...]]] = {
    "adam": ("beta1", "beta2"),
    "muon": ("beta1", "beta2", "momentum"),
    "adadelta": ("rho",),
    "sgd": (),
}
"""Settings that an optimizer shares with no other, or with some."""

LEAST_SIDE: Final = 16
"""Rows and columns from which Muon treats a matrix as one; smaller ones are mostly tables of biases."""


class OptimizerConfig(Config):
    """Settings of the optimizer; unset ones have the value of the optimizer's paper.

    adam: Vaswani et al. 2017 (betas 0.9 and 0.98, epsilon 1e-9). adadelta: Zeiler 2012, arXiv:1212.5701, as in
    Bahdanau et al. 2015, B.2 (rho 0.95, epsilon 1e-6): step = -sqrt(D + epsilon) / sqrt(G + epsilon) * gradient, with
    G and D the running means of squared gradients and squared steps. sgd: no momentum, learning rate 1, as in Luong
    et al. 2015, who halve it (`schedule`).
    """

    kind: Literal["adam", "muon", "adadelta", "sgd"] = "adam"
    learning_rate: float = Field(default=1e-3, gt=0.0, le=1e38)
    """Peak learning rate of the schedule."""
    beta1: float = Field(default=0.9, ge=0.0, lt=1.0)
    """Decay of the mean of gradients, for Adam."""
    beta2: float = Field(default=0.98, ge=0.0, lt=1.0)
    """Decay of the mean of squared gradients, for Adam."""
    epsilon: float = Field(default=1e-9, gt=0.0, le=1e6)
    """Number added to the denominator of an update, against division by zero."""
    momentum: float = Field(default=0.95, ge=0.0, lt=1.0)
    """Share of Muon's momentum that a step keeps."""
    rho: float = Field(default=0.95, ge=0.0, lt=1.0)
    """Decay of the means of Adadelta."""
    weight_decay: float = Field(default=0.0, ge=0.0, le=1e6)
    """Weight decay, decoupled from the gradient; for matrices only, not biases and normalisations."""
    mean_over: Literal["tokens", "pairs"] = "tokens"
    """Divisor of the summed gradient before clipping: target tokens, or pairs as in Sutskever et al. 2014, Bahdanau et
    al. 2015 and Luong et al. 2015, whose learning rates and norms assume that."""
    schedule: ScheduleConfig = ScheduleConfig()

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, values: Any) -> Any:
        usual = _USUAL.get(str(values.get("kind"))) if isinstance(values, dict) else None
        if usual is None:
            return values
        schedule = values.get("schedule", {})
        filled = {**usual, **values}
        if isinstance(schedule, dict):
            filled["schedule"] = usual["schedule"] | schedule
        return filled

    @model_validator(mode="after")
    def _check_owners(self) -> Self:
        for name in ("beta1", "beta2", "momentum", "rho"):
            if name not in _OWN[self.kind] and getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} {getattr(self, name)}: {self.kind} has no {name}; leave it out")
        return self


def make_optimizer(
    model: nn.Module, config: OptimizerConfig, dtype: torch.dtype = torch.float32
) -> torch.optim.Optimizer:
    """Make the optimizer of a model's parameters.

    Args:
        dtype: dtype of Muon's products of matrices.

    Returns:
        The optimizer, at its peak learning rate.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    match config.kind:
        case "adam":
            return torch.optim.AdamW(
                groups, config.learning_rate, (config.beta1, config.beta2), config.epsilon, fused=True
            )
        case "muon":
            betas = config.beta1, config.beta2
            groups = _split_matrices(model, config.weight_decay)
            return Muon(groups, config.learning_rate, config.momentum, betas, config.epsilon, dtype)
        case "adadelta":
            return torch.optim.Adadelta(groups, config.learning_rate, config.rho, config.epsilon)
        case "sgd":
            return torch.optim.SGD(groups, config.learning_rate)


def _split_matrices(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Groups of parameters for Muon: matrices that map vectors, and all others, such as vocabulary tables."""
    tables = {
        id(part.weight) for part in model.modules() if isinstance(part, Embedding | OutputLayer | LearnedPositions)
    }
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    is_matrix = [each.dim() == 2 and min(each.shape) >= LEAST_SIDE and id(each) not in tables for each in parameters]
    matrices = [each for each, chosen in zip(parameters, is_matrix, strict=True) if chosen]
    others = [each for each, chosen in zip(parameters, is_matrix, strict=True) if not chosen]
    groups = [
        {"params": matrices, "weight_decay": weight_decay, "is_matrix": True},
        {"params": others, "weight_decay": 0.0, "is_matrix": False},
    ]
    return [group for group in groups if group["params"]]


def store_optimizer(optimizer: torch.optim.Optimizer, parameter_order: Sequence[str]) -> dict[str, Tensor]:
    """Flatten an optimizer's state for saving.

    Args:
        parameter_order: names of its parameters, in its own order.

    Returns:
        Tensors named by their parameter and their role, such as "encoder.weight.exp_avg".
    """
    state: dict[int, dict[str, Tensor]] = optimizer.state_dict()["state"]
    return {f"{parameter_order[index]}.{role}": tensor for index in state for role, tensor in state[index].items()}


def restore_optimizer(
    optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor], parameter_order: Sequence[str]
) -> None:
    """Restore a flattened state.

    Args:
        optimizer: made for the same parameters with the same configuration.
        tensors: result of `store_optimizer`.
        parameter_order: names of its parameters, in its own order.
    """
    indices = {name: index for index, name in enumerate(parameter_order)}
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        name, _, role = key.rpartition(".")
        state.setdefault(indices[name], {})[role] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
