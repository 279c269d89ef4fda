"""Entry point `attend`: checks and lowers a call, then chooses the kernel."""

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import Final, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.attention.attention_inputs import AttentionInputs
from heedful.attention.call_checks import (
    check_operands,
    explain_types,
    require_instances,
    require_mask,
    require_size,
    table_mask,
)
from heedful.attention.editing import edited, editor
from heedful.attention.interface import Attended, Need, Normalizer, PreparedKey, Score
from heedful.attention.kernels.additive.score_kernel import AdditiveScores
from heedful.attention.kernels.additive.triton_ops import TritonAdditiveScores
from heedful.attention.kernels.distance.kernel import FusedDistance
from heedful.attention.kernels.fused.kernel import FusedTriton
from heedful.attention.kernels.interface import Kernel, Mode, Request
from heedful.attention.kernels.plain import PlainScores
from heedful.attention.kernels.sdpa import ScaledDotProduct
from heedful.attention.kernels.step.kernel import FewQueries
from heedful.attention.kernels.window import Window
from heedful.attention.lowered import LoweredAdditive, LoweredDistance, LoweredScore
from heedful.attention.mask_bounds import MaskBounds
from heedful.attention.masks import Mask, padding
from heedful.attention.nonfinite import (
    merged,
    needs_no_zeros,
    reached_queries,
    with_hidden_zeroed,
    with_marks,
    with_zeros,
    with_zeros_unseen,
)
from heedful.attention.scores import Function
from heedful.attention.second_derivatives import with_second_derivatives
from heedful.attention.softmax import SOFTMAX
from heedful.attention.tiled_attention import Tiled
from heedful.cpu.concrete import concrete, is_exporting
from heedful.cpu.threads import is_exact
from heedful.errors import HeedfulError, KernelUnsupported, did_you_mean

KERNELS: Final[tuple[Kernel, ...]] = (
    FusedTriton(),
    Window(PlainScores()),
    FewQueries(),
    ScaledDotProduct(),
    FusedDistance(),
    Tiled(TritonAdditiveScores()),
    Tiled(AdditiveScores()),
    Tiled(PlainScores()),
)
"""All kernels, in order of preference."""

Scoring = Score | Callable[[Tensor, Tensor], Tensor]
"""Score module, or function from queries and keys to scores."""

Masking = Mask | Bool[Tensor, "..."] | None
"""Mask; or table of bools, True = may attend, broadcast as in PyTorch's `scaled_dot_product_attention`."""

observer: ContextVar[Callable[[Score, Attended], None] | None] = ContextVar("observer", default=None)
"""Callback for capture: where set, every `attend` computes its weights and passes them on."""

_WATCHED: Final[frozenset[Need]] = frozenset({"weights"})
_NOTHING: Final[frozenset[Need]] = frozenset()
_AUTOCAST: Final = ("cpu", "cuda")
"""Types of devices that are known to have autocast; others are asked."""


class Choice(NamedTuple):
    """Answer of one kernel to a call.

    Example:
        >>> from heedful.attention import ScaledDot
        >>> vectors = torch.ones(2, 3, 8)
        >>> choices = explain(vectors, vectors, vectors, score=ScaledDot(8, 8))
        >>> [choice.kernel for choice in choices if not choice.reason][-1]
        'plain'
    """

    kernel: str
    reason: str
    """Reason why the kernel cannot run; empty where it can."""
    memory: str
    """Memory allocated beside inputs and outputs."""
    standing: str = ""
    """Caveat for users, for example that a kernel was never timed."""


class _Call(NamedTuple):
    """Call of `attend`, checked and lowered."""

    score: Score
    pairs: LoweredScore
    value: Tensor
    rows: MaskBounds | None
    normalizer: Normalizer
    request: Request
    reached: Bool[Tensor, "*#batch #query"] | None
    """Queries that NaN or infinity reaches, where numbers cannot be looked at; None elsewhere."""


