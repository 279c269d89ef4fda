import pytest
import torch
from torch import Tensor

from heedful.errors import ShapeError, UsageError
from heedful.layers.torch_masks import read_masks

HIDDEN = -torch.inf


def test_no_mask_is_none():
    assert read_masks(None, None, (2, 3, 4, 5)) == (None, None)


def test_true_forbids():
    padding = torch.tensor([[False, True, True], [False, False, True]])
    table = torch.tensor([[True, False, False], [False, False, False]])
    allowed, bias = read_masks(padding, table, (2, 1, 2, 3))
    assert bias is None
    assert allowed is not None
    assert allowed.int().tolist() == [[[[0, 0, 0], [1, 0, 0]]], [[[0, 1, 0], [1, 1, 0]]]]


def test_a_table_for_each_head_counts_heads_within_items():
    table = torch.zeros(6, 1, 2, dtype=torch.bool)
    table[4] = True  # item 1 of 2, head 1 of 3
    allowed = read_masks(None, table, (2, 3, 1, 2))[0]
    assert allowed is not None
    assert allowed[..., 0].int().tolist() == [[[1], [1], [1]], [[1], [0], [1]]]


def test_numbers_that_only_forbid_are_a_bool_mask():
    allowed, bias = read_masks(torch.tensor([0.0, HIDDEN]), None, (1, 2, 3, 2))
    assert bias is None
    assert allowed is not None
    assert allowed.tolist() == [[[[True, False]]]]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_other_numbers_are_finite_and_added(dtype: torch.dtype):
    table = torch.tensor([[0.5, HIDDEN], [-1e4, 0.0]], dtype=dtype)
    allowed, bias = read_masks(torch.tensor([[0.25, 0.0]], dtype=dtype), table, (1, 1, 2, 2))
    assert allowed is not None
    assert bias is not None
    assert allowed.tolist() == [[[[True, False], [True, True]]]]
    assert bias.dtype == dtype
    assert torch.equal(bias[0, 0], torch.tensor([[0.75, 0.0], [-1e4 + 0.25, 0.0]], dtype=dtype))


@pytest.mark.parametrize("number", [-0.5, 1e-30, torch.nan])
def test_a_single_number_is_enough(number: float):
    bias = read_masks(None, torch.tensor([[HIDDEN, 0.0], [number, 0.0]]), (1, 1, 2, 2))[1]
    assert bias is not None
    torch.testing.assert_close(bias[0, 0], torch.tensor([[0.0, 0.0], [number, 0.0]]), rtol=0, atol=0, equal_nan=True)


def test_a_bool_mask_and_numbers_go_together():
    allowed, bias = read_masks(torch.tensor([[True, False]]), torch.tensor([[1.0, 2.0]]), (1, 1, 1, 2))
    assert allowed is not None
    assert bias is not None
    assert allowed.tolist() == [[[[False, True]]]]
    assert bias.tolist() == [[[[1.0, 2.0]]]]


def test_learned_numbers_are_added_even_while_they_are_zero():
    table = torch.zeros(2, 2, requires_grad=True)
    bias = read_masks(None, table, (1, 1, 2, 2))[1]
    assert bias is not None
    assert bias.requires_grad


def test_added_keys_may_be_attended_and_nothing_is_added_to_their_scores():
    table = torch.tensor([[HIDDEN, 3.0]])
    allowed, bias = read_masks(None, table, (1, 1, 1, 2), num_added=2)
    assert allowed is not None
    assert bias is not None
    assert allowed.flatten().tolist() == [False, True, True, True]
    assert bias.flatten().tolist() == [0.0, 3.0, 0.0, 0.0]
    only_bool = read_masks(torch.tensor([[True, True]]), None, (1, 1, 1, 2), num_added=1)[0]
    assert only_bool is not None
    assert only_bool.flatten().tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("padding", "table", "message"),
    [
        (torch.zeros(3, 4), None, r"key_padding_mask \[3, 4\], expected \[batch, key\] = \[3, 5\]"),
        (torch.zeros(5), None, r"key_padding_mask \[5\]"),
        (None, torch.zeros(5), r"attn_mask \[5\], expected \[query, key\] = \[4, 5\]"),
        (None, torch.zeros(3, 4, 5), r"attn_mask \[3, 4, 5\].*\[6, 4, 5\]"),
        (None, torch.zeros(5, 4), r"attn_mask \[5, 4\]"),
        (None, torch.zeros(1, 5), r"attn_mask \[1, 5\]"),
    ],
)
def test_a_mask_of_another_shape_is_refused(padding: Tensor | None, table: Tensor | None, message: str):
    with pytest.raises(ShapeError, match=message):
        read_masks(padding, table, (3, 2, 4, 5))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.complex64])
def test_a_mask_of_another_type_is_refused(dtype: torch.dtype):
    with pytest.raises(UsageError, match=f"bool .* or floating-point, got {str(dtype)[6:]}"):
        read_masks(torch.zeros(1, 2, dtype=dtype), None, (1, 1, 1, 2))
