"""What every kernel offers, and the static facts that decide which one runs."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from heedful.attention.masks import Rows
from heedful.attention.normalizers import Need, Normalizer
from heedful.attention.pairs import Pairs


@dataclass(frozen=True)
class Request:
    """Facts known before anything is computed; no tensor values among them."""

    pairs: type[Pairs]
    normalizer: type[Normalizer]
    dtype: torch.dtype
    device: str
    num_queries: int
    num_keys: int
    need: frozenset[Need] = frozenset()
    dropout: float = 0.0
    wants_gradient: bool = False


@dataclass(frozen=True)
class Attended:
    """What attention gives back; fields beside `context` only when asked with `need`."""

    context: Tensor
    """[*batch, query, value_depth] weighted sums of the values; zero where nothing may be attended."""
    kernel: str
    """Name of the kernel that ran."""
    weights: Tensor | None = None
    """[*batch, query, key] before dropout."""
    log_normalizer: Tensor | None = None
    """[*batch, query] log of the sum of exponentiated scores."""
    argmax: Tensor | None = None
    """[*batch, query] key of largest weight; 0 where nothing may be attended."""
    entropy: Tensor | None = None
    """[*batch, query] of the weights, in nats."""


class Kernel(ABC):
    """One implementation of attention."""

    name: ClassVar[str]
    memory: ClassVar[str]
    """What it allocates beside inputs and outputs, in terms of query, key, hidden."""

    @abstractmethod
    def supports(self, request: Request) -> str | None:
        """Say whether this kernel can do what is asked.

        Args:
            request: the facts.

        Returns:
            None if it can, else the reason why not.
        """

    @abstractmethod
    def run(self, pairs: Pairs, value: Tensor, rows: Rows | None, normalizer: Normalizer, request: Request) -> Attended:
        """Compute attention.

        Args:
            pairs: what makes the scores.
            value: [*batch, key, value_depth].
            rows: who may attend whom; None = all.
            normalizer: scores to weights.
            request: the same facts that `supports` saw.

        Returns:
            The contexts and all that was asked.
        """
