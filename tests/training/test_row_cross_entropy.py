"""Losses of rows, each with a gradient of its own."""

import pytest
import torch
from torch.nn import functional

from heedful.training.row_cross_entropy import row_cross_entropy


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_losses_and_gradients_are_those_of_the_formula(dtype: torch.dtype, smoothing: float):
    generator = torch.Generator().manual_seed(1)
    features, weight, bias = (
        torch.randn(size, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
        for size in ((7, 5), (11, 5), (11,))
    )
    gold = torch.tensor([0, 3, 10, 4, 4, 1, 2])
    factor = torch.linspace(-1.0, 2.0, 7, dtype=dtype)
    rows = row_cross_entropy(features, weight, bias, gold, smoothing)
    logits = functional.linear(features, weight, bias)
    wanted = functional.cross_entropy(logits, gold, reduction="none", label_smoothing=smoothing)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(rows.losses, wanted, atol=tolerance, rtol=tolerance)
    plain = torch.log_softmax(logits, dim=-1)[torch.arange(7), gold]
    torch.testing.assert_close(rows.gold_log_probs, plain.detach(), atol=tolerance, rtol=tolerance)
    (slopes,) = torch.autograd.grad(wanted.sum(), logits, retain_graph=True)
    torch.testing.assert_close(rows.logit_gradients, slopes, atol=tolerance, rtol=tolerance)
    inputs = [features, weight, bias]
    for one, other in zip(
        torch.autograd.grad((rows.losses * factor).sum(), inputs),
        torch.autograd.grad((wanted * factor).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)
