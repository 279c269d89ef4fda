"""Kernel of PyTorch's fused scaled_dot_product_attention: dot scores with softmax, weights never in memory."""

from collections.abc import Callable
from typing import Any, Final, final

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from heedful.attention.interface import Attended, Normalizer
from heedful.attention.kernels.interface import Kernel, Request
from heedful.attention.lowered import LoweredDot, LoweredScore, broadcast
from heedful.attention.mask_bounds import MaskBounds
from heedful.attention.softmax import Softmax
from heedful.attention.tiled_attention import WHOLE
from heedful.cpu.derivatives import formula_gradients
from heedful.cpu.threads import is_exact

SHORT: Final = 256 * 256
"""Number of scores per head up to which plain operations train faster in bfloat16 on a CPU; this and the following are
measured by benchmarks/attention_cpu.py."""
WIDE: Final = 128
"""Number of features of a head from which plain operations may be faster in float32 and float64 on a CPU: where a head
has no more scores than the square of its features, or without gradients than half of that."""
MANY: Final = 8
"""Number of queries from which they are, if there are at most twice as many keys."""

_torch: Final[Any] = torch._C  # pyright: ignore[reportPrivateUsage]
_current_node: Final[Callable[[], Any] | None] = getattr(_torch, "_current_autograd_node", None)
"""Node of the graph whose backward pass is running; not a public name of PyTorch."""

_FUSED_ON_CPU: Final = "ScaledDotProductFlashAttentionForCpuBackward0"
"""Node of the graph whose gradients PyTorch cannot differentiate again."""


@final
class ScaledDotProduct(Kernel):
    """PyTorch's scaled_dot_product_attention: dot scores with softmax."""

    name = "sdpa"
    has_scale = True
    memory = (
        "query + key; a mask that differs between queries and is not just causal is written out: query * key numbers"
    )

    def supports(self, request: Request) -> str | None:
        if request.pairs is not LoweredDot:
            return "only dot scores"
        if request.normalizer is not Softmax:
            return "only softmax"
        if request.mode == "transform":
            return "PyTorch has no rules for torch.func and forward mode"
        if request.need:
            return f"gives the context only, not {', '.join(sorted(request.need))}"
        if request.has_gaussian:
            return "multiplies weights by no Gaussian"
        if request.dropout and request.device == "cpu":
            return "with dropout PyTorch writes all weights on a CPU"
        return None

    def declines_auto(self, request: Request) -> str | None:
        # In an exported graph sizes are symbolic, and a comparison would specialize the graph.
        if request.device != "cpu" or request.mode == "export":
            return None
        num_scores = request.num_queries * request.num_keys
        if request.dtype == torch.bfloat16 and request.wants_gradient and num_scores <= SHORT:
            return "its bfloat16 backward on a CPU is slower than plain operations for so few scores"
        if request.dtype not in {torch.float32, torch.float64} or request.num_features < WIDE:
            return None
        # The number of keys depends on the other rows of a batch, on which no exact result may depend.
        if is_exact() or request.num_numbers > WHOLE:
            return None
        is_small = num_scores * (1 if request.wants_gradient else 2) <= request.num_features**2
        if is_small and request.num_queries >= MANY and request.num_keys <= 2 * request.num_queries:
            return "plain operations are faster for so many features and so few scores on a CPU"
        return None

    def has_second_derivatives(self, request: Request) -> bool:
        # On a GPU the node that PyTorch records may belong to padded copies of the inputs.
        return request.device == "cpu" and _current_node is not None

    def run(
        self, pairs: LoweredScore, value: Tensor, rows: MaskBounds | None, normalizer: Normalizer, request: Request
    ) -> Attended:
        is_causal = rows is not None and rows.is_causal
        allowed = hidden = None
        if rows is not None and not is_causal:
            allowed, hidden = rows.table(len(pairs.leading), request.num_keys)
        scale = pairs.scale if isinstance(pairs, LoweredDot) else 1.0
        context = _fused(pairs.query, pairs.key, value, allowed, request, is_causal, scale)
        if allowed is not None and hidden is None:
            # Backends differ on rows that may attend nothing; here they are zero.
            context = torch.where(allowed.any(dim=-1, keepdim=True), context, 0.0)
        return Attended(context=context, kernel=self.name)


def _fused(
    query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None, request: Request, is_causal: bool, scale: float
) -> Tensor:
    """Call PyTorch with two leading axes and equal sizes, the form that its fused kernels require.

    Other forms materialise the weights.
    """
    leading = broadcast(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    if request.mode == "eager" and 0 in leading:
        return query @ key.mT @ value  # PyTorch 2.11 divides by the number of heads
    value_size = value.shape[-1]
    size = max(query.shape[-1], value_size)
    wide = (_laid(_padded(tensor, size), leading) for tensor in (query, key, value))
    mask = None if allowed is None else _with_two_leading(allowed, leading)
    context = functional.scaled_dot_product_attention(
        *wide, attn_mask=mask, dropout_p=request.dropout, is_causal=is_causal, scale=scale
    )
    if request.mode == "eager" and context.requires_grad:
        node = context.grad_fn
        if node is not None and node.name() == _FUSED_ON_CPU:
            node.register_hook(_second_derivatives)
    if len(leading) != 2:
        context = context.reshape(*leading, *context.shape[-2:])
    return context if size == value_size else context[..., :value_size]


def _padded(tensor: Tensor, size: int) -> Tensor:
    missing = size - tensor.shape[-1]
    return functional.pad(tensor, (0, missing)) if missing else tensor


def _laid(tensor: Tensor, leading: torch.Size) -> Tensor:
    """Expand to the leading axes, then flatten them to two; features are contiguous."""
    if tensor.shape[:-2] != leading:
        tensor = tensor.expand(*leading, *tensor.shape[-2:])
    tensor = _with_two_leading(tensor, leading)
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _with_two_leading(tensor: Tensor, leading: torch.Size) -> Tensor:
    if len(leading) > 2:
        return tensor.expand(*leading, *tensor.shape[-2:]).flatten(0, -4)
    missing = 4 - tensor.dim()
    return tensor[(None,) * missing] if missing else tensor


def _second_derivatives(
    grad_inputs: tuple[Tensor | None, ...], grad_outputs: tuple[Tensor | None, ...]
) -> tuple[Tensor | None, ...] | None:
    """Replace gradients of the fused operation by those of plain operations if they are to have a graph.

    A hook of the fused operation's node, called after its backward pass. The inputs are read from the node, which frees
    them early; held by the hook, they would live as long as the graph.
    """
    if _current_node is None or not torch.is_grad_enabled():
        return None
    node = _current_node()

    def formula(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        with sdpa_kernel(SDPBackend.MATH):
            return functional.scaled_dot_product_attention(
                query,
                key,
                value,
                attn_mask=node._saved_attn_mask,
                is_causal=node._saved_is_causal,
                scale=node._saved_scale,
            )

    inputs = node._saved_query, node._saved_key, node._saved_value
    needs = [each is not None for each in grad_inputs[:3]]
    with torch.autocast("cpu", enabled=False):
        return (*formula_gradients(formula, inputs, needs, grad_outputs[:1]), *grad_inputs[3:])
