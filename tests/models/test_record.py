"""Records of tensors."""

from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.attention.interface import PreparedKey
from heedful.models.record import Record


@dataclass(frozen=True)
class Inner(Record):
    vectors: Tensor


@dataclass(frozen=True)
class Outer(Record):
    numbers: Tensor
    layers: tuple[tuple[Tensor, ...], ...]
    key: PreparedKey
    inner: Inner
    is_mapped: bool = False


def test_selecting_reaches_every_tensor():
    rows = torch.arange(6.0).reshape(3, 2)
    outer = Outer(rows, ((rows, rows + 1),), PreparedKey(rows), Inner(rows), is_mapped=True)
    kept = torch.tensor([2, 0, 2])
    selected = outer.select(kept)
    wanted = rows[kept]
    parts = (
        selected.numbers,
        selected.layers[0][0],
        selected.layers[0][1] - 1,
        selected.key.key,
        selected.inner.vectors,
    )
    assert all(torch.equal(part, wanted) for part in parts)
    assert selected.is_mapped
