"""Memory of a call beside its inputs, outputs and gradients, measured against the class that `explain` states."""

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from heedful.attention import tiled_attention as tiled
from heedful.attention.dispatch import KERNELS, attend, explain
from heedful.attention.interface import Need
from heedful.attention.kernels import window
from heedful.attention.masks import Mask, causal, local_monotonic, local_predictive, padding
from tests.attention.cases import make_normalizer, make_score
from tests.thorough import sampled, thinned

SIZE = 4
SHORT, LONG = 256, 512
TILE = 1 << 14
"""Numbers of a tile; each tile also takes some 2 KB of Python objects."""
CHAIN, TREE = 128, 24
"""These take long: a step for each key, and a step for each two."""


@dataclass(frozen=True)
class Call:
    """A call of `attend` in any length."""

    kernel: str
    score: str
    normalizer: str = "softmax"
    mask: Callable[[int], Mask] | None = None
    need: tuple[Need, ...] = ()
    dropout: float = 0.0
    leading: tuple[int, ...] = (1, 2)
    value_size: int = SIZE
    grows: int = 2
    """How many times as much twice the length needs."""
    length: int = SHORT
    """The shorter of both; beyond what a kernel does in one go."""

    def __str__(self) -> str:
        name = "" if self.mask is None else self.mask.__name__
        return " ".join((self.kernel, self.score, self.normalizer, name, *self.need, str(self.leading)))

    def run(self, length: int, has_gradient: bool = True) -> int:
        """Bytes allocated at the most, less those of outputs and gradients."""
        score, mask = make_score(self.score, SIZE, torch.float32), self.mask and self.mask(length)
        normalizer = make_normalizer(self.normalizer, torch.float32)
        torch.manual_seed(0)
        query, key, value = (
            torch.randn(*self.leading, length, size) for size in (SIZE, score.key_size, self.value_size)
        )
        arguments = {"score": score, "mask": mask, "normalizer": normalizer, "dropout": self.dropout, "need": self.need}
        choice = next(each for each in explain(query, key, value, **arguments) if each.kernel == self.kernel)  # type: ignore[arg-type]
        if choice.reason:
            pytest.skip(f"{self.kernel}: {choice.reason}")
        assert choice.memory.startswith("query * key" if self.grows == 4 else "query + key")
        leaves = [tensor.requires_grad_(has_gradient) for tensor in (query, key, value)]

        def call() -> list[Tensor]:
            attended = attend(*leaves, kernel=self.kernel, **arguments)  # type: ignore[arg-type]
            outputs = [attended.context, *(getattr(attended, need) for need in self.need)]
            if has_gradient:
                outputs += torch.autograd.grad(
                    attended.context.sum(), leaves, allow_unused=True, materialize_grads=True
                )
            return outputs

        call()
        results = call()
        return peak(call) - sum(result.numel() * result.element_size() for result in results)


def peak(call: Callable[[], object]) -> int:
    """Bytes that are allocated at one time, at the most: PyTorch's by its profiler, NumPy's by Python."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        call()
    events = [event for event in profiled.profiler.kineto_results.events() if event.name() == "[memory]"]  # type: ignore[union-attr]
    live = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        live += event.nbytes()
        most = max(most, live)
    tracemalloc.start()
    call()
    others = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most + others


def real(length: int) -> Mask:
    return padding(torch.tensor(length - 3))


def triangle(length: int) -> Mask:
    return causal()


def near(length: int) -> Mask:
    return local_monotonic(3)


def centred(length: int) -> Mask:
    return local_predictive(torch.arange(length) * 0.9, 3)


def centred_over_all(length: int) -> Mask:
    return local_predictive(torch.arange(length) * 0.9, 3, over="source")


def both(length: int) -> Mask:
    return triangle(length) & real(length)


CALLS = [
    Call("sdpa", "scaled_dot"),
    Call("sdpa", "scaled_dot", mask=triangle),
    Call("sdpa", "general", mask=real),
    Call("sdpa", "location", mask=real, leading=(2,)),
    Call("sdpa", "scaled_dot", leading=()),
    Call("sdpa", "scaled_dot", leading=(2, 1, 2), value_size=7),
    Call("window", "scaled_dot", mask=near),
    Call("window", "additive", "sparsemax", mask=centred, need=("entropy", "argmax")),
    Call("window", "gaussian", "linear_chain", mask=near, leading=(2,)),
    Call("window", "concat", mask=centred, dropout=0.2),
    Call("distance_cpu", "gaussian"),
    Call("distance_cpu", "laplacian", mask=both, need=("log_normalizer",)),
    Call("distance_cpu", "boxcar", mask=real, leading=(), length=LONG),
    Call("distance_cpu", "epanechnikov", mask=near),
    Call("additive_cpu", "additive"),
    Call("additive_cpu", "concat", "sparsemax", mask=both),
    Call("additive_cpu", "additive", "sampled", mask=centred_over_all, need=("log_prob", "entropy")),
    Call("additive_cpu", "additive", "linear_chain", dropout=0.2, length=CHAIN),
    Call("plain", "scaled_dot"),
    Call("plain", "scaled_dot", mask=both, dropout=0.2),
    Call("plain", "cosine", "entmax", mask=real, leading=()),
    Call("plain", "general", "hard", mask=centred_over_all),
    Call("plain", "uniform", "gumbel_softmax", need=("argmax",)),
    Call("plain", "location", "sparsemax", mask=triangle),
    Call("plain", "additive", "straight_through", mask=near),
    Call("plain", "triangular", mask=both, need=("entropy", "log_normalizer")),
    Call("plain", "scaled_dot", "projective_tree", leading=(1,), grows=4, length=TREE),
]


@pytest.fixture
def _small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (tiled, window):
        monkeypatch.setattr(module, "WHOLE", TILE)
        monkeypatch.setattr(module, "TILE", TILE)


@sampled(3)
@pytest.mark.usefixtures("_small_tiles")
@pytest.mark.parametrize("call", thinned(CALLS, 2), ids=str)
def test_twice_the_length_needs_as_much_more_as_explain_says(call: Call):
    one, two = call.run(call.length), call.run(2 * call.length)
    inputs = 3 * call.length * SIZE * 4
    growth = max(two, 2 * inputs) / max(one, inputs)
    assert growth <= 2.4 if call.grows == 2 else 3.0 <= growth <= 5.0


@pytest.mark.usefixtures("_small_tiles")
@pytest.mark.parametrize("kernel", ["plain", "additive_cpu", "window"])
def test_without_gradients_too(kernel: str):
    call = Call(kernel, "additive", mask=near if kernel == "window" else real)
    assert call.run(LONG, has_gradient=False) <= 2.4 * call.run(SHORT, has_gradient=False)


def test_the_measure_sees_what_is_quadratic(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tiled, "WHOLE", 1 << 30)
    call = Call("plain", "scaled_dot")
    assert call.run(LONG) > 3.5 * call.run(SHORT) > 3.5 * 2 * SHORT * SHORT * 4


def test_every_kernel_is_measured():
    # Memory on a GPU is not what is measured here, and `step_cpu` takes no long calls by itself.
    measured = {kernel.name for kernel in KERNELS if not kernel.name.endswith("triton")} - {"step_cpu"}
    assert {call.kernel for call in CALLS} >= measured
