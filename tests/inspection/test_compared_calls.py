"""Calls that are compared with unwatched ones, and watchers that change a model."""

from collections.abc import Generator
from contextlib import contextmanager, nullcontext

import pytest
import torch
from torch import Tensor, nn

from heedful.errors import CaptureChanged
from heedful.inspection.capture import capture
from heedful.inspection.compared_calls import compared_calls, require_equal

VECTORS = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(1))


class Noisy(nn.Module):
    """Dropout and batch normalisation: random numbers and buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(5)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, 0.5, batch_first=True)

    def forward(self, vectors: Tensor) -> dict[str, list[Tensor]]:
        return {"output": [self.layer(self.norm(vectors))]}


@pytest.mark.parametrize("is_training", [True, False])
def test_an_unchanged_model_passes_and_is_left_as_one_call_leaves_it(is_training: bool):
    torch.manual_seed(0)
    model = Noisy().train(is_training)
    buffers = {name: each.clone() for name, each in model.named_buffers()}
    torch.manual_seed(3)
    alone = model(VECTORS)["output"][0]
    random_after, buffers_after = torch.get_rng_state(), [each.clone() for each in model.buffers()]
    model.load_state_dict(buffers, strict=False)
    torch.manual_seed(3)
    with capture(model, check=True) as captured:
        watched = model(VECTORS)["output"][0]
    assert torch.equal(watched, alone)
    assert torch.equal(torch.get_rng_state(), random_after)
    assert all(torch.equal(one, other) for one, other in zip(model.buffers(), buffers_after, strict=True))
    assert [len(calls) for calls in captured.calls.values()] == [1]


def test_a_watcher_that_changes_numbers_is_refused():
    model = Noisy().eval()

    @contextmanager
    def wrong() -> Generator[None]:
        before = model.norm.eps
        model.norm.eps = 0.1
        try:
            yield
        finally:
            model.norm.eps = before

    with compared_calls(model, nullcontext):
        model(VECTORS)
    with pytest.raises(CaptureChanged, match="Noisy returned other numbers"), compared_calls(model, wrong):
        model(VECTORS)
    assert "forward" not in vars(model)


def test_a_watcher_that_draws_random_numbers_is_refused():
    model = Noisy().train()

    @contextmanager
    def wrong() -> Generator[None]:
        torch.rand(1)
        yield

    with pytest.raises(CaptureChanged), compared_calls(model, wrong):
        model(VECTORS)


def test_rounding_passes_and_more_does_not():
    numbers = torch.tensor([100.0, 1.0, float("nan")])
    require_equal(numbers, numbers + 1e-5, "model")
    for other in (numbers + 100.0, numbers[:2], numbers.double(), (numbers, numbers), torch.zeros(3)):
        with pytest.raises(CaptureChanged):
            require_equal(numbers, other, "model")
