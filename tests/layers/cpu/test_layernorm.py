"""Loops between products in mixed precision, against the same formulas in float64."""

import sys
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization

from heedful.attention.dispatch import attend
from heedful.attention.scores import Additive
from heedful.cpu import threads
from heedful.cpu.availability import loops_problem
from heedful.errors import KernelUnsupported
from heedful.layers.cpu import layernorm as fused
from heedful.layers.cpu.accelerate import LAYER_FORMS, accelerate
from heedful.layers.cpu.layernorm import (
    DeferredBias,
    add_dropped,
    is_fused,
    is_plain,
    linear_deferred,
    normalized,
    normalized_beside,
    rectified,
)
from heedful.layers.cpu.packed_attention import attend_multihead
from heedful.layers.feedforward import FeedForward
from heedful.layers.multihead import MultiheadAttention
from heedful.layers.packing import Packing
from heedful.layers.residual import NormOrder, Residual
from heedful.training.cross_entropy import linear_cross_entropy

SHAPES = [(3, 5, 32), (1, 8), (700, 24), (2, 0, 4), (4, 3)]


@pytest.fixture
def mixed() -> Iterator[None]:
    """Products in bfloat16."""
    if reason := loops_problem():
        pytest.skip(reason)
    with torch.autocast("cpu", torch.bfloat16):
        yield


def make_norm(size: int) -> nn.LayerNorm:
    norm = nn.LayerNorm(size, eps=1e-6)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    return norm


