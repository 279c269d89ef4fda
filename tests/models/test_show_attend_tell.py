"""Show, attend and tell."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from heedful.errors import ConfigError
from heedful.models.inputs import FeatureInputs, Inputs, PixelInputs, TokenInputs
from heedful.models.show_attend_tell import PRESETS, ShowAttendTell, ShowAttendTellConfig
from heedful.training.guided import Guidance
from heedful.training.pair_step import PairStep
from tests.models.by_hand_captions import (
    doubly_stochastic,
    picture_annotations,
    region_annotations,
    region_context,
    row_context,
    show_attend_tell,
    summed_over_paths,
)

NUM_TOKENS = 9
SIZES = {"embedding_size": 5, "hidden_size": 6, "annotation_size": 8, "num_blocks": 2, "dropout": 0.0}
TARGETS = torch.tensor([[2, 5, 6, 7], [2, 8, 4, 0], [2, 0, 0, 0]])
LENGTHS = (4, 3, 1)
NUM_REGIONS = torch.tensor([4, 2, 1])


def make(kind: str = "features", **settings: object) -> ShowAttendTell:
    torch.manual_seed(3)
    config = ShowAttendTellConfig.model_validate(SIZES | {"attention": {"hidden_size": 7}} | settings)
    model = config.build(*((5, 0, 0, 0) if kind == "features" else (3, 4, 4, 6)), NUM_TOKENS).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, dtype=torch.float64) * 0.3)
    return model


def images(kind: str = "features") -> Inputs:
    generator = torch.Generator().manual_seed(4)
    if kind == "features":
        return FeatureInputs(torch.randn(3, 4, 5, generator=generator), NUM_REGIONS)
    return PixelInputs(torch.randint(0, 256, (3, 3, 8, 12), generator=generator, dtype=torch.uint8))


def numbers(model: ShowAttendTell) -> dict[str, np.ndarray]:
    return {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("has_gate", [True, False])
@pytest.mark.parametrize("kind", ["features", "pixels"])
def test_it_is_the_equations_of_the_paper(kind: str, has_gate: bool):
    model, inputs = make(kind, has_gate=has_gate), images(kind)
    decoded = model(inputs, TARGETS, need=("weights",))
    logits, weights = model.logits(decoded.features), decoded.attended["cross"].weights
    assert weights is not None
    p = numbers(model)
    for row, length in enumerate(LENGTHS):
        if isinstance(inputs, FeatureInputs):
            real = inputs.features[row, : int(NUM_REGIONS[row])].double().numpy()
            annotations = region_annotations(p, [*real])
        else:
            assert isinstance(inputs, PixelInputs)
            annotations = picture_annotations(p, inputs.pixels[row].numpy(), (2, 2, 1, 1))
        wanted, alpha = show_attend_tell(p, annotations, TARGETS[row, :length].tolist(), has_gate)
        np.testing.assert_allclose(logits[row, :length].detach().numpy(), wanted, rtol=0, atol=1e-10)
        shown = weights[row, :length].detach().numpy()
        np.testing.assert_allclose(shown[:, : len(annotations)], alpha, rtol=0, atol=1e-10)
        assert not shown[:, len(annotations) :].any()


@pytest.mark.parametrize("kind", ["features", "pixels"])
def test_regions_with_context_are_the_annotation_vectors(kind: str):
    model, inputs = make(kind, num_region_layers=2), images(kind)
    logits = model.logits(model(inputs, TARGETS).features)
    p = numbers(model)
    for row, length in enumerate(LENGTHS):
        if isinstance(inputs, FeatureInputs):
            real = inputs.features[row, : int(NUM_REGIONS[row])].double().numpy()
            annotations = region_context(p, "encoder.context.", region_annotations(p, [*real]), 2)
        else:
            assert isinstance(inputs, PixelInputs)
            alone = picture_annotations(p, inputs.pixels[row].numpy(), (2, 2, 1, 1))
            annotations = region_context(p, "encoder.context.", alone, 2, has_order=False)
        wanted, _ = show_attend_tell(p, annotations, TARGETS[row, :length].tolist())
        np.testing.assert_allclose(logits[row, :length].detach().numpy(), wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("region", "strides"),
    [
        ((8, 2), [(2, 2), (2, 1), (2, 1), (1, 1)]),
        ((8, 4), [(2, 2), (2, 2), (2, 1), (1, 1)]),
        ((2, 4), [(2, 2), (1, 2), (1, 1)]),
        ((1, 2), [(1, 2), (1, 1)]),
    ],
)
def test_regions_of_any_height_and_width_are_read_along_their_rows(
    region: tuple[int, int], strides: list[tuple[int, int]]
):
    rows, columns = 8 // region[0], 12 // region[1]
    torch.manual_seed(3)
    config = ShowAttendTellConfig.model_validate(SIZES | {"num_blocks": 1, "num_row_layers": 2})
    model, inputs = config.build(3, *region, rows * columns, NUM_TOKENS).double().eval(), images("pixels")
    assert isinstance(inputs, PixelInputs)
    logits, p = model.logits(model(inputs, TARGETS).features), numbers(model)
    for row, length in enumerate(LENGTHS):
        alone = picture_annotations(p, inputs.pixels[row].numpy(), strides)
        annotations = row_context(p, "encoder.rows.", alone, 2, columns)
        assert len(annotations) == rows * columns
        wanted, _ = show_attend_tell(p, annotations, TARGETS[row, :length].tolist())
        np.testing.assert_allclose(logits[row, :length].detach().numpy(), wanted, rtol=0, atol=1e-10)


def test_the_second_loss_is_the_transcription_by_single_regions():
    torch.manual_seed(3)
    config = ShowAttendTellConfig.model_validate(SIZES | {"transcription_weight": 0.5, "doubly_stochastic": 0.0})
    model, inputs = config.build(3, 8, 4, 3, NUM_TOKENS).double().train(), images("pixels")
    decoded = model(inputs, TARGETS)
    real = torch.tensor([[place < length for place in range(4)] for length in LENGTHS])
    losses = model.extra_losses(decoded, torch.zeros(3, 4), real)
    assert losses.keys() == {"transcription"}
    assert isinstance(inputs, PixelInputs)
    p, wanted = numbers(model), 0.0
    for row, length in enumerate(LENGTHS):
        annotations = picture_annotations(p, inputs.pixels[row].numpy(), [(2, 2), (2, 2), (2, 1), (1, 1), (1, 1)])
        scores = [p["transcription.weight"] @ a + p["transcription.bias"] for a in annotations]
        # BOS comes before the caption, and EOS is no part of it.
        wanted += summed_over_paths(np.stack(scores), TARGETS[row, 1:length].tolist())
    assert losses["transcription"].item() == pytest.approx(-0.5 * wanted, rel=1e-9)
    losses["transcription"].backward()
    gradient = model.get_parameter("encoder.inner.leave.weight").grad
    assert gradient is not None
    assert gradient.any()
    assert not model.eval().extra_losses(model(inputs, TARGETS), torch.zeros(3, 4), real)


def test_the_comparison_would_see_a_context_without_its_gate():
    model, inputs = make(), images()
    assert isinstance(inputs, FeatureInputs)
    p = numbers(model)
    annotations = region_annotations(p, [*inputs.features[0].double().numpy()])
    wanted, _ = show_attend_tell(p, annotations, TARGETS[0].tolist(), has_gate=False)
    logits = model.logits(model(inputs, TARGETS).features)[0].detach().numpy()
    assert np.abs(logits - wanted).max() > 1e-3


def drawings() -> PixelInputs:
    """Three pictures on a plain ground: ink at one corner, ink in the middle of a dark ground, and no ink."""
    pixels = torch.full((3, 3, 8, 24), 250, dtype=torch.uint8)
    pixels[0, 1, 5:7, 1] = 0
    pixels[1] = 20
    pixels[1, :, 2, 13] = 200
    pixels[2, :, 4, 4] = 200
    return PixelInputs(pixels)


def inked(picture: np.ndarray, side: int) -> list[int]:
    """Regions that differ from the mean of the border by more than 64 in some channel, and their neighbours; or all."""
    rows, columns = picture.shape[1] // side, picture.shape[2] // side
    border = [[*channel[0], *channel[-1], *channel[:, 0], *channel[:, -1]] for channel in picture.astype(np.float64)]
    regions: set[int] = set()
    for channel, row, column in np.ndindex(*picture.shape):
        if abs(float(picture[channel, row, column]) - float(np.mean(border[channel]))) > 64:
            for near_row in range(row // side - 1, row // side + 2):
                for near_column in range(column // side - 1, column // side + 2):
                    if 0 <= near_row < rows and 0 <= near_column < columns:
                        regions.add(near_row * columns + near_column)
    return sorted(regions) or [*range(rows * columns)]


@pytest.mark.parametrize("hides_background", [True, False])
def test_hidden_background_is_as_if_it_were_not_there(hides_background: bool):
    config = ShowAttendTellConfig.model_validate(SIZES | {"hides_background": hides_background})
    torch.manual_seed(3)
    model, inputs = config.build(3, 4, 4, 12, NUM_TOKENS).double().eval(), drawings()
    decoded = model(inputs, TARGETS, need=("weights",))
    logits, weights = model.logits(decoded.features), decoded.attended["cross"].weights
    assert weights is not None
    regions = [inked(picture, 4) for picture in inputs.pixels.numpy()]
    assert regions == [[0, 1, 6, 7], [2, 3, 4, 8, 9, 10], [*range(12)]]
    p = numbers(model)
    for row, length in enumerate(LENGTHS):
        annotations = picture_annotations(p, inputs.pixels[row].numpy(), (2, 2, 1, 1))
        shown = regions[row] if hides_background else [*range(12)]
        wanted, alpha = show_attend_tell(p, [annotations[region] for region in shown], TARGETS[row, :length].tolist())
        np.testing.assert_allclose(logits[row, :length].detach().numpy(), wanted, rtol=0, atol=1e-10)
        np.testing.assert_allclose(weights[row, :length][:, shown].detach().numpy(), alpha, rtol=0, atol=1e-10)
        assert weights[row, :length].sum().item() == pytest.approx(length)


def test_steps_hide_the_background_as_the_whole_caption_does():
    config = ShowAttendTellConfig.model_validate(SIZES | {"hides_background": True})
    model, inputs = config.build(3, 4, 4, 12, NUM_TOKENS).double().eval(), drawings()
    whole = model(inputs, TARGETS).features
    state = model.start(memory := model.encode(inputs))
    memory = model.prepare_steps(memory)
    for place in range(4):
        decoded, state = model.step(TARGETS[:, place : place + 1], state, memory)
        assert torch.allclose(decoded.features, whole[:, place : place + 1], atol=1e-12)


def test_the_penalty_does_not_ask_for_the_background():
    config = ShowAttendTellConfig.model_validate(SIZES | {"hides_background": True, "doubly_stochastic": 1.0})
    model, inputs = config.build(3, 4, 4, 12, NUM_TOKENS).double().train(), drawings()
    decoded = model(inputs, TARGETS)
    real = torch.tensor([[place < length for place in range(4)] for length in LENGTHS])
    weights = decoded.attended["cross"].weights
    assert weights is not None
    rows = zip(weights.detach().numpy(), LENGTHS, map(lambda each: inked(each, 4), inputs.pixels.numpy()), strict=True)
    wanted = sum(doubly_stochastic(row[:length, regions]) for row, length, regions in rows)
    penalty = model.extra_losses(decoded, torch.zeros(3, 4), real)["doubly_stochastic"]
    assert penalty.item() == pytest.approx(wanted, abs=1e-10)


def test_hidden_regions_of_a_box_are_not_taught():
    config = ShowAttendTellConfig.model_validate(SIZES | {"hides_background": True})
    model, inputs = config.build(3, 4, 4, 12, NUM_TOKENS).double().train(), drawings()
    target_out = torch.cat((TARGETS[:, 1:], torch.zeros(3, 1, dtype=torch.int64)), dim=1)
    target_out[0, 3] = target_out[1, 2] = target_out[2, 0] = 3
    seen = [inked(picture, 4) for picture in inputs.pixels.numpy()]
    links = {
        name: torch.tensor([(row, 0, region) for row in range(3) for region in regions[row]])
        for name, regions in (("whole", [range(12)] * 3), ("seen", seen))
    }
    step = PairStep(model, 0.0, Guidance(0.5), PixelInputs)
    losses = {name: step(inputs.pixels, TARGETS, target_out, own).total for name, own in links.items()}
    assert torch.equal(losses["whole"], losses["seen"])
    weights = model(inputs, TARGETS, need=("weights",)).attended["cross"].weights
    assert weights is not None
    wanted = -sum(float(weights[row, 0, regions].detach().log().mean()) for row, regions in enumerate(seen))
    plain = PairStep(model, 0.0, kind=PixelInputs)(inputs.pixels, TARGETS, target_out).total
    assert float((losses["seen"] - plain).detach()) == pytest.approx(0.5 * wanted, abs=1e-10)


def test_features_have_no_background():
    with pytest.raises(ConfigError, match="hides_background: the data are features"):
        make(hides_background=True)


def test_the_penalty_is_that_of_the_paper_over_real_words_and_regions():
    model, inputs = make(doubly_stochastic=2.5).train(), images()
    decoded = model(inputs, TARGETS)
    real = torch.tensor([[place < length for place in range(4)] for length in LENGTHS])
    losses = model.extra_losses(decoded, torch.zeros(3, 4), real)
    assert losses.keys() == {"doubly_stochastic"}
    weights = decoded.attended["cross"].weights
    assert weights is not None
    rows = zip(weights.detach().numpy(), LENGTHS, NUM_REGIONS.tolist(), strict=True)
    wanted = 2.5 * sum(doubly_stochastic(row[:length, :regions]) for row, length, regions in rows)
    assert losses["doubly_stochastic"].item() == pytest.approx(wanted, abs=1e-10)
    assert not model.eval().extra_losses(decoded, torch.zeros(3, 4), real)


@pytest.mark.parametrize("kind", ["features", "pixels"])
@pytest.mark.parametrize("attention", [{}, {"has_coverage": True}, {"window": "local-m", "half_width": 1}])
def test_steps_equal_the_whole_caption_with_hypotheses_of_their_own(kind: str, attention: dict[str, object]):
    model, inputs = make(kind, attention={"hidden_size": 7} | attention), images(kind)
    whole = model(inputs, TARGETS).features
    memory = model.encode(inputs)
    state = model.start(memory, num_hypotheses=2)
    memory = model.prepare_steps(memory)
    for place in range(4):
        tokens = TARGETS[:, place : place + 1].expand(-1, 2)
        decoded, state = model.step(tokens, state, memory)
        assert torch.allclose(decoded.features, whole[:, place : place + 1].expand(-1, 2, -1), atol=1e-12)
        state = state.reorder(torch.tensor([[1, 0]] * 3))


@pytest.mark.parametrize("num_region_layers", [0, 2])
def test_an_image_alone_gets_what_it_gets_in_a_batch(num_region_layers: int):
    for kind in ("features", "pixels"):
        model, inputs = make(kind, num_region_layers=num_region_layers), images(kind)
        whole = model(inputs, TARGETS).features
        for row in range(3):
            one = inputs.select(torch.tensor([row]))
            assert torch.allclose(model(one, TARGETS[row : row + 1]).features, whole[row : row + 1], atol=1e-12)


@pytest.mark.parametrize("num_region_layers", [0, 2])
def test_what_stands_in_the_place_of_padded_regions_changes_nothing(num_region_layers: int):
    model, inputs = make(num_region_layers=num_region_layers), images()
    assert isinstance(inputs, FeatureInputs)
    filled = inputs.features.clone()
    filled[1, 2:] = 100.0
    others = FeatureInputs(filled, inputs.num_regions)
    assert torch.equal(model(inputs, TARGETS).features, model(others, TARGETS).features)


def test_drawn_regions_are_learned_by_reinforce():
    settings = PRESETS["show_attend_tell-hard"].attention.model_dump() | {"hidden_size": 7}
    model = make(attention=settings, doubly_stochastic=0.0).train()
    decoded = model(images(), TARGETS)
    real = torch.tensor([[place < length for place in range(4)] for length in LENGTHS])
    losses = model.extra_losses(decoded, torch.full((3, 4), -1.0), real)
    losses["reinforce"].backward()
    gradient = model.get_parameter("score.vector").grad
    assert gradient is not None
    assert bool((gradient != 0.0).any())
    baseline = model.reinforcement.baseline
    assert baseline is not None
    assert baseline.item() == pytest.approx(0.1 * -8.0 / 3.0)


def test_images_of_another_kind_are_refused():
    with pytest.raises(TypeError, match="got PixelInputs"):
        make("features").encode(images("pixels"))
    with pytest.raises(TypeError, match="got TokenInputs"):
        make("pixels").encode(TokenInputs(torch.tensor([[4, 3]]), torch.tensor([2])))


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValidationError):
        ShowAttendTellConfig(annotation_size=12)


def test_sentences_of_an_image_are_refused():
    with pytest.raises(ValidationError, match="an image has no sentences"):
        ShowAttendTellConfig.model_validate({"attention": {"has_sentences": True}})


@pytest.mark.parametrize("number", [-1, 101, 1.5, "many", None])
def test_impossible_numbers_of_layers_over_regions_are_refused(number: object):
    with pytest.raises(ValidationError, match="num_region_layers"):
        ShowAttendTellConfig.model_validate({"num_region_layers": number})
