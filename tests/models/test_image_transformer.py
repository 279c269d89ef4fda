"""The Transformer over regions of an image."""

from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from heedful.models.image_transformer import ImageTransformer, ImageTransformerConfig
from heedful.models.inputs import FeatureInputs, PixelInputs, VectorInputs
from tests.models.by_hand import Parameters, Vector, with_one_changed
from tests.models.by_hand_captions import image_transformer, picture_annotations, region_annotations
from tests.models.test_show_attend_tell import LENGTHS, NUM_REGIONS, NUM_TOKENS, TARGETS, images
from tests.models.tiny import perturbed

TRANSFORMER = {"model_size": 8, "num_heads": 2, "feedforward_size": 12, "num_encoder_layers": 1, "dropout": 0.0}


def make(kind: str, **settings: object) -> ImageTransformer:
    torch.manual_seed(3)
    config = ImageTransformerConfig.model_validate({"layers": TRANSFORMER | settings, "num_blocks": 1})
    return config.build(*((5, 0, 0, 0) if kind == "features" else (3, 4, 4, 6)), NUM_TOKENS).double().eval()


KINDS = ("features", "pixels")


def computed(kind: str, norm: str, num_layers: tuple[int, int]) -> tuple[Parameters, list[Vector], list[Vector]]:
    """Parameters of a model without special values; its logits of each caption, and its weights over the regions."""
    sizes = {"num_encoder_layers": num_layers[0], "num_decoder_layers": num_layers[1]}
    model, inputs = perturbed(make(kind, norm=norm, output_bias=norm == "pre", **sizes)), images(kind)
    with torch.no_grad():
        decoded = model(inputs, TARGETS, need=("weights",))
        logits = model.logits(decoded.features).numpy()
    weights = decoded.attended[model.alignment].weights
    assert weights is not None
    p = {name.removeprefix("transformer."): each.detach().numpy() for name, each in model.named_parameters()}
    rows = range(len(LENGTHS))
    return p, [logits[row, : LENGTHS[row]] for row in rows], [weights[row, :, : LENGTHS[row]].numpy() for row in rows]


def by_hand(p: Parameters, kind: str, num_captions: int = 3, **settings: Any) -> list[tuple[Vector, Vector]]:
    """Logits and weights of the first captions, from loops."""
    inputs = images(kind)
    captions: list[tuple[Vector, Vector]] = []
    for row, length in enumerate(LENGTHS[:num_captions]):
        if isinstance(inputs, FeatureInputs):
            real = inputs.features[row, : int(NUM_REGIONS[row])].double().numpy()
            annotations = region_annotations(p, [*real], "image_encoder.inner")
        else:
            assert isinstance(inputs, PixelInputs)
            annotations = picture_annotations(p, inputs.pixels[row].numpy(), (2, 2, 1), "image_encoder.inner")
        captions.append(image_transformer(p, annotations, TARGETS[row, :length].tolist(), **settings))
    return captions


def difference(logits: list[Vector], captions: list[tuple[Vector, Vector]]) -> float:
    return max(float(np.abs(one - other).max()) for one, (other, _) in zip(logits, captions, strict=True))


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_equations_of_the_paper(kind: str, norm: str):
    p, logits, weights = computed(kind, norm, (2, 3))
    captions = by_hand(p, kind, num_layers=(2, 3), num_heads=2, is_pre=norm == "pre")
    assert difference(logits, captions) <= 1e-10
    for shown, (_, alpha) in zip(weights, captions, strict=True):
        num_regions = alpha.shape[-1]
        np.testing.assert_allclose(shown[..., :num_regions], alpha, rtol=0, atol=1e-10)
        assert not shown[..., num_regions:].any()


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_comparison_sees_a_change_of_any_parameter(kind: str, norm: str):
    p, logits, _ = computed(kind, norm, (1, 2))
    for name, others in with_one_changed(p):
        captions = by_hand(others, kind, 1, num_layers=(1, 2), num_heads=2, is_pre=norm == "pre")
        assert difference(logits[:1], captions) > 1e-6, name


@pytest.mark.parametrize("change", [{"num_heads": 1}, {"is_pre": False}, {"has_order": True}, {"is_causal": False}])
@pytest.mark.parametrize("kind", KINDS)
def test_the_comparison_sees_other_equations(kind: str, change: dict[str, Any]):
    p, logits, _ = computed(kind, "pre", (1, 2))
    settings: dict[str, Any] = {"num_layers": (1, 2), "num_heads": 2, "is_pre": True} | change
    assert difference(logits, by_hand(p, kind, **settings)) > 1e-3


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
