"""Bidirectional attention flow."""

from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from heedful.engines.passages import PassageArrays
from heedful.models.bidaf import PRESETS, Bidaf, BidafConfig
from heedful.models.inputs import PassageInputs, TokenInputs, inputs_on
from heedful.models.label_model import Encoded
from heedful.training.label_step import LabelStep
from tests.models.by_hand_spans import bidaf
from tests.models.tiny import perturbed

EOS = 3
PASSAGES = (([5, 6], [4, 7, 8, 5, 6, 7]), ([7, 4, 4], [5]), ([4], [6, 5, 8, 8]))
"""Question and passage, without EOS."""


def make(**settings: Any) -> Bidaf:
    torch.manual_seed(4)
    config = BidafConfig.model_validate({"hidden_size": 3, "embedding_size": 4, "num_layers": 1, **settings})
    return perturbed(config.build(9, 0).double().eval())


def inputs_of(passages: Any = PASSAGES) -> PassageInputs:
    flat = [np.array([*question, EOS, *passage, EOS]) for question, passage in passages]
    inputs = inputs_on(torch.device("cpu"), PassageArrays(flat))
    assert isinstance(inputs, PassageInputs)
    return inputs


def check(model: Bidaf, **settings: Any) -> None:
    scores, encoded = model(inputs_of(), ("weights",))
    assert encoded.weights is not None
    p = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    for index, (question, passage) in enumerate(PASSAGES):
        size = len(passage) + 1
        layers = model.config.num_layers
        starts, ends, weights = bidaf(p, [*question, EOS], [*passage, EOS], layers, **settings)
        log_probs = torch.log_softmax(scores[index], -1).detach().numpy()
        np.testing.assert_allclose(log_probs[:, :size], [starts, ends], rtol=0, atol=1e-10)
        assert (log_probs[:, size:] == -np.inf).all()
        np.testing.assert_allclose(encoded.weights[index, 0, :size].detach().numpy(), weights, rtol=0, atol=1e-10)
        assert not encoded.weights[index, 0, size:].any()


@pytest.mark.parametrize("num_layers", [1, 2])
def test_it_is_the_equations_of_the_paper(num_layers: int):
    check(make(num_layers=num_layers))


def test_another_similarity_fails_the_test_above():
    with pytest.raises(AssertionError):
        check(make(), has_product=False)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_parameter_learns(preset: str):
    torch.manual_seed(5)
    config = BidafConfig.model_validate(PRESETS[preset].model_dump() | {"hidden_size": 3, "embedding_size": 4})
    model = config.build(9, 0).double()
    inputs = inputs_of((*PASSAGES, ([], [])))
    tensors = (inputs.question, inputs.question_lengths, inputs.passage, inputs.passage_lengths)
    spans = torch.tensor([[2, 3], [0, 0], [1, 3], [0, 0]])
    sums = LabelStep(model, 0.1, PassageInputs)(*tensors, spans)
    sums.total.backward()
    assert torch.isfinite(sums.total)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.any(), name


def test_the_loss_is_that_of_both_ends_and_a_span_is_right_if_both_are():
    model = make(dropout=0.0)
    inputs = inputs_of()
    tensors = (inputs.question, inputs.question_lengths, inputs.passage, inputs.passage_lengths)
    log_probs = torch.log_softmax(model(inputs)[0], -1)
    best = log_probs.argmax(dim=-1)
    sums = LabelStep(model, 0.1, PassageInputs)(*tensors, best)
    wanted = -log_probs.amax(dim=-1).sum()
    torch.testing.assert_close(sums.total, wanted)
    assert (int(sums.num_correct), int(sums.num_units)) == (3, 3)
    other = torch.stack((best[:, 0], (best[:, 1] + 1) % 2), dim=1)
    assert int(LabelStep(model, 0.0, PassageInputs)(*tensors, other).num_correct) == 0


def test_other_passages_of_a_batch_change_nothing():
    model = make(num_layers=2)
    together = model(inputs_of())[0]
    for index, passage in enumerate(PASSAGES):
        alone = model(inputs_of([passage]))[0][0]
        torch.testing.assert_close(alone, together[index, :, : alone.shape[-1]], rtol=0, atol=1e-12)


def test_a_score_of_limited_reach_and_another_normalizer_are_settings():
    for attention in ({"score": "boxcar", "bandwidth": 1e-6}, {"score": "dot", "normalizer": "sparsemax"}):
        scores, encoded = make(attention=attention)(inputs_of(), ("weights",))
        assert encoded.weights is not None
        assert not scores.isnan().any()
        total = 0.0 if attention["score"] == "boxcar" else 1.0  # no word of the question is within reach
        torch.testing.assert_close(encoded.weights.sum(dim=-1), torch.full((3, 1), total).double())


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"attention": {"score": "dot", "normalizer": "hard"}}, "no gradient reaches the score"),
        ({"attention": {"score": "dot", "normalizer": "sampled"}}, "drawn keys"),
        ({"attention": {"score": "dot", "window": "local-m"}}, "positions of a passage are not those of its question"),
        (
            {"attention": {"score": "dot", "bias": "relative_buckets"}},
            "positions of a passage are not those of its question",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], complaint: str):
    with pytest.raises(ValidationError, match=complaint):
        BidafConfig.model_validate(settings)


def test_other_inputs_are_refused():
    with pytest.raises(TypeError, match="reads passages, got TokenInputs"):
        make()(TokenInputs(torch.tensor([[5, 3]]), torch.tensor([2])))
    with pytest.raises(TypeError, match="not of a passage"):
        make().scores(Encoded(torch.zeros(1, 2)))
