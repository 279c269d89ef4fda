import pytest
import torch
from torch import Tensor
from torch.nn import functional

from heedful.models.inputs import TokenInputs
from heedful.models.interface import Decoded, Seq2Seq
from heedful.training.pair_step import PairStep
from tests.models.tiny import make_model, make_sources, make_targets


def batch(lengths: tuple[int, ...] = (6, 3, 5, 1)) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sources, and targets padded after the given lengths."""
    source, source_lengths = make_sources()
    target_in = make_targets(len(source))
    target_out = torch.roll(target_in, -1, dims=1)
    target_out[:, -1] = 4
    for row, length in enumerate(lengths):
        target_out[row, length - 1] = 3
        target_in[row, length:] = 0
        target_out[row, length:] = 0
    return source, source_lengths, target_in, target_out


@pytest.mark.parametrize("name", ["transformer-pre", "rnnsearch"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_counts_real_tokens_and_nothing_else(name: str, smoothing: float):
    model = make_model(name)
    source, lengths, target_in, target_out = batch()
    sums = PairStep(model, smoothing)(source, lengths, target_in, target_out)
    logits = model.logits(model(TokenInputs(source, lengths), target_in).features)
    kwargs = {"ignore_index": 0, "reduction": "sum"}
    wanted = functional.cross_entropy(logits.flatten(0, 1), target_out.flatten(), label_smoothing=smoothing, **kwargs)
    likelihood = -functional.cross_entropy(logits.flatten(0, 1), target_out.flatten(), **kwargs)
    real = target_out != 0
    assert int(sums.num_units) == 15
    assert float((sums.total - wanted).detach()) == pytest.approx(0.0, abs=1e-10)
    assert float((sums.log_likelihood - likelihood).detach()) == pytest.approx(0.0, abs=1e-10)
    assert int(sums.num_correct) == int((logits.argmax(-1) == target_out)[real].sum())


def test_padding_has_no_gradient():
    model = make_model("transformer-pre")
    source, lengths, target_in, target_out = batch()
    wider_in, wider_out = (
        torch.cat((part, torch.zeros(4, 3, dtype=torch.int64)), dim=1) for part in (target_in, target_out)
    )
    parameters = list(model.parameters())
    plain = torch.autograd.grad(PairStep(model, 0.1)(source, lengths, target_in, target_out).total, parameters)
    wider = torch.autograd.grad(PairStep(model, 0.1)(source, lengths, wider_in, wider_out).total, parameters)
    assert all(float((one - other).abs().max()) <= 1e-11 for one, other in zip(plain, wider, strict=True))


def test_a_batch_of_padding_alone_gives_zero_and_zero_gradients():
    model = make_model("rnnsearch")
    source, lengths, target_in, _ = batch()
    sums = PairStep(model, 0.1)(source, lengths, target_in, torch.zeros_like(target_in))
    assert float(sums.total.detach()) == 0.0
    assert int(sums.num_units) == 0
    gradients = torch.autograd.grad(sums.total, list(model.parameters()), allow_unused=True)
    assert all(gradient is None or bool((gradient == 0.0).all()) for gradient in gradients)


def test_the_sum_over_parts_is_that_of_the_whole():
    model = make_model("rnnsearch")
    step = PairStep(model, 0.1)
    whole = step(*batch())
    parts = [step(*(part[rows] for part in batch())) for rows in (slice(0, 1), slice(1, 4))]
    assert float((whole.total - parts[0].total - parts[1].total).detach()) == pytest.approx(0.0, abs=1e-11)
    assert int(whole.num_units) == sum(int(part.num_units) for part in parts)


def test_extra_losses_are_added_and_see_what_they_need(monkeypatch: pytest.MonkeyPatch):
    model = make_model("rnnsearch")
    seen: list[tuple[Tensor, Tensor]] = []

    def extra_losses(self: Seq2Seq, decoded: Decoded, token_log_probs: Tensor, real: Tensor) -> dict[str, Tensor]:
        seen.append((token_log_probs, real))
        return {"one": decoded.features.sum(), "two": torch.tensor(2.0)}

    source, lengths, target_in, target_out = batch()
    plain = PairStep(model, 0.0)(source, lengths, target_in, target_out)
    monkeypatch.setattr(type(model), "extra_losses", extra_losses)
    sums = PairStep(model, 0.0)(source, lengths, target_in, target_out)
    features = model(TokenInputs(source, lengths), target_in).features.sum()
    assert float((sums.total - plain.total - features - 2.0).detach()) == pytest.approx(0.0, abs=1e-10)
    ((log_probs, real),) = seen
    assert torch.equal(real, target_out != 0)
    assert bool((log_probs[~real] == 0.0).all())
    assert float(log_probs.sum()) == pytest.approx(float(sums.log_likelihood), abs=1e-12)
