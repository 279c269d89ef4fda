"""Scores by features in Triton's interpreter (TRITON_INTERPRET=1), against float64."""

import pytest
import torch
from torch import Tensor

from heedful.attention.dispatch import attend
from heedful.attention.kernels.additive.triton_ops import Sight, places
from heedful.attention.kernels.cauchy import matched_scores, measure
from heedful.attention.kernels.cauchy_triton import Features, fill_matched
from heedful.attention.masks import padding
from heedful.attention.scores import Additive
from tests.attention.kernels.interpreter import DEVICE, quiet, runs

pytestmark = [quiet]


def draw(dtype: torch.dtype, *shape: int, scale: float = 0.5, seed: int = 0) -> Tensor:
    drawn = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return (scale * drawn).to(DEVICE, dtype)


def exact(query: Tensor, key: Tensor, vector: Tensor) -> Tensor:
    return torch.tanh(query.double()[:, :, None] + key.double()[:, None]) @ vector.double()


def ours(query: Tensor, key: Tensor, vector: Tensor) -> tuple[Tensor, Features]:
    features = Features.choose(query, key, query.dtype)
    assert features is not None
    scores = torch.full((len(query), query.shape[1], key.shape[1]), torch.nan, device=DEVICE)
    index = places((len(query),), torch.device(DEVICE), (len(query),), (len(key),))
    fill_matched(scores, query, key, vector, features, index)
    return scores.double(), features


@runs
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("scale", "offset"), [(0.01, 0.0), (0.5, 0.0), (0.5, 7.0), (0.9, -1.0)])
def test_errors_are_below_those_of_the_type(dtype: torch.dtype, scale: float, offset: float):
    query, key = draw(dtype, 2, 5, 40, scale=scale) + offset, draw(dtype, 1, 7, 40, scale=scale, seed=1) - offset
    vector = draw(dtype, 40, scale=0.2, seed=2)
    scores, features = ours(query, key, vector)
    wanted = exact(query, key, vector)
    plain = (torch.tanh(query[:, :, None] + key[:, None]) @ vector).double()
    error, theirs = scores - wanted, plain - wanted
    assert features.rank <= 24
    # Rounding the largest term once is always allowed.
    unit = torch.finfo(dtype).eps / 2.0 * float(wanted.abs().max())
    assert float(error.abs().max()) <= max(float(theirs.abs().max()), unit)
    assert float(error.square().mean().sqrt()) <= max(float(theirs.square().mean().sqrt()), unit)


@runs
@pytest.mark.parametrize("sizes", [(1, 1, 1), (130, 3, 31), (2, 129, 33), (129, 130, 64)])
def test_it_is_the_formula_for_ragged_sizes(sizes: tuple[int, int, int]):
    num_queries, num_keys, hidden = sizes
    query, key = draw(torch.float16, 1, num_queries, hidden), draw(torch.float16, 1, num_keys, hidden, seed=1)
    vector = draw(torch.float16, hidden, seed=2)
    scores, features = ours(query, key, vector)
    half_range, shift = measure(query, key)
    formula = matched_scores(
        query - shift, key + shift, vector, max(0.25, -(-float(half_range) * 8 // 1) / 8), features.rank
    )
    torch.testing.assert_close(scores, formula, rtol=0.0, atol=2e-5 * max(1.0, hidden**0.5))


@runs
@pytest.mark.parametrize("factor", [1e-30, 1e-4, 1e4, 1e30])
def test_vectors_of_any_size(factor: float):
    query, key = draw(torch.bfloat16, 1, 4, 8), draw(torch.bfloat16, 1, 6, 8, seed=1)
    vector = (draw(torch.float32, 8, seed=2) * factor).bfloat16()
    scores, _ = ours(query, key, vector)
    torch.testing.assert_close(scores / factor, exact(query, key, vector) / factor, rtol=0.0, atol=4e-3)


@runs
def test_tiles_that_see_nothing_are_left_out():
    query, key = draw(torch.bfloat16, 1, 129, 4), draw(torch.bfloat16, 1, 257, 4, seed=1)
    vector = draw(torch.bfloat16, 4, seed=2)
    features = Features.choose(query, key, torch.bfloat16)
    assert features is not None
    scores = torch.full((1, 129, 257), torch.nan, device=DEVICE)
    start = torch.zeros(1, 129, dtype=torch.int64, device=DEVICE)
    start[0, 128] = 130
    sight = Sight(start, start + 5)
    index = places((1,), torch.device(DEVICE), (1,), (1,), (1,), (1,))
    fill_matched(scores, query, key, vector, features, index, sight)
    wanted = exact(query, key, vector)
    is_near = scores.isfinite()
    assert bool(is_near[0, :128, :128].all())
    assert bool(is_near[0, 128, 128:256].all())
    assert not is_near[0, :128, 128:].any()
    assert not is_near[0, 128, :128].any()
    torch.testing.assert_close(scores[is_near].double(), wanted[is_near], rtol=0.0, atol=4e-3)


@pytest.mark.parametrize("stray", [9.0, torch.inf, torch.nan])
def test_beyond_the_range_scores_are_exact(stray: float):
    query, key = torch.zeros(1, 2, 3, dtype=torch.bfloat16), torch.zeros(1, 2, 3, dtype=torch.bfloat16)
    assert Features.choose(query, key, torch.bfloat16) is not None
    query[0, 1, 2], key[0, 0, 2] = stray, -stray if stray == stray else 0.0
    query[0, 0, 2] = -stray
    assert Features.choose(query, key, torch.bfloat16) is None


def test_float32_has_no_features():
    assert Features.choose(torch.zeros(1, 2, 3), torch.zeros(1, 2, 3), torch.float32) is None


@runs
@pytest.mark.parametrize("far", [0.0, 30.0])
def test_attend_with_matched_precision(far: float):
    torch.manual_seed(0)
    score = Additive(6, 6, 48).bfloat16()
    query, key, value = (draw(torch.bfloat16, 2, 5, 6, seed=seed) for seed in range(3))
    query = query + far * torch.arange(5)[:, None] % 2  # which asks for exact scores

    def results(dtype: torch.dtype, kernel: str) -> list[Tensor]:
        made = Additive(6, 6, 48).to(dtype)
        made.load_state_dict(score.state_dict())
        leaves = [part.to(dtype).requires_grad_() for part in (query, key, value)]
        mask = padding(torch.tensor([5, 3]))
        context = attend(*leaves, score=made, mask=mask, kernel=kernel, precision="matched").context
        parameters = list(made.parameters())
        return [context.detach(), *torch.autograd.grad(context.sum(), [*leaves, *parameters])]

    given, plain, wanted = (
        results(dtype, kernel)
        for dtype, kernel in (
            (torch.bfloat16, "fused_triton"),
            (torch.bfloat16, "plain"),
            (torch.float64, "plain"),
        )
    )
    for mine, theirs, right in zip(given, plain, wanted, strict=True):
        unit = 2.0**-9 * float(right.abs().max())
        assert float((mine - right).abs().max()) <= 3.0 * max(float((theirs - right).abs().max()), unit)
