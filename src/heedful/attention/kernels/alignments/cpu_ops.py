"""PyTorch operation of sums over alignments on a CPU, whose forward and backward passes are numba kernels."""

from functools import partial
from typing import Any, Final, final

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.attention.alignment_sums import AlignmentSums, sum_alignments
from heedful.cpu.availability import loops_problem
from heedful.cpu.concrete import concrete
from heedful.cpu.derivatives import differentiable_by
from heedful.cpu.operands import refuse
from heedful.cpu.threads import run_parts

_PART_ROWS: Final = 4
"""Targets of a part."""


def fast_alignment_sums(
    log_emissions: Float[Tensor, "batch target position"], log_transitions: Float[Tensor, "batch target _ position"]
) -> AlignmentSums:
    """Sum over all alignments, as `sum_alignments`; log priors have no gradient.

    Args:
        log_emissions: as for `sum_alignments`.
        log_transitions: as for `sum_alignments`.

    Raises:
        ShapeError: axes do not fit each other, or the numbers are not floating-point.

    Cost: target * position^2 exponentials in a compiled loop, twice when training.
    """
    shape, last = log_emissions.shape, log_transitions.shape[-2:]
    if (
        len(shape) != 3
        or log_transitions.shape != (*shape[:2], *last)
        or last[1] != shape[2]
        or last[0] not in (1, shape[2])
    ):
        refuse("sums of alignments", "axes differ", emissions=log_emissions, transitions=log_transitions)
    if not (log_emissions.is_floating_point() and log_transitions.is_floating_point()):
        refuse("sums of alignments", "only floats", emissions=log_emissions, transitions=log_transitions)
    is_suited = log_emissions.device.type == "cpu" and log_emissions.dtype in (torch.float32, torch.float64)
    if (
        log_transitions.shape[-2] == 1
        or not is_suited
        or log_transitions.dtype != log_emissions.dtype
        or not concrete(log_emissions, log_transitions)
        or loops_problem() is not None
    ):
        sums = sum_alignments(log_emissions, log_transitions)
        return AlignmentSums(sums.log_probs, sums.log_priors.detach())
    return AlignmentSums(*_Sums.apply(log_emissions, log_transitions))


def _formula(ctx: Any, log_emissions: Tensor, log_transitions: Tensor) -> tuple[Tensor, ...]:
    return tuple(sum_alignments(log_emissions, log_transitions))


@final
class _Sums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, log_emissions: Tensor, log_transitions: Tensor) -> tuple[Tensor, Tensor]:
        # Imported here because importing Numba takes long.
        from heedful.attention.kernels.alignments.numba_kernels import compiled

        loop, _ = compiled(_name(log_emissions))
        emissions, transitions = log_emissions.contiguous().numpy(), log_transitions.contiguous().numpy()
        log_probs = torch.empty(log_emissions.shape[:2], dtype=log_emissions.dtype)
        priors = torch.empty(log_emissions.shape, dtype=torch.float64)
        posteriors = torch.empty_like(priors)
        outputs = log_probs.numpy(), priors.numpy(), posteriors.numpy()
        run_parts(
            [
                partial(loop, emissions[rows], transitions[rows], *(each[rows] for each in outputs))
                for rows in _parts(len(emissions))
            ]
        )
        log_priors = priors.log().to(log_emissions.dtype)
        ctx.mark_non_differentiable(log_priors)
        ctx.save_for_backward(log_emissions, log_transitions, priors, posteriors)
        return log_probs, log_priors

    @staticmethod
    @differentiable_by(_formula, num_inputs=2)
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        from heedful.attention.kernels.alignments.numba_kernels import compiled

        log_emissions, log_transitions, priors, posteriors = ctx.saved_tensors
        _, loop = compiled(_name(log_emissions))
        inputs = log_transitions.contiguous(), priors, posteriors, grads[0].contiguous()
        outputs = torch.empty_like(log_emissions, memory_format=torch.contiguous_format), torch.empty_like(inputs[0])
        arrays = [each.detach().numpy() for each in (*inputs, *outputs)]
        run_parts([partial(loop, *(each[rows] for each in arrays)) for rows in _parts(len(priors))])
        return outputs


def _name(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _parts(num_rows: int) -> list[slice]:
    return [slice(start, start + _PART_ROWS) for start in range(0, num_rows, _PART_ROWS)]
