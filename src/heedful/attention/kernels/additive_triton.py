"""Additive scores on a GPU, exact, without an array of size query * key * hidden: Triton programs called from PyTorch.

score_ij = vector . tanh(query_i + key_j), Bahdanau, Cho and Bengio 2015, arXiv:1409.0473, section A.1.2 (both
projections are done already). How: heedful/attention/kernels/additive_programs.py. Exponentials are taken here, one for
each number of query and key, in float64; everything that is query * key * hidden is computed there, and again for the
gradients, in float32 and without atomic additions.

Triton is imported when the first score is asked for, not before.
"""

import importlib.util
import math
from functools import cache
from typing import Any, Final, final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from heedful.attention.kernels.interface import Request, ScoreKernel
from heedful.attention.pairs import AdditivePairs, Pairs
from heedful.errors import ShapeError

ROWS: Final = 32
"""Queries of a tile of scores, and rows of a tile of gradients."""
COLUMNS: Final = 64
"""Keys of a tile of scores."""

_DTYPES: Final = frozenset({torch.float32, torch.bfloat16, torch.float16})


@final
class TritonAdditiveScores(ScoreKernel):
    """Additive scores in exponential form on a GPU, compiled by Triton."""

    name = "additive_triton"

    def supports(self, request: Request) -> str | None:
        if request.pairs is not AdditivePairs:
            return "only additive scores"
        if request.mode != "eager":
            return f"Triton programs cannot be recorded ({request.mode})"
        if request.device != "cuda":
            return "only on a CUDA device"
        if request.dtype not in _DTYPES:
            return "only float32, bfloat16 and float16"
        return None if _has_triton() else "needs Triton: pip install 'heedful[gpu]'"

    def scores(self, pairs: Pairs) -> tuple[Tensor, Tensor | None]:
        if not isinstance(pairs, AdditivePairs):
            raise TypeError(f"additive_triton: got {type(pairs).__name__}")
        return additive_scores(pairs.query, pairs.key, pairs.vector), None

    def numbers_per_score(self, pairs: Pairs) -> int:
        return 1


def additive_scores(query: Tensor, key: Tensor, vector: Tensor) -> Tensor:
    """Score every query against every key: score_ij = vector . tanh(query_i + key_j).

    Bahdanau, Cho and Bengio 2015, arXiv:1409.0473, section A.1.2, after both projections. Computed in float32 whatever
    the type; the same to the bit in every run on one device. NaN and infinities give what the formula gives.
    Differentiable once.

    Args:
        query: [*batch, query, hidden] on a GPU, or anywhere in Triton's interpreter.
        key: [*batch, key, hidden]; leading axes broadcast, and nothing is copied for it.
        vector: [hidden].

    Returns:
        [*batch, query, key] in the type that query, key and vector promote to.

    Raises:
        ShapeError: hidden sizes differ, or leading axes do not broadcast.

    Cost: query * key * hidden times six operations and half a reciprocal, gradients twice that; memory six numbers for
    each of query and key beside the scores, and for gradients one each for every element of the batch.
    """
    batch = _require_shapes(query, key, vector)
    dtype = torch.promote_types(torch.promote_types(query.dtype, key.dtype), vector.dtype)
    if not (query.numel() and key.numel() and math.prod(batch)):
        # Nothing to be fast at, but gradients of the right shapes to be made.
        scores = (torch.tanh(query[..., :, None, :] + key[..., None, :, :]) * vector).sum(dim=-1)
        return scores.to(dtype)
    # Conversions stand outside, so that their gradients are PyTorch's.
    scores: Tensor = _AdditiveScores.apply(query.float(), key.float(), vector.float(), batch)  # pyright: ignore
    return scores.to(dtype)


@final
class _AdditiveScores(torch.autograd.Function):
    @staticmethod
    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, query: Tensor, key: Tensor, vector: Tensor, batch: tuple[int, ...]
    ) -> Tensor:
        ctx.save_for_backward(query, key, vector)
        ctx.batch = batch
        queries, keys, features, scale = _prepare(query, key, vector)
        scores = query.new_empty((*batch, query.shape[-2], key.shape[-2]))
        _score(queries.mT.contiguous(), keys.mT.contiguous(), features, _index(query, key, batch), scores)
        return scores.mul_(scale)

    @staticmethod
    @once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, *grad_outputs: Tensor
    ) -> tuple[Tensor | None, ...]:
        query, key, vector = ctx.saved_tensors
        queries, keys, features, _ = _prepare(query, key, vector)
        index = _index(query, key, ctx.batch)
        grad = grad_outputs[0].contiguous()
        needs_query, needs_key, needs_vector, _ = ctx.needs_input_grad
        query_grad = key_grad = vector_grad = None
        if needs_query or needs_vector:
            own, shares = _differentiate(queries, keys, features, index, grad, needs_vector)
            query_grad = _reduce(own, query, vector, ctx.batch)
            vector_grad = shares.sum(dim=0, dtype=torch.float64)[: len(vector)].float()
        if needs_key:
            own, _ = _differentiate(keys, queries, features, index.flip(0), grad.mT, False)
            key_grad = _reduce(own, key, vector, ctx.batch)
        return query_grad if needs_query else None, key_grad, vector_grad if needs_vector else None, None


