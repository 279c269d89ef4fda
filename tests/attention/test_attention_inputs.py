"""Inputs of a call: their tensors are found and replaced, for every score, mask and normalizer."""

import pytest
import torch
from torch import Tensor

from heedful.attention.attention_inputs import AttentionInputs, is_open, tensors_of, with_tensors
from heedful.attention.kernels.additive.cpu_ops import prepare_exp_key
from heedful.attention.lowered import GivenScores, LoweredAdditive, LoweredDistance, LoweredDot
from heedful.attention.masks import local_predictive
from heedful.attention.simplex import Entmax
from heedful.attention.softmax import SOFTMAX

DEVICE = torch.device("cpu")


def made(dtype: torch.dtype = torch.float32) -> tuple[AttentionInputs, list[Tensor]]:
    query, key, value = (torch.randn(5, 2, dtype=dtype) for _ in "qkv")
    bandwidth, temperature, alpha = torch.tensor(0.5), torch.tensor(2.0), torch.tensor(1.5)
    rows = local_predictive(torch.arange(5.0), 2, over="source").rows(5, 5, DEVICE)
    assert rows.gaussian is not None
    pairs = LoweredDistance(query, key, bandwidth, "gaussian", temperature)
    operands = AttentionInputs(pairs, value, rows, Entmax(alpha), torch.arange(5))
    return operands, [query, key, bandwidth, temperature, value, rows.gaussian.centre, alpha]


def test_every_tensor_is_found():
    operands, inside = made()
    found = {id(tensor) for tensor in tensors_of(operands)}
    assert {id(tensor) for tensor in inside} <= found
    assert id(operands.row_ids) in found


def test_replaced_tensors_stand_where_the_others_stood():
    operands, _ = made()
    tensors = tensors_of(operands)
    others = [torch.zeros_like(tensor) for tensor in tensors]
    # An alpha of 0 is refused where somebody gives it; here it is a gradient.
    replaced = with_tensors(operands, others)
    assert [id(tensor) for tensor in tensors_of(replaced)] == [id(other) for other in others]
    assert [id(tensor) for tensor in tensors_of(operands)] == [id(tensor) for tensor in tensors]
    assert isinstance(replaced.pairs, LoweredDistance)
    assert replaced.pairs.profile == "gaussian"
    assert replaced.pairs.bandwidth.item() == 0.0


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


def test_a_function_may_hide_tensors():
    query, key = torch.ones(2, 3), torch.ones(4, 3)
    given = GivenScores(query, key, lambda q, k: q @ k.mT)
    assert not is_open(AttentionInputs(given, key, None, SOFTMAX))
    assert is_open(AttentionInputs(LoweredDot(query, key), key, None, SOFTMAX))


@pytest.mark.parametrize("pairs", ["dot", "additive"])
def test_all_else_hides_none(pairs: str):
    query, key = torch.ones(2, 3), torch.ones(4, 3)
    lowered = LoweredDot(query, key) if pairs == "dot" else LoweredAdditive(query, key, key[0], prepare_exp_key(key))
    assert is_open(AttentionInputs(lowered, key, None, SOFTMAX))
    assert is_open(made()[0])


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


def test_tuples_are_looked_through_too():
    tensors = [torch.full((1,), float(i)) for i in range(3)]
    tree = (tensors[0], ((tensors[1],), tensors[2], "word"))
    assert [float(part) for part in tensors_of(tree)] == [0.0, 1.0, 2.0]
    other = with_tensors(tree, [part + 5.0 for part in tensors])
    assert [float(part) for part in tensors_of(other)] == [5.0, 6.0, 7.0]
    assert other[1][2] == "word"
