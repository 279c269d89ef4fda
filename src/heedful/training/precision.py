"""Dtype of matrix products during training; weights and sums stay in float32."""

from contextlib import AbstractContextManager, nullcontext
from typing import Final, Literal

import torch

Precision = Literal["auto", "float32", "bfloat16"]


SMALL_PARAMETERS: Final = 400_000
"""Number of parameters below which, on a CPU, conversions cost more than bfloat16 products save."""


def resolve_precision(precision: Precision, device: torch.device, num_parameters: int = SMALL_PARAMETERS) -> Precision:
    """Resolve the precision "auto" for a model on a device.

    Args:
        device: where the model is.

    Returns:
        bfloat16 if the device multiplies it faster, else float32.
    """
    if precision != "auto":
        return precision
    if device.type != "cuda" and num_parameters < SMALL_PARAMETERS:
        return "float32"
    return "bfloat16" if has_bfloat16(device) else "float32"


def has_bfloat16(device: torch.device) -> bool:
    """Tell whether a device multiplies bfloat16; others emulate it, more slowly than they compute float32.

    Args:
        device: where the model is.

    Returns:
        Whether it does, as far as PyTorch tells.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and torch.cpu._is_avx512_bf16_supported()  # pyright: ignore[reportPrivateUsage]


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Return the context of a forward pass.

    Args:
        device: where the model is.

    Returns:
        The context; it does nothing for float32.
    """
    return torch.autocast(device.type, torch.bfloat16) if precision == "bfloat16" else nullcontext()


def product_dtype(precision: Precision) -> torch.dtype:
    """Return the dtype of matrix products.

    Returns:
        The dtype.
    """
    return torch.bfloat16 if precision == "bfloat16" else torch.float32
