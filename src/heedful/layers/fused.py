"""Normalisation and residual connections in mixed precision on a CPU, each in one pass over its vectors.

Plain operations turn float32 into bfloat16 and back in passes of their own, and write what dropout left out beside the
sums: a fifth of a small Transformer's training step. The loops are in heedful/layers/fused_loops.py; where they cannot
run, or numbers are not mixed, all here is plain operations.
"""

from functools import partial
from types import ModuleType
from typing import Any, Final, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from heedful.attention.kernels.loops import loops_problem
from heedful.attention.kernels.threads import run_parts
from heedful.layers.dropout import dropout

_PART: Final = 1 << 17
"""Numbers of a part of a loop, whatever the number of threads, so that sums do not depend on it."""


def is_fused(vectors: Tensor) -> bool:
    """Say whether the loops can take these vectors.

    Args:
        vectors: on the residual path.

    Returns:
        Whether they are float32 on a CPU, products are in bfloat16, gradients are wanted and nothing is recorded.
    """
    return (
        torch.is_autocast_enabled("cpu")
        and vectors.device.type == "cpu"
        and vectors.dtype == torch.float32
        and torch.is_grad_enabled()
        and torch.get_autocast_dtype("cpu") == torch.bfloat16
        and not torch.compiler.is_compiling()
        and vectors.numel() < 1 << 32
        and loops_problem() is None
    )


def normalized(norm: nn.Module, vectors: Tensor) -> Tensor:
    """Normalise vectors.

    Args:
        norm: a layer normalisation with weight and bias, or another module.
        vectors: [*, size].

    Returns:
        [*, size], bfloat16 where that is what products take next.
    """
    return normalized_beside(norm, vectors)[1]


def normalized_beside(norm: nn.Module, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Normalise vectors that are needed as they are too.

    Args:
        norm: a layer normalisation with weight and bias, or another module.
        vectors: [*, size].

    Returns:
        The vectors, whose gradient is added to that of the others in the same pass; and normalised as `normalized`.
    """
    if not isinstance(norm, nn.LayerNorm) or not is_fused(vectors):
        return vectors, norm(vectors)
    kept, narrow = _Normalize.apply(vectors, norm.weight, norm.bias, norm.eps)
    return kept, narrow


def add_dropped(kept: Tensor, vectors: Tensor, probability: float, training: bool) -> Tensor:
    """Add to the residual path what comes from a sub-layer, after dropout.

    Args:
        kept: [*] on the residual path.
        vectors: [*] of the sub-layer, the same shape.
        probability: of leaving out one of its numbers, in [0, 1).
        training: whether any is left out.

    Returns:
        [*] the sum. What is left out is drawn from PyTorch's generator.
    """
    if vectors.dtype != torch.bfloat16 or vectors.shape != kept.shape or not is_fused(kept):
        return kept + dropout(vectors, probability, training)
    return _AddDropped.apply(kept, vectors, probability if training else 0.0)


@final
class _Normalize(torch.autograd.Function):
    """(x, LayerNorm(x)), the second in bfloat16."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
        rows = vectors.detach().reshape(-1, vectors.shape[-1]).contiguous()
        narrow = torch.empty(vectors.shape, dtype=torch.bfloat16)
        facts = torch.empty(len(rows), 2)
        arrays = (rows.numpy(), _bits(narrow).reshape(rows.shape), facts.numpy())
        scale, shift = weight.detach().numpy(), bias.detach().numpy()
        loop = _loops().normalize

        def run(part: slice) -> None:
            loop(arrays[0][part], scale, shift, epsilon, arrays[1][part], arrays[2][part])

        run_parts([partial(run, part) for part in _parts(*rows.shape)])
        ctx.save_for_backward(rows, weight, facts)
        ctx.set_materialize_grads(False)
        return vectors, narrow

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grad_outputs: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        kept, coming = grad_outputs
        if coming is None:
            return kept, None, None, None
        rows, weight, facts = ctx.saved_tensors
        gradient = torch.empty(coming.shape)
        parts = _parts(*rows.shape)
        sums = np.zeros((len(parts), 2, rows.shape[1]), np.float32)
        others = rows[:0] if kept is None else kept.reshape(rows.shape).contiguous()
        given = (rows.numpy(), weight.detach().numpy(), facts.numpy(), _bits(coming).reshape(rows.shape))
        beside, out = others.numpy(), gradient.numpy().reshape(rows.shape)
        loop = _loops().normalize_backward

        def run(index: int, part: slice) -> None:
            inputs = (given[0][part], given[1], given[2][part], given[3][part])
            loop(*inputs, beside[part] if len(beside) else beside, out[part], sums[index])

        run_parts([partial(run, index, part) for index, part in enumerate(parts)])
        of_weight, of_bias = torch.from_numpy(sums.sum(axis=0)).unbind()
        return gradient, of_weight, of_bias, None


@final
class _AddDropped(torch.autograd.Function):
    """x + Dropout(y), y in bfloat16; what is left out is computed again backward, from a seed."""

    @staticmethod
    def forward(ctx: Any, kept: Tensor, vectors: Tensor, probability: float) -> Tensor:
        threshold = min((1 << 32) - 1, round(probability * (1 << 32)))
        seed = int(torch.empty((), dtype=torch.int64).random_(-(1 << 63), None)) if threshold else 0
        ctx.chance = (seed, threshold, (1 << 32) / ((1 << 32) - threshold))
        total = torch.empty(kept.shape)
        sources = (kept.detach().contiguous().numpy().reshape(-1), _bits(vectors).reshape(-1))
        out = total.numpy().reshape(-1)
        loop = _loops().add_dropped

        def run(part: slice) -> None:
            loop(sources[0][part], sources[1][part], part.start, *ctx.chance, out[part])

        run_parts([partial(run, part) for part in _parts(len(out), 1)])
        return total

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        (coming,) = grad_outputs
        gradient = torch.empty(coming.shape, dtype=torch.bfloat16)
        given, out = coming.contiguous().numpy().reshape(-1), _bits(gradient).reshape(-1)
        loop = _loops().drop

        def run(part: slice) -> None:
            loop(given[part], part.start, *ctx.chance, out[part])

        run_parts([partial(run, part) for part in _parts(len(out), 1)])
        return coming, gradient, None


def _parts(num_rows: int, size: int) -> list[slice]:
    step = max(1, _PART // max(1, size))
    return [slice(start, min(start + step, num_rows)) for start in range(0, num_rows, step)]


def _bits(narrow: Tensor) -> np.ndarray:
    """The numbers of a bfloat16 tensor as the loops take them; shared where it is contiguous."""
    return narrow.detach().contiguous().view(torch.int16).numpy()


def _loops() -> ModuleType:
    # Imported here because importing Numba takes long.
    from heedful.layers import fused_loops

    fused_loops.compile_all()
    return fused_loops
