"""Sharded training (FSDP2): parameters, gradients, optimizer and average are distributed over the processes.

Rajbhandari et al. 2020, arXiv:1910.02054; Zhao et al. 2023, arXiv:2304.11277. Feed-forward layers, which have most of a
Transformer's layer parameters, are gathered one at a time; the rest is gathered at once, because decoders access parts
of their layers from outside. So a process holds 1/size of all tensors except the parameters in use.
"""

import warnings
from collections.abc import Mapping
from typing import Final

import torch
from torch import Tensor, nn

from heedful.layers.feedforward import FeedForward

_PLAIN: Final = (Tensor, nn.Parameter)  # some builds of PyTorch lack torch.distributed


def shard(module: nn.Module, size: int) -> None:
    """Shard each parameter over the processes; the forward pass gathers it for as long as needed.

    Args:
        module: module, the same on all processes, which call forward and backward together.
        size: number of processes.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    # What adds to their output in place would be wrong; residual connections don't.
    warnings.filterwarnings("ignore", message=".*FSDPFeedForward.* returned a view", category=UserWarning)
    mesh = init_device_mesh(next(module.parameters()).device.type, (size,))
    for layer in module.modules():
        if isinstance(layer, FeedForward):
            fully_shard(layer, mesh=mesh)
    fully_shard(module, mesh=mesh)


@torch.no_grad()
def whole(tensor: Tensor) -> Tensor:
    """Gather a tensor; all processes call this for the same one.

    Returns:
        [*] the whole tensor, on every process, without gradient.
    """
    if type(tensor) in _PLAIN:
        return tensor.detach()
    from torch.distributed.tensor import DTensor

    return tensor.full_tensor().detach() if isinstance(tensor, DTensor) else tensor.detach()


def whole_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Gather tensors in the order of their names, which is the same in all processes; that of a mapping may differ.

    Args:
        tensors: tensors by name, the same names on all processes.

    Returns:
        The whole tensors by name, on every process, without gradients.
    """
    return {name: whole(tensors[name]) for name in sorted(tensors)}


@torch.no_grad()
def laid_as(tensor: Tensor, parameter: Tensor) -> Tensor:
    """Shard a tensor like a parameter; all processes call this for the same one.

    Args:
        tensor: whole tensor, the same on all processes.
        parameter: parameter of the same shape.

    Returns:
        The tensor, sharded if the parameter is.
    """
    if type(parameter) in _PLAIN:
        return tensor
    from torch.distributed.tensor import DTensor, distribute_tensor

    if not isinstance(parameter, DTensor):
        return tensor
    return distribute_tensor(tensor.to(parameter.device), parameter.device_mesh, parameter.placements)
