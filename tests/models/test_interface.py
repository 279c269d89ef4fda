from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.attention.interface import PreparedKey
from heedful.models.interface import Decoded, Memory, State
from heedful.models.record import Record
from tests.models.tiny import make_model


@dataclass(frozen=True)
class Whole(Record):
    """One of everything a record may hold."""

    plain: Tensor
    several: tuple[Tensor, ...]
    inner: Memory
    prepared: PreparedKey
    number: int


@dataclass(frozen=True)
class Several(State):
    """A state of several tensors."""

    hidden: Tensor
    keys: tuple[Tensor, ...]
    step: int


def test_selecting_keeps_rows_of_everything():
    rows = torch.arange(12.0).reshape(4, 3)
    whole = Whole(rows, (rows + 1, rows + 2), Memory(torch.arange(4)), PreparedKey(rows[..., None]), 7)
    kept = whole.select(torch.tensor([3, 1]))
    assert torch.equal(kept.plain, rows[[3, 1]])
    assert [torch.equal(part, rows[[3, 1]] + i + 1) for i, part in enumerate(kept.several)] == [True, True]
    assert kept.inner.lengths.tolist() == [3, 1]
    assert torch.equal(kept.prepared.key, rows[[3, 1]][..., None])
    assert (type(kept), kept.number) == (Whole, 7)


def test_reordering_lets_hypotheses_go_on_from_others():
    hidden = torch.arange(12.0).reshape(2, 3, 2)
    state = Several(hidden, (hidden[..., None] * 10,), 4)
    parents = torch.tensor([[2, 2, 0], [1, 0, 1]])
    moved = state.reorder(parents)
    for row in range(2):
        for place in range(3):
            assert torch.equal(moved.hidden[row, place], hidden[row, parents[row, place]])
            assert torch.equal(moved.keys[0][row, place], hidden[row, parents[row, place], :, None] * 10)
    assert moved.step == 4


def test_reordering_may_change_the_number_of_hypotheses():
    hidden = torch.arange(4.0).reshape(2, 2, 1)
    assert Several(hidden, (), 0).reorder(torch.tensor([[1], [0]])).hidden.flatten().tolist() == [1.0, 2.0]
    wider = Several(hidden, (), 0).reorder(torch.tensor([[1, 0, 1], [0, 0, 1]]))
    assert wider.hidden[..., 0].tolist() == [[1.0, 0.0, 1.0], [2.0, 2.0, 3.0]]


def test_expanded_states_can_be_reordered():
    hidden = torch.arange(2.0).reshape(2, 1, 1).expand(-1, 3, -1)
    assert Several(hidden, (), 0).reorder(torch.tensor([[2, 1, 0], [0, 0, 0]])).hidden.shape == (2, 3, 1)


def test_a_model_has_no_extra_losses_unless_it_says_so():
    model = make_model("rnnsearch")
    zeros = torch.zeros(1, 1)
    assert model.extra_losses(Decoded(zeros, {}), zeros, zeros == 0) == {}
