import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from heedful.attention.kernels.distance import cpu_ops as distance_cpu
from heedful.attention.kernels.distance.cpu_ops import distance_attention, supports
from heedful.attention.lowered import LoweredDistance
from heedful.attention.profiles import PROFILES
from heedful.errors import KernelUnsupported, ShapeError, UsageError
from tests.attention.reference import by_row, reference_attention, reference_scores, softmax
from tests.thorough import sampled

SMOOTH = ["gaussian", "laplacian", "triangular", "epanechnikov"]
EXPONENTIAL = ["gaussian", "laplacian"]


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def plain(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bandwidth: Tensor | float,
    profile: str,
    inverse_temperature: Tensor | float = 1.0,
    start: Tensor | None = None,
    stop: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The formula, all of it in memory."""
    squared = ((query[..., :, None, :] - key[..., None, :, :]) / bandwidth).square().sum(dim=-1)
    shape = PROFILES[profile]
    scores = shape.log_kernel(squared) * inverse_temperature
    allowed = torch.ones_like(squared, dtype=torch.bool) if shape.reach == math.inf else squared < shape.reach**2
    places = torch.arange(key.shape[-2])
    if start is not None:
        allowed = allowed & (places >= start[..., None])
    if stop is not None:
        allowed = allowed & (places < stop[..., None])
    empty = ~allowed.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~(allowed | empty), -torch.inf)
    context = torch.softmax(scores, dim=-1).masked_fill(empty, 0.0) @ value
    return context, torch.logsumexp(scores, dim=-1).masked_fill(empty[..., 0], -torch.inf)


def drawn(
    seed: int,
    num_queries: int,
    num_keys: int,
    size: int,
    value_size: int,
    batch: tuple[int, ...] = (),
    mean: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Standard normal points and values, float64 that fit into float32."""
    generator = torch.Generator().manual_seed(seed)
    shapes = ((num_queries, size), (num_keys, size), (num_keys, value_size))
    query, key, value = (torch.randn(*batch, *shape, generator=generator) for shape in shapes)
    return (query + mean).double(), (key + mean).double(), value.double()


def windows(seed: int, num_queries: int, num_keys: int, batch: tuple[int, ...] = ()) -> tuple[Tensor, Tensor]:
    """Intervals, some of them empty, some beyond the keys."""
    generator = torch.Generator().manual_seed(seed)
    start = torch.randint(-2, num_keys + 2, (*batch, num_queries), generator=generator)
    return start, start + torch.randint(-1, num_keys + 3, (*batch, num_queries), generator=generator)


def gradients(
    function: Callable[..., tuple[Tensor, Tensor]],
    inputs: tuple[Tensor, ...],
    bandwidth: float,
    profile: str,
    dtype: torch.dtype,
    temperature: float | None = None,
    bounds: tuple[Tensor | None, Tensor | None] = (None, None),
) -> list[Tensor]:
    """Context, log_normalizer, and what a random combination of both sends to all inputs, as float64."""
    leaves = [tensor.to(dtype).requires_grad_() for tensor in inputs]
    numbers = [torch.tensor(bandwidth).to(dtype).requires_grad_()]
    if temperature is not None:
        numbers.append(torch.tensor(temperature).to(dtype).requires_grad_())
    context, log_normalizer = function(*leaves, numbers[0], profile, *(numbers[1:] or [1.0]), *bounds)
    generator = torch.Generator().manual_seed(77)
    factors = [torch.randn(tensor.shape, generator=generator).to(dtype) for tensor in (context, log_normalizer)]
    reached = torch.where(log_normalizer.isinf(), torch.zeros_like(log_normalizer), log_normalizer)
    loss = (context * factors[0]).sum() + (reached * factors[1]).sum()
    found = torch.autograd.grad(loss, [*leaves, *numbers], allow_unused=True, materialize_grads=True)
    return [tensor.detach().double() for tensor in (context, log_normalizer, *found)]


@pytest.mark.parametrize("profile", list(PROFILES))
@pytest.mark.parametrize("inverse_temperature", [1.0, 0.6, 3.0])
def test_equals_the_sums_over_single_numbers(profile: str, inverse_temperature: float):
    query, key, value = drawn(0, 7, 21, 2, 3)
    start, stop = windows(1, 7, 21)
    places = torch.arange(21)
    allowed = (places >= start[:, None]) & (places < stop[:, None])
    pairs = LoweredDistance(query, key, torch.tensor(1.25), profile, inverse_temperature)
    expected, weights = reference_attention(pairs, value, by_row(softmax), allowed)
    scores = reference_scores(pairs)
    logs = [
        math.log(total)
        if (total := math.fsum(math.exp(s) for s, a in zip(*row, strict=True) if a and s is not None))
        else -math.inf
        for row in zip(scores, allowed.tolist(), strict=True)
    ]
    for dtype, tolerance in ((torch.float64, 1e-13), (torch.float32, 2e-6)):
        context, log_normalizer = distance_attention(
            query.to(dtype), key.to(dtype), value.to(dtype), 1.25, profile, inverse_temperature, start, stop
        )
        torch.testing.assert_close(context.double(), expected, atol=tolerance, rtol=tolerance)
        torch.testing.assert_close(
            log_normalizer.double(), torch.tensor(logs, dtype=torch.float64), atol=tolerance, rtol=tolerance
        )
    assert weights.sum() > 3.0


def test_published_numbers():
    key, value = torch.arange(4.0)[:, None], torch.tensor([[0.0], [2.0], [1.0], [4.0]])
    query = torch.tensor([[1.2]])
    expected = {
        ("gaussian", 1.0): 1.454681,
        ("gaussian", 0.5): 1.692380,
        ("boxcar", 1.0): 1.5,
        ("triangular", 1.0): 1.8,
        ("epanechnikov", 1.0): 1.727273,
        ("constant", 1.0): 1.75,
    }
    for (profile, bandwidth), prediction in expected.items():
        assert distance_attention(query, key, value, bandwidth, profile)[0].item() == pytest.approx(
            prediction, abs=1e-6
        )


SHAPES = [
    # queries, keys, size, value_size, batch
    (1, 1, 1, 1, ()),
    (5, 15, 3, 1, ()),
    (4, 16, 2, 2, (3,)),
    (3, 17, 4, 3, ()),
    (65, 63, 1, 4, (2,)),
    (129, 65, 5, 5, ()),
    (6, 1023, 3, 1, ()),
    (5, 1025, 3, 2, (2, 2)),
    (2, 2051, 3, 1, ()),
    (7, 300, 16, 9, ()),
    (3, 130, 23, 18, (2,)),
]


@sampled(3)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("profile", list(PROFILES))
@pytest.mark.parametrize("is_bounded", [False, True])
def test_equals_the_formula_with_all_gradients(shape: tuple[Any, ...], profile: str, is_bounded: bool):
    num_queries, num_keys, size, value_size, batch = shape
    inputs = drawn(2, num_queries, num_keys, size, value_size, batch)
    bounds = windows(3, num_queries, num_keys, batch) if is_bounded else (None, None)
    # About half of the distances are below it.
    bandwidth = 1.4 * math.sqrt(size)
    for temperature in (None, 0.75):
        arguments = (inputs, bandwidth, profile, torch.float64, temperature, bounds)
        for found, expected in zip(
            gradients(distance_attention, *arguments), gradients(plain, *arguments), strict=True
        ):
            torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-9)


