"""Export of the attention of every layer and head of a Transformer as one ONNX graph.

source, source_lengths, target_in -> one tensor [source, head, query, key] for each attention, named role.layer
"""

from collections.abc import Sequence
from pathlib import Path
from typing import final

import numpy as np
import torch
from torch import Tensor, nn

from heedful.attention.dispatch import observer
from heedful.attention.interface import Attended, Score
from heedful.engines.onnx_layers import LAYERS
from heedful.errors import UsageError
from heedful.export.onnx import EXAMPLE_LENGTHS, free_axes, record_graph, recordable
from heedful.export.records import flatten
from heedful.inspection.capture import capture
from heedful.inspection.layers import ROLES, natural_order, role_of
from heedful.models.inputs import Inputs, inputs_on
from heedful.models.interface import Seq2Seq
from heedful.models.transformer import Transformer
from heedful.search.inputs import InputDraw

_SAID = 11
"""Length of the output in the recorded example."""


@final
class _Layers(nn.Module):
    def __init__(self, model: Seq2Seq, kind: type[Inputs], order: Sequence[int]) -> None:
        super().__init__()
        self.model = model
        self.kind = kind
        self.order = tuple(order)

    def forward(self, target_in: Tensor, tensors: list[Tensor]) -> tuple[Tensor, ...]:
        weights: list[Tensor] = []

        # Modules are proxies while a graph is recorded, so calls are told apart by their order rather than by module.
        def record(_: Score, attended: Attended) -> None:
            if attended.weights is not None:
                weights.append(attended.weights)

        token = observer.set(record)
        try:
            self.model(self.kind(*tensors), target_in)
        finally:
            observer.reset(token)
        return tuple(weights[call] for call in self.order)


def refuse_layerless(model: Seq2Seq) -> None:
    """Refuse a model that has no layers of attention.

    Raises:
        UsageError: the model is no Transformer.
    """
    if not isinstance(model, Transformer):
        raise UsageError("export: --layers is for Transformers; this model has one attention, which every engine gives")


def export_layers(model: Seq2Seq, folder: Path, max_length: int, draw: InputDraw) -> None:
    """Write the graph.

    Args:
        model: a Transformer; it is not changed.
        max_length: maximum number of positions of a source or tokens of an output.
        draw: function that draws random sources of the kind that the model reads.

    Raises:
        UsageError: the model is no Transformer, or has an operation that a graph cannot represent.
    """
    refuse_layerless(model)
    copied = recordable(model, max_length)
    arrays = draw(np.array(EXAMPLE_LENGTHS), np.random.default_rng(0))
    sources, others = (inputs_on(torch.device("cpu"), each) for each in (arrays, arrays.take((1, 2))))
    fields, other_fields = flatten(sources, ""), flatten(others, "")
    axes = free_axes(fields, other_fields, {0: "source"}, "position")
    named = zip(arrays.named_arrays(), [(fields[name], axes[name]) for name in fields], strict=True)
    target_in = torch.full((len(EXAMPLE_LENGTHS), _SAID), 4)
    with torch.no_grad(), capture(copied) as captured:
        copied(sources, target_in)
    # Each attention is called once, and the record is in the order of the calls.
    calls = list(captured.calls)
    names = sorted(calls, key=lambda name: (ROLES.index(role_of(name)), natural_order(name)))
    outputs: list[str] = []
    for name in names:
        role = role_of(name)
        outputs.append(f"{role}.{sum(one.startswith(role) for one in outputs)}")
    record_graph(
        _Layers(copied, type(sources), [calls.index(name) for name in names]),
        {"target_in": (target_in, {0: "source", 1: "said"})},
        dict(named),
        outputs,
        folder / LAYERS,
        max_length,
    )
