"""PyTorch's fused scaled_dot_product_attention: dot scores with softmax, weights never written to memory."""

from typing import Final, final

import torch
from torch import Tensor
from torch.nn import functional

from heedful.attention.kernels.interface import Attended, Kernel, Request
from heedful.attention.masks import Rows
from heedful.attention.normalizers import Normalizer, Softmax
from heedful.attention.pairs import DotPairs, Pairs
from heedful.errors import KernelUnsupported

SHORT: Final = 256 * 256
"""Scores of one head up to which plain operations train faster in bfloat16 on a CPU: benchmarks/attention_cpu.py."""


@final
class ScaledDotProduct(Kernel):
    """scaled_dot_product_attention with scale 1: ours is folded into the query already."""

    name = "sdpa"
    memory = "query + key"

    def supports(self, request: Request) -> str | None:
        if request.pairs is not DotPairs:
            return "only dot scores"
        if request.normalizer is not Softmax:
            return "only softmax"
        if request.need:
            return f"gives the context only, not {', '.join(sorted(request.need))}"
        is_short = request.num_queries * request.num_keys <= SHORT
        if request.device == "cpu" and request.dtype == torch.bfloat16 and request.wants_gradient and is_short:
            return "its bfloat16 backward on a CPU is slower than eager for so few scores"
        return None

    def run(self, pairs: Pairs, value: Tensor, rows: Rows | None, normalizer: Normalizer, request: Request) -> Attended:
        if not isinstance(pairs, DotPairs):
            raise KernelUnsupported("sdpa: only dot scores")
        is_causal = rows is not None and rows.is_causal
        allowed = None
        if rows is not None and not is_causal:
            allowed = rows.allowed(pairs.query.dim() - 2, pairs.key.shape[-2])
        context = functional.scaled_dot_product_attention(
            pairs.query, pairs.key, value, attn_mask=allowed, dropout_p=request.dropout, is_causal=is_causal, scale=1.0
        )
        if allowed is not None:
            # Backends differ on rows that allow nothing; here they are zero.
            context = torch.where(allowed.any(dim=-1, keepdim=True), context, torch.zeros_like(context))
        return Attended(context=context, kernel=self.name)