@pytest.mark.parametrize("profile", list(PROFILES))
@pytest.mark.parametrize("size", [0, 1, 2])
@pytest.mark.parametrize("temperature", [None, 0.8])
def test_gradients_are_those_of_differences(profile: str, size: int, temperature: float | None):
    inputs = [tensor.requires_grad_() for tensor in drawn(4, 3, 6, size, 2)]
    numbers = [torch.tensor(number, dtype=torch.float64, requires_grad=True) for number in (1.7, temperature) if number]
    stop = torch.tensor([6, 4, 6])

    def function(*arguments: Tensor) -> tuple[Tensor, Tensor]:
        query, key, value, bandwidth, *more = arguments
        return distance_attention(query, key, value, bandwidth, profile, *(more or [1.0]), stop=stop)

    assert torch.autograd.gradcheck(function, (*inputs, *numbers))


@pytest.mark.parametrize("profile", [*PROFILES])
@pytest.mark.parametrize(
    ("mean", "spread", "bandwidth"), [(0.0, 1.0, 0.5), (10.0, 1.0, 0.1), (10.0, 0.1, 0.1), (-300.0, 5.0, 2.0)]
)
def test_float32_errs_as_little_as_the_formula(profile: str, mean: float, spread: float, bandwidth: float):
    """Far from the origin |q|^2 + |k|^2 - 2 q k would have lost all digits. Root mean squares over several draws:
    the largest error of one draw is that of one row with a key at the edge of a kernel, and says nothing."""
    bandwidth = float(torch.tensor(bandwidth))
    temperature = 0.9 if profile in EXPONENTIAL else None
    errors = torch.zeros(3, 7, dtype=torch.float64)
    for seed in range(5):
        query, key, value = drawn(seed, 150, 700, 3, 2)
        inputs = (*((spread * points + mean).float().double() for points in (query, key)), value)
        exact, formula, found = (
            gradients(function, inputs, bandwidth, profile, dtype, temperature)
            for function, dtype in (
                (plain, torch.float64),
                (plain, torch.float32),
                (distance_attention, torch.float32),
            )
        )
        for place, target in enumerate(exact):
            finite = target.isfinite() & formula[place].isfinite()
            assert bool((found[place].isfinite() == target.isfinite()).all())
            for way, tensor in enumerate((formula[place] - target, found[place] - target, target)):
                errors[way, place] += tensor[finite].square().mean() if finite.any() else 0.0
    of_formula, of_loops, scale = errors.sqrt()
    budget = torch.tensor([2.0] * 2 + [3.0] * 5) * of_formula
    # 2^-24 of the sum of absolute terms: the gradient of a value sums 150 terms of either sign.
    floor = torch.tensor([1.0, 2.0, 1.0, 1.0, 0.8 * math.sqrt(150), 1.0, 1.0]) * 2.0**-24 * scale
    assert bool((of_loops <= torch.maximum(budget, floor)).all()), (of_loops / of_formula).tolist()


