"""Weights of layers are those that the model computed, in the order of its layers."""

import numpy as np
import pytest
import torch

from heedful.inspection.layers import layer_weights, role_of
from heedful.models.inputs import TokenInputs
from heedful.models.luong import HeadAttention, LuongConfig
from heedful.models.rnnsearch import RNNsearchConfig
from heedful.models.transformer import TransformerConfig
from heedful.search.inputs import as_inputs

SOURCE = np.array([5, 6, 7, 3])


def test_every_layer_and_head_of_a_transformer():
    torch.manual_seed(0)
    config = TransformerConfig(
        num_encoder_layers=2, num_decoder_layers=3, model_size=16, num_heads=2, feedforward_size=16
    )
    model = config.build(10, 10, True).eval()
    layers = layer_weights(model, as_inputs([SOURCE]), (5, 8, 3))
    assert [(one.role, one.layer, one.weights.shape) for one in layers] == [
        *(("cross", layer, (2, 3, 4)) for layer in range(3)),
        *(("encoder", layer, (2, 4, 4)) for layer in range(2)),
        *(("decoder", layer, (2, 3, 3)) for layer in range(3)),
    ]
    with torch.no_grad():
        decoded = model(
            TokenInputs(torch.tensor([[5, 6, 7, 3]]), torch.tensor([4])), torch.tensor([[2, 5, 8]]), ("weights",)
        )
    for one in layers[:3]:
        expected = decoded.attended[f"decoder.{one.layer}.cross"].weights
        np.testing.assert_allclose(one.weights, expected[0].numpy(), atol=1e-6)  # type: ignore[index]
    for one in layers:
        np.testing.assert_allclose(one.weights.sum(axis=-1), 1.0, atol=1e-6)
    assert not np.triu(layers[-1].weights, 1).any()


def test_an_rnn_has_one_attention_with_a_row_for_each_token():
    torch.manual_seed(0)
    config = RNNsearchConfig(embedding_size=8, hidden_size=8, alignment_size=8, maxout_size=8)
    (layer,) = layer_weights(config.build(10, 10, False).eval(), as_inputs([SOURCE]), (5, 8, 3))
    assert (layer.role, layer.weights.shape) == ("cross", (1, 3, 4))


@pytest.mark.parametrize("is_bounded", [True, False])
@pytest.mark.parametrize("normalizer", ["projective_tree", "softmax"])
def test_heads_of_words_have_a_root_before_the_words(normalizer: str, is_bounded: bool):
    torch.manual_seed(0)
    heads = HeadAttention(normalizer=normalizer, is_bounded=is_bounded)
    config = LuongConfig(encoder="heads", head_attention=heads, reader_size=6, embedding_size=8, hidden_size=8)
    model = config.build(10, 10, False).eval()
    cross, encoder = layer_weights(model, as_inputs([SOURCE]), (5, 8, 3))
    assert (cross.role, cross.weights.shape, cross.has_root, cross.tree) == ("cross", (1, 3, 4), False, None)
    assert (encoder.role, encoder.layer, encoder.weights.shape) == ("encoder", 0, (1, 4, 5))
    np.testing.assert_allclose(encoder.weights.sum(axis=-1), 1.0, atol=1e-6)
    assert not encoder.weights.diagonal(1, 1, 2).any()  # no word is its own head
    assert encoder.has_root
    assert (encoder.tree is not None) == (normalizer == "projective_tree")
    assert encoder.tree is None or encoder.tree.shape == (1, 4)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("encoder_layers.10.self_attention", "encoder"),
        ("decoder_layers.0.self_attention", "decoder"),
        ("score", "cross"),
    ],
)
def test_roles_follow_the_names_of_modules(name: str, role: str):
    assert role_of(name) == role
