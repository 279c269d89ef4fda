import math

import pytest
import torch
from torch import Tensor

from heedful.errors import UsageError
from heedful.layers.positions import LearnedPositions, NoPositions, SinusoidalPositions, sinusoids

# size 4, positions 0 to 3
TABLE = [
    [0.0, 1.0, 0.0, 1.0],
    [0.841471, 0.540302, 0.00999983, 0.99995],
    [0.909297, -0.416147, 0.0199987, 0.9998],
    [0.141120, -0.989992, 0.0299955, 0.99955],
]


def test_the_table_of_the_paper():
    given = sinusoids(torch.arange(4), 4)
    for row, wanted in zip(given.tolist(), TABLE, strict=True):
        assert row == pytest.approx(wanted, abs=5e-7)


def test_each_entry_is_the_formula():
    size = 10
    given = sinusoids(torch.tensor([0, 1, 7, 5000]), size)
    assert given.dtype == torch.float64
    for row, position in zip(given, (0, 1, 7, 5000), strict=True):
        for index in range(size // 2):
            angle = position / 10_000 ** (2 * index / size)
            assert float(row[2 * index]) == pytest.approx(math.sin(angle), abs=1e-11)
            assert float(row[2 * index + 1]) == pytest.approx(math.cos(angle), abs=1e-11)


@pytest.mark.parametrize("offset", [1, 5, 31])
def test_an_offset_is_a_rotation_that_does_not_depend_on_the_position(offset: int):
    size = 8
    table = sinusoids(torch.arange(100 + offset), size).unflatten(-1, (size // 2, 2))
    frequencies = [10_000 ** (-2 * j / size) for j in range(size // 2)]
    for pair, frequency in enumerate(frequencies):
        cosine, sine = math.cos(offset * frequency), math.sin(offset * frequency)
        rotation = torch.tensor([[cosine, sine], [-sine, cosine]], dtype=torch.float64)
        moved = table[:100, pair] @ rotation.T
        assert float((moved - table[offset : 100 + offset, pair]).abs().max()) <= 1e-12
    products = (table[:100] * table[offset : 100 + offset]).sum(dim=(1, 2))
    wanted = sum(math.cos(offset * frequency) for frequency in frequencies)
    assert float((products - wanted).abs().max()) <= 1e-12


def offset_map(offset: int, size: int) -> Tensor:
    """M with PE(p + offset) = M PE(p) for every p: a rotation for each wavelength, along the diagonal."""
    blocks: list[Tensor] = []
    for index in range(size // 2):
        angle = offset * 10_000 ** (-2 * index / size)
        cosine, sine = math.cos(angle), math.sin(angle)
        blocks.append(torch.tensor([[cosine, sine], [-sine, cosine]], dtype=torch.float64))
    return torch.block_diag(*blocks)


@pytest.mark.parametrize("offset", [-7, 1, 12])
def test_the_code_of_a_shifted_position_is_one_linear_map_of_the_code(offset: int):
    size = 6
    positions = torch.arange(10, 2000)
    moved = sinusoids(positions, size) @ offset_map(offset, size).T
    assert float((moved - sinusoids(positions + offset, size)).abs().max()) <= 1e-11
    assert torch.allclose(offset_map(3, size) @ offset_map(offset, size), offset_map(3 + offset, size), atol=1e-14)


def residual_of_the_best_map(codes: Tensor, offset: int) -> float:
    """How far the best linear map from codes to codes `offset` further on is from right, at worst."""
    before, after = codes[:-offset].double(), codes[offset:].double()
    found = torch.linalg.lstsq(before, after).solution
    return float((before @ found - after).abs().max())


def test_sinusoids_have_such_a_map_and_a_learned_table_has_to_learn_it():
    torch.manual_seed(0)
    assert residual_of_the_best_map(SinusoidalPositions(8).double().codes(0, 100), offset=5) <= 1e-9
    assert residual_of_the_best_map(LearnedPositions(8, 100).codes(0, 100).detach(), offset=5) > 0.1


def test_the_table_grows_and_stays_the_same_function():
    positions = SinusoidalPositions(6).double()
    zeros = torch.zeros(1, 3, 6, dtype=torch.float64)
    for start in (0, 2, 70, 1000, 5):
        wanted = sinusoids(torch.arange(start, start + 3), 6)
        assert torch.equal(positions(zeros, start)[0], wanted)
    assert list(positions.state_dict()) == []  # it is made anew, not saved


def test_codes_are_as_exact_as_the_model():
    # Not rounded through float32 in a float64 model.
    codes = SinusoidalPositions(4).double().codes(0, 10)
    assert torch.equal(codes, sinusoids(torch.arange(10), 4))
    assert SinusoidalPositions(4).codes(0, 10).dtype == torch.float32


def test_a_table_grown_while_validating_can_be_trained_with():
    positions = SinusoidalPositions(4)
    with torch.inference_mode():
        positions(torch.zeros(1, 200, 4))
    vectors = torch.zeros(1, 5, 4, requires_grad=True)
    (gradient,) = torch.autograd.grad(positions(vectors).square().sum(), vectors)
    assert torch.equal(gradient, 2 * positions.codes(0, 5).clone()[None])


def test_learned_positions_are_rows_of_a_table_that_trains():
    positions = LearnedPositions(4, max_positions=7)
    vectors = torch.randn(2, 3, 4)
    moved = positions(vectors, start=4)
    assert torch.allclose(moved - vectors, positions.weight[4:7].expand(2, 3, 4), atol=1e-6)
    moved.sum().backward()
    assert positions.weight.grad is not None
    assert positions.weight.grad.sum(dim=1).tolist() == [0.0] * 4 + [8.0] * 3


def test_learned_positions_say_where_their_table_ends():
    positions = LearnedPositions(4, max_positions=7)
    assert positions.codes(0, 7).shape == (7, 4)
    with pytest.raises(UsageError, match=r"8 tokens, but the table has 7.*max_positions"):
        positions.codes(5, 3)


def test_learned_positions_learn_a_code_that_is_asked_of_them():
    torch.manual_seed(0)
    positions = LearnedPositions(4, max_positions=9)
    wanted = sinusoids(torch.arange(9), 4).float()
    optimizer = torch.optim.Adam(positions.parameters(), lr=0.1)
    for _ in range(200):
        loss = (positions(torch.zeros(9, 4)) - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert float((positions.codes(0, 9) - wanted).detach().abs().max()) <= 1e-2


@pytest.mark.parametrize("start", [0, 3])
def test_both_kinds_add_the_codes_to_any_leading_axes(start: int):
    for positions in (SinusoidalPositions(4), LearnedPositions(4, max_positions=8)):
        vectors = torch.randn(2, 3, 5, 4)
        codes = positions.codes(start, 5).detach()
        assert torch.equal(positions(vectors, start).detach(), vectors + codes)
        assert torch.equal(positions.codes(0, 8)[start : start + 5], positions.codes(start, 5))


def test_no_positions_add_nothing():
    positions, vectors = NoPositions(4).double(), torch.randn(2, 5, 4).double()
    assert torch.equal(positions(vectors, 3), vectors)
    assert torch.equal(positions.at(torch.tensor([[7, 0]])), torch.zeros(1, 2, 4).double())
    assert not positions.state_dict()


def test_halves_are_the_same_waves_in_another_order():
    turns, halves = SinusoidalPositions(6).codes(3, 5), SinusoidalPositions(6, is_halved=True).codes(3, 5)
    assert torch.equal(halves, torch.cat((turns[:, 0::2], turns[:, 1::2]), dim=-1))


@pytest.mark.parametrize("positions", [SinusoidalPositions(6), SinusoidalPositions(6, True), LearnedPositions(6, 9)])
def test_places_in_any_order_have_the_codes_of_their_row(positions: SinusoidalPositions | LearnedPositions):
    codes = positions.codes(0, 9)
    places = torch.tensor([[3, 0], [8, 3]])
    assert torch.equal(positions.at(places), codes[places])
