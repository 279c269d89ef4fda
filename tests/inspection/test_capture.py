"""Captured weights are those of the attentions, under the names of their modules."""

import math
from contextlib import nullcontext

import pytest
import torch
from torch import nn

from heedful.attention.dispatch import attend, observer
from heedful.attention.scores import ScaledDot
from heedful.errors import ShapeError, UsageError
from heedful.inspection.capture import capture
from heedful.models.inputs import TokenInputs
from heedful.models.interface import Seq2Seq
from heedful.models.rnnsearch import RNNsearchConfig
from heedful.models.transformer import TransformerConfig

SOURCE = torch.tensor([[5, 6, 7, 3], [8, 3, 0, 0]])
LENGTHS = torch.tensor([4, 2])
TARGET = torch.tensor([[2, 5, 6], [2, 7, 8]])


@pytest.fixture
def transformer() -> Seq2Seq:
    torch.manual_seed(0)
    config = TransformerConfig(
        num_encoder_layers=2, num_decoder_layers=2, model_size=16, num_heads=2, feedforward_size=16
    )
    return config.build(10, 10, True).eval()


@pytest.fixture
def rnnsearch() -> Seq2Seq:
    torch.manual_seed(0)
    config = RNNsearchConfig(embedding_size=8, hidden_size=8, alignment_size=8, maxout_size=8)
    return config.build(10, 10, False).eval()


def test_every_attention_is_recorded_under_the_name_of_its_module(transformer: Seq2Seq):
    with torch.no_grad(), capture(transformer) as captured:
        decoded = transformer(TokenInputs(SOURCE, LENGTHS), TARGET, ("weights",))
    assert list(captured.calls) == [
        "encoder_layers.0.self_attention",
        "encoder_layers.1.self_attention",
        "decoder_layers.0.self_attention",
        "decoder_layers.0.cross_attention",
        "decoder_layers.1.self_attention",
        "decoder_layers.1.cross_attention",
    ]
    for layer in (0, 1):
        cross = captured.weights(f"decoder_layers.{layer}.cross_attention")
        torch.testing.assert_close(cross, decoded.attended[f"decoder.{layer}.cross"].weights, rtol=0, atol=0)
    assert captured.weights("encoder_layers.1.self_attention").shape == (2, 2, 4, 4)
    assert not captured.weights("encoder_layers.0.self_attention")[1, :, :, 2:].any()  # padding


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("name", ["transformer", "rnnsearch"])
def test_capturing_changes_nothing(name: str, is_training: bool, request: pytest.FixtureRequest):
    model = request.getfixturevalue(name).train(is_training).double()
    features: list[torch.Tensor] = []
    for watching in (nullcontext(), capture(model, check=True)):
        torch.manual_seed(3)
        with watching:
            features.append(model(TokenInputs(SOURCE, LENGTHS), TARGET).features)
        features.append(torch.get_rng_state())
    assert torch.equal(features[0], features[2])
    assert torch.equal(features[1], features[3])


def test_entropy_is_that_of_each_head(transformer: Seq2Seq):
    with torch.no_grad(), capture(transformer) as captured:
        transformer(TokenInputs(SOURCE, LENGTHS), TARGET)
    name = "decoder_layers.1.cross_attention"
    rows = captured.weights(name)[1, 1].tolist()
    slow = sum(-sum(weight * math.log(weight) for weight in row if weight) for row in rows) / len(rows)
    assert captured.entropy(name).shape == (2, 2)
    assert captured.entropy(name)[1, 1].item() == pytest.approx(slow, rel=1e-5)
    assert captured.entropy(name)[1].max() <= math.log(2) + 1e-6  # the second source has two tokens


def test_steps_are_joined_along_the_queries(rnnsearch: Seq2Seq):
    with torch.no_grad(), capture(rnnsearch) as captured:
        whole = rnnsearch(TokenInputs(SOURCE, LENGTHS), TARGET, ("weights",))
    assert list(captured.calls) == ["score"]  # the model itself owns it
    assert len(captured.calls["score"]) == 3
    torch.testing.assert_close(captured.weights("score"), whole.attended["cross"].weights, rtol=0, atol=0)


def test_calls_that_cannot_be_joined_are_refused_with_their_shapes(transformer: Seq2Seq):
    with torch.no_grad(), capture(transformer) as captured:
        memory = transformer.encode(TokenInputs(SOURCE, LENGTHS))
        state = transformer.start(memory)
        for place in range(2):
            _, state = transformer.step(TARGET[:, place : place + 1], state, memory)
    assert captured.weights("decoder_layers.0.cross_attention").shape == (2, 2, 2, 4)
    with pytest.raises(ShapeError, match=r"\[2, 2, 1, 1\], \[2, 2, 1, 2\]"):
        captured.weights("decoder_layers.0.self_attention")
    with pytest.raises(UsageError, match=r"did you mean 'decoder_layers\.0\.cross_attention'"):
        captured.weights("decoder_layers.0.cross_attentoin")


def test_other_models_are_left_alone_and_contexts_nest(transformer: Seq2Seq, rnnsearch: Seq2Seq):
    stranger = ScaledDot(4, 4)
    vectors = torch.ones(1, 2, 4)
    with torch.no_grad(), capture(transformer) as outer:
        with capture(rnnsearch) as inner:
            transformer.encode(TokenInputs(SOURCE, LENGTHS))
            rnnsearch(TokenInputs(SOURCE, LENGTHS), TARGET)
            attend(vectors, vectors, vectors, score=stranger)
        rnnsearch(TokenInputs(SOURCE, LENGTHS), TARGET)
    assert list(outer.calls) == ["encoder_layers.0.self_attention", "encoder_layers.1.self_attention"]
    assert {name: len(calls) for name, calls in inner.calls.items()} == {"score": 3}


def test_nothing_stays_behind_when_the_model_fails(rnnsearch: Seq2Seq):
    class Failure(Exception):
        """What a model may raise."""

    with pytest.raises(Failure), capture(rnnsearch):
        raise Failure
    assert observer.get() is None


def test_a_score_held_by_a_nested_module_is_named_by_its_owner():
    tree = nn.ModuleDict({"a": nn.ModuleDict({"b": nn.ModuleDict({"score": ScaledDot(4, 4)})})})
    vectors = torch.ones(1, 2, 4, requires_grad=True)
    with capture(tree) as captured:
        attend(vectors, vectors, vectors, score=tree["a"]["b"]["score"])  # type: ignore[index]
    assert list(captured.calls) == ["a.b"]
    assert captured.weights("a.b").requires_grad