def attend(
    query: Float[Tensor, "*#batch query query_size"],
    key: Float[Tensor, "*#batch key key_size"] | PreparedKey,
    value: Float[Tensor, "*#batch key value_size"],
    *,
    score: Scoring,
    mask: Masking = None,
    normalizer: Normalizer = SOFTMAX,
    dropout: float = 0.0,
    need: Need | Iterable[Need] = (),
    kernel: str = "auto",
) -> Attended:
    """Average the values by how well their keys match the query.

    context[i] = sum_j weights[i, j] value[j],  weights = normalizer(score(query, key) where mask)

    Args:
        query: [*batch, query, query_size] what is looked for; any number of leading axes, heads among them.
        key: [*batch, key, key_size] what each position offers, or the result of `score.prepare` on it.
        value: [*batch, key, value_size] what each position returns.
        score: how a query is compared with a key; a plain function of queries and keys will do (`scores.Function`).
        mask: who may attend whom; None = all. A tensor of bools is a table, True = may attend, that is broadcast
            against [*batch, query, key] from the right, as PyTorch does it.
        normalizer: map from scores to weights; softmax by default.
        dropout: probability in [0, 1) of leaving out a weight, the rest scaled up; pass 0 when not training.
        need: what to return beside the context: weights, log_normalizer, argmax, entropy, log_prob; one or several.
        kernel: "auto" takes the first that supports the request; a named one raises rather than falling back.

    Returns:
        The contexts and the results named in `need`; see `Attended`.

    Raises:
        ShapeError: query or key size differs from the score's, leading axes do not broadcast, keys and values differ in
            number, or the argmax of zero keys is requested.
        NeedError: the normalizer cannot provide a requested result.
        UsageError: tensors are not of one floating-point type, or dropout is not in [0, 1).
        KernelUnsupported: the named kernel does not exist or cannot run this call.

    NaN and infinity where a mask hides them reach no result and no gradient. Within `torch.func` and in compiled code,
    where no number can be looked at, queries that may attend to NaN or infinity get NaN, whatever the formula gives.
    Two exceptions: on other devices than the CPU only keys that are hidden from every query are protected, in exported
    graphs none. A prepared key is computed before any mask is known, so its own gradient may see hidden numbers.

    Scores must be finite: a dot product that overflows gives NaN, so that the error is visible (float16 scores are
    clamped to the largest float16 number). Infinite scores of a plain function are clamped likewise.

    Cost: query * key * (depth + value_size) multiply-adds for dot scores, query * key * hidden tanh for additive;
    memory as `explain` says: linear in query + key, unless weights, a dense mask or a tree normalizer in training need
    query * key.

    Example:
        >>> from heedful.attention.scores import ScaledDot
        >>> from heedful.attention.masks import padding
        >>> q, k = torch.ones(2, 3, 8), torch.ones(2, 5, 8)
        >>> attend(q, k, k, score=ScaledDot(8, 8), mask=padding(torch.tensor([5, 0]))).context.sum((1, 2)).tolist()
        [24.0, 0.0]
    """
    # torch.compile cannot trace the callback, so compiled code is not observed; an exported graph is recorded with it.
    is_traced = torch.compiler.is_compiling() and not is_exporting()
    watch = None if is_traced else observer.get()
    wanted = _names(need)
    normalizer = normalizer if isinstance(normalizer, type) else normalizer.seeded()
    if watch and not (wanted >= _WATCHED or is_exporting()) and editor.get() is None:
        # Weights are computed in a second call, so that the first one is as unwatched: its kernel, its random numbers.
        attend(query, key, value, score=score, mask=mask, normalizer=normalizer, need=wanted | _WATCHED)
        watch = None
    elif watch:
        wanted |= _WATCHED
    call = _lower(query, key, value, score, mask, normalizer, dropout, wanted)
    chosen = _choose(call.request, kernel)
    attended = _run(chosen, call)
    is_looked_at = call.request.mode == "eager" and call.request.device == "cpu"
    # A hidden NaN reaches a gradient even if the kernel never reads it: the backward pass multiplies it by zero.
    is_looked_at &= chosen.reads_hidden or call.request.wants_gradient
    if call.reached is not None:
        attended = with_marks(attended, call.reached, normalizer.scope)
    elif (
        call.rows is not None
        and is_looked_at
        and not needs_no_zeros(query, key, call.pairs.key, call.value, attended.context, call.request.wants_gradient)
    ):
        reached = reached_queries(call.pairs, value, call.rows)
        if reached is not None:
            clean = _lower(*with_zeros(query, key, value, call.pairs), score, mask, normalizer, dropout, wanted)
            attended = merged(reached, attended, _run(chosen, clean), normalizer.scope)
    if watch:
        attended = edited(call.score, attended, call.value)
        watch(call.score, attended)
    return attended