def in_float64(vectors: Tensor, norm: nn.LayerNorm) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Leaves, and what they make."""
    wide, weight, bias = (one.detach().double().requires_grad_() for one in (vectors, norm.weight, norm.bias))
    mean = wide.mean(dim=-1, keepdim=True)
    variance = (wide - mean).square().mean(dim=-1, keepdim=True)
    return wide, weight, bias, weight * (wide - mean) / (variance + 1e-6).sqrt() + bias


def is_near(given: Tensor, wanted: Tensor, rounding: float) -> bool:
    return bool(((given.double() - wanted).abs() <= rounding * (wanted.abs() + wanted.abs().mean())).all())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("offset", [0.0, 30.0])
@pytest.mark.usefixtures("mixed")
def test_normalising_is_the_formula(offset: float, shape: tuple[int, ...]):
    norm, vectors = make_norm(shape[-1]), torch.randn(shape) * 2.0 + offset
    vectors.requires_grad_()
    kept, given = normalized_beside(norm, vectors)
    assert given.dtype == torch.bfloat16
    assert torch.equal(kept, vectors)
    wide, weight, bias, wanted = in_float64(vectors, norm)
    assert is_near(given.detach(), wanted.detach(), 2.0**-8)
    slope, beside = torch.randn(shape).bfloat16(), torch.randn(shape)
    found = torch.autograd.grad([kept, given], [vectors, norm.weight, norm.bias], [beside, slope])
    exact = torch.autograd.grad(wanted, [wide, weight, bias], slope.double())
    assert is_near(found[0], exact[0] + beside, 1e-4)
    assert is_near(found[1], exact[1], 1e-4)
    assert is_near(found[2], exact[2], 1e-4)


@pytest.mark.usefixtures("mixed")
def test_gradients_come_from_whichever_result_is_used():
    norm, vectors = make_norm(6), torch.randn(4, 6, requires_grad=True)
    kept, given = normalized_beside(norm, vectors)
    assert torch.equal(torch.autograd.grad(kept.sum(), vectors)[0], torch.ones(4, 6))
    wide, _, _, wanted = in_float64(vectors, norm)
    slope = torch.randn(4, 6).bfloat16()
    kept, given = normalized_beside(norm, vectors)
    (alone,) = torch.autograd.grad(given, vectors, slope)
    assert is_near(alone, torch.autograd.grad(wanted, wide, slope.double())[0], 1e-4)
    assert torch.equal(given, normalized(norm, vectors))


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.usefixtures("mixed")
def test_what_is_left_out_and_what_is_scaled(probability: float):
    kept, vectors = torch.zeros(300, 500), torch.ones(300, 500, dtype=torch.bfloat16)
    total = add_dropped(kept.requires_grad_(), vectors, probability, training=True).detach()
    spread = (probability * (1 - probability) / total.numel()) ** 0.5
    assert float((total == 0.0).double().mean()) == pytest.approx(probability, abs=5 * spread)
    assert total[total != 0.0].unique().tolist() == [pytest.approx(1.0 / (1.0 - probability), rel=1e-6)]
    assert bool((add_dropped(kept, vectors, probability, training=False) == 1.0).all())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.usefixtures("mixed")
def test_gradients_pass_where_the_values_did(shape: tuple[int, ...]):
    kept = torch.randn(shape, requires_grad=True)
    vectors = (torch.randn(shape).abs() + 1.0).bfloat16().requires_grad_()
    total = add_dropped(kept, vectors, 0.4, training=True)
    slope = torch.randn(shape)
    of_kept, of_vectors = torch.autograd.grad(total, [kept, vectors], slope)
    assert torch.equal(of_kept, slope)
    factors = (total - kept).detach() / vectors.detach().float()
    assert of_vectors.dtype == torch.bfloat16
    assert torch.allclose(of_vectors.float(), slope * factors, rtol=2.0**-7, atol=1e-5)


@pytest.mark.parametrize("probability", [0.0, 0.3])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.usefixtures("mixed")
def test_a_bias_is_added_before_numbers_are_left_out(shape: tuple[int, ...], probability: float):
    kept, vectors = torch.randn(shape, requires_grad=True), torch.randn(shape).bfloat16().requires_grad_()
    bias = torch.randn(shape[-1], requires_grad=True)
    torch.manual_seed(5)
    total = add_dropped(kept, DeferredBias(vectors, bias), probability, training=True)
    torch.manual_seed(5)
    factors = add_dropped(torch.zeros(shape, requires_grad=True), torch.ones(shape).bfloat16(), probability, True)
    factors = factors.detach().double()
    wanted = kept.detach().double() + factors * (vectors.detach().double() + bias.detach().double())
    assert is_near(total.detach(), wanted, 1e-6)
    slope = torch.randn(shape)
    of_vectors, of_bias = torch.autograd.grad(total, [vectors, bias], slope)
    assert is_near(of_vectors, slope.double() * factors, 2.0**-8)
    # Summed after rounding, as plain operations do.
    assert is_near(of_bias, of_vectors.double().reshape(-1, shape[-1]).sum(dim=0), 1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.usefixtures("mixed")
def test_rectified_is_the_formula(shape: tuple[int, ...]):
    layer = nn.Linear(shape[-1], 40)
    vectors = torch.randn(shape).bfloat16().requires_grad_()
    given = rectified(vectors, layer)
    leaves = [vectors.detach().double(), layer.weight.detach().bfloat16().double(), layer.bias.detach().double()]
    wide, weight, bias = (one.requires_grad_() for one in leaves)
    sums = wide @ weight.mT + bias
    wanted = torch.relu(sums)
    assert given.dtype == torch.bfloat16
    assert is_near(given.detach(), wanted.detach(), 2.0**-7)
    slope = torch.randn(given.shape).bfloat16()
    # Where rounding decides whether a sum is positive, either gradient is right.
    slope[sums.abs() < 0.05] = 0.0
    found = torch.autograd.grad(given, [vectors, layer.weight, layer.bias], slope)
    exact = torch.autograd.grad(wanted, [wide, weight, bias], slope.double())
    assert all(is_near(one, other, 0.02) for one, other in zip(found, exact, strict=True))
    assert [one.dtype for one in found] == [torch.bfloat16, torch.float32, torch.float32]


@pytest.mark.usefixtures("mixed")
def test_what_is_no_number_stays_none():
    layer = nn.Linear(3, 4)
    vectors = torch.tensor([[1.0, torch.nan, 2.0], [1.0, 2.0, 3.0]]).bfloat16()
    assert bool(rectified(vectors, layer)[0].isnan().all())
    assert not bool(rectified(vectors, layer)[1].isnan().any())


@pytest.mark.usefixtures("mixed")
def test_a_map_without_its_bias_has_it_beside():
    layer, vectors = nn.Linear(6, 5), torch.randn(7, 6).bfloat16()
    unbiased = linear_deferred(vectors, layer)
    assert is_near(unbiased.total().detach(), layer(vectors).detach().double(), 2.0**-6)
    assert not is_near(unbiased.vectors.detach(), layer(vectors).detach().double(), 2.0**-6)
    plain = linear_deferred(vectors, nn.Linear(6, 5, bias=False))
    assert plain.total() is plain.vectors


class Shift(nn.Module):
    """A parametrization."""

    def forward(self, numbers: Tensor) -> Tensor:
        return numbers + 2.0


class Adapted(nn.Linear):
    """A map with something beside its weight."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input) + 3.0


