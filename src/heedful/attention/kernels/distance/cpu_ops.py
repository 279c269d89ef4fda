"""PyTorch operation for distance attention on a CPU, fused and streaming, with numba kernels.

Nadaraya 1964 (doi:10.1137/1109020), Watson 1964: f(q) = sum_j K(|q - k_j| / h) v_j / sum_j K(|q - k_j| / h).
"""

import math
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from itertools import accumulate
from typing import Any, Final, NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from heedful.attention.kernels.distance import arrays
from heedful.attention.kernels.distance.arrays import FAR, LIFT, ROWS
from heedful.attention.profiles import PROFILES
from heedful.cpu.derivatives import differentiable_once
from heedful.cpu.operands import refuse
from heedful.cpu.threads import num_threads, run_parts
from heedful.errors import KernelUnsupported, ShapeError, UsageError

Array = arrays.Array

_DTYPES: Final = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
_INTEGERS: Final = (torch.int64, torch.int32)
_PLAIN: Final = {
    "gaussian": arrays.GAUSSIAN,
    "laplacian": arrays.LAPLACIAN,
    "boxcar": arrays.BOXCAR,
    "triangular": arrays.TRIANGULAR,
    "epanechnikov": arrays.EPANECHNIKOV,
    # Its coordinates are dropped, so all distances are 0 and a boxcar gives all keys the same weight.
    "constant": arrays.BOXCAR,
}
_POWERS: Final = {arrays.TRIANGULAR: arrays.TRIANGULAR_POWER, arrays.EPANECHNIKOV: arrays.EPANECHNIKOV_POWER}

_SMALL: Final = 1 << 21
"""Number of products below which one thread computes everything: about the cost of waking another."""
_SLOTS: Final = 8
"""Most parts, each with its own sums, into which the queries of one item are divided in the backward pass."""
_SLOT_NUMBERS: Final = 1 << 24
"""Most numbers that those sums hold together, if there are more than two."""
_CACHE_NUMBERS: Final = 6144
"""Numbers of one tile that fit a first-level cache of 32 KiB with some room left."""


def supports(dtype: torch.dtype, device: torch.device | str, profile: str) -> str | None:
    """Tell whether `distance_attention` can run here.

    Args:
        dtype: of queries, keys and values.
        device: where they are.

    Returns:
        None if it can, else the reason why not.
    """
    if torch.device(device).type != "cpu":
        return "only on a CPU"
    if dtype not in _DTYPES:
        return f"not for {str(dtype).removeprefix('torch.')}"
    if profile not in PROFILES or profile not in _PLAIN:
        return f"no profile {profile!r}"
    if not _has_numba():
        return "Numba is not installed"
    return None


@cache
def _has_numba() -> bool:
    return find_spec("numba") is not None


