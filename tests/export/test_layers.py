"""The exported attention of every layer and head is PyTorch's."""

from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.engines.onnx_layers import LAYERS, OnnxLayers
from heedful.errors import UsageError
from heedful.export.layers import export_layers
from heedful.inspection.layers import layer_weights
from heedful.models.rnnsearch import RNNsearchConfig
from heedful.models.transformer import TransformerConfig
from heedful.search.inputs import as_inputs, token_draw
from tests.thorough import thorough


@thorough
def test_every_layer_and_head_of_any_length(tmp_path: Path):
    pytest.importorskip("onnxruntime")
    torch.manual_seed(0)
    sizes = {"model_size": 16, "num_heads": 2, "feedforward_size": 16}
    model = TransformerConfig(num_encoder_layers=1, num_decoder_layers=2, **sizes).build(12, 12, True).eval()
    export_layers(model, tmp_path, 20, token_draw(12))
    graph = OnnxLayers(tmp_path / LAYERS)
    for source, output in (([5, 6, 7, 3], (5, 8, 9, 3)), ([4, 3], (3,)), ([7] * 12 + [3], (5, 6) * 8 + (3,))):
        inputs = as_inputs([np.array(source)])
        expected = layer_weights(model, inputs, output)
        weights = graph.weights(inputs, output)
        assert list(weights) == [(one.role, one.layer) for one in expected]
        for one in expected:
            np.testing.assert_allclose(weights[one.role, one.layer], one.weights, atol=1e-5)


def test_an_rnn_is_refused_with_the_reason(tmp_path: Path):
    config = RNNsearchConfig(embedding_size=8, hidden_size=8, alignment_size=8, maxout_size=8)
    with pytest.raises(UsageError, match="one attention, which every engine gives"):
        export_layers(config.build(12, 12, False).eval(), tmp_path, 20, token_draw(12))
