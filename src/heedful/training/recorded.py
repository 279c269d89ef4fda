"""Forward and backward of a training step, recorded once for each padded shape and replayed: for GPUs.

A recurrent decoder launches thousands of small programs in a step; replayed, they cost one launch. Batches are padded
to few shapes, and nothing in a step may depend on how much of it is padding. Clipping and the optimizer stay outside:
they are few launches, and what changes there from step to step are numbers of Python.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, final

import torch
from torch import Tensor
from torch.nn import functional

from heedful.models.recording import Recorder
from heedful.text.vocabulary import EOS
from heedful.training.loss import TrainingStep
from heedful.training.precision import Precision, autocast

LENGTHS: Final = 8
"""Lengths of padded batches are multiples of it."""
ROWS: Final = 8
"""So are their numbers of pairs."""


@final
class _Shape:
    """Tensors for batches of one shape, and what is recorded over them."""

    def __init__(self, tensors: list[Tensor], divisor: Tensor) -> None:
        self.tensors: Final = [tensor.clone() for tensor in tensors]
        self.divisor: Final = divisor
        self.loss = divisor
        self.replay: Callable[[], None] = lambda: None


@final
class RecordedStep:
    """Adds the gradients of batches to those of the parameters; the same numbers as without recording."""

    def __init__(self, module: TrainingStep, precision: Precision, recorder: Recorder) -> None:
        """Begin with nothing recorded.

        Args:
            module: model and loss, which leave no padding out (`is_packed` is False); on its device for good.
            precision: resolved.
            recorder: records.
        """
        self._module: Final = module
        self._precision: Final[Precision] = precision
        self._recorder: Final = recorder
        self._parameters: Final = [each for each in module.parameters() if each.requires_grad]
        self._device: Final = self._parameters[0].device
        self._grads: Final = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._shapes: Final[dict[tuple[torch.Size, ...], _Shape]] = {}

    def begin(self) -> None:
        """Set the gradients to 0."""
        torch._foreach_zero_(self._grads)  # pyright: ignore
        for parameter, grad in zip(self._parameters, self._grads, strict=True):
            parameter.grad = grad

    def add(self, tensors: list[Tensor], divisor: float) -> Tensor:
        """Add the gradient of a batch.

        Args:
            tensors: source, source lengths, target in, target out; on the device.
            divisor: what the summed loss is divided by.

        Returns:
            The loss over the divisor, a scalar; valid until the next batch.
        """
        padded = pad_to_shape(*tensors)
        key = tuple(tensor.shape for tensor in padded)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._record(padded)
            self._shapes[key] = shape
        for place, tensor in zip(shape.tensors, padded, strict=True):
            place.copy_(tensor)
        shape.divisor.fill_(divisor)
        shape.replay()
        return shape.loss

    def _record(self, tensors: list[Tensor]) -> _Shape:
        shape = _Shape(tensors, torch.ones((), device=self._device))
        kept = [grad.clone() for grad in self._grads]
        devices = [self._device] if self._device.type == "cuda" else []
        # Whenever a shape comes for the first time, what is drawn afterwards is the same.
        with torch.random.fork_rng(devices):
            shape.replay = self._recorder.record(partial(self._work, shape))
        torch._foreach_copy_(self._grads, kept)  # pyright: ignore
        return shape

    def _work(self, shape: _Shape) -> None:
        with autocast(self._precision, self._device):
            total = self._module(*shape.tensors).total
        loss = total / shape.divisor
        # Not all parameters need be in use.
        grads = torch.autograd.grad(loss, self._parameters, allow_unused=True, materialize_grads=True)
        torch._foreach_add_(self._grads, list(grads))  # pyright: ignore
        shape.loss = loss.detach()


def pad_to_shape(source: Tensor, source_lengths: Tensor, target_in: Tensor, target_out: Tensor) -> list[Tensor]:
    """Pad a batch to one of few shapes; what is added counts for nothing.

    Args:
        source: [batch, source] ids.
        source_lengths: [batch].
        target_in: [batch, target] ids.
        target_out: [batch, target] ids.

    Returns:
        The same four; rows that were added have a source of one end mark and no target.

    Example:
        >>> ids = torch.tensor([[5, 3]])
        >>> [list(part.shape) for part in pad_to_shape(ids, torch.tensor([2]), ids, ids)]
        [[8, 8], [8], [8, 8], [8, 8]]
    """
    more_rows = -len(source) % ROWS

    def padded(ids: Tensor) -> Tensor:
        return functional.pad(ids, (0, -ids.shape[1] % LENGTHS, 0, more_rows))

    wide = padded(source)
    wide[len(source) :, 0] = EOS
    return [wide, functional.pad(source_lengths, (0, more_rows), value=1), padded(target_in), padded(target_out)]
