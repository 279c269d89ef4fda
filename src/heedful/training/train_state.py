"""Training state: weights, optimizer and average, and their updates."""

import copy
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, final

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.data.batch import Batch
from heedful.errors import ResourceError
from heedful.layers.cpu.accelerate import accelerate
from heedful.models.cpu_forms import CPU_FORMS
from heedful.models.recording import give_memory_back, make_recorder
from heedful.training.average import PolynomialAverage
from heedful.training.config import TrainingConfig
from heedful.training.distributed import Ranks
from heedful.training.loss import LossSum, TrainingStep
from heedful.training.optimizer import make_optimizer, restore_optimizer, store_optimizer
from heedful.training.precision import autocast, product_dtype
from heedful.training.recorded_step import RecordedStep
from heedful.training.sharding import laid_as, shard, whole, whole_tensors
from heedful.training.step_times import NOT_TIMED, StepTimes


@final
@dataclass(frozen=True)
class StepSums:
    """Loss of a step, and the norm of its gradient before clipping."""

    numbers: Tensor | tuple[float, float]
    event: torch.cuda.Event | None = None
    """Moment at which the device has computed and copied the numbers; None = they are known."""

    def read(self) -> tuple[float, float]:
        """Return loss and norm, after waiting for them."""
        if self.event is not None:
            self.event.synchronize()
        if isinstance(self.numbers, Tensor):
            loss, norm = self.numbers.tolist()
            return loss, norm
        return self.numbers


