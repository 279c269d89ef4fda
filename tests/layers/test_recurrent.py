import numpy as np
import pytest
import torch
from torch import nn

from heedful.layers.recurrent import (
    BidirectionalEncoder,
    GatedRecurrentUnit,
    ResetPlacement,
    reverse_within,
    run_unit,
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
    assert np.abs(run_unit(unit, inputs)[0].detach().numpy() - np.stack(wanted)).max() <= 1e-14


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
    assert float((run_unit(unit, inputs) - theirs(inputs)[0]).detach().abs().max()) <= 1e-14


def test_the_two_placements_are_different_functions():
    inputs = torch.randn(1, 4, 3, dtype=torch.float64)
    before, after = (run_unit(make(reset), inputs) for reset in ("before", "after"))
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
        onward = run_unit(encoder.forward_unit, alone)
        back = run_unit(encoder.backward_unit, alone.flip(1)).flip(1)
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