def test_context_is_exact_to_rounding():
    """2^-24 of the sum of the absolute terms, twice for what is in the weights."""
    query, key, value = drawn(6, 100, 3000, 3, 1, mean=10.0)
    exact, _ = plain(query, key, value, 0.5, "gaussian")
    scale, _ = plain(query, key, value.abs(), 0.5, "gaussian")
    found, _ = distance_attention(query.float(), key.float(), value.float(), 0.5, "gaussian")
    # The largest score of a weight that matters is about 10.
    assert float(((found.double() - exact).abs() / scale).max()) < 1e-6
    assert float((found.double() - exact).abs().mean() / scale.mean()) < 2.0**-24


@pytest.mark.parametrize("profile", list(PROFILES))
def test_points_in_another_unit_give_the_same_bits(profile: str):
    query, key, value = (tensor.float() for tensor in drawn(7, 20, 90, 3, 2))
    context, log_normalizer = distance_attention(query, key, value, 1.5, profile)
    for power in (-90, -20, 1, 40, 100):
        scaled = [torch.ldexp(tensor, torch.tensor(power)) for tensor in (query, key)]
        again = distance_attention(*scaled, value, math.ldexp(1.5, power), profile)
        assert torch.equal(again[0], context)
        assert torch.equal(again[1], log_normalizer)