@pytest.mark.parametrize("which", ["inner", "outer"])
@pytest.mark.parametrize("how", ["parametrized", "adapted", "hooked", "without bias"])
@pytest.mark.usefixtures("mixed")
def test_maps_that_are_more_than_weight_and_bias_are_called(how: str, which: str):
    layer = FeedForward(6, 9)
    changed = getattr(layer, which)
    if how == "parametrized":
        register_parametrization(changed, "bias", Shift())
    elif how == "hooked":
        changed.register_forward_hook(lambda _, __, output: output + 5.0)
    else:
        setattr(layer, which, Adapted(6, 9) if which == "inner" else Adapted(9, 6))
    if how == "without bias":
        setattr(layer, which, nn.Linear(changed.in_features, changed.out_features, bias=False))
    assert not is_plain(getattr(layer, which))
    vectors = torch.randn(7, 6).bfloat16()
    accelerate(layer, LAYER_FORMS)
    given = layer(vectors)
    with torch.no_grad():
        wanted = layer(vectors)
    assert is_near(given.detach(), wanted.double(), 0.02)


@pytest.mark.usefixtures("mixed")
def test_decisions_are_independent_of_their_neighbours_and_of_other_calls():
    kept, ones = torch.zeros(400_000, requires_grad=True), torch.ones(400_000, dtype=torch.bfloat16)
    torch.manual_seed(2)
    first, second = ((add_dropped(kept, ones, 0.25, training=True) == 0.0).double() for _ in range(2))
    for distance in (1, 2, 3, 4, 8, 16, 256, 1 << 16):
        assert float((first[distance:] * first[:-distance]).mean()) == pytest.approx(0.0625, abs=0.002)
    for distance in (0, 1, 5):
        pairs = first[distance:] * second[: len(second) - distance]
        assert float(pairs.mean()) == pytest.approx(0.0625, abs=0.002)


@pytest.mark.usefixtures("mixed")
def test_the_same_seed_leaves_out_the_same_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fused, "_PART", 64)
    kept, vectors = torch.randn(33, 20, requires_grad=True), torch.randn(33, 20).bfloat16()
    norm = make_norm(20)
    results: list[list[Tensor]] = []
    for seed, num_threads in ((3, 1), (3, 3), (4, 1)):
        monkeypatch.setattr(threads, "num_threads", lambda num=num_threads: num)
        torch.manual_seed(seed)
        total = normalized(norm, add_dropped(kept, vectors, 0.5, training=True))
        results.append([total, *torch.autograd.grad(total.float().square().sum(), [kept, norm.weight, norm.bias])])
    assert all(torch.equal(one, other) for one, other in zip(results[0], results[1], strict=True))
    assert not torch.equal(results[0][0], results[2][0])


@pytest.mark.usefixtures("mixed")
def test_vectors_in_any_layout():
    norm = make_norm(4)
    vectors = torch.randn(4, 7).T.requires_grad_()
    assert torch.equal(normalized(norm, vectors), normalized(norm, vectors.detach().contiguous().requires_grad_()))
    other = torch.randn(4, 7).bfloat16().T
    total = add_dropped(vectors, other, 0.0, training=True)
    assert torch.allclose(total, vectors + other)
    slope = torch.randn(4, 7).T
    assert torch.equal(torch.autograd.grad(total, vectors, slope)[0], slope)


