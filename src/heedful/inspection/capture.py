"""Capture of the attention weights of a running model, whatever the model returns."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import final

import torch
from torch import Tensor, nn

from heedful.attention.dispatch import observer
from heedful.attention.interface import Attended, Score
from heedful.errors import ShapeError, UsageError, did_you_mean


@final
@dataclass(frozen=True)
class Captured:
    """Attention calls of a model, each under the name of the module that owns its score."""

    calls: dict[str, list[Attended]] = field(default_factory=dict)
    """Calls in order of time, by the dotted name of a module such as ``encoder_layers.0.self_attention``. Calls
    with a score that the model itself owns have the score's name as key."""

    def weights(self, name: str) -> Tensor:
        """Concatenate the weights of all calls of one attention, such as one call per step of a decoder.

        Args:
            name: a key of `calls`.

        Returns:
            [*batch, query, key] weights, with the queries of all calls in order of time.

        Raises:
            UsageError: no attention of that name was called.
            ShapeError: the weights differ in more than the number of queries, as in self-attention of a decoder that
                runs step by step; `calls` has them one by one.
        """
        if name not in self.calls:
            raise UsageError(f"captured: no attention {name!r} was called{did_you_mean(name, self.calls)}")
        parts = [attended.weights for attended in self.calls[name] if attended.weights is not None]
        if len({(*part.shape[:-2], part.shape[-1]) for part in parts}) != 1:
            raise ShapeError(
                f"captured: the calls of {name!r} cannot be joined, their weights have shapes "
                f"{', '.join(str(list(part.shape)) for part in parts)}; take them from `calls`"
            )
        return torch.cat(parts, dim=-2)


@contextmanager
def capture(model: nn.Module) -> Generator[Captured]:
    """Record every call of `attend` in a model within the context.

    Kernels that never write weights out are replaced within the context by slower ones that do; results stay the same
    up to rounding. Calls with scores that are not part of the model are not recorded, and contexts may be nested.
    Recorded tensors keep their autograd graph: run under `torch.no_grad` where no gradients are needed.

    Args:
        model: model whose module names become the keys of the record.

    Yields:
        The record, which grows with every call.

    Example:
        >>> from heedful.layers.multihead import MultiheadAttention
        >>> layers = nn.ModuleDict({"first": MultiheadAttention(8, num_heads=2)})
        >>> with capture(layers) as captured:
        ...     heads = layers["first"].project(torch.ones(1, 5, 8), 0, 3)
        ...     _ = layers["first"].attend(*heads)
        >>> {name: list(captured.weights(name).shape) for name in captured.calls}
        {'first': [1, 2, 5, 5]}
    """
    names = {module: name for name, module in model.named_modules() if isinstance(module, Score)}
    captured = Captured()
    outer = observer.get()

    def record(score: Score, attended: Attended) -> None:
        if score in names:
            owner = names[score].rpartition(".")[0]
            captured.calls.setdefault(owner or names[score], []).append(attended)
        if outer is not None:
            outer(score, attended)

    token = observer.set(record)
    try:
        yield captured
    finally:
        observer.reset(token)