@pytest.mark.parametrize("profile", EXPONENTIAL)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_nearest_key_has_weight_however_far_it_is(profile: str, dtype: torch.dtype):
    query = torch.tensor([[0.0], [1e4], [-3e4], [2.5]], dtype=dtype)
    key = torch.tensor([[3.0], [1.0], [2.0], [2.0]], dtype=dtype)
    value = torch.tensor([[3.0], [1.0], [2.0], [5.0]], dtype=dtype)
    context, log_normalizer = distance_attention(query, key, value, 1e-3, profile)
    if profile == "gaussian":
        assert context[:, 0].tolist() == pytest.approx([1.0, 3.0, 1.0, (3.0 + 2.0 + 5.0) / 3.0], rel=1e-5)
    distances = torch.tensor([1.0, 9997.0, 30001.0, 0.5], dtype=torch.float64) / 1e-3
    expected = -0.5 * distances.square() if profile == "gaussian" else -distances
    expected[3] += math.log(3.0)
    torch.testing.assert_close(log_normalizer.double(), expected, rtol=1e-6, atol=1e-6)
    # The order of the keys decides when the shift moves.
    for order in ([3, 2, 1, 0], [1, 0, 3, 2]):
        again, _ = distance_attention(query, key[order], value[order], 1e-3, profile)
        torch.testing.assert_close(again, context)


def test_the_shift_moves_between_tiles():
    """Keys that come nearer from tile to tile by more than the range of float32, and go away again."""
    generator = torch.Generator().manual_seed(8)
    key = torch.cat([torch.linspace(60.0, 0.0, 3000), torch.linspace(0.0, 60.0, 3000)])[:, None]
    value = torch.randn(6000, 3, generator=generator)
    query = torch.linspace(-1.0, 61.0, 40)[:, None]
    for function, tolerance in ((distance_attention, 2e-6), (plain, 2e-6)):
        context, _ = function(query, key, value, 0.3, "gaussian")
        expected, _ = plain(query.double(), key.double(), value.double(), 0.3, "gaussian")
        torch.testing.assert_close(context.double(), expected, atol=tolerance, rtol=0)


@pytest.mark.parametrize("profile", list(PROFILES))
def test_a_row_without_weight_gives_zero_and_sends_nothing(profile: str):
    query, key, value = (tensor.float().requires_grad_() for tensor in drawn(9, 6, 40, 3, 2))
    start, stop = torch.tensor([0, 10, 40, 5, 0, 0]), torch.tensor([0, 5, 99, 40, 40, 40])
    far = torch.zeros(6, 3)
    far[4] = 100.0
    bandwidth = torch.tensor(2.0, requires_grad=True)
    context, log_normalizer = distance_attention(query + far, key, value, bandwidth, profile, 1.0, start, stop)
    empty = [0, 1, 2] + ([4] if PROFILES[profile].reach < math.inf else [])
    assert context[empty].count_nonzero() == 0
    assert log_normalizer[empty].tolist() == [-math.inf] * len(empty)
    assert bool(log_normalizer[[3, 5]].isfinite().all())
    # Whatever comes back for such a row stays there, NaN included.
    incoming = torch.ones(6, 2)
    incoming[empty] = math.nan
    more = torch.ones(6)
    more[empty] = math.inf
    torch.autograd.backward([context, log_normalizer], [incoming, more])
    for tensor in (query, key, value, bandwidth):
        assert tensor.grad is not None
        assert bool(tensor.grad.isfinite().all())
    assert query.grad is not None
    assert value.grad is not None
    assert query.grad[empty].count_nonzero() == 0
    assert value.grad.abs().sum() > 1.0


