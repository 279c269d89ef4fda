"""Recurrent units as single ONNX operators, so that a graph accepts sequences of any length.

A recorded loop would always have as many iterations as the recorded example; the operators GRU and LSTM have one per
position. Their gates, from the ONNX specification, differ from ours. GRU: update z, reset, candidate, with
h' = (1 - z) * candidate + z * h, whereas ours is h' = z * candidate + (1 - z) * h; negating the parameters of the
update gate makes them equal, because sigmoid(-x) = 1 - sigmoid(x). LSTM: the order is input, output, forget, candidate,
whereas ours is input, forget, candidate, output.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, final

import torch
from torch import Tensor, nn

from heedful.layers.recurrent import GatedRecurrentUnit, LongShortTermMemory, RecurrentUnit, UnitState

_LSTM_ORDER: Final = (0, 3, 1, 2)
_INT32: Final = 6
"""ONNX's number for the type int32."""


@torch.library.custom_op("heedful::recurrence", mutates_args=())
def _recurrence(
    inputs: Tensor, lengths: Tensor, weights: Sequence[Tensor], is_lstm: bool, is_reset_after: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Placeholder for the ONNX operator while a model is recorded; only the output shapes are right."""
    return _shapes(inputs, weights)


@_recurrence.register_fake
def _recurrence_shapes(
    inputs: Tensor, lengths: Tensor, weights: Sequence[Tensor], is_lstm: bool, is_reset_after: bool
) -> tuple[Tensor, Tensor, Tensor]:
    return _shapes(inputs, weights)


def _shapes(inputs: Tensor, weights: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    batch, length, _ = inputs.shape
    size = weights[1].shape[-1]
    return inputs.new_zeros(batch, length, size), inputs.new_zeros(batch, size), inputs.new_zeros(batch, size)


@final
class RecordedUnit(RecurrentUnit):
    """Recurrent unit whose `run` is one ONNX operator; a single step is the original unit's."""

    def __init__(self, unit: GatedRecurrentUnit | LongShortTermMemory) -> None:
        """Arrange a unit's parameters as the operator expects them.

        Args:
            unit: recurrent unit to record.
        """
        super().__init__(unit.hidden_size)
        self.unit = unit
        self.input_map = unit.input_map
        self.num_parts = unit.num_parts
        maps = [unit.input_map.weight, self._recurrent_map(), unit.input_map.bias[:, None]]
        rows = [self._reordered(part.detach())[None] for part in maps]
        bias = torch.cat((rows[2][..., 0], torch.zeros_like(rows[2][..., 0])), dim=-1)
        self.weights = nn.ParameterList(nn.Parameter(part) for part in (rows[0], rows[1], bias))

    def step(self, mapped: Tensor, state: UnitState) -> UnitState:
        return self.unit.step(mapped, state)

    def run(
        self, inputs: Tensor, lengths: Tensor | None = None, start: UnitState | None = None
    ) -> tuple[Tensor, UnitState]:
        if lengths is None or start is not None:
            raise NotImplementedError("recorded units read sources: with lengths, from a state of zeros")
        is_after = isinstance(self.unit, GatedRecurrentUnit) and self.unit.reset == "after"
        is_lstm = isinstance(self.unit, LongShortTermMemory)
        outputs, hidden, cell = _recurrence(inputs, lengths, list(self.weights), is_lstm, is_after)
        return outputs, (hidden, cell)[: self.num_parts]

    def _recurrent_map(self) -> Tensor:
        if isinstance(self.unit, GatedRecurrentUnit):
            return torch.cat((self.unit.gates_map, self.unit.candidate_map))
        return self.unit.gates_map

    def _reordered(self, rows: Tensor) -> Tensor:
        """Rows of our gates in the order, and with the signs, of the operator's gates."""
        if isinstance(self.unit, GatedRecurrentUnit):
            update, reset, candidate = rows.chunk(3)
            return torch.cat((-update, reset, candidate))
        blocks = rows.chunk(4)
        return torch.cat([blocks[index] for index in _LSTM_ORDER])


def record_units(model: nn.Module) -> None:
    """Replace all recurrent units of a model by `RecordedUnit`, in place.

    Args:
        model: copy of a model, made for export.
    """
    for module in [*model.modules()]:
        for name, child in [*module.named_children()]:
            if isinstance(child, GatedRecurrentUnit | LongShortTermMemory) and not isinstance(module, RecordedUnit):
                setattr(module, name, RecordedUnit(child))


def translations() -> dict[Any, Callable[..., Any]]:
    """Return the exporter's translation of the placeholder to ONNX.

    Returns:
        The `custom_translation_table` of `torch.onnx.export`.
    """
    from onnxscript import opset18

    op: Any = opset18  # its methods are typed for eager values, not for values of a graph under construction

    def recurrence(inputs: Any, lengths: Any, weights: Any, is_lstm: bool, is_reset_after: bool) -> Any:
        by_position, real = op.Transpose(inputs, perm=[1, 0, 2]), op.Cast(lengths, to=_INT32)
        size = int(weights[1].shape[-1])
        if is_lstm:
            outputs, hidden, cell = op.LSTM(by_position, *weights, real, hidden_size=size)
        else:
            reset = int(is_reset_after)
            outputs, hidden = op.GRU(by_position, *weights, real, hidden_size=size, linear_before_reset=reset)
            cell = hidden
        squeezed = op.Transpose(op.Squeeze(outputs, [1]), perm=[1, 0, 2])
        return squeezed, op.Squeeze(hidden, [0]), op.Squeeze(cell, [0])

    return {torch.ops.heedful.recurrence.default: recurrence}
