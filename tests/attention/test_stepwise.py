"""Values read at many steps: the same numbers and gradients as without, in one product, in any precision."""

import pytest
import torch
from torch import Tensor, nn

from heedful.attention.dispatch import attend
from heedful.attention.masks import padding
from heedful.attention.scores import Additive
from heedful.attention.stepwise import StepwiseValue

LENGTHS = torch.tensor([4, 2])


class Decoder(nn.Module):
    """Feeds what it attended back to itself."""

    def __init__(self, is_gathered: bool) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.score, self.map, self.is_gathered = Additive(3, 5, 6), nn.Linear(5, 3), is_gathered

    def forward(self, key: Tensor, value: Tensor, num_steps: int = 3) -> list[Tensor]:
        state, prepared = torch.zeros(2, 1, 3, dtype=key.dtype), self.score.prepare(key)
        values, contexts = StepwiseValue(value), []
        for _ in range(num_steps):
            if self.is_gathered:
                attended = attend(
                    state, prepared, values.constant, score=self.score, mask=padding(LENGTHS), need=values.need
                )
                attended = values.accumulate_value_grad(attended)
            else:
                attended = attend(state, prepared, value, score=self.score, mask=padding(LENGTHS))
            state = torch.tanh(state + self.map(attended.context))
            contexts.append(attended.context)
        return contexts


def results(is_gathered: bool, chosen: slice) -> list[Tensor]:
    """Contexts of some steps, and gradients of keys, values and parameters."""
    decoder = Decoder(is_gathered).double()
    key, value = (torch.randn(2, 4, 5, generator=torch.Generator().manual_seed(i)).double() for i in (1, 2))
    key.requires_grad_(), value.requires_grad_()
    contexts = decoder(key, value)[chosen]
    loss = torch.stack([(step + 1) * context.square().sum() for step, context in enumerate(contexts)]).sum()
    return [*contexts, *torch.autograd.grad(loss, (key, value, *decoder.parameters()))]


@pytest.mark.parametrize("chosen", [slice(None), slice(0, 2), slice(1, 2)], ids=str)
def test_nothing_changes_by_it(chosen: slice):
    for ours, wanted in zip(results(True, chosen), results(False, chosen), strict=True):
        torch.testing.assert_close(ours, wanted)


def test_values_that_no_loss_depends_on_have_no_gradient():
    value = torch.ones(2, 4, 5, requires_grad=True)
    values = StepwiseValue(value)
    query = torch.ones(2, 1, 5, requires_grad=True)
    score = Additive(5, 5, 6)
    attended = values.accumulate_value_grad(
        attend(query, value.detach(), values.constant, score=score, need=values.need)
    )
    assert attended.weights is not None
    assert torch.autograd.grad(attended.weights.square().sum(), value, allow_unused=True)[0] is None


def test_a_graph_that_is_kept_can_be_gone_back_twice():
    decoder, value = Decoder(True).double(), torch.randn(2, 4, 5).double().requires_grad_()
    loss = decoder(value.detach(), value)[-1].sum()
    first, second = (torch.autograd.grad(loss, value, retain_graph=True)[0] for _ in "ab")
    assert torch.equal(first, second)


def test_without_gradient_nothing_is_asked_and_nothing_kept():
    values = StepwiseValue(torch.ones(2, 4, 5))
    assert values.need == ()
    query = torch.ones(2, 1, 5)
    attended = attend(query, query, values.constant[:, :1], score=Additive(5, 5, 6))
    assert values.accumulate_value_grad(attended) is attended
    with torch.no_grad():
        assert StepwiseValue(torch.ones(2, 4, 5, requires_grad=True)).need == ()


def test_weights_that_are_missing_are_named():
    values = StepwiseValue(torch.ones(2, 4, 5, requires_grad=True))
    attended = attend(torch.ones(2, 1, 5), torch.ones(2, 4, 5), values.constant, score=Additive(5, 5, 6))
    with pytest.raises(ValueError, match="call attend with need"):
        values.accumulate_value_grad(attended)


def test_in_mixed_precision_values_are_rounded_once_and_their_gradient_never():
    value = torch.randn(2, 40, 5, generator=torch.Generator().manual_seed(0)).requires_grad_()
    query = torch.zeros(2, 1, 5)
    score = Additive(5, 5, 6)
    num_steps = 1000
    with torch.autocast("cpu", torch.bfloat16):
        values = StepwiseValue(value)
        assert values.constant.dtype == torch.bfloat16
        prepared = score.prepare(torch.zeros(2, 40, 5))
        attended = attend(query, prepared, values.constant, score=score, need=values.need)
        total = torch.stack(
            [values.accumulate_value_grad(attended).context.float().sum() for _ in range(num_steps)]
        ).sum()
    (gradient,) = torch.autograd.grad(total, value)
    assert gradient.dtype == torch.float32
    # A thousand times 1 / 40: a sum in bfloat16 would stop growing at 256 times what each adds.
    torch.testing.assert_close(gradient, torch.full_like(gradient, num_steps / 40), rtol=0.01, atol=0)


def test_second_derivatives_are_those_of_values_with_gradient():
    products: list[list[Tensor]] = []
    for is_gathered in (True, False):
        decoder = Decoder(is_gathered).double()
        key, value = (torch.randn(2, 4, 5, generator=torch.Generator().manual_seed(i)).double() for i in (1, 2))
        inputs = (key.requires_grad_(), value.requires_grad_(), *decoder.parameters())
        loss = torch.stack([context.square().sum() for context in decoder(key, value)]).sum()
        slopes = torch.autograd.grad(loss, inputs, create_graph=True)
        product = torch.stack([(slope * slope.detach().cos()).sum() for slope in slopes]).sum()
        products.append([*slopes, *torch.autograd.grad(product, inputs)])
    for ours, wanted in zip(*products, strict=True):
        torch.testing.assert_close(ours, wanted)
