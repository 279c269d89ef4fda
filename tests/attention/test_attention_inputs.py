"""Inputs of a call: parts of the queries, and shared tensors in other types."""

import pytest
import torch
from torch import Tensor

from heedful.attention.attention_inputs import AttentionInputs
from heedful.attention.lowered import LoweredDistance
from heedful.attention.masks import local_predictive
from heedful.attention.simplex import Entmax
from heedful.attention.tensor_tree import tensors_of, with_tensors

DEVICE = torch.device("cpu")


def made(dtype: torch.dtype = torch.float32) -> tuple[AttentionInputs, list[Tensor]]:
    query, key, value = (torch.randn(5, 2, dtype=dtype) for _ in "qkv")
    bandwidth, temperature, alpha = torch.tensor(0.5), torch.tensor(2.0), torch.tensor(1.5)
    rows = local_predictive(torch.arange(5.0), 2, over="source").rows(5, 5, DEVICE)
    assert rows.gaussian is not None
    pairs = LoweredDistance(query, key, bandwidth, "gaussian", temperature)
    operands = AttentionInputs(pairs, value, rows, Entmax(alpha), torch.arange(5))
    return operands, [query, key, bandwidth, temperature, value, rows.gaussian.centre, alpha]


def test_tensors_of_a_part_are_views_in_the_same_order():
    operands, _ = made()
    zeros = with_tensors(operands, [torch.zeros_like(tensor) for tensor in tensors_of(operands)])
    for tensor in tensors_of(zeros.of_queries(slice(1, 3))):
        tensor.add_(1)
    query, key = zeros.pairs.query, zeros.pairs.key
    assert query[:, 0].tolist() == [0, 1, 1, 0, 0]
    assert key[:, 0].tolist() == [1] * 5
    assert zeros.rows is not None
    assert zeros.rows.gaussian is not None
    assert zeros.rows.gaussian.centre.flatten().tolist() == [0, 1, 1, 0, 0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_what_is_shared_is_widened_and_narrowed(dtype: torch.dtype):
    operands, _ = made(dtype)
    wide = operands.widened()
    wanted = torch.float64 if dtype == torch.float64 else torch.float32
    assert (wide.value.dtype, wide.pairs.key.dtype) == (wanted, wanted)
    assert wide.pairs.query.dtype == dtype
    again = wide.narrowed(operands.types())
    assert again.types() == operands.types()
    assert torch.equal(again.pairs.key, operands.pairs.key)
