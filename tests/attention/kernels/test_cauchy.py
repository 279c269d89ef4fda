"""Features of additive scores: their error is what Zolotarev's problem says, and below rounding of the inputs."""

import math

import pytest
import torch
from torch import Tensor

from heedful.attention.kernels.cauchy import (
    LARGEST_RANK,
    SHARE,
    error_of,
    key_features,
    matched_scores,
    measure,
    nodes,
    query_features,
    rank_for,
)

RANGES = (0.25, 1.0, 2.0, 3.0, 5.5, 8.0)


def grid(half_range: float, number: int = 301) -> Tensor:
    return torch.linspace(-half_range, half_range, number, dtype=torch.float64)[:, None]


def largest_error(half_range: float, rank: int) -> float:
    points = grid(half_range)
    scores = matched_scores(points, points, torch.ones(1, dtype=torch.float64), half_range, rank)
    return float((scores - torch.tanh(points + points.mT)).abs().max())


@pytest.mark.parametrize("rank", [4, 10, 16, 24])
@pytest.mark.parametrize("half_range", RANGES)
def test_the_error_is_at_most_the_bound(half_range: float, rank: int):
    assert largest_error(half_range, rank) <= 1.001 * error_of(half_range, rank) + 1e-13


@pytest.mark.parametrize(("half_range", "rank"), [(1.0, 8), (2.0, 12), (3.0, 16), (4.0, 24)])
def test_and_not_much_less(half_range: float, rank: int):
    """Nodes that are not the best would miss the bound, so that it is no idle one."""
    assert largest_error(half_range, rank) >= 0.9 * error_of(half_range, rank)


@pytest.mark.parametrize("half_range", [1.0, 2.0, 4.0])
def test_the_rank_is_near_the_least_there_can_be(half_range: float):
    points = grid(half_range)
    singular = torch.linalg.svdvals(torch.tanh(points + points.mT))
    for error in (4e-3, 5e-4, 1e-5):
        # Beyond the least rank of these points all singular values are below their number times the error.
        least = int((singular > error * len(points)).sum())
        rank = rank_for(half_range, error)
        assert rank is None or least <= rank <= least + 7


def test_the_rank_grows_with_range_and_accuracy():
    assert rank_for(1.0, 4e-3) == 6
    assert rank_for(1.0, 1e-5) == 8
    for half_range in RANGES:
        for error in (1e-1, 1e-3):
            rank = rank_for(half_range, error)
            if rank is not None:
                assert rank % 2 == 0
                assert error_of(half_range, rank) <= error < error_of(half_range, max(1, rank - 2)) or rank == 2


@pytest.mark.parametrize("half_range", [math.inf, math.nan, 50.0])
def test_no_rank_is_enough(half_range: float):
    assert rank_for(half_range, 1e-3) is None


@pytest.mark.parametrize("half_range", RANGES)
def test_nodes_are_mirrored_and_inside(half_range: float):
    centres, weights = nodes(half_range, 10)
    assert list(centres) == sorted(centres, reverse=True)
    assert all(-half_range < centre < half_range for centre in centres)
    assert [-centre for centre in reversed(centres)] == pytest.approx(centres, abs=1e-12)
    assert len(weights) == 10


def test_at_the_nodes_it_is_exact():
    centres, _ = nodes(2.0, 8)
    points = torch.tensor(centres, dtype=torch.float64)
    features = key_features(points, 2.0, 8)
    torch.testing.assert_close(features, torch.eye(8, dtype=torch.float64), rtol=0.0, atol=1e-9)
    scores = matched_scores(grid(2.0), points[:, None], torch.ones(1, dtype=torch.float64), 2.0, 8)
    torch.testing.assert_close(scores, torch.tanh(grid(2.0) + points), rtol=0.0, atol=1e-9)


def test_features_are_small():
    """So that rounding them does no more than rounding tanh."""
    for half_range, rank in ((1.0, 6), (2.0, 10), (4.0, 18), (5.5, 24)):
        left, right = (
            query_features(grid(half_range), half_range, rank),
            key_features(grid(half_range), half_range, rank),
        )
        assert float(right.abs().max()) < 1.5
        assert float((left.abs().squeeze(1) @ right.abs().squeeze(1).mT).max()) < 9.0


@pytest.mark.parametrize("offset", [0.0, 3.0, -40.0])
@pytest.mark.parametrize("widths", [(1.0, 1.0), (0.1, 1.0), (1.0, 0.1)])
def test_a_shift_makes_the_range_smallest(offset: float, widths: tuple[float, float]):
    generator = torch.Generator().manual_seed(0)
    query = widths[0] * torch.randn(3, 20, 7, generator=generator) + offset
    key = widths[1] * torch.randn(3, 30, 7, generator=generator) - offset
    half_range, shift = measure(query, key)
    inside = torch.stack(((query - shift).abs().amax(), (key + shift).abs().amax()))
    assert float(inside.max()) <= float(half_range) * (1.0 + 1e-5) + 1e-5
    for feature in range(7):
        best = min(
            float(torch.maximum((query - s)[..., feature].abs().amax(), (key + s)[..., feature].abs().amax()))
            for s in torch.linspace(float(shift[feature]) - 2.0, float(shift[feature]) + 2.0, 401)
        )
        assert best <= float(half_range) + 1e-2
    assert float(half_range) < 4.5


def test_ranges_that_are_no_numbers():
    assert math.isnan(measure(torch.tensor([[math.nan, 0.0]]), torch.zeros(1, 2))[0])
    assert not float(measure(torch.tensor([[math.inf]]), torch.zeros(1, 1))[0]) < math.inf


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("scale", [0.2, 0.5, 1.0])
def test_the_error_is_below_rounding_of_the_inputs(dtype: torch.dtype, scale: float):
    """Against the error that the same formula has in the type of the inputs."""
    generator = torch.Generator().manual_seed(1)
    query, key = (scale * torch.randn(count, 64, generator=generator) for count in (30, 40))
    vector = (torch.rand(64, generator=generator) * 2.0 - 1.0) * (3.0 / 64.0) ** 0.5
    query, key, vector = query.to(dtype), key.to(dtype), vector.to(dtype)
    half_range = float(measure(query, key)[0])
    rank = rank_for(half_range, SHARE * torch.finfo(dtype).eps / 2.0)
    assert rank is not None
    assert rank <= LARGEST_RANK
    shift = measure(query, key)[1].double()
    exact = torch.tanh(query.double()[:, None] + key.double()) @ vector.double()
    plain = torch.tanh(query[:, None] + key) @ vector
    ours = matched_scores(query.double() - shift, key.double() + shift, vector, half_range, rank)
    assert float((ours - exact).abs().max()) <= 0.5 * float((plain.double() - exact).abs().max())
