import math
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from heedful.attention import masks
from heedful.attention.dispatch import attend
from heedful.attention.mask_bounds import MaskBounds
from heedful.attention.masks import Mask, causal, graph, local_monotonic, local_predictive, padding, window
from heedful.attention.scores import Dot, ScaledDot
from heedful.errors import ShapeError, UsageError
from tests.attention import cases
from tests.attention.cases import MASKS, write_out

CPU = torch.device("cpu")


def allowed(mask: Mask, num_leading: int, num_queries: int, num_keys: int) -> Tensor:
    return mask.rows(num_queries, num_keys, CPU).allowed(num_leading, num_keys)


def factors(rows: MaskBounds, num_leading: int, num_keys: int) -> Tensor:
    assert rows.gaussian is not None
    return rows.gaussian.factors(torch.arange(num_keys), num_leading)


@pytest.mark.parametrize("shape", [(4, 5), (1, 5), (4, 1), (5,), (2, 1, 4, 5), (3, 1, 5), (2, 3, 4, 5), (1, 1, 1, 1)])
def test_a_tensor_of_bools_is_broadcast_as_in_pytorch(shape: tuple[int, ...]):
    generator = torch.Generator().manual_seed(0)
    query, key = (torch.randn(2, 3, size, 8, generator=generator, dtype=torch.float64) for size in (4, 5))
    table = torch.rand(shape, generator=generator) < 0.8
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, key, attn_mask=torch.atleast_2d(table))
    for kernel in ("auto", "plain"):
        context = attend(query, key, key, score=ScaledDot(8, 8), mask=table, kernel=kernel).context
        seen = table.expand(2, 3, 4, 5).any(-1, keepdim=True)
        torch.testing.assert_close(context, expected.masked_fill(~seen, 0.0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("lengths", [3, [3, 3], (3, 3), torch.tensor([3, 3]), torch.tensor(3, dtype=torch.int32)])
def test_lengths_are_a_number_a_list_or_a_tensor(lengths: Any):
    query, key = torch.ones(2, 4, 8), torch.ones(2, 5, 8)
    weights = attend(query, key, key, score=Dot(8, 8), mask=padding(lengths), need="weights").weights
    assert weights is not None
    assert (weights > 0).tolist() == [[[True] * 3 + [False] * 2] * 4] * 2


@settings(max_examples=200)
@given(
    name=st.sampled_from([name for name in MASKS if name != "none"]),
    leading=st.lists(st.integers(0, 3), max_size=3).map(tuple),
    num_queries=st.integers(0, 4),
    num_keys=st.integers(0, 9),
    data=st.data(),
)
def test_a_mask_means_what_it_says(
    name: str, leading: tuple[int, ...], num_queries: int, num_keys: int, data: st.DataObject
):
    items = leading[0] if leading else 1
    drawn = data.draw(st.lists(st.integers(0, num_keys + 1), min_size=items, max_size=items))
    lengths = torch.tensor(drawn, dtype=torch.int64).reshape(leading[:1])
    mask = MASKS[name].make(lengths, num_queries, num_keys)
    assert mask is not None
    wanted, wanted_factors = write_out(name, lengths, leading, num_queries, num_keys)
    rows = mask.rows(num_queries, num_keys, CPU)
    given_table = rows.allowed(len(leading), num_keys)
    assert torch.equal(given_table.expand(wanted.shape), wanted)
    assert (rows.gaussian is None) == (wanted_factors is None)
    if wanted_factors is not None:
        torch.testing.assert_close(factors(rows, len(leading), num_keys).double().expand(wanted.shape), wanted_factors)
    # No row is wider than the mask says, so that a kernel may fetch so many keys and no more.
    interval = MaskBounds(rows.start, rows.stop).allowed(len(leading), num_keys)
    assert rows.width is None or not interval.numel() or int(interval.sum(dim=-1).max()) <= rows.width


@pytest.mark.parametrize("name", masks.MASKS)
def test_every_function_of_the_table_is_tried_above(name: str, monkeypatch: pytest.MonkeyPatch):
    made: list[Mask] = []

    def recorded(*arguments: Any, **named: Any) -> Mask:
        made.append(masks.MASKS[name](*arguments, **named))
        return made[-1]

    monkeypatch.setattr(cases, name, recorded)
    for case in MASKS.values():
        case.make(torch.tensor([1, 2]), 2, 3)
    assert made


def test_all_masks_of_four_by_four_can_be_made_from_single_places():
    # Every subset of a row is reached by | of windows: no pattern is beyond the operators.
    for pattern in product((False, True), repeat=4):
        mask: Mask = causal() & ~causal()
        for offset, wanted in enumerate(pattern):
            if wanted:  # the key `offset` places before the query
                mask = mask | (window(offset, 0) & ~(window(offset - 1, 0) if offset else causal() & ~causal()))
        table = allowed(mask, 0, 4, 4)
        assert [bool(table[3, 3 - offset]) for offset in range(4)] == list(pattern)


def test_lengths_of_any_leading_axes_align_from_the_left():
    lengths = torch.tensor([[1, 3], [0, 2]])
    table = allowed(padding(lengths), 3, 5, 3).expand(2, 2, 4, 5, 3)
    for row, column in product(range(2), range(2)):
        assert bool((table[row, column].sum(dim=-1) == lengths[row, column]).all())


def test_lengths_of_any_integer_type_are_taken():
    assert allowed(padding(torch.tensor([2], dtype=torch.int32)), 1, 1, 3).tolist() == [[[True, True, False]]]


def test_more_leading_axes_than_the_scores_have_are_refused():
    lengths = torch.zeros(2, 2, dtype=torch.int64)
    for mask in (padding(lengths), ~padding(lengths), padding(lengths) | causal(), padding(lengths) & causal()):
        with pytest.raises(ShapeError, match="2 leading axes, but the scores have only 1"):
            allowed(mask, 1, 3, 3)


@pytest.mark.parametrize(
    ("mask", "num_queries", "num_keys", "is_causal"),
    [
        (causal(), 3, 3, True),
        (causal(), 2, 3, False),  # a triangle that does not start in the corner
        (window(1, 0), 3, 3, False),
        (window(0, 0), 3, 3, False),
        (causal() & padding(torch.tensor(3)), 3, 3, False),
        (causal() | window(0, 0), 3, 3, False),
        (~~causal(), 3, 3, False),
    ],
)
def test_only_the_triangle_says_that_it_is_causal(mask: Mask, num_queries: int, num_keys: int, is_causal: bool):
    assert mask.rows(num_queries, num_keys, CPU).is_causal == is_causal


def test_intervals_stay_intervals():
    mask = padding(torch.tensor([2, 3])) & causal() & window(2, 0) & local_monotonic(1)
    rows = mask.rows(3, 3, CPU)
    assert rows.dense is None
    assert [bound.shape for bound in rows.bounds(1)] == [(2, 3), (2, 3)]


@pytest.mark.parametrize(
    ("mask", "width"),
    [
        (window(2, 1), 4),
        (window(0, 0), 1),
        (local_monotonic(10), 21),
        (local_predictive(torch.zeros(1), 2), 5),
        (window(5, 5) & local_monotonic(1), 3),
        (padding(torch.tensor([7])) & window(1, 1), 3),
        (causal(), None),
        (local_predictive(torch.zeros(1), 2, over="source"), None),
        (window(1, 1) | window(2, 2), None),
    ],
)
def test_how_wide_a_mask_is(mask: Mask, width: int | None):
    assert mask.rows(3, 9, CPU).width == width


# Luong et al. 2015 with p = 4.3, D = 2: the keys 3 ... 6, and sigma = D / 2.
def test_local_p_is_that_of_the_paper_notes():
    mask = local_predictive(torch.tensor([4.3], dtype=torch.float64), 2)
    rows = mask.rows(1, 9, CPU)
    assert rows.allowed(0, 9)[0].tolist() == [3 <= place <= 6 for place in range(9)]
    wanted = [0.071005, 0.429557, 0.955997, 0.782705, 0.235746]
    assert factors(rows, 0, 9)[0, 2:7].tolist() == pytest.approx(wanted, abs=5e-7)
    over_all = local_predictive(torch.tensor([4.3], dtype=torch.float64), 2, over="source").rows(1, 9, CPU)
    assert bool(over_all.allowed(0, 9).all())
    assert torch.equal(factors(over_all, 0, 9), factors(rows, 0, 9))


def test_centre_and_sigma_of_local_p_receive_gradient_and_bounds_do_not():
    centre = torch.tensor([[1.25, 2.5]], requires_grad=True)
    sigma = torch.tensor(0.7, requires_grad=True)
    rows = local_predictive(centre, 2, sigma).rows(2, 5, CPU)
    assert not rows.start.requires_grad
    table = factors(rows, 1, 5)
    by_centre, by_sigma = torch.autograd.grad(table[0, 0, 3], (centre, sigma))
    factor = math.exp(-(1.75**2) / (2 * 0.7**2))
    assert by_centre.tolist() == [[pytest.approx(factor * 1.75 / 0.7**2, rel=1e-5), 0.0]]
    assert float(by_sigma) == pytest.approx(factor * 1.75**2 / 0.7**3, rel=1e-5)


def test_centres_far_from_all_keys_attend_nothing():
    for place in (-1e30, -3.0, 12.0, 1e30):
        mask = local_predictive(torch.tensor([place]), 2)
        assert not allowed(mask, 0, 1, 9).any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_centres_in_half_precision_keep_their_window(dtype: torch.dtype):
    # In bfloat16 258 + 5 would be 264; five places on either side are eleven keys.
    rows = local_predictive(torch.tensor([258.0], dtype=dtype), 5).rows(1, 512, CPU)
    assert (rows.start.tolist(), rows.stop.tolist()) == ([253], [264])
    table = factors(rows, 0, 512)[0]
    assert float(table[259]) == pytest.approx(math.exp(-1 / (2 * 2.5**2)), rel=1e-6)


def test_local_m_follows_the_steps_of_decoding():
    whole = allowed(local_monotonic(2), 0, 6, 8)
    for step in range(6):
        assert torch.equal(allowed(local_monotonic(2, first=step), 0, 1, 8)[0], whole[step])


@pytest.mark.parametrize("join", ["|", "~"])
def test_a_gaussian_cannot_be_joined_otherwise_than_by_and(join: str):
    local = local_predictive(torch.zeros(1), 1)
    for mask in (local | causal(), causal() | local) if join == "|" else (~local, ~(causal() & local)):
        with pytest.raises(UsageError, match="can be combined by & only"):
            mask.rows(2, 3, CPU)


def test_two_gaussians_are_refused():
    mask = local_predictive(torch.zeros(1), 1) & causal() & local_predictive(torch.ones(1), 1)
    with pytest.raises(UsageError, match="only one of two masks joined by & may have a Gaussian"):
        mask.rows(2, 3, CPU)


def test_a_graph_is_a_table_whatever_joins_it():
    table = torch.tensor([[True, False, True], [False, False, True]])
    both = graph(table) & causal() & graph(torch.tensor([[True, True, False]]))
    assert allowed(both, 0, 2, 3).tolist() == [[True, False, False], [False, False, False]]
    assert allowed(graph(table) | causal(), 0, 2, 3).tolist() == [[True, True, True], [True, True, True]]


def test_a_graph_of_one_row_is_for_every_query():
    assert allowed(graph(torch.tensor([[True, False]])), 0, 3, 2).expand(3, 2).tolist() == [[True, False]] * 3


def test_bounds_of_padding_are_made_once_until_lengths_change():
    lengths = torch.tensor([2, 3])
    mask = padding(lengths)
    bounds = mask.rows(1, 3, CPU)
    assert mask.rows(2, 4, CPU) is bounds
    assert bounds.table(1, 3).allowed.sum() == 5
    lengths[0] = 1
    assert mask.rows(1, 3, CPU).table(1, 3).allowed.tolist() == [[[True, False, False]], [[True, True, True]]]
    with torch.inference_mode():
        own = torch.tensor([2, 3])
    mask = padding(own)
    assert mask.rows(1, 3, CPU) is not mask.rows(1, 3, CPU)
