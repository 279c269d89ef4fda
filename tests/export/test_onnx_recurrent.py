"""Recorded units against the formulas of the ONNX specification, written out in NumPy."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from heedful.export.onnx_recurrent import RecordedUnit, record_units
from heedful.layers.recurrent import GatedRecurrentUnit, LongShortTermMemory, ResetPlacement
from tests.models.tiny import make_model

Array = NDArray[np.float64]


def sigmoid(values: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-values))


def onnx_gru(inputs: Array, weights: list[Array], linear_before_reset: bool) -> Array:
    """Operator GRU: gates z, r, h; H_t = (1 - z_t) * h_t + z_t * H_{t-1}."""
    of_input, of_state, bias = (part[0] for part in weights)
    wb, rb = np.split(bias, 2)
    (wz, wr, wh), (rz, rr, rh) = np.split(of_input, 3), np.split(of_state, 3)
    (wbz, wbr, wbh), (rbz, rbr, rbh) = np.split(wb, 3), np.split(rb, 3)
    state, found = np.zeros(of_state.shape[-1]), []
    for x in inputs:
        z = sigmoid(x @ wz.T + state @ rz.T + wbz + rbz)
        r = sigmoid(x @ wr.T + state @ rr.T + wbr + rbr)
        inner = r * (state @ rh.T + rbh) if linear_before_reset else (r * state) @ rh.T + rbh
        state = (1 - z) * np.tanh(x @ wh.T + inner + wbh) + z * state
        found.append(state)
    return np.stack(found)


def onnx_lstm(inputs: Array, weights: list[Array]) -> tuple[Array, Array]:
    """Operator LSTM: gates i, o, f, c."""
    of_input, of_state, bias = (part[0] for part in weights)
    state = cell = np.zeros(of_state.shape[-1])
    found: list[Array] = []
    for x in inputs:
        gates = x @ of_input.T + state @ of_state.T + sum(np.split(bias, 2))
        i, o, f, c = np.split(gates, 4)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(c)
        state = sigmoid(o) * np.tanh(cell)
        found.append(state)
    return np.stack(found), cell


def drawn(unit: GatedRecurrentUnit | LongShortTermMemory) -> GatedRecurrentUnit | LongShortTermMemory:
    with torch.no_grad():
        for parameter in unit.parameters():
            parameter.normal_(generator=torch.Generator().manual_seed(parameter.numel()))
    return unit.double()


@pytest.mark.parametrize("reset", ["before", "after"])
def test_gated_units_are_the_operator(reset: ResetPlacement):
    unit = drawn(GatedRecurrentUnit(3, 4, reset))
    inputs = torch.randn(1, 6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    wanted, _ = unit.run(inputs)
    weights = [part.detach().numpy() for part in RecordedUnit(unit).weights]
    got = onnx_gru(inputs[0].numpy(), weights, linear_before_reset=reset == "after")
    assert np.abs(wanted[0].detach().numpy() - got).max() <= 1e-12


def test_long_short_term_memories_are_the_operator():
    unit = drawn(LongShortTermMemory(3, 4))
    inputs = torch.randn(1, 6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    wanted, (_, cell) = unit.run(inputs)
    got, last = onnx_lstm(inputs[0].numpy(), [part.detach().numpy() for part in RecordedUnit(unit).weights])
    assert np.abs(wanted[0].detach().numpy() - got).max() <= 1e-12
    assert np.abs(cell[0].detach().numpy() - last).max() <= 1e-12


def test_single_steps_stay_the_units_own():
    unit = drawn(GatedRecurrentUnit(3, 4))
    mapped, state = torch.randn(2, 12, dtype=torch.float64), (torch.randn(2, 4, dtype=torch.float64),)
    assert torch.equal(RecordedUnit(unit).step(mapped, state)[0], unit.step(mapped, state)[0])


def test_what_a_graph_cannot_do_is_no_wrong_number():
    with pytest.raises(NotImplementedError):
        RecordedUnit(GatedRecurrentUnit(3, 4)).run(torch.zeros(1, 2, 3))


def test_all_units_of_a_model_are_recorded():
    model = make_model("luong-bidirectional")
    units = [module for module in model.modules() if isinstance(module, LongShortTermMemory)]
    record_units(model)
    recorded = [module for module in model.modules() if isinstance(module, RecordedUnit)]
    assert len(recorded) == len(units) == 6
