"""Interface of kernels, and the static facts about a call that decide which kernel runs."""

from abc import ABC, abstractmethod
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from heedful.attention.interface import Attended, Need, Normalizer
from heedful.attention.lowered import LoweredScore
from heedful.attention.mask_bounds import MaskBounds
from heedful.attention.softmax import Softmax

Mode = Literal["eager", "compile", "export", "transform"]
"""Execution mode: eager, traced for a compiler or for export, or on tensors that stand for others (`torch.func`)."""

MaskKind = Literal["none", "interval", "dense"]
"""Kind of a mask: an interval of keys for each query, or also a table."""


class Request(NamedTuple):
    """Static facts about a call; no tensor values among them."""

    pairs: type[LoweredScore]
    dtype: torch.dtype
    device: str
    num_queries: int
    num_keys: int
    num_features: int = 0
    """Features of a query or of a value, whichever has more; 0 = not counted, as for traced calls."""
    normalizer: type[Normalizer] = Softmax
    mask: MaskKind = "none"
    width: int | None = None
    """Largest number of neighbouring keys that a query may attend to; None = unknown."""
    has_gaussian: bool = False
    is_cut: bool = False
    """Whether the Gaussian is zero beyond a distance."""
    need: frozenset[Need] = frozenset()
    dropout: float = 0.0
    wants_gradient: bool = False
    mode: Mode = "eager"
    profile: str = ""
    """Profile of a distance score."""
    has_bias: bool = False
    """Whether the score has a bias by positions."""
    num_numbers: int = 0
    """Number of numbers that the formula of a score writes to memory; 0 = not counted, as for traced calls."""


class Kernel(ABC):
    """Implementation of attention."""

    name: str
    memory: str
    """Memory allocated beside inputs and outputs, in terms of query, key, hidden."""
    standing: str = ""
    """Reservation that users should know; empty where there is none."""
    has_scale: bool = False
    """Whether dot scores may have a constant factor; where not, it is folded into the queries."""
    has_biases: bool = False
    """Whether scores may have a bias by positions."""
    reads_hidden: bool = True
    """True where the kernel reads keys and values that a mask hides, so that NaN among them may reach its results."""

    @abstractmethod
    def supports(self, request: Request) -> str | None:
        """Tell whether this kernel can compute a request, except for a bias of its scores.

        Args:
            request: facts about the call.

        Returns:
            None if supported, else the reason.
        """

    def why_not(self, request: Request) -> str | None:
        """Return the reason why this kernel cannot compute a request.

        Args:
            request: facts about the call.

        Returns:
            The reason, or None if it can.
        """
        if request.has_bias and not self.has_biases:
            return "takes no score with a bias by positions"
        return self.supports(request)

    def declines_auto(self, request: Request) -> str | None:
        """Return the reason why "auto" should choose another kernel, although this one can compute the request.

        Args:
            request: facts about the call.

        Returns:
            The reason, or None if "auto" may choose it.
        """
        return None

    def has_second_derivatives(self, request: Request) -> bool:
        """Tell whether gradients of a call can be differentiated again; where not, those of the plain kernel are.

        Returns:
            False by default.
        """
        return False

    def memory_of(self, request: Request) -> str:
        """Return the memory class of one call.

        Returns:
            `memory` by default; kernels override this for calls that need more.
        """
        return self.memory

    @abstractmethod
    def run(
        self, pairs: LoweredScore, value: Tensor, rows: MaskBounds | None, normalizer: Normalizer, request: Request
    ) -> Attended:
        """Compute attention.

        Args:
            value: [*batch, key, value_depth].
            rows: who may attend whom; None = all.
            normalizer: scores to weights, with its noise fixed.
            request: the facts that were passed to `supports`.

        Returns:
            The contexts and the requested results.
        """


class ScoreKernel(ABC):
    """Implementation of scores, which the driver in tiled_attention.py turns into attention."""

    name: str
    standing: str = ""
    """Caveat for users; empty = none."""

    @abstractmethod
    def supports(self, request: Request) -> str | None:
        """Tell whether this kernel can compute the scores of a request.

        Args:
            request: facts about the call.

        Returns:
            None if supported, else the reason.
        """

    def declines_auto(self, request: Request) -> str | None:
        """Return the reason why "auto" should choose another kernel, although this one can compute the scores.

        Args:
            request: facts about the call.

        Returns:
            The reason, or None if "auto" may choose it.
        """
        return None

    @abstractmethod
    def scores(self, pairs: LoweredScore) -> tuple[Tensor, Tensor | None]:
        """Compute all scores.

        Args:
            pairs: lowered score of some queries with all their keys.

        Returns:
            [*batch, query, key] finite scores, and [*batch, query, key] bool, True where a score exists; None =
        """

    @abstractmethod
    def numbers_per_score(self, pairs: LoweredScore) -> int:
        """Return how many numbers the computation holds in memory per score.

        Returns:
            At least 1.
        """
