"""PyTorch operation for exact additive scores on a CPU, with numba kernels: no array of query * key * hidden.

score_ij = vector . tanh(query_i + key_j), Bahdanau, Cho and Bengio 2015, arXiv:1409.0473, section A.1.2 after both
projections. numba_kernels.py states the method. Features whose values are too large for it, or not finite, are computed
by tanh itself in tiles, so the result equals the formula for every input.

Numba is imported when the first score is computed, not before.
"""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from heedful.attention.kernels.formulas import additive_formula
from heedful.attention.lowered import ExpKey
from heedful.cpu.availability import copied, loops_problem
from heedful.cpu.derivatives import differentiable_by
from heedful.cpu.threads import num_threads, run_parts
from heedful.errors import KernelUnsupported, ShapeError

if TYPE_CHECKING:
    from heedful.attention.kernels.additive.numba_kernels import Loops

INLINE: Final = 2_500_000
"""Elements, query * key * slot, below which a second thread costs more than it saves."""
FEW: Final = 1 << 17
"""Elements, query * key * hidden, up to which plain operations are faster; see benchmarks/shapes.py --kernel."""
TILE: Final = 1 << 20
"""Elements of a tile in which tanh itself is computed."""

_WIDE: Final = frozenset({torch.float32, torch.float64})
_DTYPES: Final = _WIDE | {torch.bfloat16, torch.float16}
# Per dtype: the largest |a + b|, summed over the features of one division, and the |a + b| from which tanh rounds to 1.
_RANGES: Final = {np.dtype(np.float32): (43.0, 10.0), np.dtype(np.float64): (350.0, 20.0)}
# Cost of an exponential, in elements.
_EXPONENTIAL: Final = 8
_NOTHING: Final = np.empty(0)
# Least number of elements per call of the gradient kernel. It does not depend on the number of threads, because it
# fixes the order of the sums.
_CHUNK: Final = 500_000


def supports(dtype: torch.dtype, device: str) -> str | None:
    """Tell whether `additive_scores` takes tensors of this kind.

    Args:
        dtype: of query, key and vector.
        device: type of the device, such as "cpu".

    Returns:
        None if supported, else the reason.

    Cost: 0.3 s once to import Numba, if no other reason rules the kernel out.
    """
    if device != "cpu":
        return "only on a CPU"
    if dtype not in _DTYPES:
        return "only float32, float64, bfloat16 and float16"
    return loops_problem()


def is_quick(num_numbers: int, dtype: torch.dtype) -> bool:
    """Tell whether scores are so few that plain operations are faster.

    Args:
        num_numbers: query * key * hidden; 0 = not counted.

    Returns:
        Whether they are; False for narrow types, which plain operations round at every step.
    """
    return dtype in _WIDE and 0 < num_numbers <= FEW


class AdditivePlan(NamedTuple):
    """Exponential plan: result of the kernel `plan`, and exponentials of the keys where they exist already."""

    centre: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    order: np.ndarray
    bounds: np.ndarray
    exp_key: np.ndarray
    """[key batch, key, slot] exponentials of the keys, or [0, 0, 0]."""
    exp_rounding: np.ndarray


def _plan_of(exp_key: ExpKey) -> AdditivePlan:
    """Arrays of an `ExpKey` in the form that the kernels take, computed once."""
    plan = exp_key.derived.get("plan")
    if not isinstance(plan, AdditivePlan):
        plan = AdditivePlan(
            exp_key.centre.numpy(),
            exp_key.lowest.numpy(),
            exp_key.highest.numpy(),
            exp_key.order.numpy(),
            np.empty((3, 0), exp_key.centre.numpy().dtype),
            _rows(_strip(exp_key.exponential)),
            _rows(_strip(exp_key.rounding)),
        )
        exp_key.derived["plan"] = plan
    return plan


def prepare_exp_key(key: Tensor) -> ExpKey:
    """Compute the exponentials of the keys once for all decoding steps.

    Args:
        key: [*batch, key, hidden] on a CPU, any floating dtype.

    Returns:
        Exponentials to pass to `additive_scores` beside the key. They carry no gradient: the gradient of the scores

    Raises:
        KernelUnsupported: the dtype or device is unsupported, or Numba is not installed.

    Example:
        >>> prepare_exp_key(torch.zeros(2, 3, 8)).exponential.unique().tolist()
        [1.0]
    """
    _require_support(key)
    stripped = _strip(key.detach().to(_wide(key.dtype)))
    keys = _rows(stripped)
    plan = _with_exponentials(keys, _plan(keys, keys[:0]))
    exponential, rounding = (
        torch.from_numpy(part.reshape(*stripped.shape[:-1], len(plan.order))).expand(*key.shape[:-1], len(plan.order))
        for part in (plan.exp_key, plan.exp_rounding)
    )
    return ExpKey(exponential, rounding, *(torch.from_numpy(part) for part in plan[:4]))


