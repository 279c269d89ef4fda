"""Conversion of nested tensors, PyTorch's batches of sequences of different lengths, to padded tensors and back."""

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


def pad_nested(nested: Tensor) -> tuple[Tensor, Tensor]:
    """Copy the sequences of a nested tensor into a padded one.

    Args:
        nested: [batch, position, size], nested, strided or jagged.

    Returns:
        [batch, position, size] the same vectors, then zeros, and [batch, position] bool, True = padding.
    """
    sequences = nested.unbind()
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
    if nested.layout == torch.jagged and nested.lengths() is None:
        # PyTorch adds jagged tensors only if they share their offsets.
        return torch.nested.nested_tensor_from_jagged(torch.cat(sequences), nested.offsets())
    return torch.nested.as_nested_tensor(sequences, layout=nested.layout)
