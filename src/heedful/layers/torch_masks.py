"""Conversion of PyTorch's masks (True = may not attend; numbers are added to the scores) to heedful's."""

import torch
from torch import Tensor
from torch.nn import functional

from heedful.errors import ShapeError, UsageError


def read_masks(
    key_padding_mask: Tensor | None, attn_mask: Tensor | None, shape: tuple[int, int, int, int], num_added: int = 0
) -> tuple[Tensor | None, Tensor | None]:
    """Combine the two masks of torch.nn.MultiheadAttention, and separate forbidden keys from added numbers.

    Args:
        key_padding_mask: [batch, key], or [key] of a single item; bool, True = may not attend, or floating-point.
        attn_mask: [query, key] or [batch * head, query, key], likewise.
        shape: (batch, head, query, key).
        num_added: number of additional keys at the end, which all queries may attend.

    Returns:
        [#batch, #head, #query, key + added] bool, True = may attend, and finite numbers of such a shape to add to the
        scores; None if nothing is forbidden or added.

    Raises:
        ShapeError: a mask has another shape.

    Example:
        >>> allowed, bias = read_masks(torch.tensor([[False, True]]), torch.tensor([[0.0, -0.5]]), (1, 1, 1, 2))
        >>> allowed.tolist(), bias.tolist()
        ([[[[True, False]]]], [[[[0.0, -0.5]]]])
    """
    batch, num_heads, num_queries, num_keys = shape
    masks: list[Tensor] = []
    if attn_mask is not None:
        each = (batch * num_heads, num_queries, num_keys)
        if tuple(attn_mask.shape) not in {each, each[1:]}:
            raise ShapeError(
                f"multi-head attention: attn_mask {list(attn_mask.shape)}, expected [query, key] = {list(each[1:])} "
                f"or [batch * head, query, key] = {list(each)}"
            )
        masks.append(attn_mask[None, None] if attn_mask.dim() == 2 else attn_mask.unflatten(0, shape[:2]))
    if key_padding_mask is not None:
        size = tuple(key_padding_mask.shape)
        if size != (batch, num_keys) and not (batch == 1 and size == (num_keys,)):
            raise ShapeError(
                f"multi-head attention: key_padding_mask {list(size)}, expected [batch, key] = "
                f"{[batch, num_keys]}, or without a batch [key] = {[num_keys]}"
            )
        masks.append(key_padding_mask.reshape(batch, 1, 1, num_keys))
    allowed = bias = None
    for one_allowed, one_bias in map(_read, masks):
        allowed = one_allowed if allowed is None else allowed & one_allowed
        if one_bias is not None:
            bias = one_bias if bias is None else bias + one_bias
    if num_added and allowed is not None:
        allowed = functional.pad(allowed, (0, num_added), value=True)
    if num_added and bias is not None:
        bias = functional.pad(bias, (0, num_added))
    return allowed, bias


def _read(mask: Tensor) -> tuple[Tensor, Tensor | None]:
    """Convert one mask.

    Args:
        mask: [*] bool, True = may not attend; or floating-point.

    Returns:
        [*] bool, True = may attend, and [*] finite numbers to add; None if there are none.

    Raises:
        UsageError: the mask is neither bool nor floating-point.
    """
    if mask.dtype == torch.bool:
        return ~mask, None
    if not mask.is_floating_point():
        raise UsageError(
            "multi-head attention: a mask must be bool (True = may not attend) or floating-point, got "
            f"{str(mask.dtype).removeprefix('torch.')}"
        )
    hidden = mask == -torch.inf
    bias = mask.masked_fill(hidden, 0.0)
    # The numbers are inspected only if this neither waits for a device nor breaks a graph being recorded.
    is_readable = mask.device.type == "cpu" and not mask.requires_grad and not torch.compiler.is_compiling()
    return ~hidden, None if is_readable and not bool(bias.any()) else bias
