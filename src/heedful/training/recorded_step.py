"""Forward and backward of a training step, recorded once for each padded shape and replayed: for GPUs.

Launched one by one, the thousands of small programs of a step take longer than the device needs to run them; replayed,
they cost one launch. Batches are padded to few shapes, and nothing in a step depends on how much of it is padding.
Clipping and the optimizer stay outside: they are few launches, and Python's numbers change there from step to step.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, final

import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import UsageError
from heedful.models.recording import Recorder
from heedful.training.loss import TrainingStep
from heedful.training.precision import Precision, autocast

MOST_SHAPES: Final = 128
"""Number of recorded shapes; each keeps its results in memory."""
RARE: Final = 1
"""Number of times that a shape comes before it is recorded, which takes the time of five steps or so."""
TOLERANCE: Final = 1e-2
"""Relative difference of a replayed and a launched step, in loss or norm of the gradient, above which recordings are
given up."""

Work = Callable[[], None]
_torch: Final[Any] = torch
"""PyTorch with its operations on lists of tensors, which have no public names."""


@final
class _Shape:
    """Tensors of the batches of one shape, and the recording over them."""

    def __init__(self, tensors: Sequence[Tensor], divisor: Tensor) -> None:
        self.tensors: Final = [tensor.clone() for tensor in tensors]
        self.divisor: Final = divisor
        self.loss = divisor
        self.replay: Work = lambda: None
        self.kept = list[Tensor]()
        """Buffers that the recording reads, also where the model has put others into their places."""


@final
class RecordedStep:
    """Recorded steps of one model, which add the gradients of batches to those of the parameters."""

    def __init__(
        self, module: TrainingStep, precision: Precision, recorder: Recorder, warn: Callable[[str], None]
    ) -> None:
        """Start with nothing recorded.

        Args:
            module: model and loss, on their device for good, whose `recording_problem` is empty.
            precision: resolved.
            recorder: recorder of the device.
            warn: callback for the line that says why recordings were given up.
        """
        self._module: Final = module
        self._precision: Final[Precision] = precision
        self._recorder: Final = recorder
        self._warn: Final = warn
        self._parameters: Final = [each for each in module.parameters() if each.requires_grad]
        self._device: Final = self._parameters[0].device
        self._grads: Final = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._shapes: Final[dict[Any, _Shape]] = {}
        self._seen: Final[Counter[Any]] = Counter()
        self._refused: Final = set[Any]()
        self.is_given_up = False
        """True after a recording failed; steps are then launched operation by operation."""

    def forget(self) -> None:
        """Give the memory of all recordings back."""
        self._shapes.clear()
        self._seen.clear()

    def begin(self) -> None:
        """Set the gradients to zero."""
        _torch._foreach_zero_(self._grads)
        for parameter, grad in zip(self._parameters, self._grads, strict=True):
            parameter.grad = grad

    def add(
        self, arrays: Sequence[NDArray[Any]], divisor: float, load: Callable[[NDArray[Any]], Tensor]
    ) -> Tensor | None:
        """Add the gradient of a batch.

        Args:
            arrays: those of `Batch.arrays`.
            divisor: divisor of the summed loss.
            load: function that moves an array to the device.

        Returns:
            The loss over the divisor, a scalar, valid until the next batch; None if the batch is not recorded, and
            nothing was added.
        """
        padded = self._module.pad(arrays)
        key = tuple((array.shape, str(array.dtype)) for array in padded)
        self._seen[key] += 1
        shape = self._shapes.get(key)
        is_new = shape is None
        is_rare = is_new and (self._seen[key] <= RARE or len(self._shapes) >= MOST_SHAPES)
        if self.is_given_up or is_rare or key in self._refused:
            return None
        tensors = [load(array) for array in padded]
        if shape is None:
            try:
                shape = self._record(tensors, divisor)
            except UsageError:  # padded, the batch may be longer than the model reads
                self._refused.add(key)
            if shape is None:
                return None
            self._shapes[key] = shape
        for old, new in zip(shape.tensors, tensors, strict=True):
            old.copy_(new, non_blocking=True)
        shape.divisor.fill_(divisor)
        shape.replay()
        return shape.loss

    def _record(self, tensors: Sequence[Tensor], divisor: float) -> _Shape | None:
        """Record a shape; None if this is impossible, or does not give what launched steps give.

        Raises:
            OutOfMemoryError: the device's memory does not hold the step.
            UsageError: the model does not read inputs of this shape.
        """
        shape = _Shape(tensors, torch.full((), float(divisor), device=self._device))
        grads = [grad.clone() for grad in self._grads]
        devices = [self._device] if self._device.type == "cuda" else []
        self._module.has_fixed_shape = True
        try:
            # What is drawn afterwards is the same whether a shape is new, as after a resume, or not.
            with torch.random.fork_rng(devices):
                shape.replay = self._recorder.record(partial(self._work, shape))
                shape.kept = [*self._module.buffers()]
                problem = "" if self._shapes else self._difference(shape)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            problem = str(error).partition("\n")[0]
        finally:
            self._module.has_fixed_shape = False
        _torch._foreach_copy_(self._grads, grads)
        if not problem:
            return shape
        self.is_given_up = True
        self.forget()
        self._warn(f"steps are not recorded as CUDA graphs, and take longer: {problem}")
        return None

    def _difference(self, shape: _Shape) -> str:
        """Difference between launched and replayed steps, whose seeds differ; empty = none."""
        replayed = shape.loss  # where every replay puts it
        problem = ""
        for seed in (1, 2):
            norms = list[float]()
            for work in (partial(self._work, shape), shape.replay):
                _torch._foreach_zero_(self._grads)
                torch.manual_seed(seed)
                work()
                norms.append(float(torch.stack(_torch._foreach_norm(self._grads)).norm()))
            for name, launched, again in (
                ("loss", float(shape.loss), float(replayed)),
                ("norm of the gradient", *norms),
            ):
                if not problem and not abs(launched - again) <= TOLERANCE * abs(launched):
                    problem = f"a replayed step has the {name} {again:.6g}, not {launched:.6g}"
        shape.loss = replayed
        return problem

    def _work(self, shape: _Shape) -> None:
        with autocast(self._precision, self._device):
            total = self._module(*shape.tensors).total
        loss = total / shape.divisor
        # Not all parameters need be in use.
        grads = torch.autograd.grad(loss, self._parameters, allow_unused=True, materialize_grads=True)
        _torch._foreach_add_(self._grads, list(grads))
        shape.loss = loss.detach()