@final
class TrainState:
    """Model in training with its optimizer and average, on one process or several."""

    def __init__(
        self,
        step: TrainingStep,
        config: TrainingConfig,
        ranks: Ranks,
        times: StepTimes = NOT_TIMED,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Start from the first process's weights.

        Args:
            step: model and loss, on their device; the model is trained in place.
            ranks: processes that train together; all make the same calls.
            times: timer of forward and backward.
            warn: callback for warnings.
        """
        model = step.model
        self._times: Final = times
        self._config: Final = config
        self._ranks: Final = ranks
        self.device: Final = next(model.parameters()).device
        self._is_sharded: Final = config.parallel == "sharded" and ranks.place.size > 1
        ranks.broadcast(model)
        # Validation calls submodules, which a sharded model does not support, so it needs a whole copy.
        self._spare: Final = copy.deepcopy(model) if self._is_sharded and ranks.is_first else None
        self.num_parts = 1
        """Number of parts in which each batch is computed, because the device's memory does not hold it at once."""
        self.model: Final = model
        if self.device.type == "cpu":
            accelerate(model, CPU_FORMS)
        self.module: Final = step
        if self._is_sharded:
            shard(self.module, ranks.place.size)
        saved_names = model.state_dict().keys()
        self._buffers: Final = {name: buffer for name, buffer in model.named_buffers() if name in saved_names}
        self.optimizer: Final = make_optimizer(model, config.optimizer, product_dtype(config.precision))
        self._average: Final = PolynomialAverage(model, config.average, config.start_share)
        recorder = make_recorder(self.device)
        self.recording_problem: Final = "" if recorder is None else self._recording_problem()
        """Reason why steps on a device that records are launched operation by operation; empty = they are not."""
        self._recorded: Final = (
            None if recorder is None or self.recording_problem else RecordedStep(step, config.precision, recorder, warn)
        )

    def _recording_problem(self) -> str:
        config = self._config
        if config.execution == "eager":
            return "training.execution=eager"
        if self._is_sharded:
            return "the model is sharded"
        if config.soft_start or config.soft_share:
            return "some steps are soft"
        return self.module.recording_problem

    def synchronize(self) -> None:
        """Wait until the device has computed all that was asked of it."""
        if self.device.type != "cpu":
            torch.accelerator.synchronize(self.device)

    @property
    def rate(self) -> float:
        """Learning rate of the last update."""
        return float(self.optimizer.param_groups[0]["lr"])

    @property
    def parameter_order(self) -> list[str]:
        """Names of the optimizer's parameters, in its own order."""
        names = {id(parameter): name for name, parameter in self.model.named_parameters()}
        return [names[id(parameter)] for group in self.optimizer.param_groups for parameter in group["params"]]

    def differentiate(self, batches: Sequence[Batch], divisor: int) -> StepSums:
        """Compute the gradient of all processes' loss over a divisor, and clip it.

        Args:
            batches: batches, the same on all processes; each takes its share.
            divisor: number of loss units, or examples, of all batches.

        Returns:
            The loss, and the norm of its gradient before clipping, which may still be under way on the device.

        Raises:
            LostProcess: another process ended, or does not respond.
            ResourceError: the device's memory does not hold a step of one example. Where it does not hold a batch, the
                batch is computed in parts, whose gradients add up to the same.
        """
        self.module.train()
        buffers = {name: buffer.clone() for name, buffer in self._buffers.items()}
        while True:
            try:
                total = self._add_gradients(batches, divisor)
                break
            except torch.OutOfMemoryError:
                self._halve(max(len(self._ranks.share(batch).batch) for batch in batches), buffers)
        parameters = list(self.module.parameters())
        if not self._is_sharded:
            self._ranks.add_gradients(parameters)
            self._times.mark("backward")
        with self._ranks.connected():
            norm = whole(nn.utils.clip_grad_norm_(parameters, self._config.clip_norm or math.inf, foreach=True))
        if isinstance(total, Tensor):  # of a device that computes while Python goes on
            return StepSums(
                torch.stack((total, norm.to(total.dtype))).to("cpu", non_blocking=True), _moment(self.device)
            )
        return StepSums((sum(row[0] for row in self._ranks.gather(float(total))), float(norm)))

    @property
    def is_ahead(self) -> bool:
        """Whether Python launches a step while the device computes the one before, so that losses are read late."""
        return self.device.type == "cuda" and self._ranks.place.size == 1

    def _add_gradients(self, batches: Sequence[Batch], divisor: int) -> Tensor | float:
        """Add the gradient of this process's share of the batches, and return its loss."""
        if self._recorded is not None:
            self._recorded.begin()
        # FSDP averages over processes what has to be summed.
        scale = self._ranks.place.size if self._is_sharded else 1
        total: Tensor | float = 0.0
        for batch in batches:
            share = self._ranks.share(batch)
            own_divisor = divisor if share.is_real else math.inf
            for part in _divided(share.batch, self.num_parts):
                loss = self._replayed(part, own_divisor)
                if loss is None:
                    with self._ranks.connected(), autocast(self._config.precision, self.device):
                        sums: LossSum = self.module(*self.tensors_of(part))
                    loss = sums.total / own_divisor
                    self._times.mark("forward")
                    with self._ranks.connected():
                        (loss * scale if scale > 1 else loss).backward()
                total = total + (loss.detach() if self.is_ahead else float(loss.detach()))
                self._times.mark("backward")
        return total

    def _replayed(self, part: Batch, divisor: float) -> Tensor | None:
        """Loss of a batch whose recorded step added its gradients; None if its step is not recorded."""
        return None if self._recorded is None else self._recorded.add(part.arrays(), divisor, self._moved)

    def _halve(self, num_rows: int, buffers: Mapping[str, Tensor]) -> None:
        """Compute batches in twice as many parts from now on, and undo what the failed step changed.

        Raises:
            ResourceError: a part is a single example already, or the model is sharded, whose processes must not differ.
        """
        for parameter in self.module.parameters():
            parameter.grad = None
        if self._recorded is not None:
            self._recorded.forget()
        give_memory_back()
        if self._is_sharded:
            raise ResourceError(
                f"out of memory on {self.device}: batches of a sharded model are not divided; "
                "set a smaller training.batch_tokens and a larger training.accumulate, in another --out"
            )
        if self.num_parts >= num_rows:
            raise ResourceError(
                f"out of memory on {self.device}: it does not hold a step of one example; shorten the examples "
                "(text.max_tokens) or choose a smaller model, in another --out; or train on the CPU: --device cpu"
            )
        self.num_parts *= 2
        for name, buffer in self._buffers.items():
            buffer.copy_(buffers[name])
        torch.manual_seed(torch.initial_seed())  # dropout is a function of the step

    def update(self, step: int, rate: float) -> None:
        """Update the weights along the gradient.

        Args:
            step: from 1.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        for parameter in self.module.parameters():
            # Several processes sum a missing gradient as zero, so one process does not skip its parameter either.
            if parameter.requires_grad and parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self._average.update(step)
        if self._buffers and self._ranks.place.size > 1:
            # Each process updated the buffers with its share of the batch.
            rows = self._ranks.gather(*[float(buffer) for buffer in self._buffers.values()])
            for buffer, numbers in zip(self._buffers.values(), zip(*rows, strict=True), strict=True):
                buffer.fill_(sum(numbers) / len(numbers))

    def tensors_of(self, batch: Batch) -> list[Tensor]:
        """Move a batch to the device."""
        return [self._moved(array) for array in batch.arrays()]

    def _moved(self, array: NDArray[Any]) -> Tensor:
        tensor = torch.from_numpy(array)
        # Python need not wait for a copy from pinned memory.
        return (tensor.pin_memory() if self.device.type == "cuda" else tensor).to(self.device, non_blocking=True)

    def averaged(self) -> dict[str, Tensor]:
        """Return the weights to validate and save; all processes call this.

        Returns:
            Tensors by parameter name, tied ones once; the next update may change them.
        """
        return whole_tensors(self._average.evaluated())

    @contextmanager
    def evaluation_weights(self, weights: Mapping[str, Tensor]) -> Generator[nn.Module]:
        """Provide the model with the averaged weights, in evaluation mode.

        Args:
            weights: from `averaged`.

        Yields:
            The model; only in this block.
        """
        self.module.eval()
        with torch.inference_mode():
            if self._spare is None:
                with self._average.swapped_in():
                    yield self.model
                return
            for name, parameter in self._spare.named_parameters():
                parameter.data.copy_(weights[name])
            yield self._spare.eval()

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Return the tensors of a checkpoint; all processes call this.

        Returns:
            Whole tensors by group (model, average, optimizer) and name; they may change with the next update.
        """
        groups = {
            "model": dict(self.model.named_parameters()) | self._buffers,
            "average": self._average.tensors(),
            "optimizer": store_optimizer(self.optimizer, self.parameter_order),
        }
        return {group: whole_tensors(groups[group]) for group in sorted(groups)}

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Restore a checkpoint; all processes call this.

        Args:
            tensors: result of `tensors`, on any number of processes.
        """
        # Sharding a tensor is an exchange, so all processes do it in the same order. The mappings have none: those that
        # were read from a file are in a random order, another one in each process.
        named = dict(self.model.named_parameters())
        for name in sorted(named):
            named[name].copy_(laid_as(tensors["model"][name], named[name]))
        for name, buffer in self._buffers.items():
            buffer.copy_(tensors["model"][name])
        average = {name: laid_as(tensors["average"][name], named[name]) for name in sorted(tensors["average"])}
        self._average.restore(average)
        state: dict[str, Tensor] = {}
        for name in sorted(tensors["optimizer"]):
            tensor, parameter = tensors["optimizer"][name], named[name.rpartition(".")[0]]
            state[name] = laid_as(tensor, parameter) if tensor.shape == parameter.shape else tensor
        restore_optimizer(self.optimizer, state, self.parameter_order)


def _moment(device: torch.device) -> torch.cuda.Event:
    """Moment at which a device, which need not be the present one, has done all that was asked of it so far."""
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(device))
    return event


def _divided(batch: Batch, num_parts: int) -> list[Batch]:
    """Divide a batch; neighbours are of similar length, and so are the parts."""
    if num_parts == 1:
        return [batch]
    return [batch.rows(slice(first, None, num_parts)) for first in range(min(num_parts, len(batch)))]
