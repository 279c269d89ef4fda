"""A watch over the operations of a call: what a CUDA graph could not hold is refused, and bytes held are counted."""

import weakref
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

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


def without_autocast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the device without numbers be asked for mixed precision, which it does not know."""
    asked = torch.is_autocast_enabled
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: device != "meta" and asked(device))
