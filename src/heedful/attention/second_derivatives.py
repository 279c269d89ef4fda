"""Second derivatives of attention, for kernels that compute first ones only: those of the plain kernel."""

from dataclasses import replace

from torch import Tensor

from heedful.attention.attention_inputs import AttentionInputs
from heedful.attention.interface import Attended
from heedful.attention.kernels.interface import Kernel, Request
from heedful.attention.tensor_tree import tensors_of, with_tensors
from heedful.compiled.derivatives import with_formula
from heedful.errors import KernelUnsupported


def with_second_derivatives(attended: Attended, inputs: AttentionInputs, request: Request, plain: Kernel) -> Attended:
    """Give the results of a kernel the second derivatives of the plain one.

    Args:
        attended: results of a kernel.
        inputs: of the call.
        request: of the call.
        plain: kernel that can be differentiated twice and computes every request.

    Returns:
        The same results.

    Cost: nothing but a node of the graph, until gradients are to have a graph; then that of the plain kernel.
    """
    tensors = {name: getattr(attended, name) for name in ("context", *request.need)}
    names = [name for name, tensor in tensors.items() if tensor.requires_grad]

    def formula(*others: Tensor) -> tuple[Tensor, ...]:
        if request.dropout:
            raise KernelUnsupported(
                f"attend: kernel {attended.kernel!r} with dropout can be differentiated once only: take kernel 'plain'"
            )
        call = with_tensors(inputs, others)
        again = plain.run(call.pairs, call.value, call.rows, call.normalizer, request)
        return tuple(getattr(again, name) for name in names)

    results = with_formula([tensors[name] for name in names], formula, tensors_of(inputs))
    return replace(attended, **dict(zip(names, results, strict=True)))
