"""From scores to weights. A normalizer sees whole rows of finite scores and which keys are allowed."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, final

import torch
from torch import Tensor

from heedful.errors import UsageError

Need = Literal["weights", "log_normalizer", "argmax", "entropy"]


@dataclass(frozen=True)
class Normalized:
    """Weights of whole rows, and what was asked beside them."""

    weights: Tensor
    """[*batch, query, key]; zero where not allowed, a zero row where nothing is."""
    log_normalizer: Tensor | None = None
    """[*batch, query] log of the sum of exponentials; -inf for an empty row."""


class Normalizer(ABC):
    """Scores to weights, row by row."""

    provides: ClassVar[frozenset[Need]]
    weights_lie_in: ClassVar[Literal["simplex", "sub-simplex", "box"]]

    @property
    @abstractmethod
    def inverse_temperature(self) -> Tensor | float:
        """What scores are multiplied by before anything else; kernels fold it into the pairs."""

    @abstractmethod
    def normalize(self, scores: Tensor, allowed: Tensor | None) -> Normalized:
        """Turn scores into weights.

        Args:
            scores: [*batch, query, key], temperature already applied.
            allowed: [#*batch, #query, key] bool, True = may attend; None = all.

        Returns:
            The weights.
        """


@final
@dataclass(frozen=True, eq=False)
class Softmax(Normalizer):
    """weights = exp(scores / temperature) / sum; temperature to 0 gives the argmax, to infinity the mean."""

    temperature: Tensor | float = 1.0
    """Above 0; a tensor receives gradient."""

    provides = frozenset({"weights", "log_normalizer", "argmax", "entropy"})
    weights_lie_in = "simplex"

    def __post_init__(self) -> None:
        if not isinstance(self.temperature, Tensor) and not self.temperature > 0.0:
            raise UsageError(f"softmax: temperature {self.temperature} is not above 0")

    @property
    def inverse_temperature(self) -> Tensor | float:
        return 1.0 / self.temperature

    def normalize(self, scores: Tensor, allowed: Tensor | None) -> Normalized:
        if allowed is None:
            return Normalized(torch.softmax(scores, dim=-1), torch.logsumexp(scores, dim=-1))
        # A row that allows nothing would be 0/0: it is computed over all keys, then set to zero, so that
        # neither its values nor its gradients are ever NaN.
        empty = ~allowed.any(dim=-1, keepdim=True)
        hidden = scores.masked_fill(~(allowed | empty), -torch.inf)
        weights = torch.softmax(hidden, dim=-1).masked_fill(empty, 0.0)
        log_normalizer = torch.logsumexp(hidden, dim=-1).masked_fill(empty.squeeze(-1), -torch.inf)
        return Normalized(weights, log_normalizer)


SOFTMAX: Final = Softmax()

NORMALIZERS: Final[dict[str, type[Normalizer]]] = {"softmax": Softmax}
"""Every normalizer by name."""
