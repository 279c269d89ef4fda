"""PyTorch operation for fused attention on a GPU, with Triton kernels, forward and backward."""

import importlib
from functools import cache
from typing import Any, Final, NamedTuple, final

import torch
from torch import Tensor

from heedful.attention.kernels.additive.triton_ops import Gradients, add_gradients, fill_scores
from heedful.attention.kernels.fused.plan import ROWS, FusedPlan, compact
from heedful.attention.profiles import unit_of
from heedful.cpu.derivatives import differentiable_once

WIDTH: Final = 128
"""Largest number of features in a block of values."""
WARPS: Final = 8
"""Warps of kernels that hold tiles of scores and of contexts: enough for everything to fit into registers."""


class Operands(NamedTuple):
    """Tensors that may receive gradient."""

    query: Tensor
    """[*#batch, query, depth]"""
    key: Tensor
    """[*#batch, key, depth]"""
    value: Tensor
    """[*#batch, key, value_size]"""
    vector: Tensor | None
    """[hidden] vector of additive scores."""
    bandwidth: Tensor | None
    """[] bandwidth of distances."""
    factor: Tensor | None
    """[] inverse temperature of distances."""
    noise: Tensor | None
    """[] factor of the noise."""
    centre: Tensor | None
    """[*leading, query] centre of the Gaussian."""
    sigma: Tensor | None
    """[] standard deviation of the Gaussian."""


def fused_attention(
    operands: Operands, plan: FusedPlan
) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor], Tensor, Tensor]:
    """Compute attention in one pass.

    Args:
        operands: tensors that may receive gradient; leading axes broadcast.

    Returns:
        Contexts [batch, query, value_size]; log normalizer, entropy and log probability of the best key, each
        [rows batch, query]; the best key, alike, int64; and weights [rows batch, query, key] if the plan asks for them.
    """
    result: Any = _FusedAttention.apply(plan, *operands)  # pyright: ignore[reportUnknownMemberType]
    context, log_normalizer, entropy, log_prob, best, weights = result
    return context, (log_normalizer, entropy, log_prob), best, weights