@pytest.mark.parametrize("profile", list(PROFILES))
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_infinite_distances_have_weight_zero(profile: str, temperature: float):
    if profile == "constant":
        return
    query, key, value = (tensor.float() for tensor in drawn(10, 9, 70, 2, 2))
    key[5, 0], key[33, 1], key[34, 0], query[3, 1] = math.inf, -math.inf, 1e30, math.inf
    leaves = [tensor.requires_grad_() for tensor in (query, key, value)]
    context, log_normalizer = distance_attention(*leaves, 2.5, profile, torch.tensor(temperature, requires_grad=True))
    kept = [j for j in range(70) if j not in (5, 33, 34)]
    rows = [i for i in range(9) if i != 3]
    expected = plain(query.detach()[rows], key.detach()[kept], value.detach()[kept], 2.5, profile, temperature)
    torch.testing.assert_close(context[rows], expected[0])
    torch.testing.assert_close(log_normalizer[rows], expected[1])
    assert context[3].tolist() == [0.0, 0.0]
    assert log_normalizer[3].item() == -math.inf
    (context.sum() + log_normalizer[rows].sum()).backward()
    for leaf in leaves:
        assert leaf.grad is not None
        assert bool(leaf.grad.isfinite().all())
    assert key.grad is not None
    assert key.grad[[5, 33, 34]].count_nonzero() == 0


@pytest.mark.parametrize("profile", [profile for profile in PROFILES if profile != "constant"])
@pytest.mark.parametrize("temperature", [1.0, 0.5])
@pytest.mark.parametrize("number", [math.nan, -math.nan], ids=["positive", "negative"])
def test_what_is_not_a_number_shows(profile: str, temperature: float, number: float):
    query, key, value = (tensor.float() for tensor in drawn(11, 11, 1500, 3, 2))
    query[2, 1], key[1200, 0] = number, number
    # Rows from 6 on may not attend the key in question.
    stop = torch.tensor([1500] * 6 + [1200] * 5)
    leaves = [tensor.requires_grad_() for tensor in (query, key, value)]
    context, log_normalizer = distance_attention(*leaves, 0.2, profile, temperature, stop=stop)
    assert bool(context[:6].isnan().all())
    assert bool(log_normalizer[:6].isnan().all())
    rest, _ = plain(
        *(tensor.detach()[6:] if tensor is query else tensor.detach()[:1200] for tensor in leaves),
        0.2,
        profile,
        temperature,
    )
    torch.testing.assert_close(context[6:], rest)
    context[6:].sum().backward()
    for leaf in leaves:
        assert leaf.grad is not None
    assert query.grad is not None
    assert bool(query.grad[6:].isfinite().all())


@pytest.mark.parametrize("which", ["bandwidth", "inverse_temperature"])
def test_a_number_that_is_none_gives_none(which: str):
    query, key, value = (tensor.float() for tensor in drawn(12, 3, 5, 2, 1))
    numbers = {"bandwidth": 1.0, "inverse_temperature": 1.0, which: math.nan}
    context, _ = distance_attention(query, key, value, profile="gaussian", **numbers)
    assert bool(context.isnan().all())


@pytest.mark.parametrize("profile", list(PROFILES))
def test_the_largest_values_have_an_average(profile: str):
    query, key, _ = (tensor.float() for tensor in drawn(13, 10, 3000, 2, 1))
    largest = 0.999 * torch.finfo(torch.float32).max
    value = torch.full((3000, 5), largest)
    context, _ = distance_attention(query, key, value, 3.0, profile)
    assert bool((context / largest > 0.999999).all())
    assert bool(context.isfinite().all())


@pytest.mark.parametrize("bandwidth", [1e-30, 1e-300, 5e-324])
@pytest.mark.parametrize("profile", [profile for profile in PROFILES if profile != "constant"])
def test_a_bandwidth_of_almost_nothing_finds_the_same_point(profile: str, bandwidth: float):
    _, key, value = (tensor.float() for tensor in drawn(14, 1, 12, 2, 3))
    context, _ = distance_attention(key[3:5], key, value, bandwidth, profile)
    torch.testing.assert_close(context, value[3:5], rtol=2e-7, atol=0)


