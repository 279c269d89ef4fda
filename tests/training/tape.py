"""A recorder that does on a CPU what CUDA graphs do on a GPU.

A tape is a list of operations with the very tensors that they read and wrote: done again, it reads what is in those
tensors then, and writes into them. Whatever came from Python, numbers and branches, is as it was.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from heedful.attention import dispatch, scores, stepwise
from heedful.cpu import derivatives
from heedful.layers.cpu import layernorm
from heedful.models.recording import Recorder
from heedful.training import cross_entropy, cross_entropy_rows
from tests.attention.kernels.watch import refuse


class Tape(TorchDispatchMode):
    """Operations in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Callable[..., Any], Any, Any, Any]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        refuse(func, args)
        given = kwargs or {}
        made = func(*args, **given)
        self.calls.append((func, args, given, made))
        return made

    def again(self) -> None:
        # What was recorded lies below autograd, backward passes among it.
        with torch._C._AutoDispatchBelowAutograd():
            for func, args, kwargs, made in self.calls:
                for old, new in zip(tree_leaves(made), tree_leaves(func(*args, **kwargs)), strict=True):
                    # Views and what is written in place are where they were.
                    if isinstance(old, Tensor) and old.data_ptr() != new.data_ptr():
                        old.copy_(new)


class Tapes(Recorder):
    """Records tapes, and keeps the lengths of them."""

    def __init__(self) -> None:
        self.lengths = list[int]()

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        work()
        tape = Tape()
        with tape:
            work()
        self.lengths.append(len(tape.calls))
        return tape.again


def without_cpu_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out compiled loops of a CPU, which no tape sees."""
    kernels = tuple(kernel for kernel in dispatch.KERNELS if kernel.name in {"window", "sdpa", "plain"})
    monkeypatch.setattr(dispatch, "KERNELS", kernels)
    monkeypatch.setattr(scores, "supports_additive", lambda *_: "left out")
    for module in (layernorm, cross_entropy_rows):
        monkeypatch.setattr(module, "loops_problem", lambda: "left out")
    # A tape is a mode of PyTorch's dispatcher; on a device nothing watches.
    for module in (derivatives, cross_entropy, stepwise):
        monkeypatch.setattr(module, "concrete", lambda *tensors: True)
