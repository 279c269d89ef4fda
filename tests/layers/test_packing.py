import pytest
import torch

from heedful.errors import ShapeError
from heedful.layers.packing import ROW_MULTIPLE, Packing, round_up


@pytest.mark.parametrize("lengths", [[3, 1, 4], [0, 2, 0], [5], [64, 64], []])
def test_rows_are_the_positions_of_one_sequence_after_the_other(lengths: list[int]):
    packing = Packing.of(torch.tensor(lengths, dtype=torch.int64), max(lengths, default=0))
    padded = torch.randn(len(lengths), max(lengths, default=0), 2)
    rows = packing.pack(padded)
    wanted = torch.cat([torch.zeros(0, 2), *(padded[i, :n] for i, n in enumerate(lengths))])
    assert torch.equal(rows[: packing.num_real], wanted)
    assert packing.num_real == sum(lengths)
    assert bool((rows[packing.num_real :] == 0.0).all())
    assert len(rows) % ROW_MULTIPLE == 0
    assert len(rows) - packing.num_real < ROW_MULTIPLE
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    assert packing.starts.tolist() == starts
    assert packing.positions()[: packing.num_real].tolist() == [place for n in lengths for place in range(n)]


def test_unpacked_is_what_was_packed_and_zero_behind_it():
    packing = Packing.of(torch.tensor([2, 3]), 4)
    padded = torch.randn(2, 4, 5, requires_grad=True)
    given = packing.unpack(packing.pack(padded))
    assert torch.equal(given, torch.where(packing.is_real[..., None], padded, torch.zeros(())))
    slope = torch.randn(2, 4, 5)
    (found,) = torch.autograd.grad(given, padded, slope)
    assert torch.equal(found, torch.where(packing.is_real[..., None], slope, torch.zeros(())))


def test_few_numbers_of_rows_occur():
    numbers = {Packing.of(torch.tensor([7] * count), 7).num_rows for count in range(500, 600)}
    assert len(numbers) <= 700 // ROW_MULTIPLE + 2
    assert [round_up(number, 8) for number in (0, 1, 8, 9)] == [0, 8, 8, 16]


def test_lengths_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match="a sequence has 5 positions, but the padded form only 4"):
        Packing.of(torch.tensor([2, 5]), 4)


def test_lengths_of_any_kind_are_taken():
    packing = Packing.of(torch.tensor([3, 9, 1, 9], dtype=torch.int32)[::2], 3)
    assert packing.lengths.tolist() == [3, 1]
    assert packing.lengths.dtype == torch.int64
    assert packing.lengths.is_contiguous()
