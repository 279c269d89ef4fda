"""Capture of the attention weights of a running model, whatever the model returns."""

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, final

import torch
from torch import Tensor, nn

from heedful.attention.dispatch import observer
from heedful.attention.interface import Attended, Score
from heedful.errors import ShapeError, UsageError, did_you_mean
from heedful.inspection.compared_calls import compared_calls
from heedful.inspection.torch_attention import TorchRecorder


@final
@dataclass(frozen=True)
class Captured:
    """Attention calls of a model, each under the name of the module that owns its score.

    Example:
        >>> layer = nn.TransformerEncoderLayer(8, 2, batch_first=True).eval()
        >>> with torch.no_grad(), capture(layer) as captured:
        ...     _ = layer(torch.ones(1, 5, 8))
        >>> [*captured.calls], list(captured.entropy("self_attn").shape)
        (['self_attn'], [1, 2])
    """

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

    def entropy(self, name: str) -> Tensor:
        """Compute the entropy of each head, averaged over its queries.

        Args:
            name: a key of `calls`.

        Returns:
            [batch, head] mean entropy in nats, from 0 (one key) to log(number of keys); [batch] without a head axis.
            Queries that attend to nothing are left out.

        Raises:
            UsageError: no attention of that name was called.
            ShapeError: the calls cannot be joined; see `weights`.
        """
        weights = self.weights(name)
        total = torch.special.entr(weights).sum(dim=-1)
        return total.sum(dim=-1) / weights.any(dim=-1).sum(dim=-1).clamp_min(1)


@contextmanager
def capture(model: nn.Module, check: bool = False) -> Generator[Captured]:
    """Record every attention of a model within the context, and change nothing that it computes.

    Recorded are the calls of `attend` in heedful's models and layers, and those of `torch.nn.MultiheadAttention`,
    alone or in an unchanged `torch.nn.TransformerEncoder`, `TransformerDecoder` or `Transformer`. An attention that
    returns no weights by itself runs a second time beside the first to compute them, without dropout, so outputs and
    random numbers are those of the model alone. Fast forms of whole models (`accelerate`) are replaced within the
    context; their results are the same up to rounding, but their dropout draws other numbers.

    Calls with scores that are not part of the model, modules with a `forward` of their own, and compiled code are not
    recorded; if nothing is in a model with modules of attention, a warning says so. Contexts may be nested. Recorded
    tensors keep their autograd graph: run under `torch.no_grad` where no gradients are needed.

    Args:
        model: model whose module names become the keys of the record.
        check: whether every call of the model runs a second time, with the same random numbers and outside the context,
            and its outputs are compared.

    Yields:
        The record, which grows with every call.

    Raises:
        CaptureChanged: `check` found outputs that differ by more than rounding.

    Example:
        >>> layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, batch_first=True), 2).eval()
        >>> with torch.no_grad(), capture(layers, check=True) as captured:
        ...     _ = layers(torch.ones(1, 5, 8))
        >>> {name: list(captured.weights(name).shape) for name in captured.calls}
        {'layers.0.self_attn': [1, 2, 5, 5], 'layers.1.self_attn': [1, 2, 5, 5]}
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

    def record_torch(name: str, attended: Attended) -> None:
        captured.calls.setdefault(name, []).append(attended)

    recorder = TorchRecorder(model, record_torch)

    @contextmanager
    def recording() -> Generator[None]:
        token = observer.set(record)
        recorder.install()
        try:
            yield
        finally:
            recorder.remove()
            observer.reset(token)

    with compared_calls(model, recording) if check else recording():
        yield captured
    if not captured.calls and any("attention" in type(module).__name__.lower() for module in model.modules()):
        warnings.warn(_NOTHING, stacklevel=3)


_NOTHING: Final = (
    "capture: no attention was recorded. Recorded are calls of attend whose score is a module of the model, and "
    "torch.nn.MultiheadAttention; a model of transformers attends by heedful after "
    "heedful.layers.use_in_transformers(model)"
)
