"""Checkpointing: tensors saved for the backward pass are dropped and recomputed there.

Chen et al. 2016 (arXiv:1604.06174), like `torch.utils.checkpoint`, but for a sequence of functions whose gradients are
computed in sequence: the tensors saved by one are freed when the next is recomputed. PyTorch's version keeps all
tensors that the backward pass never requests, which are many if a function has results that no loss depends on.
"""

from collections.abc import Callable
from typing import TypeVar, final

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

Result = TypeVar("Result")


@final
class Recomputation:
    """Checkpointed calls; each function is called once more in the backward pass."""

    def __init__(self, device_type: str) -> None:
        """Create a sequence without calls.

        Args:
            device_type: "cpu" or "cuda"; recomputation restores the autocast state of this device type.
        """
        self._device_type = device_type
        self._num_calls = 0
        self._present = -1
        self._saved: list[Tensor] = []

    def call(self, compute: Callable[[], Result]) -> Result:
        """Call a function without saving tensors for its gradients.

        Args:
            compute: deterministic function of the tensors that it reads; if it draws random numbers, it seeds the
                generator itself.

        Returns:
            The result of `compute`, which can be differentiated, even repeatedly.
        """
        number, self._num_calls = self._num_calls, self._num_calls + 1
        dtype, is_mixed = torch.get_autocast_dtype(self._device_type), torch.is_autocast_enabled(self._device_type)
        num_saved = 0

        def pack(_: Tensor) -> int:
            nonlocal num_saved
            num_saved += 1
            return num_saved - 1

        def unpack(index: int) -> Tensor:
            if self._present != number:
                self._present, self._saved = -1, []
                with torch.autocast(self._device_type, dtype, is_mixed):
                    self._saved = _saved_by(compute, num_saved)
                self._present = number
            return self._saved[index]

        with saved_tensors_hooks(pack, unpack):
            return compute()


class _AllSaved(Exception):
    """Signal that ends a recomputation once all saved tensors exist."""


def _saved_by(compute: Callable[[], object], num_saved: int) -> list[Tensor]:
    """Recompute up to the last saved tensor.

    Raises:
        RuntimeError: fewer tensors are saved than the first time.
    """
    saved: list[Tensor] = []

    def pack(tensor: Tensor) -> int:
        # Detached, because PyTorch restores the graph history of saved tensors.
        saved.append(tensor.detach())
        if len(saved) == num_saved:
            raise _AllSaved
        return len(saved) - 1

    with torch.enable_grad(), saved_tensors_hooks(pack, saved.__getitem__):
        try:
            compute()
        except _AllSaved:
            return saved
    raise RuntimeError(
        f"recomputation saved {len(saved)} tensors instead of {num_saved}: the function is not deterministic"
    )
