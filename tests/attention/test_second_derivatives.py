"""Second derivatives of kernels that compute first ones only, and their refusal where the plain kernel differs."""

import weakref

import pytest
import torch
from torch import Tensor
from torch.autograd.functional import hessian

from heedful.attention.attention_inputs import AttentionInputs
from heedful.attention.dispatch import KERNELS, attend
from heedful.attention.interface import Attended
from heedful.attention.kernels.interface import Request
from heedful.attention.lowered import LoweredDot
from heedful.attention.scores import Dot
from heedful.attention.second_derivatives import with_second_derivatives
from heedful.attention.softmax import SOFTMAX
from heedful.errors import KernelUnsupported


def draw() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    query, key, value = (torch.randn(*shape, generator=generator).double() for shape in ((3, 4), (5, 4), (5, 2)))
    return query, key, value


def test_they_are_those_of_the_plain_kernel():
    query, key, value = draw()
    fused, plain = (
        hessian(lambda each, name=name: attend(each, key, value, score=Dot(4, 4), kernel=name).context.sum(), query)
        for name in ("sdpa", "plain")
    )
    assert float(plain.norm()) > 0.1
    torch.testing.assert_close(fused, plain)


def test_gradients_of_many_directions_at_once_are_those_of_the_plain_kernel():
    query, key, value = draw()
    query.requires_grad_()
    directions = torch.randn(6, 3, 2, generator=torch.Generator().manual_seed(2)).double()
    fused, plain = (
        torch.autograd.grad(
            attend(query, key, value, score=Dot(4, 4), kernel=name).context, query, directions, is_grads_batched=True
        )[0]
        for name in ("sdpa", "plain")
    )
    torch.testing.assert_close(fused, plain)


def test_the_inputs_of_the_fused_kernel_are_freed_by_its_backward_pass():
    query, key, value = draw()
    query.requires_grad_()
    moved = query * 2
    context = attend(moved, key, value, score=Dot(4, 4), kernel="sdpa").context
    alive = weakref.ref(moved)
    del moved
    assert alive() is not None
    context.sum().backward()
    assert alive() is None


def test_dropout_is_not_repeated():
    query, key, value = draw()
    query.requires_grad_()
    request = Request(LoweredDot, torch.float64, "cpu", 3, 5, dropout=0.5, wants_gradient=True)
    attended = Attended(torch.softmax(query @ key.mT, dim=-1) @ value, "fused")
    inputs = AttentionInputs(LoweredDot(query, key), value, None, SOFTMAX)
    attended = with_second_derivatives(attended, inputs, request, KERNELS[-1])
    torch.autograd.grad(attended.context.sum(), query, retain_graph=True)
    with pytest.raises(KernelUnsupported, match="'fused' with dropout can be differentiated once only"):
        torch.autograd.grad(attended.context.sum(), query, create_graph=True)