def explain(
    query: Tensor,
    key: Tensor | PreparedKey,
    value: Tensor,
    *,
    score: Scoring,
    mask: Masking = None,
    normalizer: Normalizer = SOFTMAX,
    dropout: float = 0.0,
    need: Need | Iterable[Need] = (),
) -> list[Choice]:
    """Return every kernel's answer to a call of `attend`: whether it can run, and if not, why.

    Args:
        query: [*batch, query, query_size], as for `attend`, like all that follow.
        key: [*batch, key, key_size], or the result of `score.prepare` on it.
        value: [*batch, key, value_size].
        score: score module, or function from queries and keys to scores.
        mask: pairs that may attend; None = all.
        normalizer: map from scores to weights.
        dropout: probability in [0, 1) of leaving out a weight.
        need: results requested beside the context.

    Returns:
        One choice per kernel, in order of preference; `attend` takes the first with an empty reason.

    Raises:
        ShapeError: as `attend`.
        NeedError: as `attend`.
        UsageError: as `attend`.

    Example:
        >>> from heedful.attention.scores import ScaledDot
        >>> query, key = torch.zeros(3, 8), torch.zeros(5, 8)
        >>> choices = explain(query, key, key, score=ScaledDot(8, 8), need=["weights"])
        >>> next(choice.reason for choice in choices if choice.kernel == "sdpa")
        'gives the context only, not weights'
    """
    request = _lower(query, key, value, score, mask, normalizer, dropout, _names(need)).request
    return [
        Choice(kernel.name, _against(kernel, request) or "", kernel.memory_of(request), kernel.standing)
        for kernel in KERNELS
    ]


def why_refused(
    query: Tensor,
    key: Tensor | PreparedKey,
    value: Tensor,
    *,
    score: Scoring,
    mask: Masking = None,
    normalizer: Normalizer = SOFTMAX,
    dropout: float = 0.0,
    need: Need | Iterable[Need] = (),
) -> str:
    """Say why `attend` refuses the same arguments.

    Args:
        query: as for `attend`, like all other arguments.
        need: results requested beside the context.

    Returns:
        The reason, in one line; empty where a kernel takes the call.

    Example:
        >>> from heedful.attention.scores import General
        >>> query, key = torch.zeros(3, 8), torch.zeros(5, 4)
        >>> why_refused(query, key, key, score=General(8, 5))
        'the score was made for key size 5, got key [5, 4]'
    """
    try:
        request = _lower(query, key, value, score, mask, normalizer, dropout, _names(need)).request
    except HeedfulError as error:
        return " ".join(str(error).removeprefix("attend: ").split())
    # The last kernel supports nearly every call, so the others are asked only if it refuses.
    reasons = (_against(kernel, request) for kernel in reversed(KERNELS))
    first = next(reasons)
    return "" if first is None or any(reason is None for reason in reasons) else first


def _lower(
    query: Tensor,
    key: Tensor | PreparedKey,
    value: Tensor,
    scoring: Scoring,
    masking: Masking,
    normalizer: Normalizer,
    dropout: float,
    need: frozenset[Need],
) -> _Call:
    """Check a call, and convert it to the form that kernels take.

    Raises:
        RuntimeError: a user-defined score raised it.
    """
    require_instances(scoring, normalizer)
    score = scoring if isinstance(scoring, Score) else Function(scoring)
    raw_key = key.key if isinstance(key, PreparedKey) else require_size(key, score.key_size, "key")
    leading, num_queries, num_keys = check_operands(query, raw_key, value, normalizer, dropout, need)
    require_size(query, score.query_size, "query")
    rows = _bounds(masking, score, leading, num_queries, num_keys, query.device)
    mode, reached, device = _mode(query, raw_key, value), None, value.device.type
    if rows is not None and mode in {"compile", "transform"}:
        query, key, value, reached = with_zeros_unseen(query, key, value, rows, len(leading))
    elif rows is not None and mode == "eager" and device != "cpu":
        # Looking at numbers would wait for the device, so hidden ones are replaced whatever they are.
        key, value = with_hidden_zeroed(key, value, rows, len(leading))
    try:
        prepared = key if isinstance(key, PreparedKey) else score.prepare(key)
        pairs = score.lower(query, prepared, normalizer.inverse_temperature)
    except RuntimeError:
        explain_types(score, query)
        raise
    request = Request(
        pairs=type(pairs),
        dtype=value.dtype,
        device=device,
        num_queries=num_queries,
        num_keys=num_keys,
        num_features=max(pairs.query.shape[-1], value.shape[-1]) if mode == "eager" else 0,
        normalizer=type(normalizer),
        mask="none" if rows is None else "interval" if rows.dense is None else "dense",
        width=None if rows is None else rows.width,
        has_gaussian=rows is not None and rows.gaussian is not None,
        is_cut=rows is not None and rows.gaussian is not None and rows.gaussian.reach is not None,
        need=need,
        dropout=dropout,
        wants_gradient=torch.is_grad_enabled() and _is_learned(pairs, value, rows),
        mode=mode,
        profile=pairs.profile if isinstance(pairs, LoweredDistance) else "",
        has_bias=pairs.bias is not None,
        num_numbers=prod(leading) * num_queries * num_keys * _num_terms(pairs) if mode == "eager" else 0,
    )
    return _Call(score, pairs, value, rows, normalizer, request, reached)


