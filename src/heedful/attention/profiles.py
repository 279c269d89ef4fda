"""Profiles of Nadaraya-Watson kernels: log K of a scaled squared distance."""

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import torch
from torch import Tensor


class Profile(NamedTuple):
    """Shape of a kernel K(u), u = distance / bandwidth."""

    log_kernel: Callable[[Tensor], Tensor]
    """Function from u^2 to log K, both [*]; any finite number beyond `reach`."""
    reach: float
    """Least u with K = 0, or infinity."""


def unit_of(bandwidth: Tensor) -> Tensor:
    """Return the power of two that brings a bandwidth to about 1.

    Multiplying points by a power of two rounds nothing. So distances and bandwidth are compared exactly, and no square
    of theirs leaves the range of the dtype: u^2 = |unit q - unit k|^2 / (unit bandwidth)^2.

    Args:
        bandwidth: [] above 0.

    Returns:
        [] the factor, without gradient.
    """
    largest = -math.log2(torch.finfo(bandwidth.dtype).tiny)
    return torch.exp2(-bandwidth.detach().log2().floor().clamp(-largest, largest))


def _zero(squared: Tensor) -> Tensor:
    return torch.zeros_like(squared)


def _root(squared: Tensor) -> Tensor:
    # At 0 the slope of the root is infinite and that of the distance undefined; it is set to 0.
    positive = squared > 0
    return torch.where(positive, squared.masked_fill(~positive, 1.0).sqrt(), torch.zeros_like(squared))


def _triangular(squared: Tensor) -> Tensor:
    return torch.log1p(-_root(squared.masked_fill(squared >= 1, 0.0)))


def _epanechnikov(squared: Tensor) -> Tensor:
    return torch.log1p(-squared.masked_fill(squared >= 1, 0.0))


PROFILES: Final[dict[str, Profile]] = {
    "gaussian": Profile(lambda squared: -0.5 * squared, torch.inf),
    "laplacian": Profile(lambda squared: -_root(squared), torch.inf),
    "boxcar": Profile(_zero, 1.0),
    "triangular": Profile(_triangular, 1.0),
    "epanechnikov": Profile(_epanechnikov, 1.0),
    "constant": Profile(_zero, torch.inf),
}
"""Profiles exp(-u^2/2), exp(-u), [u < 1], [1 - u]+, [1 - u^2]+ and 1, without factors that do not change weights."""
