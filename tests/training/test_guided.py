"""The loss of guided alignment against its formula in loops, and its way into the training step."""

import math

import pytest
import torch
from torch import Tensor

from heedful.errors import ConfigError
from heedful.layers.normalizing import set_soft
from heedful.models.inputs import TokenInputs
from heedful.models.interface import Decoded
from heedful.training.guided import Guidance, alignment_loss
from heedful.training.pair_step import PairStep
from tests.models.tiny import make_model, make_targets
from tests.requests import load_experiment
from tests.training.test_loss import batch

LINKS = torch.tensor([[0, 0, 1], [0, 0, 3], [0, 2, 0], [1, 1, 1], [2, 3, 2], [2, 3, 3], [2, 3, 6]])
ATTENDING = [
    "transformer-pre",
    "transformer-bias",
    "rnnsearch",
    "rnnsearch-conditional",
    "luong-global",
    "luong-bidirectional",
]


def draw_weights(*shape: int) -> Tensor:
    return torch.softmax(torch.randn(shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64), dim=-1)


def slow_loss(weights: Tensor, links: Tensor) -> float:
    """Token by token, each linked source token with an equal share."""
    total, weights = 0.0, weights.detach()
    for row in range(weights.shape[0]):
        for target in range(weights.shape[-2]):
            linked = [int(s) for r, t, s in links.tolist() if (r, t) == (row, target)]
            for source in linked:
                heads = weights[row] if weights.dim() == 4 else weights[row][None]
                mean = sum(float(head[target, source]) for head in heads) / len(heads)
                total -= math.log(mean) / len(linked)
    return total


@pytest.mark.parametrize("shape", [(4, 6, 7), (4, 3, 6, 7)])
def test_it_is_the_cross_entropy_of_shares_and_weights(shape: tuple[int, ...]):
    weights = draw_weights(*shape)
    assert float(alignment_loss(weights, LINKS)) == pytest.approx(slow_loss(weights, LINKS), abs=1e-12)
    shuffled = LINKS[torch.randperm(len(LINKS))]
    assert float(alignment_loss(weights, shuffled)) == pytest.approx(slow_loss(weights, LINKS), abs=1e-12)


