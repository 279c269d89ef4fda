"""NaN and infinity in keys and values that a mask hides: they reach no result and no gradient.

Kernels multiply hidden values by weights of zero, and zero times NaN is NaN. Kernels need not avoid this: a call whose
inputs or contexts hold a number that is not finite is computed once more with zeros in place of such vectors.
"""

import math
from dataclasses import fields, replace

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from heedful.attention.interface import Attended, PreparedKey, Scope
from heedful.attention.lowered import LoweredScore
from heedful.attention.mask_bounds import MaskBounds

_finite_versions = WeakTensorKeyDictionary()
"""Tensors known to be finite, with their version counters: decoders pass the same keys at every step."""


def all_finite(*tensors: Tensor) -> bool:
    """Tell whether tensors hold finite numbers alone.

    Returns:
        Whether there is neither NaN nor infinity.

    Cost: one sum of each tensor.
    """
    return all(_is_finite(tensor) for tensor in tensors)


def all_known_finite(*tensors: Tensor) -> bool:
    """Tell whether tensors hold finite numbers alone, and remember those that do.

    Args:
        tensors: any shapes, on the CPU; tensors that later calls will pass again.

    Returns:
        Whether there is neither NaN nor infinity.

    Cost: one sum of each tensor, once per version of its contents.
    """
    for tensor in tensors:
        # Tensors made in inference mode count no versions.
        version = None if tensor.is_inference() else tensor._version
        if version is not None and _finite_versions.get(tensor) == version:
            continue
        if not _is_finite(tensor):
            return False
        if version is not None:
            _finite_versions[tensor] = version
    return True


def _is_finite(tensor: Tensor) -> bool:
    # A sum is the cheapest test; it overflows rarely, and then the numbers themselves are tested.
    numbers = tensor.detach() if tensor.requires_grad else tensor
    return math.isfinite(numbers.sum().item()) or bool(torch.isfinite(numbers).all())


def needs_no_zeros(
    query: Tensor,
    key: Tensor | PreparedKey,
    lowered_key: Tensor,
    value: Tensor,
    context: Tensor,
    wants_gradient: bool,
) -> bool:
    """Tell whether no NaN or infinity can have reached a result or, later, a gradient.

    Args:
        query: [*batch, query, query_size], on the CPU like the others.
        key: [*batch, key, key_size] or prepared.
        lowered_key: [*batch, key, depth] what the kernel reads of the keys.
        value: [*batch, key, value_size].
        context: [*batch, query, value_size] result of the call.
        wants_gradient: whether the result will be differentiated. A hidden NaN can reach a gradient where the contexts
            are finite, so the inputs are tested then; where they are finite, nothing hidden is NaN.

    Returns:
        Whether all that was tested is finite.
    """
    if not wants_gradient:
        # Either test will do; the shorter one is taken.
        is_shorter = context.numel() <= lowered_key.numel() + value.numel()
        return all_finite(context) if is_shorter else all_finite(lowered_key, value)
    keys = key.key if isinstance(key, PreparedKey) else key
    return all_finite(query) and all_known_finite(keys, value)


def with_zeros(
    query: Tensor, key: Tensor | PreparedKey, value: Tensor, pairs: LoweredScore
) -> tuple[Tensor, Tensor | PreparedKey, Tensor]:
    """Replace vectors that hold NaN or infinity by zeros.

    Args:
        query: [*batch, query, query_size].
        key: [*batch, key, key_size] or prepared.
        value: [*batch, key, value_size].
        pairs: the score lowered from them; vectors whose lowered form is not finite are replaced too.

    Returns:
        Queries, keys and values; replaced vectors receive no gradient.
    """

    def replaced(vectors: Tensor, lowered: Tensor | None = None) -> Tensor:
        is_kept = _is_finite_vector(vectors)
        is_kept = is_kept if lowered is None else is_kept & _is_finite_vector(lowered)
        return torch.where(is_kept[..., None], vectors, 0.0)

    keys = PreparedKey(replaced(key.key)) if isinstance(key, PreparedKey) else replaced(key, pairs.key)
    return replaced(query, pairs.query), keys, replaced(value)


def with_hidden_zeroed(
    key: Tensor | PreparedKey, value: Tensor, rows: MaskBounds, num_leading: int
) -> tuple[Tensor | PreparedKey, Tensor]:
    """Replace keys and values that no query may attend to by zeros, without looking at their numbers.

    Args:
        key: [*batch, key, key_size] or prepared.
        value: [*batch, key, value_size].
        num_leading: number of leading axes of the scores.

    Returns:
        Keys and values; unchanged where the mask differs between queries.
    """
    keys = key.key if isinstance(key, PreparedKey) else key
    attended = rows.attended_keys(num_leading, keys.shape[-2])
    if attended is None:
        return key, value
    zeroed = torch.where(attended[..., None], keys, 0.0)
    value = torch.where(attended[..., None], value, 0.0)
    return PreparedKey(zeroed, key.exp_key) if isinstance(key, PreparedKey) else zeroed, value


