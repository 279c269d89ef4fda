"""Kernel of fused attention on a GPU: scores, masks, softmax or a chosen key, dropout and context in one pass.

heedful/attention/kernels/fused/triton_kernels.py states the method. Additive scores are computed by strips of queries,
in a buffer that does not grow with query * key; dot products and distances are computed inside the kernel. The backward
pass recomputes scores and weights strip by strip. There are no atomic additions, so every run is bit-identical.
"""

from dataclasses import replace
from typing import Final, final

import torch
from torch import Tensor

from heedful.attention.interface import Attended, Normalizer
from heedful.attention.kernels.devices import UNTIMED, against_auto, supports_device
from heedful.attention.kernels.fused.plan import FusedChoice, FusedPlan
from heedful.attention.kernels.fused.triton_ops import Operands, fused_attention
from heedful.attention.kernels.interface import Kernel, Request
from heedful.attention.kernels.plain import PlainScores
from heedful.attention.lowered import LoweredAdditive, LoweredDistance, LoweredDot, LoweredScore
from heedful.attention.mask_bounds import MaskBounds, lead
from heedful.attention.softmax import Softmax
from heedful.attention.stochastic import GumbelSoftmax, Hard, Sampled, StraightThrough
from heedful.attention.tiled_attention import Tiled

_NORMALIZERS: Final[frozenset[type[Normalizer]]] = frozenset({Softmax, Hard, Sampled, StraightThrough, GumbelSoftmax})


@final
class FusedTriton(Kernel):
    """Scores, masks, softmax or a chosen key, dropout and context in one pass on a GPU, compiled by Triton."""

    name = "fused_triton"
    standing = UNTIMED
    memory = "query + key (additive scores a strip of queries at a time; computed again backward)"

    def supports(self, request: Request) -> str | None:
        if request.pairs not in {LoweredAdditive, LoweredDot, LoweredDistance}:
            return "only additive, dot and distance scores"
        if request.normalizer not in _NORMALIZERS:
            return "only softmax, and normalizers that choose one key"
        if request.has_gaussian and "entropy" in request.need:
            return "gives no entropy of weights that a Gaussian multiplies"
        if request.is_cut:
            return "only a Gaussian that is zero nowhere"
        if request.wants_gradient and "weights" in request.need:
            return "gives weights without gradient only"
        return supports_device(request.mode, request.device, request.dtype)

    def declines_auto(self, request: Request) -> str | None:
        if request.pairs is LoweredDot and request.normalizer is Softmax:
            return "PyTorch multiplies matrices faster: by name only"
        return against_auto(request.device, request.num_numbers if request.pairs is LoweredAdditive else 0)

    def run(
        self, pairs: LoweredScore, value: Tensor, rows: MaskBounds | None, normalizer: Normalizer, request: Request
    ) -> Attended:
        if not (pairs.query.numel() and pairs.key.numel() and value.numel()):
            # Empty inputs: plain operations give results and gradients of the right shapes.
            plain = Tiled(PlainScores()).run(pairs, value, rows, normalizer, request)
            return replace(plain, kernel=self.name)
        plan = FusedPlan.make(pairs, value, rows, _choice(normalizer), request)
        context, summaries, best, weights = fused_attention(_operands(pairs, value, rows, normalizer), plan)
        need, leading = request.need, (*pairs.leading, request.num_queries)
        log_normalizer, entropy, log_prob = (each.reshape(leading) for each in summaries)
        if isinstance(normalizer, Hard):
            entropy = torch.zeros_like(entropy)
        return Attended(
            context=context.reshape(*plan.batch, *context.shape[1:]),
            kernel=self.name,
            weights=weights.reshape(*leading, request.num_keys) if "weights" in need else None,
            log_normalizer=log_normalizer if "log_normalizer" in need else None,
            argmax=best.reshape(leading) if "argmax" in need else None,
            entropy=entropy if "entropy" in need else None,
            log_prob=log_prob if "log_prob" in need else None,
        )


def _choice(normalizer: Normalizer) -> FusedChoice:
    """Settings of a normalizer for the Triton kernels."""
    if isinstance(normalizer, Hard):
        return FusedChoice(is_one_hot=True, is_soft_backward=False)
    if isinstance(normalizer, Sampled):
        return FusedChoice(normalizer.seed, is_one_hot=True, is_soft_backward=False)
    if isinstance(normalizer, StraightThrough):
        return FusedChoice(normalizer.seed, is_one_hot=True)
    if isinstance(normalizer, GumbelSoftmax):
        return FusedChoice(normalizer.seed, is_relaxed=True, is_one_hot=normalizer.is_hard)
    return FusedChoice()


def _operands(pairs: LoweredScore, value: Tensor, rows: MaskBounds | None, normalizer: Normalizer) -> Operands:
    """Tensors that may receive gradient, scalars in the dtype of the computation."""
    real = torch.promote_types(value.dtype, torch.float32)

    def number(scalar: Tensor | float) -> Tensor | None:
        return scalar.to(value.device, real) if isinstance(scalar, Tensor) else None

    vector = bandwidth = factor = noise = centre = sigma = None
    if isinstance(pairs, LoweredAdditive):
        vector = pairs.vector.to(real)
    if isinstance(pairs, LoweredDistance):
        bandwidth, factor = number(pairs.bandwidth), number(pairs.inverse_temperature)
    if isinstance(normalizer, GumbelSoftmax):
        noise = number(normalizer.inverse_temperature)
    if rows is not None and rows.gaussian is not None:
        leading = (*pairs.leading, pairs.query.shape[-2])
        centre = lead(rows.gaussian.centre.to(real), len(pairs.leading), 1).expand(leading)
        sigma = number(rows.gaussian.sigma)
    return Operands(pairs.query, pairs.key, value, vector, bandwidth, factor, noise, centre, sigma)
