from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.attention.masks import Mask, causal, padding, window
from heedful.errors import ShapeError
from tests.attention.cases import MASKS, write_out

CPU = torch.device("cpu")
leading_axes = st.lists(st.integers(0, 3), max_size=3).map(tuple)


def allowed(mask: Mask, num_leading: int, num_queries: int, num_keys: int) -> torch.Tensor:
    return mask.rows(num_queries, num_keys, CPU).allowed(num_leading, num_keys)


@settings(max_examples=150)
@given(
    name=st.sampled_from([name for name in MASKS if name != "none"]),
    leading=leading_axes,
    num_queries=st.integers(0, 4),
    num_keys=st.integers(0, 5),
    data=st.data(),
)
def test_a_mask_means_what_it_says(
    name: str, leading: tuple[int, ...], num_queries: int, num_keys: int, data: st.DataObject
):
    items = leading[0] if leading else 1
    drawn = data.draw(st.lists(st.integers(0, num_keys + 1), min_size=items, max_size=items))
    lengths = torch.tensor(drawn, dtype=torch.int64).reshape(leading[:1])
    mask = MASKS[name].make(lengths)
    assert mask is not None
    wanted = write_out(MASKS[name].allows, lengths, leading, num_queries, num_keys)
    assert torch.equal(allowed(mask, len(leading), num_queries, num_keys).expand(wanted.shape), wanted)


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
    for mask in (padding(torch.zeros(2, 2)), ~padding(torch.zeros(2, 2)), padding(torch.zeros(2, 2)) | causal()):
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
    rows = (padding(torch.tensor([2, 3])) & causal() & window(2, 0)).rows(3, 3, CPU)
    assert rows.dense is None
    assert rows.start.shape == rows.stop.shape == (2, 3)
