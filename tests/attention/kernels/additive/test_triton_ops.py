"""The programs run here in Triton's interpreter (TRITON_INTERPRET=1), or on a CUDA device where there is one."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.attention.kernels import devices
from heedful.attention.kernels.additive import triton_ops as additive_triton
from heedful.attention.kernels.additive.triton_ops import TritonAdditiveScores, additive_scores
from heedful.attention.kernels.fused.kernel import FusedTriton
from heedful.attention.kernels.interface import Request
from heedful.attention.lowered import LoweredAdditive, LoweredDot
from heedful.errors import ShapeError
from tests.attention.kernels.interpreter import DEVICE, quiet, runs

REQUEST = Request(LoweredAdditive, torch.float32, "cuda", 10, 10)
NAMES = ("scores", "query", "key", "vector")


def formula(query: Tensor, key: Tensor, vector: Tensor) -> Tensor:
    return torch.tanh(query[..., :, None, :] + key[..., None, :, :]) @ vector


def run(score: Callable[..., Tensor], inputs: list[Tensor], grad: Tensor, dtype: torch.dtype) -> list[Tensor]:
    """Scores and the gradients of query, key and vector."""
    leaves = [part.detach().to(dtype).requires_grad_() for part in inputs]
    scores = score(*leaves)
    return [scores.detach(), *torch.autograd.grad(scores, leaves, grad.to(scores.dtype))]


def check(query: Tensor, key: Tensor, vector: Tensor) -> None:
    """At most twice the error of the formula in float32, 3 times in gradients, or 2^-24 of the sum of all terms.

    A few units in the last place of one term are in hand: sums of few terms may be exact by chance.
    """
    inputs = [part.to(DEVICE) for part in (query, key, vector)]
    shape = (*torch.broadcast_shapes(query.shape[:-2], key.shape[:-2]), query.shape[-2], key.shape[-2])
    grad = torch.randn(shape, generator=torch.Generator().manual_seed(9)).to(DEVICE)
    ours = run(additive_scores, inputs, grad, torch.float32)
    plain = run(formula, inputs, grad, torch.float32)
    exact = run(formula, inputs, grad, torch.float64)

    def size(query: Tensor, key: Tensor, vector: Tensor) -> Tensor:
        return torch.tanh(query[..., :, None, :] + key[..., None, :, :]).abs() @ vector.abs()

    leaves = [part.double() for part in inputs]
    tanh = torch.tanh(leaves[0][..., :, None, :] + leaves[1][..., None, :, :])
    slopes = ((1.0 - tanh * tanh) * leaves[2] * grad[..., None]).abs()
    outer, shares = (leaves[2] * grad[..., None]).abs().amax(), (tanh * grad[..., None]).abs()
    terms = [
        size(*leaves),
        slopes.sum(-2).sum_to_size(query.shape),
        slopes.sum(-3).sum_to_size(key.shape),
        shares.sum_to_size(vector.shape),
    ]
    units = [(tanh * leaves[2]).abs().amax(), outer, outer, shares.amax()]
    for i, (name, term, unit) in enumerate(zip(NAMES, terms, units, strict=True)):
        assert ours[i].shape == exact[i].shape
        error, plain_error = (ours[i] - exact[i]).abs(), (plain[i] - exact[i]).abs()
        factor, spare = (2.0, 4.0) if i == 0 else (3.0, 8.0)
        allowed = torch.maximum(factor * plain_error.amax(), term * 2**-24) + spare * 2**-24 * unit + 1e-44
        assert bool((error <= allowed).all()), (name, float((error / allowed).amax()))


def draw(*shapes: tuple[int, ...], scale: float = 1.0, seed: int = 1) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [scale * torch.randn(*shape, generator=generator) for shape in shapes]


@runs
@quiet
@pytest.mark.parametrize("scale", [1e-4, 0.01, 0.5, 1.0, 2.0, 4.0, 8.0, 30.0])
def test_error(scale: float):
    query, key = draw((2, 9, 96), (2, 11, 96), scale=scale)
    check(query, key, draw((96,), seed=2)[0] / 96**0.5)


@runs
@quiet
@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 4.0, 9.0])
def test_error_of_many_features(scale: float):
    """Most take the quick form; some are too small for it, or too large."""
    query, key = draw((1, 9, 160), (1, 11, 160), scale=scale)
    query[..., 5] *= 1e-3 / scale
    key[..., 5] *= 1e-3 / scale
    query[..., 8] += 30.0
    key[..., 9] += 50.0
    check(query, key, draw((160,), seed=2)[0] / 160**0.5)


@runs
@quiet
def test_the_quick_form_is_taken(monkeypatch: pytest.MonkeyPatch):
    query, key = draw((1, 9, 160), (1, 11, 160))
    vector = draw((160,), seed=2)[0]
    scores = additive_scores(query.to(DEVICE), key.to(DEVICE), vector.to(DEVICE))
    monkeypatch.setattr(additive_triton, "MANY", 1000)
    others = additive_scores(query.to(DEVICE), key.to(DEVICE), vector.to(DEVICE))
    assert not torch.equal(scores, others)
    torch.testing.assert_close(scores, others, rtol=0.0, atol=1e-5)


@runs
@quiet
@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (1, 65, 3), (33, 1, 31), (32, 64, 32), (35, 67, 33), (3, 5, 64), (70, 7, 2)]
)
def test_ragged_sizes(sizes: tuple[int, int, int]):
    num_queries, num_keys, hidden = sizes
    query, key, vector = draw((2, num_queries, hidden), (2, num_keys, hidden), (hidden,))
    check(query, key, vector)


@runs
@quiet
@pytest.mark.parametrize(
    ("lead", "key_lead"), [((), ()), ((), (3,)), ((3,), ()), ((2, 1), (3,)), ((2, 3), (1, 3)), ((1, 2), (3, 1))]
)
def test_leading_axes_broadcast(lead: tuple[int, ...], key_lead: tuple[int, ...]):
    check(*draw((*lead, 3, 5), (*key_lead, 4, 5), (5,)))


@runs
@quiet
def test_any_layout():
    query, key, vector = draw((5, 3, 2), (2, 4, 10), (10,))
    check(query.permute(2, 1, 0), key[..., ::2], vector[1::2])
    check(query[:, :, 0].mT[None].expand(2, 3, 5), key[..., 5:], vector[:5])


@runs
@quiet
@pytest.mark.parametrize("far", [20.0, 42.9, 43.1, 90.0, 1e4, 1e30])
def test_values_far_out(far: float):
    query, key, vector = draw((4, 40), (6, 40), (40,))
    query[:, 3], key[:, 3] = query[:, 3] + far, key[:, 3] - far
    query[:, 7] += far
    key[2:4, 9] -= far
    for feature in (12, 5):  # the first and the second of a pair; here rows differ by more than exponents hold
        query[1, feature], key[1, feature] = query[1, feature] - far, key[1, feature] + far
    check(query, key, vector)


@runs
@quiet
@pytest.mark.parametrize("factor", [1e-36, 1e-10, 1e10, 1e36])
def test_vectors_of_any_size(factor: float):
    query, key, vector = draw((4, 6), (3, 6), (6,))
    key[:, 2] += 41.0
    check(query, key, vector * factor)


@runs
@quiet
@pytest.mark.parametrize("stray", [torch.inf, -torch.inf, torch.nan])
@pytest.mark.parametrize(("place", "feature"), [(0, 2), (1, 3)])
def test_strays_give_what_the_formula_gives(stray: float, place: int, feature: int):
    inputs = [part.to(DEVICE) for part in draw((4, 6), (3, 6), (6,))]
    inputs[place][1, feature] = stray
    grad = torch.ones(4, 3, device=DEVICE)
    for ours, plain in zip(
        run(additive_scores, inputs, grad, torch.float32), run(formula, inputs, grad, torch.float32), strict=True
    ):
        torch.testing.assert_close(ours, plain, rtol=1e-5, atol=1e-5, equal_nan=True)


@runs
@quiet
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_single(dtype: torch.dtype):
    inputs = [part.to(DEVICE, dtype) for part in draw((2, 4, 40), (2, 3, 40), (40,))]
    grad = torch.ones(2, 4, 3, device=DEVICE)
    wanted = run(formula, inputs, grad, torch.float64)
    for ours, exact in zip(run(additive_scores, inputs, grad, dtype), wanted, strict=True):
        assert ours.dtype == dtype
        torch.testing.assert_close(ours.double(), exact, rtol=torch.finfo(dtype).eps, atol=1e-5)


@runs
@quiet
def test_only_what_is_asked_is_differentiated():
    inputs = [part.to(DEVICE) for part in draw((4, 6), (3, 6), (6,))]
    grads = run(formula, inputs, torch.ones(4, 3, device=DEVICE), torch.float64)[1:]
    for i, leaf in enumerate(inputs):
        leaf.requires_grad_()
        (ours,) = torch.autograd.grad(additive_scores(*inputs).sum(), [leaf])
        torch.testing.assert_close(ours.double(), grads[i], rtol=1e-5, atol=1e-6)
        leaf.requires_grad_(False)


@runs
@quiet
def test_twice_the_same_to_the_bit():
    inputs = [part.to(DEVICE) for part in draw((2, 40, 33), (1, 70, 33), (33,))]
    grad = draw((2, 40, 70), seed=3)[0].to(DEVICE)
    first, second = (run(additive_scores, inputs, grad, torch.float32) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize(
    ("shape", "key_shape"), [((0, 3), (4, 3)), ((2, 3), (0, 3)), ((2, 0), (4, 0)), ((0, 2, 3), (4, 3))]
)
def test_empty_axes(shape: tuple[int, ...], key_shape: tuple[int, ...]):
    inputs = [torch.ones(*size, requires_grad=True) for size in (shape, key_shape, shape[-1:])]
    scores = additive_scores(*inputs)
    assert scores.shape == (*shape[:-2], shape[-2], key_shape[-2])
    assert not scores.any()
    for grad, leaf in zip(torch.autograd.grad(scores.sum(), inputs), inputs, strict=True):
        assert torch.equal(grad, torch.zeros_like(leaf))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((2, 3), (2, 4), (3,)), "must end in the same size"),
        (((2, 3), (2, 3), (4,)), "must end in the same size"),
        (((3,), (2, 3), (3,)), "must end in the same size"),
        (((2, 2, 3), (3, 2, 3), (3,)), "do not broadcast"),
    ],
)
def test_shapes_that_do_not_fit(shapes: tuple[tuple[int, ...], ...], message: str):
    with pytest.raises(ShapeError, match=message):
        additive_scores(*(torch.zeros(shape) for shape in shapes))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"dtype": torch.bfloat16}, None),
        ({"pairs": LoweredDot}, "only additive scores"),
        ({"mode": "export"}, "Triton kernels cannot be traced (export)"),
        ({"mode": "compile"}, "Triton kernels cannot be traced (compile)"),
        ({"device": "cpu"}, "only on a CUDA device"),
        ({"dtype": torch.float64}, "only float32, bfloat16 and float16"),
    ],
)
def test_it_says_why_it_refuses(change: dict[str, Any], reason: str | None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(devices, "has_triton", lambda: True)
    assert TritonAdditiveScores().supports(REQUEST._replace(**change)) == reason


def test_it_asks_for_triton(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(devices, "has_triton", lambda: False)
    assert "[gpu]" in str(TritonAdditiveScores().supports(REQUEST))


@runs
@quiet
def test_scores_of_pairs():
    query, key, vector = (part.to(DEVICE) for part in draw((2, 3), (4, 3), (3,)))
    scores, exists = TritonAdditiveScores().scores(LoweredAdditive(query, key, vector))
    assert exists is None
    torch.testing.assert_close(scores, formula(query, key, vector))
    assert TritonAdditiveScores().numbers_per_score(LoweredAdditive(query, key, vector)) == 1


def test_pairs_of_another_kind_raise():
    with pytest.raises(TypeError, match="additive_triton: got LoweredDot"):
        TritonAdditiveScores().scores(LoweredDot(torch.zeros(1, 1), torch.zeros(1, 1)))


def test_triton_is_not_imported_before_it_is_used():
    code = "import sys, heedful.attention.dispatch; sys.exit('triton' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_small_calls_on_a_gpu_take_plain_operations():
    """Where they were measured to be faster; a call whose numbers would fill half a gigabyte takes these kernels."""
    for kernel in (TritonAdditiveScores(), FusedTriton()):
        few, many = (REQUEST._replace(num_numbers=number) for number in (80 * 20 * 256, 32 * 256 * 256 * 512))
        assert kernel.declines_auto(few) == "plain operations are faster for so few numbers"
        assert kernel.declines_auto(many) is None
        assert kernel.declines_auto(REQUEST) is None
        assert kernel.declines_auto(many._replace(device="cpu")) == "runs in Triton's interpreter here: by name only"