def additive_scores(query: Tensor, key: Tensor, vector: Tensor, exp_key: ExpKey | None = None) -> Tensor:
    """Score every query against every key: score_ij = vector . tanh(query_i + key_j).

    Bahdanau, Cho and Bengio 2015, arXiv:1409.0473, section A.1.2, after both projections. Each term is accurate to a
    few units in the last place, both near 0 and where tanh is flat; NaN and infinities propagate as in the formula;
    bfloat16 and float16 are computed in float32. Scores and gradients are the same, to the bit, for any number of
    threads. Gradients of gradients are those of the formula, [query, key, hidden] in memory.

    Args:
        query: [*batch, query, hidden] on a CPU.
        key: [*batch, key, hidden]; leading axes broadcast without copies.
        vector: [hidden].
        exp_key: result of `prepare_exp_key(key)`, so that the exponentials of the keys are not computed again.

    Returns:
        [*batch, query, key] in the type that query, key and vector promote to.

    Raises:
        ShapeError: hidden sizes differ, leading axes do not broadcast, or exp_key was prepared from keys of another
            shape.
        KernelUnsupported: a dtype or device is unsupported, or Numba is not installed.

    Cost: with AVX-512 0.3 cycles of a core for each query * key * hidden, backward 0.5; memory key * hidden for each
    thread. The first call of a process takes 0.3 s to load the compiled loops, the first on a machine 5 s to compile
    them; they are cached in __pycache__ or in NUMBA_CACHE_DIR, if either can be written.

    Example:
        >>> additive_scores(torch.zeros(1, 2), torch.tensor([[0.0, 1.0], [3.0, -1.0]]), torch.ones(2)).tolist()
        [[0.76..., 0.23...]]
    """
    _require_support(query, key, vector)
    batch = _require_shapes(query, key, vector, exp_key)
    result = wide = query.dtype
    if key.dtype != result or vector.dtype != result or result not in _WIDE:
        result = torch.promote_types(torch.promote_types(result, key.dtype), vector.dtype)
        wide = _wide(result)
        query, key, vector = query.to(wide), key.to(wide), vector.to(wide)
    if not (query.numel() and key.numel()):
        # Nothing to be fast at, but gradients of the right shapes to be made.
        scores = additive_formula(query, key, vector)
    elif torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or vector.requires_grad):
        scores = _AdditiveScores.apply(_strip(query), _strip(key), vector, exp_key, batch)
    else:
        scores = _score(_strip(query), _strip(key), vector, exp_key, batch)[0]
    return scores if result == wide else scores.to(result)


class _Operands(NamedTuple):
    """Inputs of the kernels."""

    query: np.ndarray
    """[query batch, query, hidden]."""
    query_index: np.ndarray
    """[batch] index of the queries of each batch element."""
    key: np.ndarray
    """[key batch, key, hidden]."""
    key_index: np.ndarray
    """[batch] index of the keys of each batch element."""
    plan: AdditivePlan
    exp_index: np.ndarray
    """[batch] index into `plan.exp_key` of each batch element; `key_index` if there are none."""


Limits = tuple[np.ndarray, np.ndarray, float, np.ndarray]
"""Exponent bounds, weights, scale and excluded features, from the kernel `limit_queries`."""