@pytest.mark.parametrize("bandwidth", [1e30, 1e300, math.inf])
@pytest.mark.parametrize("profile", list(PROFILES))
def test_a_bandwidth_beyond_all_points_gives_the_mean(profile: str, bandwidth: float):
    query, key, value = (tensor.float() for tensor in drawn(15, 2, 12, 2, 3))
    context, _ = distance_attention(query, key, value, bandwidth, profile)
    torch.testing.assert_close(context, value.mean(dim=0).expand(2, 3))


def test_the_edge_of_a_compact_kernel_is_outside():
    query, key, value = torch.zeros(1, 1), torch.tensor([[7.0], [-7.0]]), torch.ones(2, 1)
    for profile in ("boxcar", "triangular", "epanechnikov"):
        for inverse_temperature in (1.0, 0.5):
            at = distance_attention(query, key, value, 7.0, profile, inverse_temperature)
            assert at[0].item() == 0.0
            assert at[1].item() == -math.inf
            inside = distance_attention(query, key, value, 7.0001, profile, inverse_temperature)
            assert inside[0].item() == 1.0


@pytest.mark.parametrize("profile", ["gaussian", "epanechnikov"])
@pytest.mark.parametrize("batch", [(), (3,), (11,)])
def test_any_number_of_threads_gives_the_same_bits(
    profile: str, batch: tuple[int, ...], threads: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
):
    inputs = drawn(16, 450, 470, 3, 2, batch)
    ran: list[int] = []
    run_parts = distance_cpu.run_parts
    monkeypatch.setattr(distance_cpu, "run_parts", lambda parts: (ran.append(len(parts)), run_parts(parts[::-1])))
    results = []
    for number in (1, 2, 3):
        threads(number)
        results.append(gradients(distance_attention, inputs, 0.7, profile, torch.float32))
    for more in results[1:]:
        assert all(torch.equal(*pair) for pair in zip(results[0], more, strict=True))
    assert max(ran[:2]) > 1  # one thread runs the forward pass in one part
    assert min(ran[2:]) > 1


def test_small_work_stays_in_one_part(monkeypatch: pytest.MonkeyPatch):
    ran: list[int] = []
    monkeypatch.setattr(distance_cpu, "run_parts", lambda parts: (ran.append(len(parts)), [part() for part in parts]))
    gradients(distance_attention, drawn(17, 50, 60, 3, 1, (4,)), 1.0, "gaussian", torch.float32)
    assert ran == [1, 1]


def test_nothing_that_grows_with_the_product_is_kept():
    query, key, value = (tensor.float().requires_grad_() for tensor in drawn(18, 300, 400, 3, 2))
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: (kept.append(tensor.numel()), tensor)[1], lambda t: t):
        distance_attention(query, key, value, torch.tensor(1.0, requires_grad=True), "gaussian")
    assert kept
    assert sum(kept) < 10 * (300 + 400)


def test_sums_of_many_rows_keep_their_digits():
    """A key that 60,000 queries look at: one running sum in float32 would be off by 1e-4."""
    query = torch.rand(60_000, 1, generator=torch.Generator().manual_seed(19))
    key = torch.tensor([[0.0], [1.0]])
    value = torch.tensor([[1.0], [2.0]], requires_grad=True)
    context, _ = distance_attention(query, key, value, 0.7, "gaussian")
    context.sum().backward()
    assert value.grad is not None
    exact = torch.softmax(-0.5 * ((query.double() - key.double().T) / 0.7).square(), dim=1).sum(dim=0)
    assert float(((value.grad[:, 0].double() - exact) / exact).abs().max()) < 3e-7


