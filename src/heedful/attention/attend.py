"""`attend`: every mechanism is score x mask x normalizer, read out against values."""

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Final

import torch
from torch import Tensor

from heedful.attention.kernels.eager import Eager
from heedful.attention.kernels.interface import Attended, Kernel, Request
from heedful.attention.kernels.sdpa import ScaledDotProduct
from heedful.attention.masks import Mask
from heedful.attention.normalizers import SOFTMAX, Need, Normalizer
from heedful.attention.scores import PreparedKey, Score
from heedful.errors import KernelUnsupported, NeedError, ShapeError, did_you_mean

KERNELS: Final[tuple[Kernel, ...]] = (ScaledDotProduct(), Eager())
"""In order of preference."""

observer: ContextVar[Callable[[Score, Attended], None] | None] = ContextVar("observer", default=None)
"""Where set, every `attend` computes its weights and shows them to this function."""

_WATCHED: Final[frozenset[Need]] = frozenset({"weights"})


def attend(
    query: Tensor,
    key: Tensor | PreparedKey,
    value: Tensor,
    *,
    score: Score,
    mask: Mask | None = None,
    normalizer: Normalizer = SOFTMAX,
    dropout: float = 0.0,
    need: Iterable[Need] = (),
    kernel: str = "auto",
) -> Attended:
    """Average the values by how well their keys match the query.

    context[i] = sum_j weights[i, j] value[j],  weights = normalizer(score(query, key) where mask)

    Args:
        query: [*batch, query, query_size] what is looked for; any number of leading axes, heads among them.
        key: [*batch, key, key_size] what each position offers, or the result of `score.prepare` on it.
        value: [*batch, key, value_size] what each position returns.
        score: how a query is compared with a key.
        mask: who may attend whom; None = all.
        normalizer: scores to weights.
        dropout: probability in [0, 1) of leaving out a weight, the rest scaled up; pass 0 when not training.
        need: what to return beside the context: weights, log_normalizer, argmax, entropy.
        kernel: "auto" takes the first that supports the request; a named one raises rather than falling back.

    Returns:
        The contexts and all that was asked; see `Attended`.

    Raises:
        ShapeError: query or keys have not the size the score was made for, keys and values differ in number, or the
            argmax of no keys is asked.
        NeedError: the normalizer cannot provide what is asked.
        KernelUnsupported: the named kernel cannot do this, or there is none of that name.

    Cost: query * key * (depth + value_size) multiply-adds for dot scores, query * key * hidden tanh for additive;
    memory as `explain` says.

    Example:
        >>> from heedful.attention.scores import ScaledDot
        >>> from heedful.attention.masks import padding
        >>> q, k = torch.ones(2, 3, 8), torch.ones(2, 5, 8)
        >>> attend(q, k, k, score=ScaledDot(8, 8), mask=padding(torch.tensor([5, 0]))).context.sum((1, 2)).tolist()
        [24.0, 0.0]
    """
    watch = observer.get()
    prepared = key if isinstance(key, PreparedKey) else score.prepare(_sized(key, score.key_size, "key"))
    num_keys = prepared.key.shape[-2]
    if value.shape[-2] != num_keys:
        raise ShapeError(f"attend: {num_keys} keys but {value.shape[-2]} values ({_shapes(prepared.key, value)})")
    wanted: frozenset[Need] = frozenset(need)
    if watch:
        wanted |= _WATCHED
    if missing := wanted - normalizer.provides:
        raise NeedError(f"attend: {type(normalizer).__name__} cannot provide {', '.join(sorted(missing))}")
    if num_keys == 0 and "argmax" in wanted:
        raise ShapeError(f"attend: there is no key to name as argmax ({_shapes(prepared.key, value)})")
    pairs = score.lower(_sized(query, score.query_size, "query"), prepared, normalizer.inverse_temperature)
    request = Request(
        type(pairs),
        type(normalizer),
        value.dtype,
        value.device.type,
        query.shape[-2],
        num_keys,
        wanted,
        dropout,
        torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (pairs.query, pairs.key, value)),
    )
    rows = None if mask is None else mask.rows(query.shape[-2], num_keys, query.device)
    attended = _choose(request, kernel).run(pairs, value, rows, normalizer, request)
    if watch:
        watch(score, attended)
    return attended


def explain(request: Request) -> list[tuple[str, str, str]]:
    """Say which kernel `attend` would take, and why others refuse.

    Args:
        request: the facts of a call.

    Returns:
        For each kernel in order of preference its name, "yes" or the reason why not, and its memory class; `attend`
        takes the first "yes".
    """
    return [(kernel.name, kernel.supports(request) or "yes", kernel.memory) for kernel in KERNELS]


def _choose(request: Request, name: str) -> Kernel:
    if name == "auto":
        return next(kernel for kernel in KERNELS if kernel.supports(request) is None)
    named = next((kernel for kernel in KERNELS if kernel.name == name), None)
    if named is None:
        raise KernelUnsupported(f"attend: no kernel {name!r}{did_you_mean(name, [k.name for k in KERNELS])}")
    if reason := named.supports(request):
        raise KernelUnsupported(f"attend: kernel {name!r} cannot do this: {reason}")
    return named


def _sized(tensor: Tensor, size: int, role: str) -> Tensor:
    if tensor.shape[-1] != size:
        raise ShapeError(f"attend: the score was made for {role} size {size}, got {role} {list(tensor.shape)}")
    return tensor


def _shapes(key: Tensor, value: Tensor) -> str:
    return f"key {list(key.shape)}, value {list(value.shape)}"
