"""Stacked recurrent units, in one direction or two."""

from typing import final

from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.layers.dropout import dropout
from heedful.layers.recurrent import BidirectionalEncoder, Cell, RecurrentUnit, ResetPlacement, UnitState, make_unit

StackState = tuple[UnitState, ...]
"""Unit states of all layers, from the lowest to the highest."""


@final
class RecurrentStack(nn.Module):
    """Stacked units: the output of a layer is the input of the next. Sutskever et al. 2014, arXiv:1409.3215.

    Dropout is applied to the inputs of every layer, never between steps: Zaremba et al. 2014, arXiv:1409.2329, section
    3. `run` maps [batch, position, input_size] to [batch, position, hidden].

    Example:
        >>> stack = RecurrentStack("gru", 4, 8, num_layers=2)
        >>> len(stack.units)
        2
    """

    def __init__(
        self,
        cell: Cell,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        dropout: float = 0.0,
        reset: ResetPlacement = "before",
    ) -> None:
        """Make the units.

        Args:
            cell: kind of all units.
            input_size: features of an input of the first layer.
            hidden_size: features of the state of a layer.
            num_layers: at least 1.
            dropout: probability in [0, 1) of leaving out a feature of a layer's input.
            reset: position of the reset gate of gated recurrent units.
        """
        super().__init__()
        sizes = [input_size] + [hidden_size] * (num_layers - 1)
        self.layers = nn.ModuleList(make_unit(cell, size, hidden_size, reset) for size in sizes)
        self.dropout = dropout

    @property
    def units(self) -> list[RecurrentUnit]:
        """Layers, the lowest first."""
        return [layer for layer in self.layers if isinstance(layer, RecurrentUnit)]

    def run(
        self,
        inputs: Float[Tensor, "batch position input_size"],
        lengths: Int[Tensor, " batch"] | None = None,
        start: StackState | None = None,
    ) -> tuple[Float[Tensor, "batch position hidden"], StackState]:
        """Process whole sequences.

        Args:
            inputs: [batch, position, input_size].
            lengths: [batch] real positions, at least 1; None = all.
            start: states before the first input; None = zeros.

        Returns:
            [batch, position, hidden] outputs of the highest layer, arbitrary where padded; and the states after the
            last real input.
        """
        return self._run(self.units, inputs, lengths, start)

    def run_mapped(self, mapped: Float[Tensor, "batch position _"], start: StackState) -> tuple[Tensor, StackState]:
        """Process whole sequences whose inputs to the lowest layer are already mapped.

        Args:
            mapped: [batch, position, gates * hidden] as for `step`.
            start: states before the first input.

        Returns:
            As `run`.
        """
        lowest, *others = self.units
        outputs, end = lowest.unroll(mapped, None, start[0])
        outputs, ends = self._run(others, outputs, None, start[1:])
        return outputs, (end, *ends)

    def step(self, mapped: Float[Tensor, "*batch _"], states: StackState) -> StackState:
        """Advance by one input.

        Args:
            mapped: [*batch, gates * hidden] the lowest layer's `input_map` of the input after dropout, plus other
                addends of its gates.
            states: before.

        Returns:
            The states after; `[-1][0]` is the output of the highest layer.
        """
        lowest, *others = self.units
        after = [lowest.step(mapped, states[0])]
        for unit, state in zip(others, states[1:], strict=True):
            after.append(unit.step(unit.input_map(dropout(after[-1][0], self.dropout, self.training)), state))
        return tuple(after)

    def _run(
        self, units: list[RecurrentUnit], inputs: Tensor, lengths: Tensor | None, start: StackState | None
    ) -> tuple[Tensor, StackState]:
        ends: list[UnitState] = []
        for layer, unit in enumerate(units):
            inputs = dropout(inputs, self.dropout, self.training)
            inputs, end = unit.run(inputs, lengths, None if start is None else start[layer])
            ends.append(end)
        return inputs, tuple(ends)


@final
class BidirectionalStack(nn.Module):
    """Stacked bidirectional encoders: the input of a layer is both directions of the layer below.

    Two directions: Schuster and Paliwal 1997, doi:10.1109/78.650093; stacked so: Graves et al. 2013, arXiv:1303.5778.

    Example:
        >>> stack = BidirectionalStack("gru", 4, 8, num_layers=2)
        >>> len(stack.layers)
        2
    """

    def __init__(
        self,
        cell: Cell,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        dropout: float = 0.0,
        reset: ResetPlacement = "before",
    ) -> None:
        """Make the encoders.

        Args:
            cell: kind of all units.
            input_size: features of an input of the first layer.
            hidden_size: features of the state of each direction of a layer.
            num_layers: at least 1.
            dropout: probability in [0, 1) of leaving out a feature of a layer's input.
            reset: position of the reset gate of gated recurrent units.
        """
        super().__init__()
        sizes = [input_size] + [2 * hidden_size] * (num_layers - 1)
        self.layers = nn.ModuleList(BidirectionalEncoder(size, hidden_size, reset, cell) for size in sizes)
        self.dropout = dropout

    def run(
        self, inputs: Float[Tensor, "batch position input_size"], lengths: Int[Tensor, " batch"]
    ) -> tuple[Float[Tensor, "batch position _"], StackState]:
        """Process whole sequences.

        Args:
            inputs: [batch, position, input_size].
            lengths: [batch] real positions, at least 1.

        Returns:
            [batch, position, 2 * hidden] outputs of the highest layer, arbitrary where padded; and each layer's final
            states, forward and backward concatenated.
        """
        ends: list[UnitState] = []
        for layer in self.layers:
            if isinstance(layer, BidirectionalEncoder):
                inputs, end = layer.run(dropout(inputs, self.dropout, self.training), lengths)
                ends.append(end)
        return inputs, tuple(ends)
