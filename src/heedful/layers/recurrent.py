"""Recurrent units as in the papers, in one direction or two, over padded batches.

A unit has two equivalent forms that share its parameters: `step` processes one input, `run` a whole sequence, whose
input maps are one product.
"""

from abc import ABC, abstractmethod
from typing import Final, Literal, final

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional

Cell = Literal["lstm", "gru"]
ResetPlacement = Literal["before", "after"]

UnitState = tuple[Tensor, ...]
"""State of a unit between steps, each tensor [*batch, hidden]; the first is its output."""

_CLOSED: Final = 1000.0
"""Gate input for which a sigmoid is exactly 0 or 1 in every floating-point format."""


class RecurrentUnit(nn.Module, ABC):
    """Recurrent unit that reads one input vector after the other.

    Example:
        >>> GatedRecurrentUnit.num_parts, LongShortTermMemory.num_parts  # tensors of a state
        (1, 2)
    """

    input_map: nn.Linear
    """Map from an input to its addend to each gate."""
    num_parts: int
    """Number of tensors in the state."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size

    @abstractmethod
    def step(self, mapped: Float[Tensor, "*batch _"], state: UnitState) -> UnitState:
        """Advance by one input.

        Args:
            mapped: [*batch, gates * hidden] `input_map` of the input, plus other addends of the gates.
            state: before.

        Returns:
            The state after.
        """

    def begin(self, inputs: Float[Tensor, "batch ..."]) -> UnitState:
        """Return the state before the first input.

        Args:
            inputs: [batch, *] tensor that determines the batch size and dtype.

        Returns:
            Zeros [batch, hidden].
        """
        return (inputs.new_zeros(inputs.shape[0], self.hidden_size),) * self.num_parts

    def run(
        self,
        inputs: Float[Tensor, "batch position input_size"],
        lengths: Int[Tensor, " batch"] | None = None,
        start: UnitState | None = None,
    ) -> tuple[Float[Tensor, "batch position hidden"], UnitState]:
        """Process whole sequences.

        Args:
            inputs: [batch, position, input_size].
            lengths: [batch] real positions, at least 1; None = all.
            start: state before the first input; None = zeros.

        Returns:
            [batch, position, hidden] outputs, arbitrary where padded; and the state after the last real input.
        """
        return self.unroll(self.input_map(inputs), lengths, self.begin(inputs) if start is None else start)

    def unroll(
        self, mapped: Float[Tensor, "batch position _"], lengths: Tensor | None, start: UnitState
    ) -> tuple[Tensor, UnitState]:
        """Step through whole sequences of mapped inputs.

        Args:
            mapped: [batch, position, gates * hidden].
            lengths: as for `run`.
            start: state before the first input.

        Returns:
            As `run`.
        """
        state = start
        states: list[UnitState] = []
        for each in mapped.unbind(1):
            state = self.step(each, state)
            states.append(state)
        outputs = torch.stack([each[0] for each in states], dim=1)
        if lengths is None:
            return outputs, state
        others = (torch.stack(part, dim=1) for part in zip(*(each[1:] for each in states), strict=True))
        return outputs, (at_end(outputs, lengths), *(at_end(part, lengths) for part in others))


@final
class GatedRecurrentUnit(RecurrentUnit):
    """h' = (1 - z) * h + z * tanh(Wx + U[r * h]), z and r sigmoid gates; Bahdanau et al. 2015, A.1.1.

    `reset="after"` computes r * (U h) instead, as cuDNN and torch.nn.GRU do: one product a step rather than two,
    not the same function.

    Example:
        >>> unit = GatedRecurrentUnit(4, 8)
        >>> (hidden,) = unit.step(unit.input_map(torch.ones(2, 4)), (torch.zeros(2, 8),))
        >>> list(hidden.shape)
        [2, 8]
    """

    num_parts = 1

    def __init__(self, input_size: int, hidden_size: int, reset: ResetPlacement = "before") -> None:
        """Make the maps from input and from state.

        Args:
            input_size: features of an input x.
            hidden_size: features of the state h.
            reset: whether the reset gate acts before or after the map of the state.
        """
        super().__init__(hidden_size)
        self.reset: ResetPlacement = reset
        self.input_map = nn.Linear(input_size, 3 * hidden_size)  # update, reset, candidate
        # Two parameters, not slices of one, because autocast caches converted parameters, but not slices.
        self.gates_map = nn.Parameter(torch.empty(2 * hidden_size, hidden_size))
        self.candidate_map = nn.Parameter(torch.empty(hidden_size, hidden_size))
        for block in (*self.gates_map.chunk(2), self.candidate_map):
            nn.init.orthogonal_(block)
        for block in self.input_map.weight.chunk(3):
            nn.init.xavier_uniform_(block)
        nn.init.zeros_(self.input_map.bias)

    def step(self, mapped: Float[Tensor, "*batch _"], state: UnitState) -> UnitState:
        """Advance by one input.

        Args:
            mapped: [*batch, 3 * hidden] `input_map` of the input, plus other addends of the gates; where the reset gate
                acts after, also [*batch, 4 * hidden], whose last block is reset together with the state's map: the
                context in the decoder of Cho et al. 2014.
            state: before.

        Returns:
            The state after.
        """
        (hidden,), size = state, self.hidden_size
        # Not slices, because the gradient of each slice would be as large as the whole tensor.
        gates_in, candidate_in, reset_in = mapped.split((2 * size, size, mapped.shape[-1] - 3 * size), dim=-1)
        update, reset = torch.sigmoid(gates_in + functional.linear(hidden, self.gates_map)).chunk(2, dim=-1)
        if self.reset == "after":
            inner = functional.linear(hidden, self.candidate_map)
            inner = inner + reset_in if reset_in.shape[-1] else inner
            candidate = torch.tanh(candidate_in + reset * inner)
        else:
            candidate = torch.tanh(candidate_in + functional.linear(reset * hidden, self.candidate_map))
        return (hidden + update * (candidate - hidden),)


@final
class LongShortTermMemory(RecurrentUnit):
    """c' = f * c + i * tanh(W_g x + U_g h + b_g), h' = o * tanh(c'), with i, f and o sigmoid gates.

    Zaremba et al. 2014, arXiv:1409.2329, section 3: no peepholes. The state is (h, c).

    Example:
        >>> unit = LongShortTermMemory(4, 8)
        >>> hidden, cell = unit.step(unit.input_map(torch.ones(2, 4)), (torch.zeros(2, 8), torch.zeros(2, 8)))
        >>> list(hidden.shape)
        [2, 8]
    """

    num_parts = 2

    def __init__(self, input_size: int, hidden_size: int) -> None:
        """Make the maps from input and from state.

        Args:
            input_size: features of an input x.
            hidden_size: features of h and of c.
        """
        super().__init__(hidden_size)
        self.input_map = nn.Linear(input_size, 4 * hidden_size)  # input, forget, candidate, output: torch.lstm's order
        self.gates_map = nn.Parameter(torch.empty(4 * hidden_size, hidden_size))
        for block in self.gates_map.chunk(4):
            nn.init.orthogonal_(block)
        for block in self.input_map.weight.chunk(4):
            nn.init.xavier_uniform_(block)
        nn.init.zeros_(self.input_map.bias)

    def step(self, mapped: Tensor, state: UnitState) -> UnitState:
        hidden, cell = state
        gates = mapped + functional.linear(hidden, self.gates_map)
        both, candidate, output = gates.split((2 * self.hidden_size, self.hidden_size, self.hidden_size), dim=-1)
        add, keep = torch.sigmoid(both).chunk(2, dim=-1)
        cell = keep * cell + add * torch.tanh(candidate)
        return torch.sigmoid(output) * torch.tanh(cell), cell

    def run(
        self, inputs: Tensor, lengths: Tensor | None = None, start: UnitState | None = None
    ) -> tuple[Tensor, UnitState]:
        weight = self.input_map.weight
        if lengths is not None:
            # torch.lstm returns only the last cell. An extra input, 1 where padded, closes the input gate and opens the
            # forget gate, so that the cell after the last real input is carried to the end.
            is_padding = torch.arange(inputs.shape[1], device=inputs.device) >= lengths[:, None]
            inputs = torch.cat((inputs, is_padding[..., None].to(inputs.dtype)), dim=-1)
            weight = torch.cat((weight, self._freezing(weight)), dim=1)
        begin = self.begin(inputs) if start is None else start
        if _has_no_narrow_lstm(inputs):
            with torch.autocast("cpu", enabled=False):
                outputs, cell = self._run_all(inputs.to(weight.dtype), begin, weight)
        else:
            outputs, cell = self._run_all(inputs, begin, weight)
        hidden = outputs[:, -1] if lengths is None else at_end(outputs, lengths)
        # In mixed precision, the state that is carried from step to step stays in float32.
        return outputs, (hidden.to(weight.dtype), cell[0].to(weight.dtype))

    def _run_all(self, inputs: Tensor, begin: UnitState, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden states of all steps, and the last cell."""
        # torch.lstm applies no dropout here; `train` only decides whether cuDNN saves tensors for gradients.
        outputs, _, cell = torch.lstm(
            inputs,
            [part[None].to(inputs.dtype).contiguous() for part in begin],
            [weight, self.gates_map, self.input_map.bias, torch.zeros_like(self.input_map.bias)],
            has_biases=True,
            num_layers=1,
            dropout=0.0,
            train=torch.is_grad_enabled(),
            bidirectional=False,
            batch_first=True,
        )
        return outputs, cell

    def _freezing(self, like: Tensor) -> Tensor:
        """[4 * hidden, 1] addend of the padding marker to the gates."""
        zeros = like.new_zeros(2 * self.hidden_size, 1)
        closed = like.new_full((self.hidden_size, 1), -_CLOSED)
        return torch.cat((closed, -closed, zeros))


def _has_no_narrow_lstm(inputs: Tensor) -> bool:
    """Whether mixed precision asks for an LSTM in bfloat16 that PyTorch has for processors with AVX-512 only."""
    if inputs.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
        return False
    return not torch.cpu._is_avx512_supported()  # pyright: ignore[reportPrivateUsage]


def make_unit(cell: Cell, input_size: int, hidden_size: int, reset: ResetPlacement = "before") -> RecurrentUnit:
    """Make a unit by name.

    Args:
        cell: kind of unit.
        reset: position of the reset gate of gated recurrent units.

    Returns:
        The unit.
    """
    if cell == "lstm":
        return LongShortTermMemory(input_size, hidden_size)
    return GatedRecurrentUnit(input_size, hidden_size, reset)


def reverse_within(sequences: Shaped[Tensor, "batch position ..."], lengths: Int[Tensor, " batch"]) -> Tensor:
    """Reverse the real part of each sequence, leaving padding at the end.

    Args:
        sequences: [batch, position, *].
        lengths: [batch] real positions.

    Returns:
        The same shape.

    Example:
        >>> reverse_within(torch.tensor([[5, 6, 7, 0], [8, 9, 0, 0]]), torch.tensor([3, 2])).tolist()
        [[7, 6, 5, 0], [9, 8, 0, 0]]
    """
    places = torch.arange(sequences.shape[1], device=sequences.device)
    mirrored = lengths[:, None] - 1 - places
    order = torch.where(mirrored >= 0, mirrored, places)
    return sequences.gather(1, order.reshape(*order.shape, *(1,) * (sequences.dim() - 2)).expand_as(sequences))


def at_end(
    sequences: Float[Tensor, "batch position size"], lengths: Int[Tensor, " batch"]
) -> Float[Tensor, "batch size"]:
    """Return the last real position of each sequence.

    Args:
        sequences: [batch, position, size].
        lengths: [batch] real positions, at least 1.

    Returns:
        [batch, size].
    """
    return sequences[torch.arange(lengths.shape[0], device=sequences.device), lengths - 1]


@final
class BidirectionalEncoder(nn.Module):
    """Forward and backward unit; each output is the concatenation of both states.

    Bahdanau et al. 2015, A.1.1. Padding comes after the real inputs in both directions, so it cannot affect them.

    Example:
        >>> layer = BidirectionalEncoder(4, 6)
        >>> list(layer(torch.ones(2, 5, 4), torch.tensor([5, 3])).shape)
        [2, 5, 12]
    """

    def __init__(self, input_size: int, hidden_size: int, reset: ResetPlacement = "before", cell: Cell = "gru") -> None:
        """Make both directions.

        Args:
            input_size: features of an input.
            hidden_size: features of the state of each direction.
            reset: see `GatedRecurrentUnit`.
            cell: kind of both units.
        """
        super().__init__()
        self.output_size = 2 * hidden_size
        self.forward_unit = make_unit(cell, input_size, hidden_size, reset)
        self.backward_unit = make_unit(cell, input_size, hidden_size, reset)

    def forward(
        self, inputs: Float[Tensor, "batch position input_size"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch position _"]:
        """Read the sequences.

        Args:
            inputs: [batch, position, input_size].
            lengths: [batch] real positions.

        Returns:
            [batch, position, 2 * hidden]: forward state, then backward state; arbitrary where padded.
        """
        return self.run(inputs, lengths)[0]

    def run(
        self, inputs: Float[Tensor, "batch position input_size"], lengths: Int[Tensor, " batch"]
    ) -> tuple[Tensor, UnitState]:
        """Read the sequences, and return the final state of each direction too.

        Args:
            inputs: [batch, position, input_size].
            lengths: [batch] real positions.

        Returns:
            As `forward`; and each part of the state, [batch, 2 * hidden]: forward after the last real input, then
            backward after the first.
        """
        onward, onward_end = self.forward_unit.run(inputs, lengths)
        back, back_end = self.backward_unit.run(reverse_within(inputs, lengths), lengths)
        ends = tuple(torch.cat(both, dim=-1) for both in zip(onward_end, back_end, strict=True))
        return torch.cat((onward, reverse_within(back, lengths)), dim=-1), ends


def widen_forget_gates(module: nn.Module, bias: float) -> None:
    """Increase the forget-gate biases of a model's LSTMs, so that they initially remember more.

    Gers, Schmidhuber and Cummins 2000, doi:10.1162/089976600300015015; 1.0 is usual.

    Args:
        module: model whose LSTMs are changed.
        bias: number to add.
    """
    for part in module.modules():
        if isinstance(part, LongShortTermMemory):
            with torch.no_grad():
                part.input_map.bias[part.hidden_size : 2 * part.hidden_size] += bias
