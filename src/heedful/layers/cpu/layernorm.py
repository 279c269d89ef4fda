"""Normalisation and residual connections in mixed precision on a CPU, each in one pass over its vectors.

Plain operations convert between float32 and bfloat16 in separate passes and store dropout masks, which takes a fifth of
a small Transformer's training step. The numba kernels are in layernorm_numba.py; where they cannot run, or precision is
not mixed, plain operations do the same.
"""

from functools import partial
from types import ModuleType
from typing import Any, Final, NamedTuple, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from heedful.cpu.availability import copied, loops_problem
from heedful.cpu.derivatives import differentiable_once
from heedful.cpu.operands import refuse
from heedful.cpu.threads import run_parts
from heedful.layers.dropout import dropout

_PART: Final = 1 << 17
"""Numbers per part of a kernel, independent of the number of threads, so that sums do not depend on it."""
_NARROW: Final = (torch.bfloat16, torch.float16)
_ONCE: Final = differentiable_once("layers fused in mixed precision", "leave out autocast")


def is_fused(vectors: Tensor) -> bool:
    """Tell whether the numba kernels can run on these vectors.

    Returns:
        Whether they are float32 on a CPU, autocast is bfloat16, gradients are enabled and no graph is recorded.
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
        norm: layer normalisation with weight and bias, or another module.
        vectors: [*, size].

    Returns:
        [*, size], in bfloat16 if the kernels run.

    Raises:
        ShapeError: the norm is of other sizes or another type.
    """
    return normalized_beside(norm, vectors)[1]


