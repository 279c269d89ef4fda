"""Every measure gives shares of positions for every layer of a model that it is defined for."""

import numpy as np
import pytest
import torch

from heedful.errors import UsageError
from heedful.inspection.layers import layer_weights
from heedful.inspection.measures.table import MEASURES, measured_layers, source_shares, why_not
from heedful.models.rnn_encoder_decoder import RNNEncoderDecoderConfig
from heedful.models.rnnsearch import RNNsearchConfig
from tests.inspection.measures.models import INPUTS, NORMS, OUTPUT, SOURCE, make_transformer


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", MEASURES)
def test_rows_are_shares(name: str, norm: str):
    model = make_transformer("pre" if norm == "pre" else "post")
    layers = measured_layers(model, INPUTS, OUTPUT, name)
    roles = [(one.role, one.layer) for one in layers]
    wanted = [(role, layer) for role in ("cross", "encoder", "decoder") for layer in (0, 1)]
    assert roles == ([("cross", 0)] if name == "gradients" else wanted)
    for one in layers:
        np.testing.assert_allclose(one.weights.sum(axis=-1), 1.0, rtol=1e-5)
        assert one.weights.min() >= 0
    shares = source_shares(model, INPUTS, OUTPUT, name)
    assert shares.shape == (len(OUTPUT), len(SOURCE))
    np.testing.assert_allclose(shares.sum(axis=-1), 1.0, rtol=1e-5)


def test_measures_differ_and_attention_is_that_of_the_model():
    model = make_transformer()
    results = [source_shares(model, INPUTS, OUTPUT, name) for name in MEASURES]
    for index, one in enumerate(results):
        assert not any(np.allclose(one, other, atol=1e-4) for other in results[:index])
    expected = np.mean([one.weights.mean(axis=0) for one in layer_weights(model, INPUTS, OUTPUT)[:2]], axis=0)
    np.testing.assert_allclose(results[0], expected, rtol=1e-6)


def test_a_decoder_does_not_look_ahead():
    for name in ("value-norm", "rollout", "alti"):
        for one in measured_layers(make_transformer(), INPUTS, OUTPUT, name):
            if one.role == "decoder":
                assert not np.triu(one.weights, 1).any()


def test_what_a_measure_is_not_defined_for_is_refused():
    torch.manual_seed(0)
    rnnsearch = RNNsearchConfig(embedding_size=8, hidden_size=8, maxout_size=8).build(10, 10, False).eval()
    assert why_not(rnnsearch, "attention") == why_not(rnnsearch, "gradients") == ""
    assert source_shares(rnnsearch, INPUTS, OUTPUT, "attention").shape == (len(OUTPUT), len(SOURCE))
    for name in ("value-norm", "rollout", "alti"):
        with pytest.raises(UsageError, match=f"{name} is defined for the Transformer alone"):
            measured_layers(rnnsearch, INPUTS, OUTPUT, name)
    with pytest.raises(UsageError, match="no measure 'rolout'; did you mean 'rollout'"):
        measured_layers(rnnsearch, INPUTS, OUTPUT, "rolout")
    blind = RNNEncoderDecoderConfig(embedding_size=8, hidden_size=8).build(10, 10, False).eval()
    with pytest.raises(UsageError, match="no attention over the source"):
        source_shares(blind, INPUTS, OUTPUT, "attention")
