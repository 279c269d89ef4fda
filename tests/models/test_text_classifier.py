"""The text classifier."""

import numpy as np
import pytest
import torch

from heedful.models.inputs import TokenInputs
from heedful.models.label_model import label_run
from heedful.models.text_classifier import PRESETS, TextClassifier, TextClassifierConfig
from heedful.runtime.labels import run_labels
from heedful.search.inputs import TokenArrays


def make(encoder: str) -> TextClassifier:
    torch.manual_seed(1)
    config = TextClassifierConfig.model_validate({"encoder": encoder, "embedding_size": 5, "hidden_size": 3})
    return config.build(9, 3).double().eval()


def test_a_bag_is_the_mean_of_its_embeddings_under_one_matrix():
    model = make("bag")
    scores, encoded = model(TokenInputs(torch.tensor([[5, 6, 3]]), torch.tensor([3])))
    wanted = model.output(model.embedding.weight[[5, 6, 3]].mean(dim=0))
    assert torch.allclose(scores[0], wanted)
    assert encoded.weights is None
    turned, _ = model(TokenInputs(torch.tensor([[6, 5, 3]]), torch.tensor([3])))
    assert torch.allclose(turned, scores)


def test_a_recurrent_encoder_sees_the_order_and_attends():
    model = make("gru")
    inputs = TokenInputs(torch.tensor([[5, 6, 3]]), torch.tensor([3]))
    scores, encoded = model(inputs, ("weights",))
    weights = encoded.weights
    assert weights is not None
    assert weights.shape == (1, 3)
    assert float(weights.sum().detach()) == pytest.approx(1.0)
    turned, _ = model(TokenInputs(torch.tensor([[6, 5, 3]]), torch.tensor([3])))
    assert not torch.allclose(turned, scores)


@pytest.mark.parametrize("encoder", ["bag", "gru"])
def test_padding_and_neighbours_are_invisible(encoder: str):
    model = make(encoder)
    with torch.no_grad():
        alone, _ = model(TokenInputs(torch.tensor([[5, 6, 3]]), torch.tensor([3])))
        batch = TokenInputs(torch.tensor([[5, 6, 3, 7, 8], [4, 4, 4, 4, 3]]), torch.tensor([3, 5]))
        together, _ = model(batch)
    assert torch.allclose(together[:1], alone, atol=1e-12)


def test_texts_are_classified_in_the_order_asked():
    model = make("gru")
    texts = [np.array([4] * length + [3]) for length in (0, 5, 2, 9)]
    log_probs, vectors, attention = run_labels(label_run(model), TokenArrays(texts), batch_tokens=7)
    assert vectors.shape == (4, 6)
    assert [None if own is None else own.size for own in attention] == [1, 6, 3, 10]
    for text, row in zip(texts, log_probs, strict=True):
        (alone,), *_ = run_labels(label_run(model), TokenArrays([text]))
        assert row == pytest.approx(alone, abs=1e-6)


def test_presets_have_both_encoders():
    assert {config.encoder for config in PRESETS.values()} == {"bag", "gru"}
