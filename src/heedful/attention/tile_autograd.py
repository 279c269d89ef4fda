"""Attention tile by tile under autograd: results and gradients of all tiles go into preallocated arrays.

Only the inputs of a call are saved; each tile is recomputed for its gradients. All long-lived tensors are allocated
before the first tile, because small allocations in between would fragment the memory that a tile frees for the next.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Final, final

import torch
from torch import Tensor

from heedful.attention.attention_inputs import AttentionInputs
from heedful.attention.interface import Attended
from heedful.attention.kernels.interface import Request
from heedful.attention.recomputation import Recomputation
from heedful.attention.tensor_tree import is_open, tensors_of, with_tensors
from heedful.cpu.concrete import concrete
from heedful.cpu.derivatives import current_autocast

Compute = Callable[[AttentionInputs], Attended]
"""Pure function that attends for some queries, from inputs that may be widened."""

_RESULTS: Final = tuple(each.name for each in fields(Attended) if each.name != "kernel")
_WITH_KEYS: Final = frozenset({"context", "weights"})
"""Results with an axis after that of the queries."""


def in_tiles(compute: Compute, operands: AttentionInputs, request: Request, num_rows: int) -> Attended:
    """Compute attention tile by tile.

    Args:
        compute: attends for the queries of a tile; it reads the operands alone, except for tensors inside a score
            function.

    Returns:
        The results of all tiles, concatenated. They can be differentiated repeatedly if the operations of a tile can.
    """
    tiling = _Tiling(compute, request, num_rows, _draw_seed(request))
    if not torch.is_grad_enabled():
        return tiling.run(operands)
    if not is_open(operands):
        return tiling.run_recorded(operands)
    tensors = tensors_of(operands)
    if not any(tensor.requires_grad for tensor in tensors):
        return tiling.run(operands)
    # Autograd functions return tensors only, so the names of the results, and the kernel, are recorded here.
    names: list[str] = []
    results = _Tilewise.apply(tiling, with_tensors(operands, [_NOTHING] * len(tensors)), names, *tensors)
    return Attended(kernel=names.pop(), **dict(zip(names, results, strict=True)))


_NOTHING: Final = torch.empty(0)


@final
@dataclass(frozen=True)
class _Tiling:
    """Division of a call into tiles."""

    compute: Compute
    request: Request
    num_rows: int
    seed: int | None
    """Seed of dropout, from which each recomputed tile draws the same numbers; None without dropout."""

    def slices(self) -> list[slice]:
        """Queries of each tile."""
        end = self.request.num_queries
        return [slice(row, min(row + self.num_rows, end)) for row in range(0, end, self.num_rows)]

    def one(self, tile: AttentionInputs, part: slice) -> Attended:
        """Compute attention for the queries of one tile."""
        if self.seed is None:
            return self.compute(tile)
        is_cuda = self.request.device == "cuda"
        # Not torch.manual_seed, which would seed all devices.
        start = torch.cuda.manual_seed if is_cuda else torch.default_generator.manual_seed
        with torch.random.fork_rng([torch.cuda.current_device()] if is_cuda else []):
            start(self.seed + part.start)
            return self.compute(tile)

    def run(self, operands: AttentionInputs) -> Attended:
        """Compute attention for all queries, without a graph."""
        first, *others = self.slices()
        attended = self.one(operands.of_queries(first), first)
        whole = _room(attended, self.request.num_queries)
        _write(attended, whole, first)
        del attended
        for part in others:
            _write(self.one(operands.of_queries(part), part), whole, part)
        return whole

    def run_recorded(self, operands: AttentionInputs) -> Attended:
        """Compute attention for all queries with a graph of each tile, for score functions with own tensors."""
        wide, again = operands.widened(), Recomputation(self.request.device)

        def one(part: slice) -> Attended:
            return self.one(wide.of_queries(part), part)

        return join([_moved(again.call(partial(one, part))) for part in self.slices()])

    def differentiate(self, operands: AttentionInputs, wanted: Sequence[int], grads: dict[str, Tensor]) -> list[Tensor]:
        """Sum the gradients of the tensors with these indices over all tiles."""
        wide = operands.widened()
        tensors = tensors_of(wide)
        sums = [torch.zeros_like(tensors[i], memory_format=torch.contiguous_format) for i in wanted]
        # The indices are sliced like the operands, and so map the gradients of a tile to their position.
        whole = with_tensors(wide, _put(tensors, wanted, sums))
        for part in self.slices():
            self._add_gradients(wide.of_queries(part), wanted, grads, tensors_of(whole.of_queries(part)), part)
        types = [tensor.dtype for tensor in tensors_of(operands)]
        return [total.to(types[i]) for i, total in zip(wanted, sums, strict=True)]

    def _add_gradients(
        self,
        tile: AttentionInputs,
        wanted: Sequence[int],
        grads: dict[str, Tensor],
        sums: Sequence[Tensor],
        part: slice,
    ) -> None:
        """Accumulate one tile's gradients in place; its temporaries are freed before the next tile."""
        tensors = tensors_of(tile)
        leaves = [tensors[i].detach().requires_grad_() for i in wanted]
        with torch.enable_grad():
            attended = self.one(with_tensors(tile, _put(tensors, wanted, leaves)), part)
            gradients = _gradients(attended, leaves, {name: _queries(grad, name, part) for name, grad in grads.items()})
        for i, gradient in zip(wanted, gradients, strict=True):
            if gradient is not None:
                sums[i].add_(gradient)