@pytest.mark.parametrize("order", ["post", "pre"])
def test_a_residual_connection_is_the_same_with_plain_operations(order: NormOrder, monkeypatch: pytest.MonkeyPatch):
    residual, inner = Residual(16, 0.0, order), nn.Linear(16, 16)
    accelerate(residual, LAYER_FORMS)
    vectors = torch.randn(3, 5, 16, requires_grad=True)
    slope = torch.randn(3, 5, 16)
    found: list[list[Tensor]] = []
    for problem in (None, "not wanted"):
        monkeypatch.setattr(fused, "loops_problem", lambda problem=problem: problem)
        with torch.autocast("cpu", torch.bfloat16):
            given = residual(vectors, inner)
        parameters = [vectors, residual.norm.weight, residual.norm.bias, inner.weight]
        found.append([given.detach(), *torch.autograd.grad(given, parameters, slope)])
    for one, other in zip(*found, strict=True):
        assert float((one - other).norm() / other.norm()) <= 0.02


def test_where_it_is_not_meant_for_nothing_changes(monkeypatch: pytest.MonkeyPatch):
    vectors = torch.randn(2, 3, requires_grad=True)
    assert not is_fused(vectors)
    with torch.autocast("cpu", torch.bfloat16):
        assert is_fused(vectors) == (loops_problem() is None)
        assert not is_fused(vectors.double())
        assert not is_fused(vectors.bfloat16())
        with torch.no_grad():
            assert not is_fused(vectors)
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
        assert not is_fused(vectors)
        monkeypatch.undo()
        loops_problem.cache_clear()
        monkeypatch.setitem(sys.modules, "numba", None)
        assert not is_fused(vectors)
        monkeypatch.undo()
        loops_problem.cache_clear()
    with torch.autocast("cpu", torch.float16):
        assert not is_fused(vectors)
    assert normalized(nn.Identity(), vectors) is vectors


@pytest.mark.usefixtures("mixed")
def test_a_second_derivative_is_refused():
    vectors = torch.randn(2, 3, requires_grad=True)
    given = normalized(make_norm(3), vectors).float().square().sum()
    (gradient,) = torch.autograd.grad(given, vectors, create_graph=True)
    with pytest.raises(KernelUnsupported, match="differentiated once only: leave out autocast"):
        gradient.sum().backward()


@pytest.mark.usefixtures("mixed")
def test_memory_of_parameters_can_still_be_taken_away():
    # FSDP2 does so between its uses, and PyTorch never resizes what NumPy has shared.
    norm, inner, outer, table = make_norm(8), nn.Linear(8, 12), nn.Linear(12, 8), nn.Linear(8, 20)
    heads, energy = MultiheadAttention(8, 2), Additive(8, 8, 8)
    packing = Packing.of(torch.tensor([3, 4]), 4)
    vectors = torch.randn(packing.num_rows, 8, requires_grad=True)
    kept, narrow = normalized_beside(norm, vectors)
    total = add_dropped(kept, attend_multihead(heads, None, packing, packing, narrow), 0.1, training=True)
    total = add_dropped(total, linear_deferred(rectified(narrow, inner), outer), 0.1, training=True)
    loss = linear_cross_entropy(total, table.weight, table.bias, torch.zeros(len(total), dtype=torch.int64)).total
    operands = total[None, :3].float(), total[None].float(), total[None].float()
    attended = attend(*operands, score=energy, kernel="additive_cpu")
    (loss + attended.context.sum()).backward()
    modules = (norm, inner, outer, table, heads, energy)
    parameters = [parameter for module in modules for parameter in module.parameters()]
    assert all(parameter.grad is not None for parameter in parameters)
    assert all(parameter.untyped_storage().resizable() for parameter in parameters)
    shared = nn.Parameter(torch.zeros(3))
    shared.detach().numpy()
    assert not shared.untyped_storage().resizable()