def _prepare(query: Tensor, key: Tensor, vector: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Operands [3, batch, row, hidden] of both sides, features [2, hidden], and what was divided out of the vector."""
    programs = _programs()
    padding = (0, -vector.shape[0] % programs.BLOCK.value)
    rows = [functional.pad(part.reshape(-1, *part.shape[-2:]), padding) for part in (query, key)]
    # A maximum of NaN and numbers is NaN, and nothing is at most NaN.
    ends = [(part.amin(dim=(0, 1)).double(), part.amax(dim=(0, 1)).double()) for part in rows]
    (lowest, centre), (_, highest) = ends
    fits = (centre - lowest <= programs.LIMIT.value) & (highest + centre <= programs.LIMIT.value)
    fits &= (highest + centre).isfinite()
    # A power of two, so that no digit is lost; numbers times a denominator stay in range.
    largest = vector.abs().amax()
    exponent = torch.where(largest.isfinite(), torch.frexp(largest).exponent, 0)
    scaled = functional.pad(torch.ldexp(vector, -exponent), padding)
    features = torch.stack((scaled, (~fits).float()))
    operands = [
        torch.stack((part, *_exponentials(part + move))) for part, move in zip(rows, (-centre, centre), strict=True)
    ]
    return operands[0], operands[1], features, torch.ldexp(torch.ones_like(largest), exponent)


def _exponentials(rows: Tensor) -> tuple[Tensor, Tensor]:
    """e^(2 rows) and that minus 1 of numbers in float64, each rounded once."""
    return (2.0 * rows).exp().float(), (2.0 * rows).expm1().float()


def _index(query: Tensor, key: Tensor, batch: tuple[int, ...]) -> Tensor:
    """[2, batch] which place of its own leading axes each element of the broadcast batch takes."""
    places: list[Tensor] = []
    for part in (query, key):
        lead = part.shape[:-2]
        numbers = torch.arange(math.prod(lead), device=part.device).reshape(lead)
        places.append(numbers.expand(batch).reshape(-1))
    return torch.stack(places)


def _score(queries: Tensor, keys: Tensor, features: Tensor, index: Tensor, scores: Tensor) -> None:
    """Operands are [3, batch, hidden, row] here."""
    num_elements, num_queries, num_keys = index.shape[1], queries.shape[-1], keys.shape[-1]
    num_programs = num_elements * -(-num_queries // ROWS) * -(-num_keys // COLUMNS)
    planes, sizes = (queries[0].numel(), keys[0].numel()), (num_queries, num_keys, queries.shape[-2])
    _programs().score_tile[(num_programs,)](
        queries, keys, features, index, scores, num_elements, *planes, *sizes, ROWS=ROWS, COLUMNS=COLUMNS
    )


def _differentiate(
    own: Tensor, other: Tensor, features: Tensor, index: Tensor, grad: Tensor, has_vector: bool
) -> tuple[Tensor, Tensor]:
    """Gradient [batch, row, hidden] without the vector, and the shares [tile, hidden] of the vector's."""
    num_elements, (num_rows, hidden), num_others = index.shape[1], own.shape[-2:], other.shape[-2]
    num_tiles, programs = -(-num_rows // ROWS), _programs()
    own_grad = own.new_empty((num_elements, num_rows, hidden))
    shares = own.new_empty((num_elements * num_tiles if has_vector else 1, hidden))
    outputs, planes = (own_grad, shares, num_elements), (own[0].numel(), other[0].numel())
    sizes = (num_rows, num_others, hidden, *grad.stride()[-2:])
    num_programs = num_elements * num_tiles * (hidden // programs.BLOCK.value)
    programs.gradient_tile[(num_programs,)](
        own, other, features, index, grad, *outputs, *planes, *sizes, ROWS=ROWS, HAS_VECTOR=has_vector
    )
    return own_grad, shares


def _reduce(own_grad: Tensor, like: Tensor, vector: Tensor, batch: tuple[int, ...]) -> Tensor:
    """Put in the vector, and add up what elements of the batch that share a row gave it."""
    return own_grad[..., : len(vector)].mul(vector).reshape(*batch, *like.shape[-2:]).sum_to_size(like.shape)


def _require_shapes(query: Tensor, key: Tensor, vector: Tensor) -> tuple[int, ...]:
    size = query.shape[-1] if query.dim() >= 2 else -1
    if key.dim() < 2 or key.shape[-1] != size or vector.shape != (size,):
        raise ShapeError(
            f"additive scores: query {list(query.shape)}, key {list(key.shape)} and vector {list(vector.shape)} "
            "must end in the same size"
        )
    try:
        return torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    except RuntimeError as error:
        raise ShapeError(
            f"additive scores: leading axes {list(query.shape[:-2])} of query and {list(key.shape[:-2])} of key do not "
            "broadcast"
        ) from error


@cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


@cache
def _programs() -> Any:
    """The programs; imported here because Triton is not installed everywhere."""
    return importlib.import_module("heedful.attention.kernels.additive_programs")
