"""Conversion of nested tensors, PyTorch's batches of sequences of different lengths, to padded tensors and back."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from heedful.errors import ShapeError, UsageError


def pad_operands(query: Tensor, key: Tensor, value: Tensor) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor, Tensor]:
    """Pad the operands of an attention.

    Args:
        query: [batch, query, size], nested.
        key: [batch, key, size], nested.
        value: [batch, key, value_size], nested.

    Returns:
        All three padded, and [batch, query] and [batch, key] bool, True = padding.

    Raises:
        UsageError: only some of the tensors are nested.
        ShapeError: axes do not agree, or a sequence has more keys than values.
    """
    tensors = (query, key, value)
    if not all(tensor.is_nested for tensor in tensors):
        raise UsageError("attention: query, key and value must be nested tensors all three, or none of them")
    if any(tensor.dim() != 3 for tensor in tensors):
        axes = ", ".join(str(tensor.dim()) for tensor in tensors)
        raise ShapeError(f"attention: nested tensors are [batch, position, size], got {axes} axes")
    # One tensor in several places stays one tensor, because it is projected in one product.
    padded = {id(tensor): pad_nested(tensor) for tensor in tensors}
    (queries, no_query), (keys, no_key), (values, no_value) = (padded[id(tensor)] for tensor in tensors)
    if no_key.shape != no_value.shape or bool((no_key != no_value).any()):
        raise ShapeError("attention: nested keys and values differ in number")
    return (queries, keys, values), no_query, no_key


def pad_nested(nested: Tensor) -> tuple[Tensor, Tensor]:
    """Copy the sequences of a nested tensor into a padded one.

    Args:
        nested: [batch, position, size], nested, strided or jagged.

    Returns:
        [batch, position, size] the same vectors, then zeros, and [batch, position] bool, True = padding.
    """
    sequences = list(nested.unbind())
    padded = pad_sequence(sequences, batch_first=True)
    lengths = torch.tensor([sequence.shape[0] for sequence in sequences], device=nested.device)
    return padded, torch.arange(padded.shape[1], device=nested.device) >= lengths[:, None]


def nest_as(nested: Tensor, padded: Tensor) -> Tensor:
    """Copy the sequences of a padded tensor into a nested one.

    Args:
        nested: nested tensor with the lengths and the layout of the result.
        padded: [batch, position, size].

    Returns:
        [batch, position, size] nested; it can be added to `nested`.
    """
    sequences = [row[: each.shape[0]] for row, each in zip(padded.unbind(), nested.unbind(), strict=True)]
    jagged: Any = nested if nested.layout == torch.jagged else None
    if jagged is not None and jagged.lengths() is None:
        # PyTorch adds jagged tensors only if they share their offsets.
        return torch.nested.nested_tensor_from_jagged(torch.cat(sequences), jagged.offsets())
    return torch.nested.as_nested_tensor(sequences, layout=nested.layout)