def test_it_is_least_where_each_linked_token_has_its_share():
    links = torch.tensor([[0, 0, 1], [0, 0, 2], [0, 1, 0]])
    even = torch.tensor([[[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]], dtype=torch.float64)
    assert float(alignment_loss(even, links)) == pytest.approx(math.log(2.0))
    other = torch.tensor([[[0.0, 0.6, 0.4], [1.0, 0.0, 0.0]]], dtype=torch.float64)
    assert float(alignment_loss(other, links)) > float(alignment_loss(even, links))


def test_tokens_without_links_have_no_loss_and_no_gradient():
    weights = draw_weights(4, 6, 7).requires_grad_()
    alignment_loss(weights, LINKS).backward()
    assert weights.grad is not None
    linked = {(row, target) for row, target, _ in LINKS.tolist()}
    for row in range(4):
        for target in range(6):
            assert bool((weights.grad[row, target] != 0).any()) == ((row, target) in linked)
    none = weights.detach().requires_grad_()
    nothing = alignment_loss(none, torch.zeros((0, 3), dtype=torch.int64))
    nothing.backward()
    assert float(nothing.detach()) == 0.0
    assert none.grad is not None
    assert not bool(none.grad.any())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_that_vanished_make_no_nan(dtype: torch.dtype):
    scores = torch.tensor([[[0.0, -500.0, -40.0]]], dtype=dtype, requires_grad=True)
    loss = alignment_loss(torch.softmax(scores, dim=-1), torch.tensor([[0, 0, 1], [0, 0, 2]]))
    loss.backward()
    assert loss.dtype == torch.float32
    assert bool(torch.isfinite(loss))
    assert scores.grad is not None
    assert bool(torch.isfinite(scores.grad).all())
    assert float(scores.grad[0, 0, 2]) < -0.1  # small but there: it is lifted


@pytest.mark.parametrize("name", ATTENDING)
def test_the_step_adds_it_with_its_weight_and_its_gradient(name: str):
    model = make_model(name)
    source, lengths, target_in, target_out = batch()
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    plain = PairStep(model, 0.1)(source, lengths, target_in, target_out)
    guided = PairStep(model, 0.1, Guidance(0.7))(source, lengths, target_in, target_out, LINKS)
    decoded = model(TokenInputs(source, lengths), target_in, need=("weights",))
    weights = decoded.attended[model.alignment].weights
    assert weights is not None
    wanted = plain.total + 0.7 * slow_loss(weights, LINKS)
    assert float((guided.total - wanted).detach()) == pytest.approx(0.0, abs=1e-9)
    assert float(guided.log_likelihood - plain.log_likelihood) == pytest.approx(0.0, abs=1e-9)
    # The gradient by a small step along itself.
    found = torch.autograd.grad(guided.total, parameters, allow_unused=True)
    before = torch.autograd.grad(plain.total, parameters, allow_unused=True)
    parts = zip(found, before, parameters, strict=True)
    added = [torch.zeros_like(p) if f is None or b is None else f - b for f, b, p in parts]
    size = math.sqrt(sum(float(part.square().sum()) for part in added))
    assert size > 1e-3

    def loss_at(distance: float) -> float:
        with torch.no_grad():
            for parameter, part in zip(parameters, added, strict=True):
                parameter += distance * part / size
            again = model(TokenInputs(source, lengths), target_in, need=("weights",)).attended[model.alignment].weights
            for parameter, part in zip(parameters, added, strict=True):
                parameter -= distance * part / size
        assert again is not None
        return 0.7 * slow_loss(again, LINKS)

    assert (loss_at(1e-5) - loss_at(-1e-5)) / 2e-5 == pytest.approx(size, rel=1e-4)


def test_links_are_taught_to_the_step_that_reads_the_token():
    model = make_model("transformer-pre")
    tensors = batch()
    model(TokenInputs(tensors[0], tensors[1]), tensors[2], need=("weights",))
    early = LINKS[LINKS[:, 1] < tensors[2].shape[1] - 1]
    shifted = early + torch.tensor([0, 1, 0])
    later = PairStep(model, 0.1, Guidance(0.7, alignment_shift=1))(*tensors, early)
    assert torch.equal(later.total, PairStep(model, 0.1, Guidance(0.7))(*tensors, shifted).total)
    assert not torch.equal(later.total, PairStep(model, 0.1, Guidance(0.7))(*tensors, early).total)


def test_without_links_or_weight_the_model_is_not_asked_for_weights(monkeypatch: pytest.MonkeyPatch):
    model = make_model("transformer-pre")
    asked: list[object] = []
    forward = type(model).forward

    def watched(self: object, *inputs: Tensor, need: tuple[str, ...] = ()) -> Decoded:
        asked.append(need)
        return forward(self, *inputs, need=need)  # type: ignore[arg-type]

    monkeypatch.setattr(type(model), "forward", watched)
    plain = PairStep(model, 0.1)(*batch())
    for step in (PairStep(model, 0.1, Guidance(0.0))(*batch(), LINKS), PairStep(model, 0.1, Guidance(0.5))(*batch())):
        assert torch.equal(step.total, plain.total)
    assert asked == [(), (), ()]


@pytest.mark.parametrize("normalizer", ["straight_through", "sampled", "gumbel_softmax"])
def test_weights_that_may_be_zero_are_taught_in_soft_steps_only(normalizer: str):
    settings = ("training.alignment_weight=0.7", f"model.attention.normalizer={normalizer}")
    with pytest.raises(ConfigError, match="so that soft steps teach them"):
        load_experiment("rnnsearch", None, settings)
    experiment = load_experiment("rnnsearch", None, (*settings, "training.soft_share=0.5"))
    assert experiment.guidance == Guidance(0.7, is_for_soft_steps=True)
    model = make_model("rnnsearch").train()
    assert experiment.guidance.taught(model, LINKS) is None
    set_soft(model, True)
    assert experiment.guidance.taught(model, LINKS) is LINKS
    assert Guidance(0.0, is_for_soft_steps=True).taught(model, LINKS) is None


@pytest.mark.parametrize("name", ["transformer-pre", "rnnsearch"])
def test_attention_learns_where_to_rest(name: str):
    model = make_model(name)
    source, lengths, _, _ = batch()
    target_in = make_targets(4)
    step = PairStep(model, 0.0, Guidance(1.0))
    # Little else to learn: all target tokens are the same.
    target_out = torch.full_like(target_in, 5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    for _ in range(60):
        optimizer.zero_grad()
        step(source, lengths, target_in, target_out, LINKS).total.backward()
        optimizer.step()
    weights = model(TokenInputs(source, lengths), target_in, need=("weights",)).attended[model.alignment].weights
    assert weights is not None
    mean = (weights.mean(dim=1) if weights.dim() == 4 else weights).detach()
    assert float(mean[0, 2, 0]) > 0.7
    assert float(mean[1, 1, 1]) > 0.7
    assert 0.35 < float(mean[0, 0, 1]) < 0.65
    assert 0.35 < float(mean[0, 0, 3]) < 0.65
