"""Dropout at a quarter of the cost: four decisions from each 64-bit random number."""

from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

_LEVELS: Final = 1 << 16


def dropout(vectors: Float[Tensor, "..."], probability: float, training: bool) -> Float[Tensor, "..."]:
    """Zero features at random and scale up the rest, which preserves the expectation.

    On a CPU torch draws one number per element on one thread, which takes a tenth of a small model's training step.
    Here 16 bits decide, so the probability is rounded to a multiple of 2^-16, and the scale uses the rounded
    probability.

    Args:
        vectors: [*].
        probability: dropout probability, in [0, 1).
        training: whether to do anything.

    Returns:
        [*] the same shape and dtype.
    """
    if not training or probability == 0.0:
        return vectors
    if vectors.device.type != "cpu":
        return functional.dropout(vectors, probability)
    left_out = min(_LEVELS - 1, round(probability * _LEVELS))
    draws = torch.empty((vectors.numel() + 3) // 4, dtype=torch.int64).random_(-(1 << 63), None)
    bits = draws.view(torch.int16)[: vectors.numel()].view(vectors.shape)
    keep = (bits >= left_out - (_LEVELS >> 1)).to(vectors.dtype)
    return vectors * keep.mul_(_LEVELS / (_LEVELS - left_out))