def normalized_beside(norm: nn.Module, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Normalise vectors, and return them unchanged beside the result.

    Args:
        norm: layer normalisation with weight and bias, or another module.
        vectors: [*, size].

    Returns:
        The vectors, whose gradient is added in the same backward pass; and the result of `normalized`.

    Raises:
        ShapeError: the norm is of other sizes or another type.
    """
    _require_norm(norm, vectors)
    # A layer without a weight has no bias either.
    if not isinstance(norm, nn.LayerNorm) or getattr(norm, "bias", None) is None or not is_fused(vectors):
        return vectors, norm(vectors)
    unchanged, narrow = _Normalize.apply(vectors, norm.weight, norm.bias, norm.eps)
    return unchanged, narrow


def _require_norm(norm: nn.Module, vectors: Tensor) -> None:
    """Refuse vectors that a layer normalisation cannot take.

    Raises:
        ShapeError: it is of other sizes or another type.
    """
    if not isinstance(norm, nn.LayerNorm):
        return
    size = norm.normalized_shape
    parameters = [each for each in (norm.weight, getattr(norm, "bias", None)) if each is not None]
    if vectors.shape[-len(size) :] != size or any(each.shape != size for each in parameters):
        problem = f"not of the sizes {list(size)} of the norm"
    elif not vectors.is_floating_point() or any(
        each.dtype != vectors.dtype and (each.dtype != torch.float32 or vectors.dtype not in _NARROW)
        for each in parameters
    ):
        problem = "vectors and norm must be of one floating-point type, or the norm float32 and the vectors narrower"
    else:
        return
    refuse("normalized", problem, vectors=vectors, weight=norm.weight, bias=getattr(norm, "bias", None))


class DeferredBias(NamedTuple):
    """Output of a linear map, and its bias, which the consumer adds within another pass."""

    vectors: Tensor
    """[*, size]."""
    bias: Tensor | None
    """[size] bias; None = already added."""

    def total(self) -> Tensor:
        """Add the bias.

        Returns:
            [*, size].
        """
        return self.vectors if self.bias is None else (self.vectors + self.bias).to(self.vectors.dtype)


def is_plain(layer: nn.Module) -> bool:
    """Tell whether a layer is a plain linear map, without hooks or parametrizations.

    Returns:
        Whether it is a linear map with a bias, no hooks and no parametrization.
    """
    is_linear = type(layer) is nn.Linear and not any(vars(layer)[hooks] for hooks in _HOOKS)
    return is_linear and all(parameter is not None for parameter in vars(layer)["_parameters"].values())


_HOOKS: Final = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def linear_deferred(vectors: Tensor, layer: nn.Module) -> DeferredBias:
    """Apply a linear map, and defer its bias if that gives the same result.

    Args:
        vectors: [*, input].

    Returns:
        [*, output], and the bias.
    """
    if not isinstance(layer, nn.Linear) or not is_plain(layer):
        return DeferredBias(layer(vectors), None)
    # A copy, because sharded training may free the layer's bias after its forward pass.
    return DeferredBias(functional.linear(vectors, layer.weight), layer.bias.clone())


def rectified(vectors: Tensor, layer: nn.Linear) -> Tensor:
    """Compute max(0, x W^T + b), with bias and rectifier in one pass.

    Args:
        vectors: [*, input] bfloat16; `is_fused` must hold for the weight.
        layer: layer for which `is_plain` holds.

    Returns:
        [*, output] bfloat16.

    Raises:
        ShapeError: the layer is of another size, or types are others.
    """
    weight, bias = layer.weight, layer.bias
    if vectors.dim() < 2 or weight.dim() != 2 or vectors.shape[-1] != weight.shape[1] or bias.shape != weight.shape[:1]:
        problem = "the layer is of another size"
    elif vectors.dtype != torch.bfloat16 or bias.dtype != torch.float32 or not weight.is_floating_point():
        problem = "vectors must be bfloat16, and the layer float32"
    else:
        return _Rectified.apply(vectors, weight, bias)
    refuse("rectified", problem, vectors=vectors, weight=weight, bias=bias)


def add_dropped(residual: Tensor, vectors: Tensor | DeferredBias, probability: float, training: bool) -> Tensor:
    """Add a sub-layer's output, after dropout, to the residual path.

    Args:
        residual: [*, size] on the residual path.
        vectors: [*, size] output of the sub-layer.
        probability: dropout probability, in [0, 1).
        training: whether dropout is applied.

    Returns:
        [*, size] the sum. The dropout mask is drawn from PyTorch's generator.

    Raises:
        ShapeError: sizes differ, or types are others.
    """
    deferred = vectors if isinstance(vectors, DeferredBias) else DeferredBias(vectors, None)
    added, bias = deferred
    if added.shape != residual.shape or not (bias is None or bias.shape == added.shape[-1:]):
        refuse("add_dropped", "sizes differ", residual=residual, vectors=added, bias=bias)
    if not (residual.is_floating_point() and added.is_floating_point()) or not (
        bias is None or bias.dtype in (torch.float32, added.dtype)
    ):
        refuse("add_dropped", "numbers of other types", residual=residual, vectors=added, bias=bias)
    is_wide = bias is None or bias.dtype == torch.float32
    if added.dtype != torch.bfloat16 or not is_wide or not is_fused(residual):
        return residual + dropout(deferred.total(), probability, training)
    return _AddDropped.apply(residual, *deferred, probability if training else 0.0)


@final
class _Normalize(torch.autograd.Function):
    """Autograd function to (x, LayerNorm(x)), the second in bfloat16."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
        rows = vectors.detach().reshape(-1, vectors.shape[-1]).contiguous()
        narrow = torch.empty(vectors.shape, dtype=torch.bfloat16)
        facts = torch.empty(len(rows), 2)
        arrays = (rows.numpy(), _bits(narrow).reshape(rows.shape), facts.numpy())
        scale, shift = copied(weight), copied(bias)
        loop = _loops().normalize

        def run(part: slice) -> None:
            loop(arrays[0][part], scale, shift, epsilon, arrays[1][part], arrays[2][part])

        run_parts([partial(run, part) for part in _parts(*rows.shape)])
        ctx.save_for_backward(rows, weight, facts)
        ctx.set_materialize_grads(False)
        return vectors, narrow

    @staticmethod
    @_ONCE
    def backward(ctx: Any, *grad_outputs: Tensor | None) -> tuple[Tensor | None, ...]:
        residual_grad, coming = grad_outputs
        if coming is None:
            return residual_grad, None, None, None
        rows, weight, facts = ctx.saved_tensors
        gradient = torch.empty(coming.shape)
        parts = _parts(*rows.shape)
        sums = np.zeros((len(parts), 2, rows.shape[1]), np.float32)
        others = rows[:0] if residual_grad is None else residual_grad.reshape(rows.shape).contiguous()
        arrays = (rows.numpy(), copied(weight), facts.numpy(), _bits(coming).reshape(rows.shape))
        beside, out = others.numpy(), gradient.numpy().reshape(rows.shape)
        loop = _loops().normalize_backward

        def run(index: int, part: slice) -> None:
            inputs = (arrays[0][part], arrays[1], arrays[2][part], arrays[3][part])
            loop(*inputs, beside[part] if len(beside) else beside, out[part], sums[index])

        run_parts([partial(run, index, part) for index, part in enumerate(parts)])
        of_weight, of_bias = torch.from_numpy(sums.sum(axis=0)).unbind()
        return gradient, of_weight, of_bias, None


@final
class _AddDropped(torch.autograd.Function):
    """Autograd function of x + Dropout(y + b), y in bfloat16; backward recomputes the dropout mask from a seed."""

    @staticmethod
    def forward(ctx: Any, residual: Tensor, vectors: Tensor, bias: Tensor | None, probability: float) -> Tensor:
        threshold = min((1 << 32) - 1, round(probability * (1 << 32)))
        seed = int(torch.empty((), dtype=torch.int64).random_(-(1 << 63), None)) if threshold else 0
        ctx.chance = (seed, threshold, (1 << 32) / ((1 << 32) - threshold))
        ctx.is_biased = bias is not None
        total = torch.empty(residual.shape)
        out = _rows(total.numpy())
        sources = _rows(residual.detach().contiguous().numpy()), _rows(_bits(vectors))
        shift = np.zeros(0, np.float32) if bias is None else copied(bias)
        loop, size = _loops().add_dropped, out.shape[1]

        def run(part: slice) -> None:
            loop(sources[0][part], sources[1][part], shift, part.start * size, *ctx.chance, out[part])

        run_parts([partial(run, part) for part in _parts(*out.shape)])
        return total

    @staticmethod
    @_ONCE
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (coming,) = grad_outputs
        gradient = torch.empty(coming.shape, dtype=torch.bfloat16)
        grads, out = _rows(coming.contiguous().numpy()), _rows(_bits(gradient))
        parts, size = _parts(*out.shape), out.shape[1]
        sums = np.zeros((len(parts), size if ctx.is_biased else 0), np.float32)
        loop = _loops().drop

        def run(index: int, part: slice) -> None:
            loop(grads[part], part.start * size, *ctx.chance, out[part], sums[index])

        run_parts([partial(run, index, part) for index, part in enumerate(parts)])
        return coming, gradient, torch.from_numpy(sums.sum(axis=0)) if ctx.is_biased else None, None


@final
class _Rectified(torch.autograd.Function):
    """Autograd function of max(0, x W^T + b), x in bfloat16."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        rows, narrow = vectors.detach().flatten(0, -2), weight.detach().to(torch.bfloat16)
        hidden = rows @ narrow.mT
        out, shift = _bits(hidden), copied(bias)
        loop = _loops().rectify

        def run(part: slice) -> None:
            loop(out[part], shift)

        run_parts([partial(run, part) for part in _parts(*hidden.shape)])
        ctx.save_for_backward(rows, narrow, hidden)
        return hidden.unflatten(0, vectors.shape[:-1])

    @staticmethod
    @_ONCE
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        rows, narrow, hidden = ctx.saved_tensors
        (coming,) = grad_outputs
        slope = torch.empty_like(hidden)
        arrays, out = (_bits(hidden), _bits(coming).reshape(hidden.shape)), _bits(slope)
        parts = _parts(*hidden.shape)
        sums = np.zeros((len(parts), hidden.shape[1]), np.float32)
        loop = _loops().rectify_backward

        def run(index: int, part: slice) -> None:
            loop(arrays[0][part], arrays[1][part], out[part], sums[index])

        run_parts([partial(run, index, part) for index, part in enumerate(parts)])
        of_vectors = (slope @ narrow).unflatten(0, coming.shape[:-1])
        return of_vectors, (slope.mT @ rows).float(), torch.from_numpy(sums.sum(axis=0))


def _parts(num_rows: int, size: int) -> list[slice]:
    step = max(1, _PART // max(1, size))
    return [slice(start, min(start + step, num_rows)) for start in range(0, num_rows, step)]


def _rows(numbers: np.ndarray) -> np.ndarray:
    return numbers.reshape(-1, numbers.shape[-1])


def _bits(narrow: Tensor) -> np.ndarray:
    """Bits of a bfloat16 tensor as int16; shares memory if the tensor is contiguous."""
    return narrow.detach().contiguous().view(torch.int16).numpy()


def _loops() -> ModuleType:
    # Imported here because importing Numba takes long.
    from heedful.layers.cpu import layernorm_numba as fused_loops

    fused_loops.compile_all()
    return fused_loops
