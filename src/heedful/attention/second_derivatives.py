"""Second derivatives of attention, for kernels that compute first ones only: those of the plain kernel."""

from dataclasses import replace
from typing import Final

import torch
from torch import Tensor

from heedful.attention.attention_inputs import AttentionInputs
from heedful.attention.interface import Attended
from heedful.attention.kernels.interface import Kernel, Request
from heedful.attention.tensor_tree import map_leaves, with_tensors
from heedful.cpu.derivatives import with_formula
from heedful.errors import KernelUnsupported

_SAVED: Final = torch.empty(0)
"""Stands where a tensor was that the graph has saved."""


def with_second_derivatives(attended: Attended, inputs: AttentionInputs, request: Request, plain: Kernel) -> Attended:
    """Give the results of a kernel the second derivatives of the plain one.

    Args:
        plain: kernel that can be differentiated twice and computes every request.

    Returns:
        The same results.

    Cost: nothing but a node of the graph, until gradients are to have a graph; then that of the plain kernel.
    """
    names = [name for name in ("context", *request.need) if getattr(attended, name).requires_grad]
    # The graph saves the tensors, and frees them as soon as they are no longer needed. Held by the formula, they would
    # live as long as the graph, and new tensors would lie in colder memory.
    tensors: list[Tensor] = []
    structure = map_leaves(inputs, lambda tensor: (tensors.append(tensor), _SAVED)[1])
    kernel = attended.kernel

    def formula(*others: Tensor) -> tuple[Tensor, ...]:
        if request.dropout:
            raise KernelUnsupported(
                f"attend: kernel {kernel!r} with dropout can be differentiated once only: take kernel 'plain'"
            )
        call = with_tensors(structure, others)
        again = plain.run(call.pairs, call.value, call.rows, call.normalizer, request)
        return tuple(getattr(again, name) for name in names)

    results = with_formula([getattr(attended, name) for name in names], formula, tensors)
    return replace(attended, **dict(zip(names, results, strict=True)))
