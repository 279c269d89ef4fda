"""Tensor trees: their tensors are found, named and replaced, for every score, mask, normalizer and record."""

from dataclasses import dataclass
from functools import cached_property

import pytest
import torch
from torch import Tensor

from heedful.attention.attention_inputs import AttentionInputs
from heedful.attention.kernels.additive.cpu_ops import prepare_exp_key
from heedful.attention.lowered import GivenScores, LoweredAdditive, LoweredDistance, LoweredDot
from heedful.attention.softmax import SOFTMAX
from heedful.attention.tensor_tree import is_open, map_leaves, named_leaves, tensors_of, with_tensors
from tests.attention.test_attention_inputs import made


@dataclass(frozen=True)
class Inner:
    """A positive tensor, and a cache."""

    tensor: Tensor

    def __post_init__(self) -> None:
        if self.tensor.min() <= 0:
            raise ValueError("not positive")

    @cached_property
    def cache(self) -> list[float]:
        return self.tensor.tolist()


@dataclass(frozen=True)
class Outer:
    """A tensor, records in a tuple, and plain values."""

    first: Tensor
    layers: tuple[tuple[Inner, ...], ...]
    last: Tensor | None = None
    size: int = 3


def outer() -> Outer:
    one, two, three = (torch.tensor([value]) for value in (1.0, 2.0, 3.0))
    return Outer(one, ((Inner(two),), (Inner(three), Inner(one))))


def test_leaves_are_named_by_their_paths():
    named = {".".join(path): float(leaf) for path, leaf in named_leaves(outer())}
    assert named == {"first": 1, "layers.0.0.tensor": 2, "layers.1.0.tensor": 3, "layers.1.1.tensor": 1}


def test_leaves_of_other_types_are_not_looked_into():
    tree = outer()
    assert [".".join(path) for path, _ in named_leaves(tree, (Inner,))] == ["layers.0.0", "layers.1.0", "layers.1.1"]
    doubled = map_leaves(tree, lambda leaf: Inner(leaf.tensor * 2), (Inner,))
    assert [float(tensor) for tensor in tensors_of(doubled)] == [1, 4, 6, 2]
    assert (doubled.last, doubled.size) == (None, 3)


def test_a_copy_is_neither_checked_nor_given_the_caches_of_the_old_tensors():
    inner = Inner(torch.tensor([2.0]))
    assert inner.cache == [2.0]
    copied = map_leaves(inner, torch.neg)
    assert copied.cache == [-2.0]
    assert inner.cache == [2.0]


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


def test_tuples_are_looked_through_too():
    tensors = [torch.full((1,), float(i)) for i in range(3)]
    tree = (tensors[0], ((tensors[1],), tensors[2], "word"))
    assert [float(part) for part in tensors_of(tree)] == [0.0, 1.0, 2.0]
    other = with_tensors(tree, [part + 5.0 for part in tensors])
    assert [float(part) for part in tensors_of(other)] == [5.0, 6.0, 7.0]
    assert other[1][2] == "word"
