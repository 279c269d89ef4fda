"""The normal form of masks: cutting it by queries, leading axes, Gaussians."""

from itertools import product

import pytest
import torch

from heedful.attention import ScaledDot, attend
from heedful.attention.mask_bounds import Gaussian, MaskBounds, lead
from heedful.attention.masks import padding
from heedful.errors import ShapeError
from tests.attention.cases import MASKS

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", [name for name in MASKS if name != "none"])
def test_a_part_of_the_queries_is_that_part_of_the_table(name: str):
    mask = MASKS[name].make(torch.tensor([2, 5]), 4, 5)
    assert mask is not None
    rows = mask.rows(4, 5, CPU)
    whole = rows.allowed(2, 5).expand(2, 3, 4, 5)
    for part in (slice(0, 2), slice(1, 2), slice(3, 4), slice(2, 2)):
        some = rows.of_queries(part)
        assert torch.equal(some.allowed(2, 5).expand(2, 3, part.stop - part.start, 5), whole[..., part, :])
        assert not some.is_causal
        assert some.width == rows.width
        if rows.gaussian is not None:
            assert some.gaussian is not None
            places = torch.arange(5)
            wanted = rows.gaussian.factors(places, 2).expand(2, 1, 4, 5)[..., part, :]
            assert torch.equal(some.gaussian.factors(places, 2).expand_as(wanted), wanted)


def test_one_bound_for_all_queries_stays_one():
    rows = MaskBounds(torch.zeros(2, 1, dtype=torch.int64), torch.tensor([[3], [1]]))
    assert rows.of_queries(slice(4, 6)).start.shape == (2, 1)


def test_bounds_have_the_leading_axes_asked_for():
    start, stop = MaskBounds(torch.zeros(1, dtype=torch.int64), torch.ones(2, 3, dtype=torch.int64)).bounds(3)
    assert start.shape == stop.shape == (2, 1, 1, 3)
    with pytest.raises(ShapeError, match="2 leading axes, but the scores have only 1"):
        MaskBounds(torch.zeros(2, 2, 1), torch.zeros(2, 2, 1)).bounds(1)


@pytest.mark.parametrize("name", ["start", "stop", "dense"])
@pytest.mark.wrong_shapes
def test_leading_axes_are_those_of_the_scores_or_one(name: str):
    fields = {"start": torch.zeros(1), "stop": torch.zeros(1), name: torch.zeros(2, 1, 4, *(4,) * (name == "dense"))}
    rows = MaskBounds(**fields)
    for leading in ((2, 1), (2, 5), (2, 5, 7)):
        rows.require_leading(leading)
    for leading in ((3, 5), (1, 1), (5, 2)):
        with pytest.raises(ShapeError, match=r"leading axes \[2, 1\] do not fit those of the scores"):
            rows.require_leading(leading)
    with pytest.raises(ShapeError, match="2 leading axes, but the scores have only 1"):
        rows.require_leading((2,))


def test_an_interval_that_ends_before_it_begins_is_empty():
    table = MaskBounds(torch.tensor([3, -5, 2]), torch.tensor([1, -1, 99])).allowed(0, 4)
    assert table.tolist() == [[False] * 4, [False] * 4, [False, False, True, True]]


def test_a_table_only_takes_away():
    rows = MaskBounds(torch.tensor([1]), torch.tensor([3]), torch.tensor([[True, True, False, True]]))
    assert rows.allowed(0, 4).tolist() == [[False, True, False, False]]


def test_tables_are_made_once_and_say_whether_every_query_may_attend():
    rows = MaskBounds(None, torch.tensor([[1], [2]]))
    allowed, hidden = rows.table(1, 2)
    assert torch.equal(allowed, rows.allowed(1, 2))
    assert hidden is not None
    assert torch.equal(hidden, ~allowed)
    assert rows.table(1, 2).allowed is allowed
    assert rows.table(1, 3).allowed.shape == (2, 1, 3)
    assert rows.table(1, 2).allowed is not allowed  # one table is kept, not one for each number of keys
    assert MaskBounds(None, torch.tensor([[1], [0]])).table(1, 2).hidden is None


@pytest.mark.parametrize("kernel", ["plain", "sdpa"])
def test_a_table_made_in_inference_mode_does_not_serve_gradients(kernel: str):
    query, mask = torch.randn(2, 1, 4), padding(torch.tensor([1, 2]))
    with torch.inference_mode():
        attend(query, query, query, score=ScaledDot(4, 4), mask=mask, kernel=kernel)
    query.requires_grad_()
    attend(query, query, query, score=ScaledDot(4, 4), mask=mask, kernel=kernel).context.sum().backward()
    assert query.grad is not None


def test_a_gaussian_at_places_of_each_query():
    gaussian = Gaussian(torch.tensor([[0.0, 2.0]]), 1.5)
    everywhere = gaussian.factors(torch.arange(4), 2)
    assert everywhere.shape == (1, 1, 2, 4)
    places = torch.tensor([[[[0, 3], [1, 2]]]])
    some = gaussian.factors(places, 2)
    for row, column in product(range(2), range(2)):
        assert some[0, 0, row, column] == everywhere[0, 0, row, places[0, 0, row, column]]


def test_missing_axes_come_after_the_leading_ones():
    assert lead(torch.zeros(2, 3), 3, 1).shape == (2, 1, 1, 3)
    assert lead(torch.zeros(2, 3, 4), 1, 2).shape == (2, 3, 4)
