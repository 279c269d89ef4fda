"""What every kernel offers, and the static facts that decide which one runs."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from heedful.attention.interface import Attended, Need, Normalizer
from heedful.attention.lowered import LoweredScore
from heedful.attention.mask_bounds import MaskBounds
from heedful.attention.softmax import Softmax

Mode = Literal["eager", "compile", "export"]
"""Whether operations run as they are called, or are recorded for a compiler or for another runtime."""

MaskKind = Literal["none", "interval", "dense"]
"""Whether a mask is an interval of keys for each query, or also a table."""


@dataclass(frozen=True)
class Request:
    """Facts known before anything is computed; no tensor values among them."""

    pairs: type[LoweredScore]
    dtype: torch.dtype
    device: str
    num_queries: int
    num_keys: int
    normalizer: type[Normalizer] = Softmax
    mask: MaskKind = "none"
    width: int | None = None
    """No query may attend more neighbouring keys than this; None = unknown."""
    has_gaussian: bool = False
    need: frozenset[Need] = frozenset()
    dropout: float = 0.0
    wants_gradient: bool = False
    mode: Mode = "eager"
    profile: str = ""
    """Of distance pairs."""


class Kernel(ABC):
    """One implementation of attention."""

    name: str
    memory: str
    """Memory allocated beside inputs and outputs, in terms of query, key, hidden."""
    standing: str = ""
    """Reservation that users should know of; empty where there is none."""

    @abstractmethod
    def supports(self, request: Request) -> str | None:
        """Say whether this kernel can do what is asked.

        Args:
            request: the facts.

        Returns:
            None if it can, else the reason why not.
        """

    def declines_auto(self, request: Request) -> str | None:
        """Say why "auto" should take another kernel, although this one can do it.

        Args:
            request: the facts.

        Returns:
            The reason, or None where it may be taken.
        """
        return None

    def memory_of(self, request: Request) -> str:
        """Say what it allocates for one call.

        Args:
            request: the facts.

        Returns:
            As `memory`, which holds for all calls of which nothing else is said here.
        """
        return self.memory

    @abstractmethod
    def run(
        self, pairs: LoweredScore, value: Tensor, rows: MaskBounds | None, normalizer: Normalizer, request: Request
    ) -> Attended:
        """Compute attention.

        Args:
            pairs: what makes the scores.
            value: [*batch, key, value_depth].
            rows: who may attend whom; None = all.
            normalizer: scores to weights, with its noise fixed.
            request: the same facts that `supports` saw.

        Returns:
            The contexts and all that was asked.
        """


class ScoreKernel(ABC):
    """One way to make scores, which the driver in tiled_attention.py turns into attention."""

    name: str
    standing: str = ""
    """Reservation that users should know of; empty where there is none."""

    @abstractmethod
    def supports(self, request: Request) -> str | None:
        """Say whether this kernel can make the scores.

        Args:
            request: the facts.

        Returns:
            None if it can, else the reason why not.
        """

    def declines_auto(self, request: Request) -> str | None:
        """Say why "auto" should take another kernel, although this one can make the scores.

        Args:
            request: the facts.

        Returns:
            The reason, or None where it may be taken.
        """
        return None

    @abstractmethod
    def scores(self, pairs: LoweredScore) -> tuple[Tensor, Tensor | None]:
        """Make all scores of the pairs.

        Args:
            pairs: of some queries, with all their keys.

        Returns:
            [*batch, query, key] finite scores, and [*batch, query, key] bool whether there is one; None = everywhere.
        """

    @abstractmethod
    def numbers_per_score(self, pairs: LoweredScore) -> int:
        """Say how many numbers it holds for each score while it works.

        Args:
            pairs: of the call.

        Returns:
            At least 1.
        """
