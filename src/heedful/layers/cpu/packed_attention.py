"""Scaled dot-product attention of packed sequences, in mixed precision on a CPU.

softmax(Q K^T / sqrt(d)) V; Vaswani et al. 2017, arXiv:1706.03762, eq. 1. Heads are laid out for batched products of
small matrices, a few sequences at a time, directly from the rows of a projection, and gradients are written directly
into such rows. Everything between two products is one pass. Shapes of products are rounded up, so that few kernels are
generated.
"""

import math
from collections import deque
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, Final, final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from heedful.cpu.availability import copied
from heedful.cpu.derivatives import differentiable_once
from heedful.cpu.operands import refuse
from heedful.cpu.threads import num_threads, run_parts
from heedful.layers.cpu.layernorm import DeferredBias, linear_deferred
from heedful.layers.multihead import MultiheadAttention
from heedful.layers.packing import Packing, round_up

_POSITION_MULTIPLE: Final = 8
"""Multiple that queries and keys of a sequence are padded to."""
_GROUP_POSITIONS: Final = 1024
"""Positions of the sequences that a thread processes at a time; their heads should fit its caches."""
_NARROW: Final = torch.bfloat16
_ONCE: Final = differentiable_once("packed attention in mixed precision", "leave out autocast")


def attend_multihead(
    layer: MultiheadAttention,
    source: Tensor | None,
    queries: Packing,
    keys: Packing,
    inputs: Tensor,
    is_causal: bool = False,
) -> DeferredBias:
    """Attend with a multi-head layer within packed sequences, or to others, without dropout.

    Args:
        layer: layer with scaled dot scores and softmax.
        source: [key row, embed_dim] inputs of keys and values; None = those of the queries.
        queries: packing of `inputs`.
        inputs: [query row, embed_dim].
        is_causal: whether a query may attend no key behind its own position.

    Returns:
        [query row, embed_dim], with its bias deferred.
    """
    if source is None:
        first, second = functional.linear(inputs, layer.input_weight(0, 3)), None
    else:
        first = functional.linear(inputs, layer.input_weight(0, 1))
        second = functional.linear(source, layer.input_weight(1, 3))
    context = attend_packed(first, second, layer.in_proj_bias, queries, keys, layer.num_heads, is_causal)
    return linear_deferred(context, layer.out_proj)