def with_zeros_unseen(
    query: Tensor, key: Tensor | PreparedKey, value: Tensor, rows: MaskBounds, num_leading: int
) -> tuple[Tensor, Tensor | PreparedKey, Tensor, Bool[Tensor, "*#batch #query"]]:
    """Replace vectors that hold NaN or infinity by zeros, and find the queries they reach, whatever the numbers are.

    Args:
        query: [*batch, query, query_size].
        key: [*batch, key, key_size] or prepared.
        value: [*batch, key, value_size].
        num_leading: number of leading axes of the scores.

    Returns:
        Queries, keys and values; replaced vectors receive no gradient. [*batch, 1 or query] bool: reached queries.

    Cost: two passes over queries, keys and values, which compilers join with other operations, and a count of keys for
    each query; no number decides what is computed, so this can be compiled, mapped and differentiated in any mode.
    """
    keys = key.key if isinstance(key, PreparedKey) else key
    is_query, is_key, is_value = (_is_finite_vector(vectors) for vectors in (query, keys, value))
    reached = _reached(~is_query, ~(is_key & is_value), rows, num_leading)
    query, keys, value = (
        torch.where(is_finite[..., None], vectors, 0.0)
        for is_finite, vectors in ((is_query, query), (is_key, keys), (is_value, value))
    )
    return query, PreparedKey(keys) if isinstance(key, PreparedKey) else keys, value, reached


def reached_queries(pairs: LoweredScore, value: Tensor, rows: MaskBounds) -> Bool[Tensor, "*#batch #query"] | None:
    """Find the queries whose results NaN or infinity may reach: their own, or those of a key they may attend to.

    Args:
        value: [*batch, key, value_size].

    Returns:
        [*batch, 1 or query] bool; None if all numbers are finite.
    """
    query, key = ~_is_finite_vector(pairs.query), ~(_is_finite_vector(pairs.key) & _is_finite_vector(value))
    if not (query.any() or key.any()):
        return None
    return _reached(query, key, rows, len(pairs.leading))


def _reached(query: Tensor, key: Tensor, rows: MaskBounds, num_leading: int) -> Tensor:
    """[*batch, 1 or query] bool from [*batch, query] and [*batch, key]: vectors that are not finite."""
    return rows.reaches(key, num_leading) | (query & rows.reaches(torch.ones_like(key), num_leading))


def merged(
    reached: Bool[Tensor, "*#batch #query"], as_passed: Attended, with_zeros: Attended, scope: Scope
) -> Attended:
    """Join the results of a call as it was passed with those of the same call with zeros.

    Args:
        reached: [*batch, 1 or query] queries that numbers reach which are not finite.
        with_zeros: results with zeros in place of vectors that are not finite.
        scope: scope of the normalizer; "matrix" lets what reaches one query reach all.

    Returns:
        For reached queries the results as passed, whatever the formula makes of NaN or infinity, without gradient; for
    """

    def one(name: str, zeros: Tensor) -> Tensor:
        return torch.where(_rows_of(name, reached, scope), getattr(as_passed, name).detach(), zeros)

    return replace(with_zeros, **{name: one(name, result) for name, result in _results(with_zeros)})


def with_marks(attended: Attended, reached: Bool[Tensor, "*#batch #query"], scope: Scope) -> Attended:
    """Put NaN into the results of queries that NaN or infinity reaches.

    Args:
        attended: results of the call with zeros in place of vectors that are not finite.
        reached: [*batch, 1 or query] queries that numbers reach which are not finite.
        scope: scope of the normalizer; "matrix" lets what reaches one query reach all.

    Returns:
        For reached queries NaN without gradient (an argmax stays as it is), for all others the results unchanged.
    """

    def one(name: str, result: Tensor) -> Tensor:
        rows = _rows_of(name, reached, scope)
        return torch.where(rows, torch.nan, result) if result.is_floating_point() else result

    return replace(attended, **{name: one(name, result) for name, result in _results(attended)})


def _results(attended: Attended) -> list[tuple[str, Tensor]]:
    """Results that are tensors, with their names."""
    named = [(each.name, getattr(attended, each.name)) for each in fields(attended)]
    return [(name, result) for name, result in named if isinstance(result, Tensor)]


def _rows_of(name: str, reached: Tensor, scope: Scope) -> Tensor:
    """Reached queries, broadcastable against a result."""
    rows = reached.any(dim=-1, keepdim=True) if scope == "matrix" else reached
    return rows[..., None] if name in {"context", "weights"} else rows


def _is_finite_vector(vectors: Tensor) -> Tensor:
    """[*batch, position] bool from [*batch, position, size]."""
    # Zero times NaN or infinity is NaN: compilers make a faster loop of this sum than of tests of each number.
    return (vectors * 0).sum(dim=-1) == 0
