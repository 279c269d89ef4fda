"""Calls that move to a device move as a whole, and give what calls give that stay."""

from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.attention import dispatch
from heedful.attention.interface import Attended
from heedful.attention.tensor_tree import tensors_of
from tests.attention.cases import make_case
from tests.attention.kernels.interpreter import quiet, runs
from tests.attention.kernels.on_device import attend
from tests.contracts.errors import Ready

CASES = [
    ("additive", "padding", "softmax"),
    ("dot", "local-p", "gumbel_softmax"),
    ("gaussian", "graph & padding", "sampled"),
    ("laplacian", "local-p of another sigma", "softmax"),
]


@pytest.mark.parametrize(("score", "mask", "normalizer"), CASES)
def test_all_that_is_large_moves(score: str, mask: str, normalizer: str, monkeypatch: pytest.MonkeyPatch):
    """To PyTorch's device without numbers."""
    case, seen = make_case(score, mask, (2, 2), 5, 7, normalizer=normalizer), list[Tensor]()

    def look(query: Tensor, key: Tensor, value: Tensor, *, score: Ready, mask: Any, **more: Any) -> Attended:
        rows = mask.rows(query.shape[-2], key.shape[-2], query.device)
        seen.extend([*tensors_of((score.pairs, value)), *tensors_of(rows)])
        assert score.lower(query, score.prepare(key)).query is query
        return Attended(torch.zeros(1, 5, 3), "fused_triton")

    monkeypatch.setattr(dispatch, "attend", look)
    settings: dict[str, Any] = {"mask": case.mask, "normalizer": case.normalizer, "kernel": "fused_triton"}
    attend(*case.inputs, score=case.score, device="meta", **settings)
    assert len(seen) > 3
    # A single number may stay; kernels read it into their own.
    assert {tensor.device.type for tensor in seen if tensor.dim()} == {"meta"}


@runs
@quiet
@pytest.mark.parametrize(("score", "mask", "normalizer"), CASES[:3])
def test_moving_changes_nothing(score: str, mask: str, normalizer: str):
    """From the CPU to the CPU, in the interpreter: results and all gradients."""
    case, found = make_case(score, mask, (2, 2), 5, 7, normalizer=normalizer), list[list[Tensor]]()
    for device in ("cpu", "cpu:0"):
        leaves = [*(tensor.clone().requires_grad_() for tensor in case.inputs), *case.learned]
        settings: dict[str, Any] = {"mask": case.mask, "normalizer": case.normalizer, "kernel": "fused_triton"}
        for tensor in leaves:
            tensor.requires_grad_()
        context = attend(*leaves[:3], score=case.score, device=device, **settings).context
        slopes = torch.linspace(-1.0, 1.0, context.numel(), dtype=torch.float64).reshape(context.shape)
        grads = torch.autograd.grad(context, leaves, slopes, allow_unused=True, materialize_grads=True)
        found.append([context.detach(), *grads])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-13, atol=1e-14)
