"""Sequences read at once without padding have the states that each has alone."""

from typing import Literal

import pytest
import torch
from torch import Tensor

from heedful.layers.ragged_recurrence import run_ragged
from heedful.layers.recurrent import BidirectionalEncoder


def alone(encoder: BidirectionalEncoder, items: Tensor, lengths: Tensor) -> Tensor:
    parts = items.split(lengths.tolist())
    return torch.cat([encoder(part[None], torch.tensor([len(part)]))[0] for part in parts])


@pytest.mark.parametrize("lengths", [[1], [4], [2, 2], [1, 5, 3, 1, 5], [7, 1, 1], [3, 2, 1]])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_states_and_gradients_are_those_of_each_sequence_alone(cell: Literal["gru", "lstm"], lengths: list[int]):
    encoder = BidirectionalEncoder(3, 4, reset="after", cell=cell).double()
    items = torch.randn(sum(lengths), 3, dtype=torch.float64, requires_grad=True)
    taken = [items, *encoder.parameters()]
    found, wanted = (read(encoder, items, torch.tensor(lengths)) for read in (run_ragged, alone))
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    direction = torch.randn_like(wanted)
    gradients = (torch.autograd.grad(states, taken, direction) for states in (found, wanted))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_a_sequence_knows_nothing_of_others():
    encoder = BidirectionalEncoder(3, 4, reset="after").double()
    items = torch.randn(9, 3, dtype=torch.float64)
    others = items.clone()
    others[[0, 1, 6, 7, 8]] += 1.0
    lengths = torch.tensor([2, 4, 3])
    one, other = (run_ragged(encoder, each, lengths) for each in (items, others))
    assert torch.equal(one[2:6], other[2:6])
    assert not torch.equal(one[:2], other[:2])