def distance_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bandwidth: Tensor | float,
    profile: str,
    inverse_temperature: Tensor | float = 1.0,
    start: Tensor | None = None,
    stop: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Average the values, weighted by how near their keys are to the query.

    context[i] = sum_j weights[i, j] value[j],  weights[i, j] = softmax_j(inverse_temperature log K(|q[i] - k[j]| / h))
    over the keys j with start[i] <= j < stop[i] and K > 0. K and h, profile and bandwidth, are as in
    `heedful.attention.profiles.PROFILES`. The nearest key has weight even where every K is too small for the dtype.

    Args:
        query: [*batch, query, size] float32, float64, or a narrower type, which is computed in float32.
        key: [*batch, key, size].
        value: [*batch, key, value_size].
        bandwidth: h, [] above 0; a tensor receives gradient.
        inverse_temperature: [] above 0; a tensor receives gradient.
        start: [#*batch, 1 or query] int64 first key each query may attend; None = 0.
        stop: [#*batch, 1 or query] int64 one past the last key; None = the number of keys.

    Returns:
        Contexts [*batch, query, value_size] in the common dtype, and the logarithms of the softmax's denominators
        [*batch, query], in float32 at least. Without any weighted key they are 0 and -inf, without gradient. NaN
        coordinates make every row that may attend them NaN; an infinite distance has weight 0.

    Raises:
        ShapeError: axes that must agree differ, or bounds are no whole numbers.
        UsageError: the bandwidth or the inverse temperature is not above 0.
        KernelUnsupported: `supports` gives a reason.

    Cost: query * key * (2 size + value_size + 12) operations, backward about twice as many; memory query + key, which
    backward uses up to `_SLOTS` times. The results are bit-identical for any number of threads.

    Example:
        >>> keys, values = torch.tensor([[0.0], [1.0], [2.0], [3.0]]), torch.tensor([[0.0], [2.0], [1.0], [4.0]])
        >>> context, _ = distance_attention(torch.tensor([[1.2]]), keys, values, 1.0, "epanechnikov")
        >>> round(context.item(), 4)
        1.7273
    """
    common = torch.promote_types(torch.promote_types(query.dtype, key.dtype), value.dtype)
    if reason := supports(common, query.device, profile):
        raise KernelUnsupported(f"distance_attention: {reason}")
    batch = _check_shapes(query, key, value)
    if any(bound is not None and bound.dtype not in _INTEGERS for bound in (start, stop)):
        refuse("distance_attention", "bounds must be whole numbers", start=start, stop=stop)
    wide = torch.float64 if common == torch.float64 else torch.float32
    flat = [
        tensor.to(wide).expand(*batch, *tensor.shape[-2:]).reshape(math.prod(batch), *tensor.shape[-2:])
        for tensor in (query, key, value)
    ]
    if profile == "constant":
        flat[:2] = [tensor[..., :0] for tensor in flat[:2]]
    h, factor = (
        _to_number(number, name)
        for number, name in ((bandwidth, "bandwidth"), (inverse_temperature, "inverse_temperature"))
    )
    num_queries, num_keys = query.shape[-2], key.shape[-2]
    bounds = tuple(
        _to_bounds(bound, default, batch, num_queries, num_keys) for bound, default in ((start, 0), (stop, num_keys))
    )
    context, log_normalizer = _DistanceAttention.apply(*flat, h, factor, bounds, _PLAIN[profile])
    rows = (*batch, num_queries)
    return context.reshape(*rows, value.shape[-1]).to(common), log_normalizer.reshape(rows)


def _check_shapes(query: Tensor, key: Tensor, value: Tensor) -> torch.Size:
    """Common leading axes.

    Raises:
        ShapeError: there are none, or sizes differ.
    """
    shapes = f"query {list(query.shape)}, key {list(key.shape)}, value {list(value.shape)}"
    if min(query.dim(), key.dim(), value.dim()) < 2:
        raise ShapeError(f"distance_attention: at least two axes are needed ({shapes})")
    if query.shape[-1] != key.shape[-1]:
        raise ShapeError(f"distance_attention: queries and keys differ in size ({shapes})")
    if key.shape[-2] != value.shape[-2]:
        raise ShapeError(f"distance_attention: keys and values differ in number ({shapes})")
    if query.shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        return query.shape[:-2]
    try:
        return torch.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    except RuntimeError as error:
        raise ShapeError(f"distance_attention: leading axes do not fit together ({shapes})") from error


def _to_number(number: Tensor | float, name: str) -> Tensor:
    """Float64 number above 0, or NaN.

    Raises:
        ShapeError: it has axes.
        UsageError: it is not above 0.
    """
    tensor = torch.as_tensor(number, dtype=torch.float64)
    if tensor.dim():
        raise ShapeError(f"distance_attention: {name} must be one number, of shape [], got {list(tensor.shape)}")
    if tensor.item() <= 0.0:
        raise UsageError(f"distance_attention: {name} {tensor.item():g} is not above 0")
    return tensor


def _to_bounds(bound: Tensor | None, default: int, batch: torch.Size, num_queries: int, num_keys: int) -> Array:
    """[batch, query] int64 within the keys.

    Raises:
        ShapeError: it does not fit the queries.
    """
    if bound is None:
        return np.full((math.prod(batch), num_queries), default, dtype=np.int64)
    try:
        rows = bound.to(torch.int64).clamp(0, num_keys).expand(*batch, num_queries)
    except RuntimeError as error:
        wanted = [*batch, num_queries]
        raise ShapeError(f"distance_attention: bounds {list(bound.shape)} do not fit rows {wanted}") from error
    return rows.reshape(math.prod(batch), num_queries).contiguous().numpy()


class _Problem(NamedTuple):
    """Points and kernel in the form of the numba kernels, with their scale."""

    points: arrays.Points
    kernel: arrays.Kernel
    rate: Any
    exact_rate: float
    num_keys: int
    bandwidth: float
    """Bandwidth after scaling, as in the kernel but float64."""
    scale: float
    """Factor that points were multiplied by."""
    dtype: torch.dtype

    @property
    def is_exponential(self) -> bool:
        return self.rate is not None

    @property
    def num_rows(self) -> int:
        return self.points.query.shape[0] * self.points.query.shape[1]

    @property
    def num_streams(self) -> int:
        """Number of rows of keys and values."""
        return self.points.key.shape[1] + self.points.value.shape[1]

    @property
    def work(self) -> int:
        """Number of products for one row."""
        return self.num_keys * (2 * self.num_streams + 12)

    def width(self, num_rows: int) -> int:
        """Keys of a tile, so that its rows stay in the nearest cache."""
        fitting = 1024 if num_rows <= 8 else 512 if num_rows <= 17 else 256
        return min(fitting, -(-max(self.num_keys, 1) // 64) * 64)


def _pose(
    flat: tuple[Tensor, Tensor, Tensor], bounds: tuple[Array, Array], numbers: tuple[float, float, bool], profile: int
) -> _Problem:
    """Scale and transpose; `numbers` are bandwidth, inverse temperature, and whether that receives gradient."""
    query, key, value = (tensor.detach() for tensor in flat)
    bandwidth, factor, wants_factor = numbers
    if math.isnan(bandwidth + factor):
        # With a NaN bandwidth or temperature every result is NaN.
        query, bandwidth, factor = query * math.nan, 1.0, 1.0
    is_power = profile in _POWERS and (factor != 1.0 or wants_factor)
    profile = _POWERS[profile] if is_power else profile
    real = np.float64 if query.dtype == torch.float64 else np.float32
    limits = np.finfo(real)
    sizes = [_largest(tensor) for tensor in (query, key)]
    is_finite = all(map(math.isfinite, sizes))
    largest = max(sizes if is_finite else (_largest(tensor.nan_to_num(0.0, 0.0, 0.0)) for tensor in (query, key)))
    # The scale keeps differences of coordinates finite; their squares may overflow.
    bandwidth = min(bandwidth, float(np.finfo(np.float64).max))
    power = min(-9 - math.frexp(bandwidth)[1], limits.maxexp - 2 - math.frexp(largest)[1], limits.maxexp - 2)
    scale = 2.0 ** max(power, limits.minexp)
    # The bandwidth is clamped so that its square is representable.
    scaled = min(max(bandwidth * scale, 2.0 ** (limits.minexp // 2 + 2)), 2.0 ** (limits.maxexp // 2 - 2))
    rate = {
        arrays.GAUSSIAN: factor / (2.0 * math.log(2.0) * scaled) / scaled,
        arrays.LAPLACIAN: factor / (math.log(2.0) * scaled),
        arrays.TRIANGULAR_POWER: factor,
        arrays.EPANECHNIKOV_POWER: factor,
    }.get(profile)
    far = None if is_finite else 2.0 ** (limits.maxexp - 2)
    is_triangular = profile in (arrays.TRIANGULAR, arrays.TRIANGULAR_POWER)
    whole, bound = scaled if is_triangular else scaled * scaled, real(scaled * scaled * (1.0 + 1e-6))
    crumb, lowest = real(whole - float(real(whole))), real(limits.minexp - 1)
    kernel = arrays.Kernel(profile, real(whole), crumb, bound, lowest, limits.max, is_finite)
    query = query * scale
    points = arrays.Points(
        (query if far is None else query.nan_to_num(math.nan, far, -far)).contiguous().numpy(),
        _transpose(key, scale, far),
        _transpose(value if value.shape[-1] else value.new_zeros(*value.shape[:-1], 1), 1.0, None),
        *bounds,
    )
    exact_rate = 0.0 if rate is None else min(max(rate, float(limits.tiny)), float(limits.max))
    rate = None if rate is None else real(exact_rate)
    return _Problem(points, kernel, rate, exact_rate, key.shape[1], scaled, scale, query.dtype)


def _largest(tensor: Tensor) -> float:
    if not tensor.numel():
        return 0.0
    lowest, highest = torch.aminmax(tensor)
    return max(-lowest.item(), highest.item())


def _transpose(rows: Tensor, scale: float, far: float | None) -> Array:
    """[batch, key, size] to [batch, size, key] times a scale, with infinity brought down to `far`.

    Rows start at a cache line, and long ones at an odd multiple of 128 numbers, so that they do not share its places.
    """
    batch, num_keys, size = rows.shape
    pitch = -(-num_keys // 16) * 16 if num_keys <= 512 else (-(-num_keys // 128) | 1) * 128
    turned = torch.zeros(batch, size, pitch, dtype=rows.dtype)
    torch.mul(rows.mT, scale, out=turned[..., :num_keys])
    if far is not None:
        turned.nan_to_num_(math.nan, far, -far)
    return turned.numpy()


@cache
def _loops(direction: str, dtype: torch.dtype, is_exponential: bool) -> Callable[..., None]:
    # Imported here because importing Numba takes long.
    from heedful.attention.kernels.distance import compile as distance_compiled

    compile_loops = distance_compiled.forward if direction == "forward" else distance_compiled.backward
    return compile_loops(str(dtype).removeprefix("torch."), is_exponential)


def _attend(problem: _Problem) -> arrays.ForwardResult:
    """Run the forward kernel."""
    batch, num_queries, _ = problem.points.query.shape
    real, value_size = problem.points.query.dtype, problem.points.value.shape[1]
    result = arrays.ForwardResult(
        np.empty((batch, num_queries, value_size), real),
        np.empty((batch, num_queries), real),
        np.empty((batch, num_queries)),
    )
    loop = _loops("forward", problem.dtype, problem.is_exponential)
    width = problem.width(problem.num_streams + 1)

    def run(row: int, end: int) -> None:
        (buffer,), sums = _rooms(problem, (width,)), np.empty((ROWS, value_size))
        loop(problem.points, problem.kernel, problem.rate, row, end, result, buffer, sums)

    is_alone = num_threads() == 1 or problem.num_rows * problem.work <= _SMALL
    parts = 1 if is_alone else 8 * num_threads()
    run_parts([partial(run, row, end) for row, end in _cut(problem.num_rows, ROWS, parts)])
    return result


def _cut(num_rows: int, step: int, parts: int) -> list[tuple[int, int]]:
    """Split rows into at most so many parts, each of whole steps."""
    length = -(-num_rows // (parts * step)) * step
    return [(row, min(row + length, num_rows)) for row in range(0, num_rows, max(length, 1))]


def _rooms(problem: _Problem, *shapes: tuple[int, ...]) -> list[Array]:
    """Arrays that start at cache lines, unlike NumPy's own: parts of one tensor, because each allocation takes long."""
    starts = [0, *accumulate(-(-math.prod(shape) // 16) * 16 for shape in shapes)]
    whole = torch.empty(starts[-1], dtype=problem.dtype).numpy()
    return [
        whole[start : start + math.prod(shape)].reshape(shape) for start, shape in zip(starts, shapes, strict=False)
    ]


def _log_normalizer(problem: _Problem, result: arrays.ForwardResult) -> Array:
    """Logarithm of the sum of K, converted from the unit of the weights; NaN and infinity in points pass through."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if problem.is_exponential:
            # The unrounded rate, because its rounding error would grow with the distance.
            exact = _bases(problem, result) * (problem.exact_rate / float(problem.rate))
            return np.log(result.totals) + math.log(2.0) * (LIFT - exact)
        unit = {arrays.TRIANGULAR: problem.bandwidth, arrays.EPANECHNIKOV: problem.bandwidth**2}
        return np.log(result.totals) - math.log(unit.get(problem.kernel.profile, 2.0**-LIFT))


def _bases(problem: _Problem, result: arrays.ForwardResult) -> Array:
    """Bases that the exponents of an exponential kernel are measured from, as in the kernels."""
    nearest = np.where(result.totals == 0.0, 0.0, result.nearest).astype(result.nearest.dtype)
    with np.errstate(over="ignore"):
        shifts = problem.rate * nearest
        return np.where(shifts > FAR, float(problem.rate) * nearest.astype(np.float64), shifts)


def _follow(problem: _Problem, result: arrays.ForwardResult, grads: arrays.OutputGradients) -> arrays.Sums:
    """Run the backward kernel. The parts, and with them the order of all sums, depend on shapes alone."""
    batch, num_queries, size = problem.points.query.shape
    is_small = problem.num_rows * problem.work <= _SMALL
    fitting = _SLOT_NUMBERS // max(1, batch * problem.num_streams * problem.num_keys)
    slots = 1 if is_small or batch >= _SLOTS else min(-(-_SLOTS // max(batch, 1)), max(2, fitting))
    query_sums, kernel_sums = np.zeros((batch, num_queries, size)), np.zeros((batch, num_queries, 2))
    key_sums = np.zeros((slots, batch, problem.num_streams, problem.num_keys))
    loop = _loops("backward", problem.dtype, problem.is_exponential)
    width = problem.width(2 * problem.num_streams + 9)

    def run(slot: int, row: int, end: int) -> None:
        many, gains = (problem.num_streams, width), (ROWS, grads.context.shape[2] + 1)
        room = arrays.Room(*_rooms(problem, (width,), (4, width), (4, width), many, gains))
        sums = arrays.Sums(query_sums, key_sums[slot], kernel_sums)
        loop(problem.points, problem.kernel, problem.rate, row, end, result, grads, room, sums)

    if slots == 1:
        spans = [(0, row, end) for row, end in _cut(problem.num_rows, max(num_queries, 1), 1 if is_small else batch)]
    else:
        cuts = list(enumerate(_cut(num_queries, ROWS, slots)))
        spans = [
            (slot, item * num_queries + row, item * num_queries + end)
            for item in range(batch)
            for slot, (row, end) in cuts
        ]
    run_parts([partial(run, *span) for span in spans])
    for more in key_sums[1:]:
        key_sums[0] += more
    return arrays.Sums(query_sums, key_sums[0], kernel_sums)


@final
class _DistanceAttention(torch.autograd.Function):
    """Autograd function that keeps inputs, contexts and two numbers per query; weights are recomputed in backward."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bandwidth: Tensor,
        factor: Tensor,
        bounds: tuple[Array, Array],
        profile: int,
    ) -> tuple[Tensor, Tensor]:
        ctx.numbers = (bandwidth.item(), factor.item(), ctx.needs_input_grad[4])
        ctx.bounds, ctx.profile = bounds, profile
        problem = _pose((query, key, value), bounds, ctx.numbers, profile)
        result = _attend(problem)
        context, nearest, totals = (torch.from_numpy(array) for array in result)
        context = context[..., : value.shape[-1]]
        ctx.save_for_backward(query, key, value, context, nearest, totals)
        ctx.set_materialize_grads(False)
        return context, torch.from_numpy(_log_normalizer(problem, result)).to(query.dtype)

    @staticmethod
    @differentiable_once("distance_attention", "take attend, or its kernel 'plain'")
    def backward(ctx: Any, *grad_outputs: Tensor | None) -> tuple[Tensor | None, ...]:
        query, key, value, context, nearest, totals = ctx.saved_tensors
        context_grad, log_grad = (
            torch.zeros_like(like) if grad is None else grad
            for grad, like in zip(grad_outputs, (context, totals), strict=True)
        )
        problem = _pose((query, key, value), ctx.bounds, ctx.numbers, ctx.profile)
        wants = ctx.needs_input_grad
        columns = problem.points.value.shape[1]
        result = arrays.ForwardResult(_padded(context, columns), nearest.numpy(), totals.numpy())
        log_normalizer = log_grad.double().masked_fill(totals == 0.0, 0.0)
        grads = arrays.OutputGradients(
            _padded(context_grad, columns),
            log_normalizer.contiguous().numpy(),
            wants[0] or wants[1] or wants[3] or wants[4],
            wants[0] or wants[1],
            wants[2],
        )
        sums = _follow(problem, result, grads)
        by_points, by_bandwidth, by_factor = _factors(problem, result, grads, sums, ctx.numbers)
        size = query.shape[-1]
        points = (
            sums.query * by_points,
            sums.key[:, :size].mT * by_points,
            sums.key[:, size : size + value.shape[-1]].mT,
        )
        point_grads = [torch.from_numpy(np.ascontiguousarray(array)).to(query.dtype) for array in points]
        numbers = (torch.tensor(number, dtype=torch.float64) for number in (by_bandwidth, by_factor))
        return (*point_grads, *numbers, None, None)


def _padded(tensor: Tensor, columns: int) -> Array:
    """NumPy array, with a column of zeros where there is none."""
    if tensor.shape[-1] < columns:
        tensor = tensor.new_zeros(*tensor.shape[:-1], columns)
    return tensor.contiguous().numpy()


def _factors(
    problem: _Problem,
    result: arrays.ForwardResult,
    grads: arrays.OutputGradients,
    sums: arrays.Sums,
    numbers: tuple[float, float, bool],
) -> tuple[float, float, float]:
    """Factors of the slopes, and the gradients of the bandwidth and the inverse temperature.

    Scores depend on differences over h alone, so h ds/dh = -(q - k) . ds/d(q - k), and for a homogeneous log K, as
    gaussian and laplacian have, that is a multiple of s. Within a row slopes sum to the gradient of log_normalizer.
    """
    bandwidth, factor, _ = numbers
    profile, scale, scaled = problem.kernel.profile, problem.scale, problem.bandwidth
    stretch = float(sums.kernel[..., 1].sum())
    if not problem.is_exponential:
        steepness = {arrays.BOXCAR: 0.0, arrays.TRIANGULAR: 1.0, arrays.EPANECHNIKOV: 2.0}[profile]
        return -steepness * scale, steepness * stretch / bandwidth, 0.0
    with np.errstate(invalid="ignore"):
        passed_over = (_bases(problem, result) * grads.log_normalizer).sum()
    turning = math.log(2.0) * float(sums.kernel[..., 0].sum() - passed_over)
    if profile == arrays.GAUSSIAN:
        return -factor / scaled / scaled * scale, -2.0 * turning / bandwidth, turning / factor
    if profile == arrays.LAPLACIAN:
        return -factor / scaled * scale, -turning / bandwidth, turning / factor
    steepness = factor if profile == arrays.TRIANGULAR_POWER else 2.0 * factor
    return -steepness * scale, steepness * stretch / bandwidth, turning / factor
