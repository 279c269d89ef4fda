"""Integrated gradients against the change of the log probability, for every kind of model."""

import pytest
import torch

from heedful.errors import UsageError
from heedful.inspection.measures.integrated_gradients import integrated_gradients
from heedful.models.inputs import TokenInputs
from heedful.models.interface import Seq2Seq
from heedful.models.luong import LuongConfig
from heedful.models.rnn_encoder_decoder import RNNEncoderDecoderConfig
from heedful.models.rnnsearch import RNNsearchConfig
from heedful.text.vocabulary import BOS
from tests.inspection.measures.models import NORMS, OUTPUT, SOURCE, make_transformer
from tests.thorough import sampled, thinned

MODELS = (*NORMS, "rnnsearch", "luong", "reversed")


def make_model(name: str) -> Seq2Seq:
    if name in NORMS:
        return make_transformer("pre" if name == "pre" else "post")
    torch.manual_seed(1)
    config = {
        "rnnsearch": RNNsearchConfig(embedding_size=8, hidden_size=8, maxout_size=8),
        "luong": LuongConfig(embedding_size=8, hidden_size=8, num_layers=1),
        "reversed": RNNEncoderDecoderConfig(embedding_size=8, hidden_size=8, is_source_reversed=True),
    }[name]
    model = config.build(10, 10, False).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return model


def log_probs(model: Seq2Seq, scales: torch.Tensor) -> torch.Tensor:
    """Log probabilities of the output with scaled embeddings of the source, [output]."""
    seen: list[int] = []

    def scale(_: object, __: object, vectors: torch.Tensor) -> torch.Tensor:
        seen.append(1)
        return vectors * scales[:, None] if len(seen) == 1 else vectors

    handle = model.source_embedding.register_forward_hook(scale)  # type: ignore[union-attr]
    inputs = TokenInputs(torch.tensor([SOURCE]), torch.tensor([len(SOURCE)]))
    try:
        with torch.no_grad():
            decoded = model(inputs, torch.tensor([[BOS, *OUTPUT[:-1]]]), ("weights",) if model.alignment else ())
            return model.log_probs(decoded)[0, range(len(OUTPUT)), OUTPUT]
    finally:
        handle.remove()


@sampled(3)
@pytest.mark.parametrize("name", thinned(MODELS, 2))
def test_attributions_are_the_integral_of_slopes_and_complete(name: str):
    model = make_model(name)
    size = len(SOURCE)
    # Kinks of ReLU and maxout slow the quadrature down; where there are none, 16 points are exact.
    signed, difference = integrated_gradients(model, SOURCE, OUTPUT, num_steps=256)
    ends = log_probs(model, torch.ones(size).double()) - log_probs(model, torch.zeros(size).double())
    torch.testing.assert_close(difference, ends)
    torch.testing.assert_close(signed.sum(dim=1), difference, rtol=0, atol=1e-3)
    # Midpoint rule of slopes by small steps of one position's scale.
    slow = torch.zeros_like(signed)
    for index in range(50):
        here = torch.full((size,), (index + 0.5) / 50, dtype=torch.float64)
        for position in range(size):
            step = torch.zeros(size, dtype=torch.float64)
            step[position] = 1e-5
            slow[:, position] += (log_probs(model, here + step) - log_probs(model, here - step)) / 2e-5 / 50
    if name in {"reversed", "luong"}:
        slow = torch.cat((slow[:, :-1].flip(1), slow[:, -1:]), dim=1)
    error = 0.05 * float(slow.abs().max())
    torch.testing.assert_close(signed, slow, rtol=0, atol=error)
    assert not torch.allclose(signed.flip(1), slow, rtol=0, atol=error)
    few, _ = integrated_gradients(model, SOURCE, OUTPUT)
    torch.testing.assert_close(few, signed, rtol=0, atol=2 * error)


def test_nothing_stays_hooked_and_wrong_calls_are_refused():
    model = make_transformer()
    integrated_gradients(model, SOURCE, OUTPUT, num_steps=2)
    assert not vars(model.source_embedding)["_forward_hooks"]
    with pytest.raises(UsageError, match="num_steps must be 1 or more, got 0"):
        integrated_gradients(model, SOURCE, OUTPUT, num_steps=0)
    del model.source_embedding
    with pytest.raises(UsageError, match="no embedding of source tokens"):
        integrated_gradients(model, SOURCE, OUTPUT)