def _num_terms(pairs: LoweredScore) -> int:
    """Number of numbers that the formula of one score writes to memory."""
    return pairs.key.shape[-1] if isinstance(pairs, LoweredAdditive | LoweredDistance) else 1


def _is_learned(pairs: LoweredScore, value: Tensor, rows: MaskBounds | None) -> bool:
    """Tell whether a tensor of a call receives gradient."""
    centre = () if rows is None or rows.gaussian is None else (rows.gaussian.centre,)
    return any(tensor.requires_grad for tensor in (value, *pairs.tensors(), *centre))


def _bounds(
    masking: Masking, score: Score, leading: torch.Size, num_queries: int, num_keys: int, device: torch.device
) -> MaskBounds | None:
    """Normal form of a mask, without the keys that the score does not reach; None = every query may attend to all."""
    mask = table_mask(masking, len(leading)) if isinstance(masking, Tensor) else masking
    if mask is not None:
        require_mask(mask)
    # In an exported graph the number of keys is symbolic; comparing it would specialize the graph.
    if score.max_keys is not None and (is_exporting() or score.max_keys < num_keys):
        reach = padding(torch.full((), score.max_keys, device=device))
        mask = reach if mask is None else mask & reach
    if mask is None:
        return None
    rows = mask.rows(num_queries, num_keys, device)
    rows.require_leading(leading)
    return rows


def _names(need: Need | Iterable[Need]) -> frozenset[Need]:
    return frozenset((need,) if isinstance(need, str) else need) if need else _NOTHING


def _mode(*tensors: Tensor) -> Mode:
    if concrete(*tensors):
        return "eager"
    if is_exporting():
        return "export"
    return "compile" if torch.compiler.is_compiling() else "transform"


def _run(kernel: Kernel, call: _Call) -> Attended:
    """Compute attention that can be differentiated twice."""
    # An exported operation with a factor multiplies queries and keys.
    pairs = call.pairs if kernel.has_scale and call.request.mode != "export" else call.pairs.folded()
    attended = kernel.run(pairs, call.value, call.rows, call.normalizer, call.request)
    device = call.request.device
    if (
        attended.context.dtype == torch.float32
        and (device in _AUTOCAST or torch.amp.is_autocast_available(device))
        and torch.is_autocast_enabled(device)
    ):
        # The plain kernel's products are in the type of autocast, and no choice of a kernel may change a type.
        attended = replace(attended, context=attended.context.to(torch.get_autocast_dtype(device)))
    if not call.request.wants_gradient or call.request.mode != "eager" or kernel.has_second_derivatives(call.request):
        return attended
    inputs = AttentionInputs(call.pairs, call.value, call.rows, call.normalizer)
    return with_second_derivatives(attended, inputs, call.request, KERNELS[-1])


def _choose(request: Request, name: str) -> Kernel:
    if name == "auto":
        # Sizes of traced calls may be symbolic, which no cache can look up.
        return _known_first(KERNELS, request, is_exact()) if request.mode == "eager" else _first(KERNELS, request)
    named = next((kernel for kernel in KERNELS if kernel.name == name), None)
    if named is None:
        raise KernelUnsupported(f"attend: no kernel {name!r}{did_you_mean(name, [k.name for k in KERNELS])}")
    if reason := named.why_not(request):
        raise KernelUnsupported(f"attend: kernel {name!r} cannot run this call: {reason}")
    return named


@lru_cache(maxsize=1024)
def _known_first(kernels: tuple[Kernel, ...], request: Request, is_exact: bool) -> Kernel:
    """`_first`, which depends on these facts alone."""
    return _first(kernels, request)


def _first(kernels: tuple[Kernel, ...], request: Request) -> Kernel:
    return next(kernel for kernel in kernels if _against(kernel, request) is None)


def _against(kernel: Kernel, request: Request) -> str | None:
    """Reason why a kernel is not chosen automatically."""
    return kernel.why_not(request) or kernel.declines_auto(request)
