"""Changed attention changes what it names and nothing else, at a step as in a whole target."""

from typing import Literal

import numpy as np
import pytest
import torch

from heedful.errors import ConfigError
from heedful.inspection.layers import layer_weights
from heedful.inspection.override import AttentionChange, changed_attention, changed_backend
from heedful.models.engine import torch_backend
from heedful.models.interface import Seq2Seq
from heedful.models.luong import LuongConfig
from heedful.models.rnnsearch import RNNsearchConfig
from heedful.models.transformer import TransformerConfig
from heedful.search.config import SearchConfig
from heedful.search.inputs import as_inputs

SOURCE = np.array([5, 6, 7, 3])
OUTPUT = (5, 8, 9, 3)


@pytest.fixture(params=["transformer", "rnnsearch"])
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    torch.manual_seed(0)
    if request.param == "transformer":
        sizes = {"model_size": 16, "num_heads": 2, "feedforward_size": 16}
        return TransformerConfig(num_encoder_layers=1, num_decoder_layers=2, **sizes).build(12, 12, True).eval()
    return RNNsearchConfig(embedding_size=8, hidden_size=8, alignment_size=8, maxout_size=8).build(12, 12, False).eval()


def cross(model: Seq2Seq, *changes: AttentionChange) -> np.ndarray:
    with changed_attention(model, changes):
        return layer_weights(model, as_inputs([SOURCE]), OUTPUT)[0].weights


def test_without_changes_nothing_changes(model: Seq2Seq):
    np.testing.assert_array_equal(cross(model), layer_weights(model, as_inputs([SOURCE]), OUTPUT)[0].weights)
    backend, plain = changed_backend(model, (), 20), torch_backend(model, 20)
    scored = backend.score([SOURCE], [OUTPUT], True)[0], plain.score([SOURCE], [OUTPUT], True)[0]
    np.testing.assert_allclose(scored[0].log_probs, scored[1].log_probs, atol=1e-5)


def test_a_head_that_is_off_has_no_weights(model: Seq2Seq):
    weights = cross(model, AttentionChange(role="cross", layer=0, head=0, kind="off"))
    assert not weights[0].any()
    assert all(head.any() for head in weights[1:])


def test_even_weights(model: Seq2Seq):
    np.testing.assert_allclose(cross(model, AttentionChange(role="cross", layer=0, kind="uniform")), 0.25, atol=1e-6)


def test_one_step_is_set_and_the_others_stay(model: Seq2Seq):
    change = AttentionChange(role="cross", layer=0, kind="set", steps=(1,), positions=(2,))
    weights, plain = cross(model, change), cross(model)
    np.testing.assert_array_equal(weights[:, 1], np.tile([0.0, 0.0, 1.0, 0.0], (len(weights), 1)))
    np.testing.assert_allclose(weights[:, 0], plain[:, 0], atol=1e-6)


def test_steps_and_whole_targets_agree(model: Seq2Seq):
    changes = (
        AttentionChange(role="cross", layer=0, kind="set", steps=(1, 2), positions=(0, 3)),
        AttentionChange(role="cross", layer=0, head=0, kind="off"),
    )
    stepwise = changed_backend(model, changes, 20).score([SOURCE], [OUTPUT], True)[0]
    with changed_attention(model, changes), torch.no_grad():
        from heedful.models.inputs import TokenInputs

        target_in = torch.tensor([[2, *OUTPUT[:-1]]])
        decoded = model(TokenInputs(torch.tensor(SOURCE)[None], torch.tensor([4])), target_in)
        log_probs = model.log_probs(decoded)[0, range(4), OUTPUT]
    np.testing.assert_allclose(stepwise.log_probs, log_probs.numpy(), atol=1e-5)
    plain = torch_backend(model, 20).score([SOURCE], [OUTPUT], True)[0]
    assert abs(stepwise.log_probs - plain.log_probs).max() > 1e-4


def test_a_search_with_changes_is_another_search(model: Seq2Seq):
    change = AttentionChange(role="cross", layer=0, kind="off")
    found = changed_backend(model, [change], 20).decode([SOURCE], SearchConfig(beam=2), need_alignment=True)
    plain = torch_backend(model, 20).decode([SOURCE], SearchConfig(beam=2), need_alignment=True)
    assert found[0][0].log_prob != pytest.approx(plain[0][0].log_prob, abs=1e-6)
    again = torch_backend(model, 20).decode([SOURCE], SearchConfig(beam=2), need_alignment=True)
    assert again == plain


@pytest.mark.parametrize("fields", [{"role": "other"}, {"layer": -1}, {"kind": "half"}, {"positions": [-1]}])
def test_bad_changes_are_refused(fields: dict[str, object]):
    from heedful.config.base import validate

    with pytest.raises(ConfigError):
        validate(AttentionChange, {"role": "cross", "layer": 0, "kind": "off"} | fields, "changes")


@pytest.mark.parametrize("kind", ["off", "uniform"])
def test_heads_of_words_are_changed_whatever_their_score(kind: Literal["off", "uniform"]):
    torch.manual_seed(0)
    config = LuongConfig(encoder="heads", reader_size=6, embedding_size=8, hidden_size=8)
    model = config.build(12, 12, False).eval()
    with changed_attention(model, (AttentionChange(role="encoder", layer=0, kind=kind),)):
        weights = layer_weights(model, as_inputs([SOURCE]), OUTPUT)[1].weights[0]
    num_seen = len(SOURCE)  # the root and the other words
    expected = np.full((num_seen, num_seen + 1), 1 / num_seen) * (1 - np.eye(num_seen, num_seen + 1, 1))
    np.testing.assert_allclose(weights, 0.0 if kind == "off" else expected, atol=1e-6)
