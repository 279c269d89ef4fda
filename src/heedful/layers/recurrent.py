"""Gated recurrent units in the form of the papers, one direction or two, over padded batches."""

from typing import Literal, final

import torch
from torch import Tensor, nn
from torch.nn import functional

ResetPlacement = Literal["before", "after"]


@final
class GatedRecurrentUnit(nn.Module):
    """h' = (1 - z) * h + z * tanh(Wx + U[r * h]), z and r sigmoid gates; Bahdanau et al. 2015, A.1.1.

    `reset="after"` computes r * (U h) instead, as cuDNN and torch.nn.GRU do: one product a step rather than two,
    not the same function.
    """

    def __init__(self, input_size: int, hidden_size: int, reset: ResetPlacement = "before") -> None:
        """Make the maps from input and from state.

        Args:
            input_size: features of an input vector.
            hidden_size: features of the state.
            reset: whether the reset gate acts before or after the state's map.
        """
        super().__init__()
        self.hidden_size = hidden_size
        self.reset: ResetPlacement = reset
        self.input_map = nn.Linear(input_size, 3 * hidden_size)  # update, reset, candidate
        # Two parameters, not slices of one: mixed precision keeps converted parameters from step to step, not slices.
        self.gates_map = nn.Parameter(torch.empty(2 * hidden_size, hidden_size))
        self.candidate_map = nn.Parameter(torch.empty(hidden_size, hidden_size))
        for block in (*self.gates_map.chunk(2), self.candidate_map):
            nn.init.orthogonal_(block)
        for block in self.input_map.weight.chunk(3):
            nn.init.xavier_uniform_(block)
        nn.init.zeros_(self.input_map.bias)

    def step(self, mapped: Tensor, state: Tensor) -> Tensor:
        """Advance by one input.

        Args:
            mapped: [*batch, 3 * hidden] `input_map` of the input, plus whatever else feeds the gates.
            state: [*batch, hidden].

        Returns:
            [*batch, hidden] the new state.
        """
        size = self.hidden_size
        gates_in, candidate_in = mapped.split((2 * size, size), dim=-1)
        update, reset = torch.sigmoid(gates_in + functional.linear(state, self.gates_map)).chunk(2, dim=-1)
        if self.reset == "after":
            candidate = torch.tanh(candidate_in + reset * functional.linear(state, self.candidate_map))
        else:
            candidate = torch.tanh(candidate_in + functional.linear(reset * state, self.candidate_map))
        return state + update * (candidate - state)


def reverse_within(sequences: Tensor, lengths: Tensor) -> Tensor:
    """Reverse the real part of each sequence, leaving padding at the end.

    Args:
        sequences: [batch, position, size].
        lengths: [batch] real positions.

    Returns:
        [batch, position, size].
    """
    places = torch.arange(sequences.shape[1], device=sequences.device)
    mirrored = lengths[:, None] - 1 - places
    order = torch.where(mirrored >= 0, mirrored, places)
    return sequences.gather(1, order[..., None].expand_as(sequences))


@final
class BidirectionalEncoder(nn.Module):
    """A unit reading forward and one reading backward; each place gets both states.

    Bahdanau et al. 2015, A.1.1. Padding comes after the real inputs in both directions, so it cannot change them.
    """

    def __init__(self, input_size: int, hidden_size: int, reset: ResetPlacement = "before") -> None:
        """Make both directions.

        Args:
            input_size: features of an input vector.
            hidden_size: features of the state of each direction.
            reset: see `GatedRecurrentUnit`.
        """
        super().__init__()
        self.forward_unit = GatedRecurrentUnit(input_size, hidden_size, reset)
        self.backward_unit = GatedRecurrentUnit(input_size, hidden_size, reset)

    def forward(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """Read the sequences.

        Args:
            inputs: [batch, position, input_size].
            lengths: [batch] real positions.

        Returns:
            [batch, position, 2 * hidden]: forward state, then backward state; arbitrary where padded.
        """
        onward = run_unit(self.forward_unit, inputs)
        back = reverse_within(run_unit(self.backward_unit, reverse_within(inputs, lengths)), lengths)
        return torch.cat((onward, back), dim=-1)


def run_unit(unit: GatedRecurrentUnit, inputs: Tensor) -> Tensor:
    """Run a unit over all positions from a zero state.

    Args:
        unit: the cell.
        inputs: [batch, position, input_size].

    Returns:
        [batch, position, hidden] the state after each position.
    """
    state = inputs.new_zeros(inputs.shape[0], unit.hidden_size)
    states: list[Tensor] = []
    for mapped in unit.input_map(inputs).unbind(1):
        state = unit.step(mapped, state)
        states.append(state)
    return torch.stack(states, dim=1)
