"""A recorder that does on a CPU what CUDA graphs do on a GPU, and a watch that refuses what they refuse.

A tape is a list of operations with the very tensors they read and wrote: done again, it reads what is in those tensors
then, and writes into them. Whatever came from Python, numbers and branches, is as it was.
"""

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from heedful.attention import dispatch, scores
from heedful.layers.cpu import layernorm as fused
from heedful.models.recording import Recorder
from heedful.training import cross_entropy_rows

_WAITS = {"aten::_local_scalar_dense", "aten::nonzero", "aten::masked_select", "aten::equal", "aten::unique2"}
_COPIES = {"aten::lift_fresh", "aten::lift_fresh_copy"}
_INDEXED = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}


class NotRecordable(AssertionError):
    """An operation that waits for the device, or copies from the host."""


def refuse(func: Any, args: tuple[Any, ...]) -> None:
    """Refuse an operation that no graph can hold.

    Raises:
        NotRecordable: it is one.
    """
    name = func._schema.name
    has_mask = name in _INDEXED and any(
        isinstance(part, Tensor) and part.dtype == torch.bool for part in tree_leaves(args[1])
    )
    if name in _WAITS or has_mask:
        raise NotRecordable(f"{name} waits for the device")
    if name in _COPIES:
        raise NotRecordable(f"{name} copies from the host")


class _Tape(TorchDispatchMode):
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
            self._repeat()

    def _repeat(self) -> None:
        for func, args, kwargs, made in self.calls:
            for old, new in zip(tree_leaves(made), tree_leaves(func(*args, **kwargs)), strict=True):
                # Views and what is written in place are where they were.
                if isinstance(old, Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)


class Watch(TorchDispatchMode):
    """Refuses what no graph can hold, and what touches another device; counts the bytes that are held."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device
        self.held = self.most = 0
        self._seen: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        refuse(func, args)
        made = func(*args, **(kwargs or {}))
        tensors = [part for part in tree_leaves((args, kwargs or {}, made)) if isinstance(part, Tensor)]
        if others := {part.device.type for part in tensors} - {self.device}:
            raise NotRecordable(f"{func} copies from the host, or to it: {', '.join(others)}")
        for part in tree_leaves(made):
            if isinstance(part, Tensor):
                self._count(part.untyped_storage())
        return made

    def _count(self, storage: Any) -> None:
        if storage in self._seen:
            return
        self._seen.add(storage)
        size = storage.nbytes()
        self.held += size
        self.most = max(self.most, self.held)
        weakref.finalize(storage, self._free, size)

    def _free(self, size: int) -> None:
        self.held -= size


class Tapes(Recorder):
    """Records tapes, and counts them."""

    def __init__(self) -> None:
        self.num_recorded = 0

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        self.num_recorded += 1
        work()
        tape = _Tape()
        with tape:
            work()
        return tape.again


def without_compiled_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out loops for a CPU, which no tape sees."""
    kernels = tuple(kernel for kernel in dispatch.KERNELS if kernel.name in {"window", "sdpa", "plain"})
    monkeypatch.setattr(dispatch, "KERNELS", kernels)
    monkeypatch.setattr(scores, "supports_additive", lambda *_: "left out")
    for module in (fused, cross_entropy_rows):
        monkeypatch.setattr(module, "loops_problem", lambda: "left out")


def without_autocast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the device without numbers be asked for mixed precision, which it does not know."""
    asked = torch.is_autocast_enabled
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: device != "meta" and asked(device))
