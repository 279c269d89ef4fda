"""Accelerated models give what plain ones give; a fast form that does not is caught."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heedful.cpu.availability import loops_problem
from heedful.layers.cpu.accelerate import LAYER_FORMS, Form, accelerate
from heedful.layers.feedforward import Activation, FeedForward
from heedful.layers.residual import NormOrder, Residual

pytestmark = pytest.mark.skipif(loops_problem() is not None, reason=str(loops_problem()))


class Block(nn.Module):
    """A feed-forward network in a residual connection, and one by itself."""

    def __init__(self, order: NormOrder, activation: Activation) -> None:
        super().__init__()
        self.around = Residual(16, 0.0, order)
        self.inside = FeedForward(16, 24, activation=activation)
        self.outside = FeedForward(16, 24, activation=activation)

    def forward(self, vectors: Tensor) -> Tensor:
        return self.outside(self.around(vectors, self.inside))


def make_block(order: NormOrder, activation: Activation) -> Block:
    torch.manual_seed(0)
    block = Block(order, activation)
    for name, parameter in block.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter, std=0.3)
    return block


def outputs_and_gradients(block: nn.Module, is_mixed: bool) -> list[Tensor]:
    torch.manual_seed(1)
    vectors = torch.randn(3, 5, 16, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
        outputs = block(vectors)
    leaves = [vectors, *block.parameters()]
    return [
        outputs.detach(),
        *torch.autograd.grad(outputs.float(), leaves, torch.randn(outputs.shape), materialize_grads=True),
    ]


def differs(forms: Mapping[type[nn.Module], Form], order: NormOrder, activation: Activation, is_mixed: bool) -> bool:
    """Whether an accelerated block gives anything else than the plain one, beyond the rounding of bfloat16."""
    plain = make_block(order, activation)
    fast = deepcopy(plain)
    accelerate(fast, forms)
    found = zip(outputs_and_gradients(fast, is_mixed), outputs_and_gradients(plain, is_mixed), strict=True)
    return any(float((one - other).norm() / other.norm()) > (0.02 if is_mixed else 0.0) for one, other in found)


@pytest.mark.parametrize("order", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "swish"])
@pytest.mark.parametrize("is_mixed", [False, True])
def test_an_accelerated_model_is_the_same_model(order: NormOrder, activation: Activation, is_mixed: bool):
    assert not differs(LAYER_FORMS, order, activation, is_mixed)


def without_bias(module: Any, vectors: Tensor) -> Any:
    """A wrong form: the last bias is nobody's."""
    outputs = LAYER_FORMS[FeedForward](module, vectors)
    return outputs if isinstance(outputs, Tensor) else outputs.vectors


def test_a_form_that_loses_a_bias_is_caught():
    assert differs({**LAYER_FORMS, FeedForward: without_bias}, "pre", "relu", is_mixed=True)


def test_names_and_copies_stay():
    block = make_block("pre", "relu")
    names = [name for name, _ in block.named_parameters()]
    accelerate(block, LAYER_FORMS)
    assert [name for name, _ in block.named_parameters()] == names
    copy = deepcopy(block)
    with torch.no_grad():
        copy.inside.outer.bias += 1.0
    one, other = (outputs_and_gradients(each, is_mixed=True)[0] for each in (block, copy))
    assert not torch.equal(one, other)