@pytest.mark.parametrize("profile", ["gaussian", "triangular"])
def test_strides_expansions_and_leading_axes(profile: str):
    generator = torch.Generator().manual_seed(20)
    query = torch.randn(2, 3, 2, 5, generator=generator).mT[..., ::2, :]
    key = torch.randn(7, 2, generator=generator).expand(3, 7, 2)
    value = torch.randn(3, 4, 7, generator=generator)[:, 1::2].mT
    stop = torch.tensor([[4], [7], [2]])
    leaves = [tensor.double().requires_grad_() for tensor in (query, key, value)]
    found = distance_attention(*leaves, 1.9, profile, stop=stop)
    expected = plain(*leaves, 1.9, profile, stop=stop)
    assert found[0].shape == (2, 3, 3, 2)
    assert found[1].shape == (2, 3, 3)
    factors = [torch.randn(tensor.shape, generator=generator) for tensor in found]
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
    sent = [torch.autograd.grad(pair, leaves, factors) for pair in (found, expected)]
    for one, other in zip(*sent, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("profile", list(PROFILES))
@pytest.mark.parametrize(
    "shape", [(0, 4, 2, 3, ()), (4, 0, 2, 3, ()), (4, 5, 0, 3, ()), (4, 5, 2, 0, ()), (4, 5, 2, 3, (0,))]
)
def test_nothing_to_attend_with_or_to(profile: str, shape: tuple[Any, ...]):
    inputs = drawn(21, *shape)
    for function in (distance_attention,):
        found = gradients(function, inputs, 1.3, profile, torch.float32)
        expected = [torch.zeros(*shape[4], shape[0], shape[3])] if 0 in (shape[1], shape[3]) else None
        assert found[0].shape == (*shape[4], shape[0], shape[3])
        assert found[1].shape == (*shape[4], shape[0])
        assert expected is None or torch.equal(found[0], expected[0].double())
        assert [tensor.shape for tensor in found[2:5]] == [tensor.shape for tensor in inputs]
    if shape[1] == 0:
        assert found[1].tolist() == [-math.inf] * 4
    if shape[3] == 0:
        wide = gradients(distance_attention, (*inputs[:2], torch.zeros(5, 1)), 1.3, profile, torch.float64)
        torch.testing.assert_close(found[1], wide[1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_types_are_computed_in_float32(dtype: torch.dtype):
    inputs = [tensor.to(dtype).requires_grad_() for tensor in drawn(22, 6, 30, 3, 2)]
    context, log_normalizer = distance_attention(*inputs, torch.tensor(0.8, dtype=dtype), "gaussian")
    wide = [tensor.detach().float() for tensor in inputs]
    expected = distance_attention(*wide, torch.tensor(0.8, dtype=dtype), "gaussian")
    assert torch.equal(context, expected[0].to(dtype))
    assert torch.equal(log_normalizer, expected[1])
    assert log_normalizer.dtype == torch.float32
    context.sum().backward()
    assert {tensor.grad.dtype for tensor in inputs if tensor.grad is not None} == {dtype}


def test_gradients_are_wanted_one_by_one():
    inputs = drawn(23, 9, 300, 3, 2)
    numbers = [torch.tensor(0.8), torch.tensor(1.2)]
    every = gradients(distance_attention, inputs, 0.8, "gaussian", torch.float32, 1.2)[2:]
    generator = torch.Generator().manual_seed(77)
    factors = [torch.randn(9, 2, generator=generator), torch.randn(9, generator=generator)]
    for place in range(5):
        leaves = [*(tensor.float() for tensor in inputs), *(number.clone() for number in numbers)]
        leaves[place].requires_grad_()
        found = distance_attention(*leaves[:4], "gaussian", leaves[4])
        (gradient,) = torch.autograd.grad(found, [leaves[place]], factors)
        assert torch.equal(gradient.double(), every[place])


def test_it_is_differentiable_once_and_notices_a_change():
    query, key, value = (tensor.requires_grad_() for tensor in drawn(24, 3, 5, 2, 1))
    # Of a sum the incoming gradient has no graph.
    (slope,) = torch.autograd.grad(
        distance_attention(query, key, value, 1.0, "gaussian")[0].sum(), query, create_graph=True
    )
    with pytest.raises(KernelUnsupported, match="differentiated once only: take attend"):
        slope.sum().backward()
    context, _ = distance_attention(query, key, value, 1.0, "gaussian")
    with torch.no_grad():
        key += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        context.sum().backward()


def test_what_does_not_fit_is_refused():
    query, key, value = torch.zeros(2, 3), torch.zeros(4, 3), torch.zeros(4, 1)
    for wrong, message in (
        ((query[:, :2], key, value), "differ in size"),
        ((query, key, value[:3]), "differ in number"),
        ((query[0], key, value), "two axes"),
        ((query.expand(2, 2, 3), key.expand(3, 4, 3), value), "leading axes"),
    ):
        with pytest.raises(ShapeError, match=message):
            distance_attention(*wrong, 1.0, "gaussian")
    with pytest.raises(ShapeError, match="do not fit rows"):
        distance_attention(query, key, value, 1.0, "gaussian", stop=torch.tensor([1, 2, 3]))
    with pytest.raises(ShapeError, match="one number"):
        distance_attention(query, key, value, torch.ones(2), "gaussian")
    for bandwidth, inverse_temperature in ((0.0, 1.0), (-1.0, 1.0), (1.0, 0.0), (1.0, -2.0)):
        with pytest.raises(UsageError, match="is not above 0"):
            distance_attention(query, key, value, bandwidth, "gaussian", inverse_temperature)
    with pytest.raises(KernelUnsupported, match="no profile 'box'"):
        distance_attention(query, key, value, 1.0, "box")


def test_support():
    assert supports(torch.float32, "cpu", "gaussian") is None
    assert supports(torch.float64, torch.device("cpu"), "boxcar") is None
    assert supports(torch.float32, "cuda", "gaussian") == "only on a CPU"
    assert supports(torch.int64, "cpu", "gaussian") == "not for int64"
    assert supports(torch.float32, "cpu", "cosine") == "no profile 'cosine'"


def test_support_without_numba(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(distance_cpu, "_has_numba", lambda: False)
    assert supports(torch.float32, "cpu", "gaussian") == "Numba is not installed"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_of_two(dtype: type[np.floating[Any]]):
    from numba import njit

    from heedful.cpu.numba_math import FLAGS, exp2

    @njit(fastmath=FLAGS)
    def fill(exponents: np.ndarray, powers: np.ndarray) -> None:
        for i in range(len(exponents)):
            powers[i] = exp2(exponents[i])

    lowest = np.finfo(dtype).minexp - 1
    exponents = np.concatenate([np.linspace(lowest + 1.5, 0.5, 200_001), np.linspace(-2.0, 2.0, 200_001)]).astype(dtype)
    powers = np.empty_like(exponents)
    fill(exponents, powers)
    exact = np.exp2(exponents.astype(np.longdouble))
    assert float(np.abs((powers - exact) / exact).max()) < (9e-8 if dtype is np.float32 else 2e-16)
    special = np.array([lowest, lowest + 0.3, lowest + 0.8, 0.0, 1.0, np.nan], dtype)
    found = np.empty_like(special)
    fill(special, found)
    assert found[0] == 0.0
    assert 0.0 < found[1] < found[2] < np.finfo(dtype).tiny * 1.5
    assert found[3:5].tolist() == [1.0, 2.0]
    assert np.isnan(found[5])


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**20),
    num_queries=st.integers(1, 9),
    num_keys=st.integers(1, 200),
    size=st.integers(0, 9),
    value_size=st.integers(1, 9),
    profile=st.sampled_from(sorted(PROFILES)),
    bandwidth=st.floats(0.05, 30.0),
    is_bounded=st.booleans(),
)
def test_any_shape(
    seed: int,
    num_queries: int,
    num_keys: int,
    size: int,
    value_size: int,
    profile: str,
    bandwidth: float,
    is_bounded: bool,
):
    inputs = drawn(seed, num_queries, num_keys, size, value_size)
    bounds = windows(seed, num_queries, num_keys) if is_bounded else (None, None)
    found, expected = (
        gradients(function, inputs, bandwidth, profile, torch.float64, None, bounds)
        for function in (distance_attention, plain)
    )
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-8, rtol=1e-6)
