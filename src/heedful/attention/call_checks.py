"""Checks of the arguments of `attend`: what no kernel can compute is refused with its shapes and dtypes."""

from typing import get_args

import torch
from torch import Tensor

from heedful.attention.interface import Need, Normalizer, Score
from heedful.attention.lowered import broadcast
from heedful.attention.masks import Mask, graph
from heedful.cpu.operands import refuse
from heedful.errors import NeedError, ShapeError, UsageError, did_you_mean


def require_instances(scoring: object, normalizer: object) -> None:
    """Refuse a class where an instance of it is meant.

    Args:
        scoring: a score or a function.

    Raises:
        UsageError: the score or the normalizer is a class.
    """
    if isinstance(scoring, type):
        sizes = "(query_size, key_size)" if issubclass(scoring, Score) else "()"
        raise UsageError(f"attend: score is the class {scoring.__name__}; pass an instance: {scoring.__name__}{sizes}")
    if isinstance(normalizer, type):
        name = normalizer.__name__
        raise UsageError(f"attend: normalizer is the class {name}; pass an instance: {name}()")


def check_operands(
    query: Tensor, key: Tensor, value: Tensor, normalizer: Normalizer, dropout: float, need: frozenset[Need]
) -> tuple[torch.Size, int, int]:
    """Refuse arguments that no kernel can handle.

    Args:
        dropout: probability of dropping a weight.
        need: requested results beside the context.

    Returns:
        Leading axes of the scores, and the numbers of queries and keys.

    Raises:
        ShapeError: axes or sizes do not fit each other or the normalizer, types differ or are not floating-point, or
            the argmax of no keys is requested.
        NeedError: the normalizer does not provide a requested result, or there is no such result.
        UsageError: the dropout is outside [0, 1).
    """
    query_shape, key_shape, value_shape = query.shape, key.shape, value.shape
    if len(query_shape) < 2 or len(key_shape) < 2 or len(value_shape) < 2:
        named = (("query", query), ("key", key), ("value", value))
        role, tensor = next(item for item in named if item[1].dim() < 2)
        raise ShapeError(f"attend: expected {role} of axes [*batch, {role}, size], got {list(tensor.shape)}")
    num_queries, num_keys = query_shape[-2], key_shape[-2]
    if value_shape[-2] != num_keys:
        raise ShapeError(f"attend: {num_keys} keys but {value_shape[-2]} values ({_shapes(key, value)})")
    try:
        leading = broadcast(query_shape[:-2], key_shape[:-2])
        broadcast(leading, value_shape[:-2])
    except RuntimeError as error:
        raise ShapeError(
            f"attend: leading axes do not fit each other (query {list(query.shape)}, {_shapes(key, value)})"
        ) from error
    is_mixed = not query.dtype == key.dtype == value.dtype
    # Under autocast the output of a projection is narrower than its input.
    if (is_mixed and not torch.is_autocast_enabled(value.device.type)) or not value.is_floating_point():
        problem = "query, key and value must be of one floating-point type"
        refuse("attend", problem, query=query, key=key, value=value)
    if not 0.0 <= dropout < 1.0:
        raise UsageError(f"attend: dropout must be in [0, 1), got {dropout}")
    if reason := normalizer.why_not(num_queries, num_keys):
        raise ShapeError(f"attend: {reason}")
    if need:
        _check_need(normalizer, need)
        if num_keys == 0 and "argmax" in need:
            raise ShapeError(f"attend: there is no key to name as argmax ({_shapes(key, value)})")
    return leading, num_queries, num_keys


def _check_need(normalizer: Normalizer, need: frozenset[Need]) -> None:
    """Refuse results that a normalizer cannot provide.

    Raises:
        NeedError: the normalizer does not provide a requested result, or there is no such result.
    """
    for name in sorted(need - set(get_args(Need))):
        raise NeedError(f"attend: need {name!r} is unknown{did_you_mean(name, get_args(Need))}")
    if missing := need - normalizer.provides:
        raise NeedError(f"attend: {type(normalizer).__name__} cannot provide {', '.join(sorted(missing))}")


def require_size(tensor: Tensor, size: int, role: str) -> Tensor:
    """Refuse queries or keys of another size than the score was made for.

    Args:
        tensor: queries or keys, features last.
        size: number of features; 0 = any.
        role: name of the tensor for the message.

    Raises:
        ShapeError: the size differs.
    """
    if size and tensor.shape[-1] != size:
        raise ShapeError(f"attend: the score was made for {role} size {size}, got {role} {list(tensor.shape)}")
    return tensor


def require_mask(masking: object) -> None:
    """Refuse what is no mask.

    Args:
        masking: neither None nor a tensor.

    Raises:
        UsageError: it is no mask.
    """
    if not isinstance(masking, Mask):
        name = getattr(masking, "__name__", "")
        advice = f"call it: {name}(...)" if callable(masking) and name else "pass one of masks, such as causal()"
        raise UsageError(f"attend: mask is {name or type(masking).__name__}, not a mask; {advice}")


def explain_types(score: Score, query: Tensor) -> None:
    """Raise a clear error if the parameters of a score and its inputs differ in dtype.

    Raises:
        ShapeError: the dtypes differ.
    """
    others = {parameter.dtype for parameter in score.parameters()} - {query.dtype}
    if others and not torch.is_autocast_enabled(query.device.type):
        names = ", ".join(sorted(str(dtype).removeprefix("torch.") for dtype in others))
        wanted = str(query.dtype).removeprefix("torch.")
        raise ShapeError(f"attend: the score has {names} parameters, but query and key are {wanted}; convert one")


def table_mask(allowed: Tensor, num_leading: int) -> Mask:
    """Convert a table that is broadcast from the right, as PyTorch does it, to a mask.

    Args:
        allowed: table with at most two axes more than `num_leading`; True = may attend.
        num_leading: number of leading axes of the scores.

    Raises:
        UsageError: the table is not of bools.
        ShapeError: it has more axes than the scores.
    """
    if allowed.dtype != torch.bool:
        name = str(allowed.dtype).removeprefix("torch.")
        raise UsageError(
            f"mask: expected a table of bools, True = may attend, got {name} {list(allowed.shape)}; "
            "lengths of padded items go into masks.padding, numbers to add to scores into Biased(score, bias)"
        )
    missing = num_leading + 2 - allowed.dim()
    if missing < 0:
        raise ShapeError(f"mask: table {list(allowed.shape)} has more axes than scores with {num_leading} leading ones")
    return graph(allowed[(None,) * missing])


def _shapes(key: Tensor, value: Tensor) -> str:
    return f"key {list(key.shape)}, value {list(value.shape)}"
