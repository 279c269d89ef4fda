"""Concrete tensors: ordinary ones are, and none that a transform, a recorder or a mode puts in the place of numbers."""

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx

from heedful.cpu.concrete import concrete


def test_ordinary_tensors_are():
    tensor = torch.ones(3)
    assert concrete()
    assert concrete(tensor, nn.Parameter(tensor), tensor.requires_grad_() * 2.0)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert concrete(tensor)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")  # PyTorch's own, of forward mode
def test_what_stands_for_others_is_not():
    seen: list[bool] = []

    def look(tensor: Tensor) -> Tensor:
        seen.append(concrete(tensor))
        return tensor.sum()

    tensor = torch.ones(3)
    torch.func.vmap(look)(tensor)
    torch.func.grad(look)(tensor)
    make_fx(look)(tensor)
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(tensor)
        look(fake)
    with forward_ad.dual_level():
        look(forward_ad.make_dual(tensor, tensor))
    assert seen == [False] * 5
    assert not concrete(tensor, fake)
    assert concrete(tensor)


def test_many_gradients_at_a_time_are_not():
    seen: list[bool] = []
    tensor = torch.ones(3, requires_grad=True)
    double = tensor * 2.0
    double.register_hook(lambda gradient: seen.append(concrete(gradient)))
    torch.autograd.grad(double, tensor, torch.eye(3), is_grads_batched=True)
    assert seen == [False]
