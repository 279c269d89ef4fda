"""The Transformer over regions of an image."""

import pytest
import torch
from pydantic import ValidationError

from heedful.models.image_transformer import ImageTransformer, ImageTransformerConfig
from heedful.models.inputs import VectorInputs
from tests.models.test_show_attend_tell import NUM_TOKENS, TARGETS, images

TRANSFORMER = {"model_size": 8, "num_heads": 2, "feedforward_size": 12, "num_encoder_layers": 1, "dropout": 0.0}


def make(kind: str) -> ImageTransformer:
    torch.manual_seed(3)
    config = ImageTransformerConfig.model_validate({"layers": TRANSFORMER, "num_blocks": 1})
    return config.build(*((5, 0, 0) if kind == "features" else (3, 4, 6)), NUM_TOKENS).double().eval()


@pytest.mark.parametrize("kind", ["features", "pixels"])
def test_steps_equal_the_whole_caption(kind: str):
    model, inputs = make(kind), images(kind)
    whole = model(inputs, TARGETS).features
    memory = model.encode(inputs)
    state = model.start(memory, num_hypotheses=2)
    for place in range(4):
        decoded, state = model.step(TARGETS[:, place : place + 1].expand(-1, 2), state, memory, ("weights",))
        assert torch.allclose(decoded.features, whole[:, place : place + 1].expand(-1, 2, -1), atol=1e-12)
        weights = decoded.attended[model.alignment].weights
        assert weights is not None
        assert weights.shape == (3, 2, 2, memory.values[0].shape[-2])


def test_it_decodes_as_its_transformer_does_from_annotation_vectors():
    model, inputs = make("pixels"), images("pixels")
    vectors = VectorInputs(*model.image_encoder(inputs))
    assert torch.equal(model.transformer(vectors, TARGETS).features, model(inputs, TARGETS).features)
    assert not torch.equal(vectors.vectors[0], vectors.vectors[1])


def test_every_parameter_is_trained():
    model = make("pixels").train()
    model.logits(model(images("pixels"), TARGETS).features).square().sum().backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []


def test_an_embedding_that_nothing_reads_is_refused():
    with pytest.raises(ValidationError, match="tie"):
        ImageTransformerConfig.model_validate({"layers": TRANSFORMER | {"tie": "none"}})
