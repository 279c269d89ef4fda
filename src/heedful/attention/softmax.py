"""Softmax with temperature, the normalizer of nearly all papers."""

from dataclasses import dataclass
from typing import Final, final

import torch
from torch import Tensor

from heedful.attention.interface import Allowed, Normalized, Normalizer, RowIds, Scores
from heedful.cpu.concrete import concrete
from heedful.errors import ShapeError, UsageError


def require_positive(temperature: Tensor | float, name: str) -> None:
    """Refuse a temperature that is not above 0; a tensor is inspected only where that needs no synchronisation.

    Raises:
        UsageError: the temperature is not above 0.
        ShapeError: the temperature is a tensor with axes.
    """
    if isinstance(temperature, Tensor):
        if temperature.dim():
            raise ShapeError(f"{name}: temperature must be one number, of shape [], got {list(temperature.shape)}")
        if temperature.device.type != "cpu" or not concrete(temperature) or bool(temperature > 0.0):
            return
    elif temperature > 0.0:
        return
    raise UsageError(f"{name}: temperature {temperature} is not above 0")


@final
@dataclass(frozen=True, eq=False)
class Softmax(Normalizer):
    """weights = exp(scores / temperature) / sum; temperature -> 0 gives the argmax, -> infinity the mean.

    Bahdanau et al. 2015, arXiv:1409.0473, eq. 6; with a temperature, Hinton et al. 2015, arXiv:1503.02531, eq. 1.

    Cost: an exponential per score.

    Example:
        >>> scores = torch.tensor([[2.0, 1.0, -1.0]]).double()
        >>> Softmax(temperature=2.0).normalize(scores, None).weights.round(decimals=2).tolist()
        [[0.71, 0.26, 0.04]]
    """

    temperature: Tensor | float = 1.0
    """Temperature above 0; a tensor has shape [] and receives gradient."""

    provides = frozenset({"weights", "log_normalizer", "argmax", "entropy"})
    weights_lie_in = "simplex"

    def __post_init__(self) -> None:
        require_positive(self.temperature, "softmax")

    @property
    def inverse_temperature(self) -> Tensor | float:
        return 1.0 / self.temperature

    def normalize(self, scores: Scores, allowed: Allowed | None, row_ids: RowIds | None = None) -> Normalized:
        weights = self.weigh(scores, allowed)
        if allowed is None:
            return Normalized(weights, torch.logsumexp(scores, dim=-1))
        hidden, empty = _hide(scores, allowed)
        log_normalizer = torch.logsumexp(hidden, dim=-1).masked_fill(empty.squeeze(-1), -torch.inf)
        return Normalized(weights, log_normalizer)

    def weigh(self, scores: Scores, allowed: Allowed | None, row_ids: RowIds | None = None) -> Scores:
        if allowed is None:
            return torch.softmax(scores, dim=-1)
        hidden, empty = _hide(scores, allowed)
        return torch.softmax(hidden, dim=-1).masked_fill(empty, 0.0)


def _hide(scores: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Set scores of forbidden keys to -inf, and return the empty rows [*batch, query, 1].

    The softmax of an empty row would be 0/0. So the row keeps its scores, and its results are zeroed afterwards; thus
    neither values nor gradients are ever NaN.
    """
    any_allowed = allowed.any(dim=-1, keepdim=True)
    # Exclusive or: forbidden keys of rows that are not empty.
    return scores.masked_fill(allowed ^ any_allowed, -torch.inf), ~any_allowed


SOFTMAX: Final = Softmax()
"""Softmax at temperature 1."""