@final
class _AdditiveScores(torch.autograd.Function):
    """Autograd function: d score / d query = d score / d key = vector (1 - tanh^2), d score / d vector = tanh."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, vector: Tensor, exp_key: ExpKey | None, batch: tuple[int, ...]
    ) -> Tensor:
        scores, operands, ctx.limits = _score(query, key, vector, exp_key, batch)
        # The exponentials are recomputed too: touching fresh memory costs more than computing them.
        ctx.save_for_backward(query, key, vector)
        ctx.operands = operands._replace(query=_NOTHING, key=_NOTHING)
        return scores

    @staticmethod
    @differentiable_by(lambda _, *inputs: additive_formula(*inputs), num_inputs=3)
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        inputs = ctx.saved_tensors
        operands: _Operands = ctx.operands._replace(query=_rows(inputs[0]), key=_rows(inputs[1]))
        shape = (len(operands.query_index), operands.query.shape[1], operands.key.shape[1])
        grad = grad_outputs[0].detach().contiguous().numpy().reshape(shape)
        grads = _differentiate(operands, ctx.limits, grad)
        if ctx.limits[3].size:
            _differentiate_exactly(operands, copied(inputs[2]), ctx.limits[3], grad, grads)
        pairs = zip(grads, inputs, ctx.needs_input_grad, strict=False)
        tensors = (torch.from_numpy(part.reshape(like.shape)) if needed else None for part, like, needed in pairs)
        return (*tensors, None, None)


def _score(
    query: Tensor, key: Tensor, vector: Tensor, exp_key: ExpKey | None, batch: tuple[int, ...]
) -> tuple[Tensor, _Operands, Limits]:
    """Scores of queries and keys of one dtype, not empty, without repeated axes."""
    queries, keys, weights = _rows(query), _rows(key), copied(vector)
    query_index, key_index = _index(query.shape[:-2], batch), _index(key.shape[:-2], batch)
    if exp_key is not None and exp_key.exponential.dtype == query.dtype:
        plan, exp_index = _plan_of(exp_key), _index(_strip(exp_key.exponential).shape[:-2], batch)
    else:
        plan, exp_index = _plan(keys, queries), key_index
    if len(keys) < len(key_index) and not len(plan.exp_key):
        # Batch elements share keys, so their exponentials are computed once.
        plan = _with_exponentials(keys, plan)
    operands = _Operands(queries, query_index, keys, key_index, plan, exp_index)
    scores = np.empty((*batch, queries.shape[1], keys.shape[1]), queries.dtype)
    flat = scores.reshape(len(key_index), queries.shape[1], keys.shape[1])
    # The choice does not depend on the number of threads, so neither do the results.
    run = _score_at_once if scores.size * len(plan.order) < INLINE else _score_in_parts
    limits = run(operands, weights, flat)
    if limits[3].size:
        _add_exactly(operands, weights, limits[3], flat)
    return torch.from_numpy(scores), operands, limits


def _score_at_once(operands: _Operands, vector: np.ndarray, scores: np.ndarray) -> Limits:
    """Scores in one call, for small sizes."""
    query, query_index, key, _, plan, index = operands
    key_arrays = (key, index, plan.bounds, plan.exp_key, plan.exp_rounding)
    score_all = _loops(query.dtype).score_all
    return score_all(query, query_index, vector, *key_arrays, *plan[:4], *_RANGES[query.dtype], scores)


def _score_in_parts(operands: _Operands, vector: np.ndarray, scores: np.ndarray) -> Limits:
    """Scores in tiles of rows on all threads, for large sizes."""
    query, query_index, key, _, plan, index = operands
    loops = _loops(query.dtype)
    rows = query.reshape(-1, query.shape[2])
    bounds, weights, scale, left_out = loops.limit_queries(rows, vector, *plan[:4], *_RANGES[query.dtype])
    num_tiles, count = len(scores) * -(-scores.shape[1] // 4), _num_parts(scores.size * len(plan.order))
    if len(scores) < count and not len(plan.exp_key):
        # Several threads need the same keys.
        plan = _with_exponentials(key, plan)
    key_arrays = (key, index, plan.bounds, plan.exp_key, plan.exp_rounding)

    def score(start: int, stop: int) -> None:
        loops.scores(query, query_index, bounds, *key_arrays, plan.order, weights, scale, start, stop, scores)

    run_parts(_split(score, num_tiles, count))
    return bounds, weights, scale, left_out


def _differentiate(operands: _Operands, limits: Limits, grad: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients of query [query batch, query, hidden], key [key batch, key, hidden] and vector [hidden]."""
    query, query_index, key, key_index, plan, exp_index = operands
    bounds, weights, scale, _ = limits
    loops = _loops(query.dtype)
    num_slots, num_elements = len(plan.order), len(grad)
    query_grad = np.empty((*query.shape[:2], num_slots), query.dtype)
    key_grad = np.empty((*key.shape[:2], num_slots), query.dtype)
    is_large, is_shared = grad.size * num_slots >= INLINE, len(query) < num_elements or len(key) < num_elements
    # Elements that share a query or a key add to the same sums, so they come one after the other. A few rows are done
    # fastest with all slots at a time.
    step = num_elements if is_shared else min(num_elements, 1 + _CHUNK * num_elements // (grad.size * num_slots))
    width = loops.block if is_large and (is_shared or grad.shape[1] >= 4) else num_slots
    starts = range(0, num_elements, step)
    sums = np.zeros((len(starts), num_slots))
    key_arrays = (key, key_index, plan.bounds, plan.exp_key, plan.exp_rounding, exp_index)
    scaled_weights = weights[:num_slots] * weights.dtype.type(scale)
    inputs = (query, query_index, bounds, *key_arrays, plan.order, scaled_weights, grad)

    def differentiate(chunk: int, slot: int) -> None:
        stop = min(starts[chunk] + step, num_elements)
        loops.gradients(*inputs, starts[chunk], stop, slot, slot + width, query_grad, key_grad, sums[chunk])

    parts = [partial(differentiate, chunk, slot) for chunk in range(len(starts)) for slot in range(0, num_slots, width)]
    if is_large:
        run_parts(parts)
    else:
        for part in parts:
            part()
    vector_grad = sums.sum(axis=0).astype(query.dtype)
    size = query.shape[2]
    if plan.order[size - 1] == size - 1:
        places = slice(size)
    else:
        slots = np.flatnonzero(plan.order >= 0)
        places = slots[np.argsort(plan.order[slots])]
    return query_grad[..., places], key_grad[..., places], vector_grad[places]


def _tiles(operands: _Operands, num_features: int) -> Iterator[tuple[int, int, int, slice, slice]]:
    """Tiles of rows and keys of at most `TILE` elements, or of one pair.

    Each tile is a batch element, the indices of its queries and keys, and slices of rows and of keys.
    """
    num_rows, num_keys = operands.query.shape[1], operands.key.shape[1]
    keys = max(1, min(num_keys, TILE // num_features))
    rows = max(1, TILE // (keys * num_features))
    indices = zip(operands.query_index.tolist(), operands.key_index.tolist(), strict=True)
    for element, (i, j) in enumerate(indices):
        for row in range(0, num_rows, rows):
            for key in range(0, num_keys, keys):
                yield element, i, j, slice(row, row + rows), slice(key, key + keys)


def _add_exactly(operands: _Operands, vector: np.ndarray, features: np.ndarray, scores: np.ndarray) -> None:
    """Add the contribution of excluded features, by tanh itself."""
    query, key, weights = (torch.from_numpy(part[..., features]) for part in (operands.query, operands.key, vector))
    for element, i, j, rows, keys in _tiles(operands, len(features)):
        tanh = torch.tanh(query[i, rows, None] + key[j, None, keys])
        scores[element, rows, keys] += tanh.mul_(weights).sum(dim=-1).numpy()


def _differentiate_exactly(
    operands: _Operands,
    vector: np.ndarray,
    features: np.ndarray,
    grad: np.ndarray,
    grads: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """Set the gradients of excluded features, by tanh itself."""
    query, key, weights = (torch.from_numpy(part[..., features]) for part in (operands.query, operands.key, vector))
    query_grad, key_grad, vector_grad = torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(weights)
    for element, i, j, rows, keys in _tiles(operands, len(features)):
        tanh = torch.tanh(query[i, rows, None] + key[j, None, keys])
        outer = torch.from_numpy(grad[element, rows, keys, None])
        vector_grad += (outer * tanh).sum(dim=(0, 1))
        slopes = outer * (1.0 - tanh * tanh) * weights
        query_grad[i, rows] += slopes.sum(dim=1)
        key_grad[j, keys] += slopes.sum(dim=0)
    for whole, part in zip(grads, (query_grad, key_grad, vector_grad), strict=True):
        whole[..., features] = part.numpy()


def _plan(keys: np.ndarray, queries: np.ndarray) -> AdditivePlan:
    """Exponential plan for keys [batch, key, hidden]; `queries` is empty while the queries are unknown."""
    rows = (part.reshape(part.shape[0] * part.shape[1], keys.shape[2]) for part in (keys, queries))
    centre, lowest, highest, order, bounds = _loops(keys.dtype).plan(*rows, *_RANGES[keys.dtype])
    exp_key, rounding = np.empty((0, 0, 0), keys.dtype), np.empty((0, 0, 0), np.int16)
    return AdditivePlan(centre, lowest, highest, order, bounds, exp_key, rounding)


def _with_exponentials(keys: np.ndarray, plan: AdditivePlan) -> AdditivePlan:
    """Add the exponentials of the keys."""
    num_rows, num_slots = keys.shape[0] * keys.shape[1], len(plan.order)
    rows = keys.reshape(num_rows, keys.shape[2])
    exponential, rounding = np.empty((num_rows, num_slots), keys.dtype), np.empty((num_rows, num_slots), np.int16)
    exponentials = _loops(keys.dtype).exponentials

    def take(start: int, stop: int) -> None:
        own = slice(start, stop)
        exponentials(rows[own], plan.order, plan.bounds, 0, 0, exponential[own], rounding[own])

    run_parts(_split(take, num_rows, _num_parts(_EXPONENTIAL * exponential.size)))
    shape = (*keys.shape[:2], num_slots)
    return plan._replace(exp_key=exponential.reshape(shape), exp_rounding=rounding.reshape(shape))


def _num_parts(num_elements: int) -> int:
    """Number of parts: a few per thread, so that one slow thread does not delay the rest."""
    return 4 * num_threads() if num_elements >= INLINE and num_threads() > 1 else 1


def _split(work: Callable[[int, int], None], total: int, count: int) -> list[Callable[[], None]]:
    """Split range(total) into parts."""
    count = max(1, min(count, total))
    return [partial(work, total * i // count, total * (i + 1) // count) for i in range(count)]


def _strip(tensor: Tensor) -> Tensor:
    """Collapse leading axes that were expanded, unless each element gets its own gradient."""
    if not tensor.is_contiguous() and not (tensor.requires_grad and torch.is_grad_enabled()):
        for axis in range(tensor.dim() - 2):
            if tensor.stride(axis) == 0 and tensor.shape[axis] > 1:
                tensor = tensor.narrow(axis, 0, 1)
    return tensor


def _rows(tensor: Tensor) -> np.ndarray:
    """Contiguous [batch, row, size], with all leading axes in one."""
    rows = tensor.detach().contiguous().numpy()
    return rows if rows.ndim == 3 else rows.reshape(math.prod(rows.shape[:-2]), *rows.shape[-2:])


@lru_cache(maxsize=64)
@lru_cache(maxsize=64)
def _index(lead: tuple[int, ...], batch: tuple[int, ...]) -> np.ndarray:
    """[batch] index into the tensor's own leading axes of each element of the broadcast batch; not to be changed."""
    indices = np.arange(math.prod(lead))
    return indices if lead == batch else np.broadcast_to(indices.reshape(lead), batch).flatten()


def _require_shapes(query: Tensor, key: Tensor, vector: Tensor, exp_key: ExpKey | None) -> tuple[int, ...]:
    lead, key_lead = query.shape[:-2], key.shape[:-2]
    size = query.shape[-1] if query.dim() >= 2 else -1
    if key.dim() < 2 or key.shape[-1] != size or vector.shape != (size,):
        raise ShapeError(
            f"additive scores: query {list(query.shape)}, key {list(key.shape)} and vector {list(vector.shape)} "
            "must end in the same size"
        )
    if exp_key is not None and exp_key.exponential.shape[:-1] != key.shape[:-1]:
        raise ShapeError(
            f"additive scores: exp_key was prepared from keys {list(exp_key.exponential.shape[:-1])}, not "
            f"{list(key.shape[:-1])}"
        )
    if lead == key_lead:
        return lead
    try:
        return torch.broadcast_shapes(lead, key_lead)
    except RuntimeError as error:
        raise ShapeError(
            f"additive scores: leading axes {list(lead)} of query and {list(key_lead)} of key do not broadcast"
        ) from error


def _require_support(*tensors: Tensor) -> None:
    for tensor in tensors:
        if not tensor.is_cpu or tensor.dtype not in _DTYPES:
            break
    else:
        if loops_problem() is None:
            return
    reasons = (supports(tensor.dtype, tensor.device.type) for tensor in tensors)
    raise KernelUnsupported(f"additive scores: {next(reason for reason in reasons if reason is not None)}")


def _wide(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype == torch.float64 else torch.float32


def _loops(dtype: np.dtype) -> "Loops":
    """Kernels compiled for this dtype; imported here because importing Numba takes long."""
    from heedful.attention.kernels.additive.numba_kernels import compiled

    return compiled(dtype)
