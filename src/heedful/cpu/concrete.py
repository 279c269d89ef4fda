"""Concrete tensors: tensors whose values are in memory, where numba kernels can read them."""

from typing import Any, Final

import torch
from torch import Tensor
from torch.autograd import forward_ad

# PyTorch has no public name for these three.
_torch: Final[Any] = torch._C  # pyright: ignore[reportPrivateUsage]
_functorch: Final[Any] = _torch._functorch
_ORDINARY: Final[Any] = getattr(Tensor, "__torch_dispatch__")  # noqa: B009 - PyTorch types it as a method


def concrete(*tensors: Tensor) -> bool:
    """Tell whether numba kernels may read tensors and return new ones.

    They may not, because only PyTorch's own operations give the right result, while a graph is recorded
    (`torch.compile`, `torch.export`, `make_fx`, `torch.jit.trace`), within `torch.func` (`vmap`, `grad`, `jacrev`,
    `jacfwd`, `hessian`), in forward-mode differentiation, and for tensors without values of their own (`FakeTensor`,
    other wrappers).

    Returns:
        Whether numba kernels may be used.

    Cost: 1.5 us.
    """
    if torch.compiler.is_compiling() or _torch._get_tracing_state() is not None:
        return False
    if _functorch.peek_interpreter_stack() is not None or _torch._len_torch_dispatch_stack():
        return False
    if forward_ad._current_level >= 0:  # pyright: ignore[reportPrivateUsage]
        return False
    for tensor in tensors:
        is_ordinary = type(tensor) is Tensor or getattr(type(tensor), "__torch_dispatch__") is _ORDINARY  # noqa: B009
        if not is_ordinary or _functorch.is_legacy_batchedtensor(tensor):
            return False
    return True


def is_exporting() -> bool:
    """Tell whether `torch.export` records a graph of operations, without Dynamo.

    `torch.compiler.is_exporting` alone is true in all that Dynamo compiles with PyTorch before 2.13.
    """
    return torch.compiler.is_exporting() and not torch.compiler.is_dynamo_compiling()