def attend_packed(
    first: Tensor,
    second: Tensor | None,
    bias: Tensor | None,
    queries: Packing,
    keys: Packing,
    num_heads: int,
    is_causal: bool = False,
) -> Tensor:
    """Attend within packed sequences, or from each sequence to its partner.

    Args:
        first: [query row, size] bfloat16, projected queries; without `second` [query row, 3 size], all three.
        second: [key row, 2 size] bfloat16, projected keys and values.
        bias: [3 size] float32, added to queries, keys and values.
        queries: packing of `first`.
        keys: packing of the keys, with the same number of sequences.
        num_heads: number of heads.
        is_causal: whether a query may attend only keys up to its own position.

    Returns:
        [query row, size] contexts, bfloat16; zero if there is nothing to attend.

    Raises:
        ShapeError: the numbers of query and key sequences differ, features are not those of so many heads or of each
            other, or types are others.

    Cost: two products of query x key x size, four backward; memory query x key x num_heads of 2 bytes for the weights.
    """
    parts = 3 if second is None else 1
    if len(queries.lengths) != len(keys.lengths):
        numbers = len(queries.lengths), len(keys.lengths)
        problem = f"{numbers[0]} sequences of queries, {numbers[1]} of keys; each needs one"
    elif first.dim() != 2 or num_heads < 1 or first.shape[1] < 1 or first.shape[1] % (parts * num_heads):
        problem = f"features do not divide into {parts} x {num_heads} heads"
    elif second is not None and (second.dim() != 2 or second.shape[1] != 2 * first.shape[1]):
        problem = "keys and values must have twice the features of the queries"
    elif bias is not None and bias.shape != (first.shape[1] * 3 // parts,):
        problem = "the bias must have the features of queries, keys and values"
    elif first.dtype != _NARROW or (second is not None and second.dtype != _NARROW):
        problem = "vectors must be bfloat16"
    elif bias is not None and bias.dtype != torch.float32:
        problem = "the bias must be float32"
    else:
        return _AttendPacked.apply(first, second, bias, queries, keys, num_heads, is_causal)
    refuse("packed attention", problem, first=first, second=second, bias=bias)


@final
class _Group:
    """Group of a few sequences that one thread converts from rows to heads and back."""

    def __init__(self, layout: "_Layout", sequences: range, space: Tensor) -> None:
        self.layout, self.first = layout, sequences.start
        self._space, self._number = space, len(sequences)

    def heads(self, slot: int, side: int) -> Tensor:
        """Buffer [sequence * head, position, depth]; the same memory at each call with the same slot."""
        layout = self.layout
        shape = (self._number * layout.num_heads, layout.positions[side], layout.depth)
        return self._space[slot][: math.prod(shape)].view(shape)

    def scores(self, slot: int) -> Tensor:
        """Buffer [sequence * head, query, key]."""
        shape = (self._number * self.layout.num_heads, *self.layout.positions)
        return self._space[slot][: math.prod(shape)].view(shape)

    def taken(self, slot: int, rows: np.ndarray, column: int, side: int, bias: np.ndarray) -> Tensor:
        """Heads [sequence * head, position, depth] of the features from a column on."""
        heads = self.heads(slot, side)
        self.layout.loops.take(rows, column, bias, *self.layout.sides[side], self.first, self._split(heads))
        return heads

    def put(self, heads: Tensor, side: int, column: int, rows: np.ndarray, sums: np.ndarray) -> None:
        """Inverse of `taken`: add the rows to the sums."""
        self.layout.loops.put(self._split(heads), *self.layout.sides[side], self.first, column, rows, sums)

    def weigh(self, scores: Tensor, is_causal: bool) -> None:
        """Replace scores by weights [sequence * head, query, key]."""
        (_, queries), (_, keys) = self.layout.sides
        self.layout.loops.weigh(self._split(scores), queries, keys, self.first, is_causal, self.layout.scale)

    def differentiate(self, weights: Tensor, gradients: Tensor) -> None:
        """Replace gradients of weights by those of scores."""
        self.layout.loops.differentiate(_bits(weights.flatten(0, 1)), _bits(gradients.flatten(0, 1)), self.layout.scale)

    def _split(self, heads: Tensor) -> np.ndarray:
        return _bits(heads).reshape(-1, self.layout.num_heads, *heads.shape[1:])


@final
class _Layout:
    """Grouping of sequences, and layout of their heads."""

    def __init__(self, queries: Packing, keys: Packing, num_heads: int, size: int) -> None:
        self.num_heads, self.depth = num_heads, size // num_heads
        self.scale = 1.0 / math.sqrt(self.depth)
        self.loops = _loops()
        self.sides = tuple((side.starts.numpy(), side.lengths.numpy()) for side in (queries, keys))
        self.positions = tuple(round_up(max(1, side.is_real.shape[1]), _POSITION_MULTIPLE) for side in (queries, keys))
        # An even number of groups of one size; the last may extend beyond the last sequence.
        most, number = max(1, _GROUP_POSITIONS // max(self.positions)), len(queries.lengths)
        size = round_up(max(1, -(-number // round_up(-(-number // most), 2))) if number else 1, max(1, most // 8))
        self.groups = [range(start, start + size) for start in range(0, number, size)]

    def weights(self) -> list[Tensor]:
        """Buffer of each group, [sequence * head, query, key]."""
        sizes = [len(group) * self.num_heads for group in self.groups]
        return list(torch.empty(sum(sizes), *self.positions, dtype=torch.bfloat16).split(sizes))

    def run(self, compute: Callable[[int, _Group], None], num_slots: int) -> None:
        """Run a function on each group; each thread has its own buffer."""
        size = len(self.groups[0]) if self.groups else 0
        size *= self.num_heads * max(self.positions) * max(self.depth, *self.positions)
        spaces = deque(torch.empty(min(num_threads(), len(self.groups)), num_slots, size, dtype=torch.bfloat16))

        def one(index: int) -> None:
            space = spaces.pop()
            compute(index, _Group(self, self.groups[index], space))
            spaces.append(space)

        run_parts([partial(one, index) for index in range(len(self.groups))])


@final
class _AttendPacked(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        first: Tensor,
        second: Tensor | None,
        bias: Tensor | None,
        queries: Packing,
        keys: Packing,
        num_heads: int,
        is_causal: bool,
    ) -> Tensor:
        first = first.detach().contiguous()
        second = None if second is None else second.detach().contiguous()
        size = first.shape[1] if second is not None else first.shape[1] // 3
        layout = _Layout(queries, keys, num_heads, size)
        bits, (source, column) = _bits(first), (_bits(first), size) if second is None else (_bits(second), 0)
        context = torch.empty(first.shape[0], size, dtype=torch.bfloat16)
        context[queries.num_real :] = 0
        out, nothing, shifts, group_weights = _bits(context), np.zeros(0, np.float32), _shifts(bias), layout.weights()

        def compute(index: int, group: _Group) -> None:
            query = group.taken(0, bits, 0, 0, shifts[0])
            key = group.taken(1, source, column, 1, shifts[1])
            weights = torch.bmm(query, key.mT, out=group_weights[index])
            group.weigh(weights, is_causal)
            value = group.taken(1, source, column + size, 1, shifts[2])
            group.put(torch.bmm(weights, value, out=group.heads(0, 0)), 0, 0, out, nothing)

        layout.run(compute, 2)
        ctx.plan = (queries, keys, num_heads)
        ctx.save_for_backward(first, second, bias, *group_weights)
        return context

    @staticmethod
    @_ONCE
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        first, second, bias, *group_weights = ctx.saved_tensors
        queries, keys, num_heads = ctx.plan
        coming, size = _bits(grad_outputs[0].contiguous()), grad_outputs[0].shape[1]
        layout = _Layout(queries, keys, num_heads, size)
        of_first, of_second = _gradient(first, queries), None if second is None else _gradient(second, keys)
        bits, out = _bits(first), _bits(of_first)
        source, out_second, column = bits, out, size
        if second is not None and of_second is not None:
            source, out_second, column = _bits(second), _bits(of_second), 0
        shifts, nothing = _shifts(bias), np.zeros(0, np.float32)
        sums = np.zeros((len(layout.groups), 3, 0 if bias is None else size), np.float32)

        def compute(index: int, group: _Group) -> None:
            weights = group_weights[index]
            slope = group.taken(0, coming, 0, 0, nothing)
            of_value = torch.bmm(weights.mT, slope, out=group.heads(1, 1))
            group.put(of_value, 1, column + size, out_second, sums[index, 2])
            value = group.taken(1, source, column + size, 1, shifts[2])
            scores = torch.bmm(slope, value.mT, out=group.scores(2))
            group.differentiate(weights, scores)
            key = group.taken(1, source, column, 1, shifts[1])
            group.put(torch.bmm(scores, key, out=group.heads(0, 0)), 0, 0, out, sums[index, 0])
            query = group.taken(0, bits, 0, 0, shifts[0])
            group.put(torch.bmm(scores.mT, query, out=group.heads(1, 1)), 1, column, out_second, sums[index, 1])

        layout.run(compute, 3)
        of_bias = None if bias is None else torch.from_numpy(sums.sum(axis=0).reshape(-1))
        return of_first, of_second, of_bias, None, None, None, None


def _shifts(bias: Tensor | None) -> list[np.ndarray]:
    """Offsets of queries, keys and values."""
    return [np.zeros(0, np.float32)] * 3 if bias is None else list(copied(bias).reshape(3, -1))


def _gradient(rows: Tensor, packing: Packing) -> Tensor:
    """Gradient buffer, zero after the last sequence."""
    gradient = torch.empty_like(rows)
    gradient[packing.num_real :] = 0
    return gradient


def _bits(narrow: Tensor) -> Any:
    """Bits of a contiguous bfloat16 tensor as the kernels take them; shared."""
    return narrow.view(torch.int16).numpy()


def _loops() -> ModuleType:
    # Imported here because importing Numba takes long.
    from heedful.layers.cpu import packed_attention_numba as packed_loops

    packed_loops.compile_all()
    return packed_loops
