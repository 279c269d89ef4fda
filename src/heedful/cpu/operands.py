"""Refusal of tensors that an operation cannot take."""

from typing import NoReturn

from torch import Tensor

from heedful.errors import ShapeError


def refuse(operation: str, problem: str, **tensors: Tensor | None) -> NoReturn:
    """Refuse tensors with their types and shapes.

    Args:
        operation: its name.
        problem: what is wrong with them.
        tensors: the tensors by name; None = left out.

    Raises:
        ShapeError: always.

    Example:
        >>> import torch
        >>> refuse("rectified", "needs bfloat16", vectors=torch.zeros(2, 3), bias=None)
        Traceback (most recent call last):
        ...
        heedful.errors.ShapeError: rectified: needs bfloat16 (vectors float32 [2, 3])
    """
    listing = ", ".join(
        f"{name} {str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
        for name, tensor in tensors.items()
        if tensor is not None
    )
    raise ShapeError(f"{operation}: {problem} ({listing})")
