"""Side effects of Triton calls on a device, found without a device.

PyTorch's device "meta" has shapes and no numbers, and the programs do nothing here. So this sees what is copied from
the host and what waits for the device, neither of which can be part of a CUDA graph, and how much memory is held.
"""

from types import SimpleNamespace

import pytest
import torch

from heedful.attention import dispatch
from heedful.attention.dispatch import attend
from heedful.attention.kernels import devices
from heedful.attention.kernels.additive import triton_ops as additive_triton
from heedful.attention.kernels.fused import triton_ops as fused_autograd
from heedful.attention.kernels.fused.plan import FusedPlan
from heedful.attention.lowered import LoweredAdditive
from heedful.attention.masks import Mask, padding, window
from heedful.attention.scores import Additive, Dot, Gaussian
from heedful.cpu import derivatives
from tests.attention.kernels.watch import Watch
from tests.contracts.errors import Ready


class Program:
    """Takes any grid and arguments, and does nothing."""

    def __getitem__(self, grid: object) -> "Program":
        return self

    def __call__(self, *given: object, **settings: object) -> None:
        return None


PROGRAMS = SimpleNamespace(
    **{name: Program() for name in ("attend_rows", "slope_rows", "add_products", "distance_gradient")},
    **{name: Program() for name in ("score_tile", "gradient_tile", "operand_tile", "feature_tile")},
    DISTANCE=SimpleNamespace(value=2),
    BLOCK=SimpleNamespace(value=32),
    LIMIT=SimpleNamespace(value=43.0),
)


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(devices, "has_triton", lambda: True)
    for module in (additive_triton, fused_autograd):
        monkeypatch.setattr(module, "_programs", lambda: PROGRAMS)
    monkeypatch.setattr(fused_autograd, "_distance_programs", lambda: PROGRAMS)
    # Watching is a mode of PyTorch's dispatcher, as recording is; on a device nothing watches.
    for module in (dispatch, derivatives):
        monkeypatch.setattr(module, "concrete", lambda *tensors: True)


@pytest.mark.parametrize("mask", ["none", "padding", "window"])
@pytest.mark.parametrize(
    ("score", "kernel"),
    [(Additive, "fused_triton"), (Dot, "fused_triton"), (Gaussian, "fused_triton"), (Additive, "additive_triton")],
)
def test_calls_can_be_recorded(score: type[Additive | Dot | Gaussian], kernel: str, mask: str):
    with torch.device("meta"):
        made = score(8, 8, 8)
        query, key, value = (torch.empty(2, 3, size, 8, requires_grad=True) for size in (40, 70, 70))
        masks: dict[str, Mask | None] = {
            "none": None,
            "padding": padding(torch.empty(2, dtype=torch.int64)),
            "window": window(2, 2),
        }
        slope = torch.empty_like(query)
    dropout = 0.1 if kernel == "fused_triton" else 0.0
    with Watch("meta"):
        context = attend(query, key, value, score=made, mask=masks[mask], dropout=dropout, kernel=kernel).context
        torch.autograd.grad(context, [query, key, value], slope)


def test_elements_that_share_rows_can_be_recorded():
    with torch.device("meta"):
        query, key, value = torch.empty(3, 4, 8), torch.empty(4, 8), torch.empty(2, 3, 4, 8)
        score = Dot(8, 8)
    with Watch("meta"):
        attend(query, key, value, score=score, kernel="fused_triton")


def test_memory_at_full_size(monkeypatch: pytest.MonkeyPatch):
    """At n = m = 8,192 and h = 512 a tenth of inputs, outputs and gradients is all that stands beside them."""
    strips = FusedPlan.strips
    monkeypatch.setattr(FusedPlan, "strips", lambda plan: strips(plan)[:2])  # 84 more are alike
    watch = Watch("meta")
    with watch, torch.device("meta"):
        query, key, value = (torch.empty(1, 8192, 512, requires_grad=True) for _ in range(3))
        score = Ready(LoweredAdditive(query, key, torch.empty(512)), None)
        context = attend(query, key, value, score=score, kernel="fused_triton").context
        torch.autograd.grad(context, [query, key, value], torch.empty_like(context))
    needed = 8 * 4 * 8192 * 512
    assert needed < watch.most <= 1.1 * needed
