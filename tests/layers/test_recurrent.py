import numpy as np
import pytest
import torch
from torch import nn

from heedful.layers.recurrent import (
    BidirectionalEncoder,
    Cell,
    GatedRecurrentUnit,
    LongShortTermMemory,
    ResetPlacement,
    at_end,
    make_unit,
    reverse_within,
    widen_forget_gates,
)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


def make(reset: ResetPlacement, input_size: int = 3, hidden_size: int = 4) -> GatedRecurrentUnit:
    torch.manual_seed(0)
    unit = GatedRecurrentUnit(input_size, hidden_size, reset).double()
    for parameter in unit.parameters():
        nn.init.normal_(parameter, std=0.7)
    return unit


def test_reset_before_is_bahdanaus_equations():
    unit = make("before")
    inputs = torch.randn(1, 6, 3, dtype=torch.float64)
    of_input, bias = unit.input_map.weight.detach().numpy(), unit.input_map.bias.detach().numpy()
    w_update, w_reset, w = np.split(of_input, 3)
    b_update, b_reset, b = np.split(bias, 3)
    u_update, u_reset = np.split(unit.gates_map.detach().numpy(), 2)
    u = unit.candidate_map.detach().numpy()
    state = np.zeros(4)
    wanted: list[np.ndarray] = []
    for x in inputs[0].numpy():
        update = sigmoid(w_update @ x + u_update @ state + b_update)
        reset = sigmoid(w_reset @ x + u_reset @ state + b_reset)
        candidate = np.tanh(w @ x + u @ (reset * state) + b)
        state = (1.0 - update) * state + update * candidate
        wanted.append(state)
    assert np.abs(unit.run(inputs)[0][0].detach().numpy() - np.stack(wanted)).max() <= 1e-14


def test_reset_after_is_pytorchs_gru():
    # PyTorch's gates come in the order reset, update, candidate, and its update gate keeps the old state.
    unit = make("after")
    theirs = nn.GRU(3, 4, batch_first=True).double()
    update, reset, candidate = unit.input_map.weight.detach().chunk(3)
    b_update, b_reset, b_candidate = unit.input_map.bias.detach().chunk(3)
    s_update, s_reset = unit.gates_map.detach().chunk(2)
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(torch.cat((reset, -update, candidate)))
        theirs.bias_ih_l0.copy_(torch.cat((b_reset, -b_update, b_candidate)))
        theirs.weight_hh_l0.copy_(torch.cat((s_reset, -s_update, unit.candidate_map)))
        theirs.bias_hh_l0.zero_()
    inputs = torch.randn(2, 6, 3, dtype=torch.float64)
    assert float((unit.run(inputs)[0] - theirs(inputs)[0]).detach().abs().max()) <= 1e-14


def test_the_two_placements_are_different_functions():
    inputs = torch.randn(1, 4, 3, dtype=torch.float64)
    before, after = (make(reset).run(inputs)[0] for reset in ("before", "after"))
    assert float((before - after).detach().abs().max()) > 1e-3


def test_recurrent_maps_begin_orthogonal():
    unit = GatedRecurrentUnit(3, 8)
    for block in (*unit.gates_map.detach().chunk(2), unit.candidate_map.detach()):
        assert torch.allclose(block @ block.T, torch.eye(8), atol=1e-5)


def test_reversing_within_lengths():
    sequences = torch.tensor([[1.0, 2.0, 3.0, 9.0], [1.0, 9.0, 8.0, 7.0], [1.0, 2.0, 3.0, 4.0]])[..., None]
    given = reverse_within(sequences, torch.tensor([3, 1, 4]))[..., 0]
    assert given.tolist() == [[3, 2, 1, 9], [1, 9, 8, 7], [4, 3, 2, 1]]
    assert torch.equal(
        reverse_within(reverse_within(sequences, torch.tensor([3, 1, 4])), torch.tensor([3, 1, 4])), sequences
    )


