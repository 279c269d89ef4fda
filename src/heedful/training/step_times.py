"""Time of the phases of a training step, and its lower bound: the step's own matrix products, each timed alone."""

import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal, NamedTuple, final

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

Phase = Literal["batch preparation", "forward", "backward", "optimizer", "validation", "checkpoints"]
STEP_PHASES: Final[Sequence[Phase]] = ("batch preparation", "forward", "backward", "optimizer")
OTHER_PHASES: Final[Sequence[Phase]] = ("validation", "checkpoints")

WARM_STEPS: Final = 5
"""Number of first steps that are not counted, because they compile and allocate."""
COUNTED_STEPS: Final = 20
TRIES: Final = 5


class Product(NamedTuple):
    """Matrix product by its shapes, [rows, inputs] x [inputs, outputs], `batch` of them at once (0 = a plain one)."""

    batch: int
    rows: int
    inputs: int
    outputs: int
    dtype: torch.dtype


@final
class StepTimes:
    """Timer of the phases of a step, with a table after some steps."""

    def __init__(self, say: Callable[[str], None] | None = None, counted_steps: int = COUNTED_STEPS) -> None:
        """Choose whether to measure.

        Args:
            say: callback for the table; None = nothing is timed.
            counted_steps: number of counted steps before the table is printed.
        """
        self._say: Final = say
        self._counted_steps: Final = counted_steps
        self._seconds: Final[dict[str, float]] = dict.fromkeys(STEP_PHASES, 0.0)
        self._others: Final[dict[str, float]] = dict.fromkeys(("steps", *OTHER_PHASES), 0.0)
        self._step = 0
        self._num_counted = 0
        self._num_tokens = 0
        self._products: Counter[Product] = Counter()
        self._num_recorded_tokens = 0
        self._device = torch.device("cpu")
        self._marked = 0.0

    def start(self) -> None:
        """Start timing; earlier time belongs to no phase."""
        if self._say:
            self._marked = self._now()

    def mark(self, phase: Phase) -> None:
        """Assign the time since the last mark to a phase."""
        if not self._say:
            return
        # A step begins with its data.
        self._step += phase == "batch preparation"
        now = self._now()
        elapsed, self._marked = now - self._marked, now
        if phase in OTHER_PHASES:
            self._others[phase] += elapsed
            return
        self._others["steps"] += elapsed
        if self._is_counted:
            self._seconds[phase] += elapsed

    @contextmanager
    def step(self, num_tokens: int, device: torch.device) -> Generator[None]:
        """Count a step; products are recorded in the last one that is not timed.

        Args:
            num_tokens: real target tokens of the step.
            device: device that computes.
        """
        if not self._say:
            yield
            return
        self._device = device
        if self._step == WARM_STEPS:
            with _Recorder() as recorder:
                yield
            self._products, self._num_recorded_tokens = recorder.products, num_tokens
        else:
            yield
        if self._is_counted:
            self._num_counted += 1
            self._num_tokens += num_tokens
            if self._num_counted == self._counted_steps:
                self._say_table()
                self.start()

    @property
    def _is_counted(self) -> bool:
        return WARM_STEPS < self._step <= WARM_STEPS + self._counted_steps

    def _say_table(self) -> None:
        if self._say:
            for line in self.table():
                self._say(line)

    def table(self) -> list[str]:
        """Return the table of phases."""
        num_steps = max(1, self._num_counted)
        total = sum(self._seconds.values())
        lines = [f"where a step's time goes ({num_steps} steps of {self._num_tokens / num_steps:,.0f} target tokens)"]
        lines += [_line(phase, self._seconds[phase] / num_steps, total / num_steps) for phase in STEP_PHASES]
        lines.append(_line("a step", total / num_steps, total / num_steps))
        floor = sum(count * seconds_alone(product, self._device) for product, count in self._products.items())
        floor *= self._num_tokens / num_steps / max(1, self._num_recorded_tokens)
        words = f"{sum(self._products.values()):,} matrix products alone, the floor"
        return [*lines, _line(words, floor, total / num_steps)]

    def end(self) -> None:
        """Report the time outside steps."""
        if not self._say:
            return
        if 0 < self._num_counted < self._counted_steps:
            self._say_table()
        total = sum(self._others.values())
        self._say("where the time of this training went")
        for name in ("steps", *OTHER_PHASES):
            self._say(_line(name, self._others[name], total))

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()


NOT_TIMED: Final = StepTimes()
"""Timer that measures nothing."""


def _line(name: str, seconds: float, total: float) -> str:
    amount = f"{1000 * seconds:,.1f} ms" if seconds < 10 else f"{seconds:,.1f} s"
    return f"  {name:<42}{amount:>12}{100 * seconds / max(1e-12, total):>8.1f} %"


@final
class _Recorder(TorchDispatchMode):
    """Recorder of the matrix products of PyTorch, after autocast and in backward too."""

    def __init__(self) -> None:
        super().__init__()
        self.products: Final[Counter[Product]] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        matrices = [one for one in args if isinstance(one, Tensor)][1 if name in ("addmm", "baddbmm") else 0 :][:2]
        if name in ("mm", "addmm", "bmm", "baddbmm") and len(matrices) == 2:
            first, second = matrices
            batch = first.shape[0] if first.ndim == 3 else 0
            self.products[Product(batch, first.shape[-2], first.shape[-1], second.shape[-1], first.dtype)] += 1
        return func(*args, **(kwargs or {}))


def seconds_alone(product: Product, device: torch.device) -> float:
    """Time a product by itself.

    Args:
        device: device to compute on.

    Returns:
        Seconds, the minimum of a few runs.
    """
    leading = (product.batch,) if product.batch else ()
    first = torch.randn(*leading, product.rows, product.inputs, device=device).to(product.dtype)
    second = torch.randn(*leading, product.inputs, product.outputs, device=device).to(product.dtype)
    best = math.inf
    for _ in range(TRIES):
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        started = time.perf_counter()
        torch.matmul(first, second)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        best = min(best, time.perf_counter() - started)
    return best
