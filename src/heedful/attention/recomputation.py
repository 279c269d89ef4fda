"""Checkpointing: tensors saved for the backward pass are dropped and recomputed there.

Chen et al. 2016 (arXiv 1604.06174), as `torch.utils.checkpoint`, but for functions called in a row whose gradients are
wanted in a row: what one of them saved is let go when the next one is computed again. PyTorch's holds on to all that
the backward pass did not come to ask for, which is much where a function has results that no loss depends on.
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
        """Start without calls.

        Args:
            device_type: where the work is done, "cpu" or "cuda": there mixed precision is as it was in the first call.
        """
        self._device_type = device_type
        self._num_calls = 0
        self._present = -1
        self._saved: list[Tensor] = []

    def call(self, compute: Callable[[], Result]) -> Result:
        """Call a function, keeping nothing for its gradients.

        Args:
            compute: gives the same numbers whenever it is called, if only the tensors that it reads are not changed; to
                draw numbers it seeds a generator itself.

        Returns:
            What `compute` returns. Its tensors can be differentiated, more than once too.
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
        RuntimeError: fewer are saved than at first.
    """
    saved: list[Tensor] = []

    def pack(tensor: Tensor) -> int:
        # Without its history: PyTorch gives it the one it had.
        saved.append(tensor.detach())
        if len(saved) == num_saved:
            raise _AllSaved
        return len(saved) - 1

    with torch.enable_grad(), saved_tensors_hooks(pack, saved.__getitem__):
        try:
            compute()
        except _AllSaved:
            return saved
    raise RuntimeError(f"computed again, {len(saved)} tensors were saved instead of {num_saved}: the function changed")