@pytest.mark.parametrize("reset", ["before", "after"])
def test_both_directions_read_every_sequence_as_if_it_were_alone(reset: ResetPlacement):
    torch.manual_seed(1)
    encoder = BidirectionalEncoder(3, 4, reset).double()
    lengths = torch.tensor([5, 2, 1])
    inputs = torch.randn(3, 5, 3, dtype=torch.float64)
    together = encoder(inputs, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = inputs[row : row + 1, :length]
        onward = encoder.forward_unit.run(alone)[0]
        back = encoder.backward_unit.run(alone.flip(1))[0].flip(1)
        wanted = torch.cat((onward, back), dim=-1)[0]
        assert float((together[row, :length] - wanted).detach().abs().max()) <= 1e-14


def test_padding_reaches_neither_values_nor_gradients():
    torch.manual_seed(1)
    encoder = BidirectionalEncoder(3, 4).double()
    lengths = torch.tensor([5, 2])
    inputs = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
    filled = inputs.detach().clone()
    filled[1, 2:] = 1e3
    real = torch.arange(5) < lengths[:, None]
    states = encoder(inputs, lengths)
    assert torch.equal(encoder(filled, lengths)[real], states[real])
    (gradient,) = torch.autograd.grad(states[real].sum(), inputs)
    assert bool((gradient[1, 2:] == 0.0).all())
    assert bool((gradient[1, :2] != 0.0).any())


def test_a_fourth_block_is_reset_with_the_state():
    unit = make("after")
    torch.manual_seed(1)
    mapped, hidden = torch.randn(5, 16, dtype=torch.float64), torch.randn(5, 4, dtype=torch.float64)
    (given,) = unit.step(mapped, (hidden,))
    update, reset = torch.sigmoid(mapped[:, :8] + hidden @ unit.gates_map.T).chunk(2, dim=-1)
    candidate = torch.tanh(mapped[:, 8:12] + reset * (hidden @ unit.candidate_map.T + mapped[:, 12:]))
    assert float((given - ((1 - update) * hidden + update * candidate)).detach().abs().max()) <= 1e-15


def make_lstm(input_size: int = 3, hidden_size: int = 4) -> LongShortTermMemory:
    torch.manual_seed(0)
    unit = LongShortTermMemory(input_size, hidden_size).double()
    for parameter in unit.parameters():
        nn.init.normal_(parameter, std=0.7)
    return unit


def test_the_lstm_is_zarembas_equations():
    unit = make_lstm()
    inputs = torch.randn(1, 6, 3, dtype=torch.float64)
    w, u, b = (p.detach().numpy() for p in (unit.input_map.weight, unit.gates_map, unit.input_map.bias))
    hidden, cell = np.zeros(4), np.zeros(4)
    wanted: list[np.ndarray] = []
    for x in inputs[0].numpy():
        add, keep, new, output = np.split(w @ x + u @ hidden + b, 4)
        cell = sigmoid(keep) * cell + sigmoid(add) * np.tanh(new)
        hidden = sigmoid(output) * np.tanh(cell)
        wanted.append(hidden)
    outputs, (last, last_cell) = unit.run(inputs)
    assert np.abs(outputs[0].detach().numpy() - np.stack(wanted)).max() <= 1e-14
    assert np.abs(last[0].detach().numpy() - hidden).max() <= 1e-14
    assert np.abs(last_cell[0].detach().numpy() - cell).max() <= 1e-14


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_whole_sequences_end_where_they_really_end(cell: Cell):
    torch.manual_seed(0)
    unit = make_unit(cell, 3, 4).double()
    lengths = torch.tensor([5, 2, 1, 4])
    inputs = torch.randn(4, 5, 3, dtype=torch.float64)
    start = tuple(torch.randn(4, 4, dtype=torch.float64) for _ in range(unit.num_parts))
    outputs, end = unit.run(inputs, lengths, start)
    stepped, stepped_end = unit.unroll(unit.input_map(inputs), lengths, start)
    real = torch.arange(5) < lengths[:, None]
    assert float((outputs - stepped)[real].detach().abs().max()) <= 1e-14
    for row, length in enumerate(lengths.tolist()):
        state = tuple(part[row : row + 1] for part in start)
        for place in range(length):
            state = unit.step(unit.input_map(inputs[row : row + 1, place]), state)
        for given in (end, stepped_end):
            for one, other in zip(given, state, strict=True):
                assert float((one[row] - other[0]).detach().abs().max()) <= 1e-14


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_what_stands_behind_the_end_changes_no_bit(cell: Cell):
    torch.manual_seed(0)
    unit = make_unit(cell, 3, 4)
    lengths = torch.tensor([5, 2])
    inputs = torch.randn(2, 5, 3, requires_grad=True)
    filled = inputs.detach().clone()
    filled[1, 2:] = 100.0
    outputs, end = unit.run(inputs, lengths)
    other_outputs, other_end = unit.run(filled, lengths)
    assert all(torch.equal(one, other) for one, other in zip(end, other_end, strict=True))
    assert torch.equal(outputs[1, :2], other_outputs[1, :2])
    (gradient,) = torch.autograd.grad(sum(part.sum() for part in end), inputs)
    assert bool((gradient[1, 2:] == 0.0).all())
    assert bool((gradient[1, :2] != 0.0).all())


@pytest.mark.parametrize("is_training", [True, False])
def test_gradients_of_the_fused_path_are_those_of_the_steps(is_training: bool):
    """In float32, where a fused kernel runs; both against the steps in float64."""
    unit = make_lstm(16, 8)
    lengths = torch.tensor([6, 3, 1])
    inputs, weights = torch.randn(3, 6, 16, dtype=torch.float64), torch.randn(2, 3, 8, dtype=torch.float64)

    def gradients(unit: LongShortTermMemory, dtype: torch.dtype, whole: bool) -> list[torch.Tensor]:
        given = inputs.to(dtype).requires_grad_()
        start = tuple(torch.full((3, 8), 0.3, dtype=dtype, requires_grad=True) for _ in range(2))
        run = unit.run(given, lengths, start) if whole else unit.unroll(unit.input_map(given), lengths, start)
        real = torch.arange(6) < lengths[:, None]
        loss = run[0][real].square().sum() + (weights.to(dtype) * torch.stack(run[1])).sum()
        return list(torch.autograd.grad(loss, [given, *start, *unit.parameters()]))

    wanted = gradients(unit, torch.float64, whole=False)
    for one, other in zip(gradients(unit, torch.float64, whole=True), wanted, strict=True):
        assert float((one - other).abs().max()) <= 1e-12
    narrow = unit.float().train(is_training)
    for one, other in zip(gradients(narrow, torch.float32, whole=True), wanted, strict=True):
        assert float((one - other).abs().max()) <= 1e-5 * max(1.0, float(other.abs().max()))


def test_mixed_precision_keeps_states_wide():
    torch.manual_seed(0)
    unit, inputs, lengths = LongShortTermMemory(8, 8), torch.randn(2, 5, 8), torch.tensor([5, 3])
    exact = unit.run(inputs, lengths)
    with torch.autocast("cpu", torch.bfloat16):
        outputs, end = unit.run(inputs, lengths)
        _, later = unit.run(outputs, lengths, end)
    assert {part.dtype for part in (*end, *later)} == {torch.float32}
    for one, other in zip(end, exact[1], strict=True):
        assert float((one - other).detach().abs().max()) <= 0.02


def test_the_last_real_position():
    sequences = torch.arange(12.0).reshape(2, 3, 2)
    assert at_end(sequences, torch.tensor([1, 3])).tolist() == [[0.0, 1.0], [10.0, 11.0]]


def test_reversing_ids_and_vectors_alike():
    ids, lengths = torch.tensor([[4, 5, 6, 0], [7, 8, 9, 5]]), torch.tensor([3, 0])
    turned = reverse_within(ids, lengths)
    assert turned.tolist() == [[6, 5, 4, 0], [7, 8, 9, 5]]
    assert torch.equal(reverse_within(ids[..., None].expand(-1, -1, 3), lengths)[..., 1], turned)


def test_forget_gates_are_widened_and_nothing_else():
    unit = nn.ModuleList([LongShortTermMemory(2, 3), GatedRecurrentUnit(2, 3)])
    before = {name: p.detach().clone() for name, p in unit.named_parameters()}
    widen_forget_gates(unit, 1.5)
    assert unit[0].input_map.bias.tolist() == [0.0] * 3 + [1.5] * 3 + [0.0] * 6
    assert all(torch.equal(p, before[name]) for name, p in unit.named_parameters() if name != "0.input_map.bias")
    # A forget gate that is wide open keeps the cell.
    lstm = LongShortTermMemory(2, 3)
    widen_forget_gates(lstm, 100.0)
    cell = torch.tensor([[1.0, -2.0, 3.0]])
    with torch.no_grad():
        lstm.input_map.bias[:3] = -100.0
        assert torch.equal(lstm.step(lstm.input_map(torch.ones(1, 2)), (torch.zeros(1, 3), cell))[1], cell)