@final
class _FusedAttention(torch.autograd.Function):
    """Autograd function that keeps inputs, contexts and four numbers per query; weights are recomputed in backward."""

    @staticmethod
    def forward(ctx: Any, plan: FusedPlan, *tensors: Tensor | None) -> tuple[Tensor, ...]:  # pyright: ignore
        operands = Operands(*tensors)  # pyright: ignore[reportArgumentType]
        flat = _Flat(operands, plan)
        value = operands.value
        context = value.new_empty(plan.num_elements, plan.num_queries, value.shape[-1])
        rows_batch = plan.num_elements if plan.batch == plan.leading else torch.Size(plan.leading).numel()
        summaries = flat.scalars.new_empty(3, rows_batch, plan.num_queries)
        best = torch.empty(summaries.shape[1:], dtype=torch.int64, device=value.device)
        weights = flat.scalars.new_zeros(*best.shape, plan.num_keys) if plan.has_weights else context
        width = min(2 * plan.columns, _width(value.shape[-1]))
        for part in plan.strips() if operands.vector is not None else [slice(0, plan.num_queries)]:
            scores = flat.scores(part)
            num_rows = part.stop - part.start
            grid = plan.num_elements * -(-num_rows // ROWS) * -(-value.shape[-1] // width)
            _programs().attend_rows[(grid,)](
                *flat.inputs(scores), context, summaries, best, weights, *flat.sizes(part), **flat.flags(),
                HAS_WEIGHTS=plan.has_weights, ROWS=ROWS, COLUMNS=plan.columns, WIDTH=width, num_warps=WARPS,
            )  # fmt: skip
            del scores
        ctx.save_for_backward(*tensors, context, summaries, best)
        ctx.set_materialize_grads(False)
        ctx.plan = plan
        weights = weights.to(value.dtype) if plan.has_weights else best.new_empty(0)
        ctx.mark_non_differentiable(best, weights)
        return context, *(each.clone() for each in summaries), best, weights

    @staticmethod
    @differentiable_once("fused_attention", "take attend, or its kernel 'plain'")
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        *tensors, context, summaries, best = ctx.saved_tensors
        sums = _Sums(Operands(*tensors), ctx.plan, ctx.needs_input_grad[1:])
        grad = torch.zeros_like(context) if grads[0] is None else grads[0].contiguous()
        outer = torch.stack(
            [
                summary.new_zeros(summary.shape) if each is None else each.to(summary.dtype).reshape(summary.shape)
                for each, summary in zip(grads[1:4], summaries, strict=True)
            ]
        )
        for part in ctx.plan.strips():
            sums.add(part, (context, summaries, best, grad, outer))
        return None, *sums.finish()


@final
class _Flat:
    """Operands with one batch axis, as the kernels take them."""

    def __init__(self, operands: Operands, plan: FusedPlan) -> None:
        self.plan = plan
        real = torch.promote_types(operands.value.dtype, torch.float32)
        rows = [compact(part) for part in operands[:3]]
        self.query, self.key, self.value = (part.reshape(-1, *part.shape[-2:]).contiguous() for part in rows)
        self.vector = operands.vector
        factor, noise, dropout_scale = plan.numbers
        self.scalars = torch.ones(6, dtype=real, device=operands.value.device)
        for index, number in enumerate((1.0, factor, noise, 1.0 / plan.sigma, dropout_scale)):
            if number != 1.0:
                self.scalars[index].fill_(number)
        numbers = ((0, operands.bandwidth), (1, operands.factor), (2, operands.noise), (3, operands.sigma))
        for index, number in numbers:
            if number is not None:
                self.scalars[index] = 1.0 / number if index == 3 else number
        if operands.bandwidth is not None:
            self.scalars[5] = unit_of(self.scalars[0])
        self.centre = self.scalars if operands.centre is None else operands.centre.contiguous()

    def scores(self, part: slice) -> Tensor:
        """Additive scores of a strip [batch, row, key]; None for other kinds."""
        plan = self.plan
        if self.vector is None:
            return self.scalars
        strip = self.scalars.new_empty(plan.num_elements, part.stop - part.start, plan.num_keys)
        fill_scores(strip, self.query[:, part], self.key, self.vector, plan.index, plan.sight, part.start)
        return strip

    def inputs(self, scores: Tensor) -> tuple[Tensor, ...]:
        plan = self.plan
        start, stop = (plan.index, plan.index) if plan.sight is None else (plan.sight.start, plan.sight.stop)
        dense = self.scalars if plan.dense is None else plan.dense.view(torch.uint8)
        return (
            self.query, self.key, self.value, scores, plan.index, start, stop, dense, self.centre, self.scalars,
            plan.seeds,
        )  # fmt: skip

    def sizes(self, part: slice) -> tuple[int, ...]:
        plan = self.plan
        stride = plan.num_keys if plan.dense is not None and plan.dense.shape[-2] > 1 else 0
        rows_plane = torch.Size(plan.leading).numel() * plan.num_queries
        return (
            plan.num_elements, rows_plane, plan.num_queries, plan.num_keys, self.query.shape[-1],
            self.value.shape[-1], part.start, part.stop - part.start, stride,
        )  # fmt: skip

    def flags(self) -> dict[str, Any]:
        plan, choice = self.plan, self.plan.choice
        # 16-bit numbers are exact in TF32; weights are rounded as in plain operations.
        is_narrow = all(part.element_size() == 2 for part in (self.query, self.key, self.value))
        return {
            "KIND": plan.kind,
            "PROFILE": plan.profile,
            "HAS_ROWS": plan.sight is not None,
            "HAS_DENSE": plan.dense is not None,
            "HAS_GAUSSIAN": plan.has_gaussian,
            "HAS_NOISE": choice.seed is not None,
            "IS_RELAXED": choice.is_relaxed,
            "IS_ONE_HOT": choice.is_one_hot,
            "HAS_DROPOUT": plan.has_dropout,
            "PRECISION": "tf32" if is_narrow else "ieee",
        }


@final
class _Sums:
    """Gradients, summed strip by strip."""

    def __init__(self, operands: Operands, plan: FusedPlan, wanted: tuple[bool, ...]) -> None:
        self.operands, self.plan, self.wanted = operands, plan, Operands(*wanted)  # pyright: ignore[reportArgumentType]
        self.flat = _Flat(operands, plan)
        flat, batch = self.flat, (plan.num_elements,)
        self.points = None
        if flat.vector is not None:
            wishes = (wanted[0], wanted[1], wanted[3])
            self.points = Gradients.zeros(flat.query, flat.key, flat.vector, plan.num_elements, wishes)
        self.scalars = flat.scalars.new_zeros(5, *batch, plan.num_queries)
        self.query = self._zeros(operands.query)
        self.key = self._zeros(operands.key)
        self.value = flat.scalars.new_zeros(*batch, *operands.value.shape[-2:])

    def _zeros(self, like: Tensor) -> Tensor:
        is_added = self.flat.vector is None
        return self.flat.scalars.new_zeros(self.plan.num_elements, *like.shape[-2:]) if is_added else self.flat.scalars

    def add(self, part: slice, saved: tuple[Tensor, ...]) -> None:
        """Add the gradients of a strip of queries."""
        plan, flat = self.plan, self.flat
        shape = (plan.num_elements, part.stop - part.start, plan.num_keys)
        scores = flat.scores(part)
        slopes = flat.scalars.new_empty(shape) if flat.vector is None else scores
        weights = flat.scalars.new_empty(shape)
        grad = saved[3]
        _programs().slope_rows[(shape[0] * -(-shape[1] // ROWS),)](
            *flat.inputs(scores), *saved, slopes, weights, self.scalars, *flat.sizes(part), **flat.flags(),
            IS_SOFT_BACKWARD=plan.choice.is_soft_backward, ROWS=ROWS, COLUMNS=plan.columns,
            WIDTH=min(64, _width(grad.shape[-1])), num_warps=WARPS,
        )  # fmt: skip
        if self.wanted.value:
            self._add_products(self.value, weights, grad, -1, part, False)
        if self.points is not None and flat.vector is not None:
            strip = flat.query[:, part]
            add_gradients(self.points, slopes, strip, flat.key, flat.vector, plan.index, plan.sight, part.start)
        elif flat.plan.kind == _programs().DISTANCE.value:
            self._add_distances(slopes, part)
        else:
            self._add_products(self.query, slopes, flat.key, 1, part, True)
            self._add_products(self.key, slopes, flat.query, 0, part, False)

    def _add_products(
        self, out: Tensor, table: Tensor, rows: Tensor, index_row: int, part: slice, is_query: bool
    ) -> None:
        """Products with a strip's table [batch, row, key]: by PyTorch for all keys, by a kernel within intervals."""
        plan = self.plan
        if plan.sight is None:
            rows = (rows if is_query else rows[:, part]).to(out.dtype)
            if index_row >= 0 and len(rows) != plan.num_elements:
                rows = rows[plan.index[index_row]]
            (out[:, part] if is_query else out).baddbmm_(table if is_query else table.mT, rows)
            return
        own = table if is_query else table.mT
        width = min(64, _width(out.shape[-1]))
        grid = plan.num_elements * -(-own.shape[1] // ROWS) * -(-out.shape[-1] // width)
        _programs().add_products[(grid,)](
            table, rows, plan.index, plan.sight.start, plan.sight.stop, out, plan.num_elements, *own.shape[1:],
            out.shape[-1], *own.stride()[1:], own.stride(0), plan.num_queries, part.start, index_row,
            IS_QUERY=is_query, ROWS=ROWS, COLUMNS=32, WIDTH=width,
        )  # fmt: skip

    def _add_distances(self, slopes: Tensor, part: slice) -> None:
        plan, flat = self.plan, self.flat
        start, stop = (plan.index, plan.index) if plan.sight is None else (plan.sight.start, plan.sight.stop)
        sides = ((self.query, flat.query, flat.key, slopes, 0), (self.key, flat.key, flat.query, slopes.mT, 1))
        for out, own, other, table, index in sides:
            grid = plan.num_elements * -(-table.shape[1] // ROWS)
            _distance_programs().distance_gradient[(grid,)](
                own, other, plan.index, table, start, stop, flat.scalars, out, self.scalars[3:], plan.num_elements,
                *table.shape[1:], own.shape[-1], *table.stride()[1:], table.stride(0), plan.num_queries, part.start,
                index, 1 - index, 3,
                PROFILE=plan.profile, IS_QUERY=index == 0, HAS_ROWS=plan.sight is not None, ROWS=ROWS, COLUMNS=32,
            )  # fmt: skip

    def finish(self) -> tuple[Tensor | None, ...]:
        """Gradients in the shapes and dtypes of the operands."""
        operands, plan = self.operands, self.plan
        query, key, vector = self.query, self.key, None
        if self.points is not None and operands.vector is not None:
            query, key, vector = self.points.finish(operands.query, operands.key, operands.vector, plan.batch)
        totals_by_row = (query, key, self.value)
        rows = [
            self._reduce(own, like) if is_wanted and own is not None else None
            for own, like, is_wanted in zip(totals_by_row, operands[:3], self.wanted[:3], strict=True)
        ]
        totals = self.scalars.sum(dim=(1, 2), dtype=torch.float64).to(self.scalars.dtype)
        numbers = [totals[3], totals[4], totals[2]]
        by_numbers = [total if like is not None else None for total, like in zip(numbers, operands[4:7], strict=True)]
        centre = None
        if operands.centre is not None:
            centre = self.scalars[0].reshape(*plan.batch, plan.num_queries).sum_to_size(operands.centre.shape)
        return *rows, vector, *by_numbers, centre, None if operands.sigma is None else totals[1]

    def _reduce(self, own: Tensor, like: Tensor) -> Tensor:
        """Sum over batch elements that share a row."""
        if own.shape != like.shape:
            own = own.reshape(*self.plan.batch, *like.shape[-2:]).sum_to_size(like.shape)
        return own.to(like.dtype)


def _width(size: int) -> int:
    """Smallest power of two, of a size that tensor cores support, that holds the features."""
    return min(WIDTH, max(16, 1 << (size - 1).bit_length()))


@cache
def _programs() -> Any:
    """Triton kernels; imported here because Triton is not installed everywhere."""
    return importlib.import_module("heedful.attention.kernels.fused.triton_kernels")


@cache
def _distance_programs() -> Any:
    return importlib.import_module("heedful.attention.kernels.distance.triton_kernels")