@final
class _Tilewise(torch.autograd.Function):
    """Autograd function of all tiles."""

    @staticmethod
    def forward(
        ctx: Any, tiling: _Tiling, skeleton: AttentionInputs, names: list[str], *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        attended = tiling.run(with_tensors(skeleton, tensors))
        present = _present(attended)
        names += [*present, attended.kernel]
        results = tuple(getattr(attended, name) for name in present)
        ctx.mark_non_differentiable(*(result for result in results if not result.is_floating_point()))
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        ctx.tiling, ctx.skeleton, ctx.names = tiling, skeleton, present
        ctx.autocast = current_autocast(tiling.request.device)
        return results

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor | None) -> tuple[Tensor | None, ...]:
        tiling, operands = ctx.tiling, with_tensors(ctx.skeleton, ctx.saved_tensors)
        grads = {name: grad for name, grad in zip(ctx.names, grad_outputs, strict=True) if grad is not None}
        wanted = [i for i, is_needed in enumerate(ctx.needs_input_grad[3:]) if is_needed]
        with ctx.autocast():
            is_graph_kept = torch.is_grad_enabled()
            if is_graph_kept or not concrete(*grads.values()):
                # Gradients are to be differentiated again, so there must be a graph of them; or many come at a time.
                # Views, for one tensor may depend on another.
                with torch.enable_grad():
                    tensors = [each.view_as(each) for each in tensors_of(operands)]
                    attended = tiling.run_recorded(with_tensors(operands, tensors))
                gradients = _gradients(attended, [tensors[i] for i in wanted], grads, is_graph_kept)
            else:
                gradients = tiling.differentiate(operands, wanted, grads)
        return (None, None, None, *_put([None] * len(ctx.saved_tensors), wanted, gradients))


def _gradients(
    attended: Attended, inputs: Sequence[Tensor], grads: dict[str, Tensor], is_graph_kept: bool = False
) -> Sequence[Tensor | None]:
    """Gradients through the results that have a gradient and a graph."""
    names = [name for name in grads if getattr(attended, name).requires_grad]
    if not names:
        return [None] * len(inputs)
    return torch.autograd.grad(
        [getattr(attended, name) for name in names],
        inputs,
        [grads[name] for name in names],
        create_graph=is_graph_kept,
        allow_unused=True,
    )


def _put(items: Sequence[Any], indices: Sequence[int], others: Sequence[Any]) -> list[Any]:
    """Copy of a list with some items replaced."""
    items_copy = list(items)
    for index, other in zip(indices, others, strict=True):
        items_copy[index] = other
    return items_copy


def _draw_seed(request: Request) -> int | None:
    """Seed for all tiles, drawn from the caller's generator.

    Only dropout uses PyTorch's generator: normalizers compute their noise from row indices.
    """
    return int(torch.randint(1 << 62, ())) if request.dropout else None


def _present(attended: Attended) -> list[str]:
    return [name for name in _RESULTS if getattr(attended, name) is not None]


def _queries(result: Tensor, name: str, part: slice) -> Tensor:
    """Part of a result for some queries."""
    return result[..., part, :] if name in _WITH_KEYS else result[..., part]


def _room(attended: Attended, num_queries: int) -> Attended:
    """Preallocated array of a result for more queries."""

    def room(name: str) -> Tensor:
        tile: Tensor = getattr(attended, name)
        axis = tile.dim() - (2 if name in _WITH_KEYS else 1)
        return tile.new_empty(*tile.shape[:axis], num_queries, *tile.shape[axis + 1 :])

    return replace(attended, **{name: room(name) for name in _present(attended)})


def _write(attended: Attended, whole: Attended, part: slice) -> None:
    for name in _present(attended):
        _queries(getattr(whole, name), name, part).copy_(getattr(attended, name))


def join(parts: list[Attended]) -> Attended:
    """Concatenate the attention of successive tiles.

    Args:
        parts: at least one.

    Returns:
        All of them along the query axis.
    """

    def column(name: str) -> Tensor:
        return torch.cat([getattr(part, name) for part in parts], dim=-2 if name in _WITH_KEYS else -1)

    return replace(parts[0], **{name: column(name) for name in _present(parts[0])})


def _moved(attended: Attended) -> Attended:
    """Copy of results out of the memory of a tile's scores.

    The results were allocated after the scores, which are freed by now. In place they would fragment that memory, and
    the process would grow with the number of query-key pairs.
    """
    return replace(attended, **{name: getattr(attended, name).clone() for name in _present(attended)})
