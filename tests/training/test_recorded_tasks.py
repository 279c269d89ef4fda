"""Recorded steps of captions, labels and answers learn what launched ones learn, and wait for nothing on a device."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from heedful.attention import dispatch
from heedful.layers.positions import SinusoidalPositions
from heedful.models.bidaf import BidafConfig
from heedful.models.hierarchical import HierarchicalConfig
from heedful.models.image_transformer import ImageTransformerConfig
from heedful.models.inputs import FeatureInputs, PassageInputs, PixelInputs, StoryInputs, TokenInputs
from heedful.models.label_model import Encoded
from heedful.models.memory_network import MemoryNetworkConfig
from heedful.models.self_attentive import SelfAttentiveConfig
from heedful.models.show_attend_tell import ShowAttendTellConfig
from heedful.models.text_classifier import TextClassifier, TextClassifierConfig
from heedful.models.transformer import TransformerConfig
from heedful.training.guided import Guidance
from heedful.training.label_step import LabelStep
from heedful.training.loss import TrainingStep
from heedful.training.pair_step import PairStep
from heedful.training.recorded_step import RARE, RecordedStep
from tests.attention.kernels.watch import Watch, without_autocast
from tests.training.tape import Tapes, without_cpu_loops

NUM_TOKENS: Final = 20
SIZES: Final[Mapping[str, Any]] = {"embedding_size": 8, "hidden_size": 8, "dropout": 0.0}
Arrays = list[np.ndarray]


@pytest.fixture(autouse=True)
def _recordable(monkeypatch: pytest.MonkeyPatch):
    without_cpu_loops(monkeypatch)


def ids(generator: np.random.Generator, lengths: np.ndarray) -> np.ndarray:
    """Token ids padded with 0, for lengths along the last axis."""
    real = np.arange(lengths.max()) < lengths[..., None]
    return generator.integers(4, NUM_TOKENS, real.shape) * real


def lengths_up_to_12(generator: np.random.Generator, *shape: int) -> np.ndarray:
    """Lengths of which the largest is 11 or 12, both of which are padded to 12."""
    lengths = generator.integers(1, 12, shape)
    lengths.flat[0] = generator.integers(11, 13)
    return lengths


def texts(seed: int) -> Arrays:
    generator = np.random.default_rng(seed)
    lengths = lengths_up_to_12(generator, 5)
    return [ids(generator, lengths), lengths, generator.integers(0, 3, 5)]


def stories(seed: int) -> Arrays:
    generator = np.random.default_rng(seed)
    num_facts = generator.integers(1, 5, 5)
    lengths = lengths_up_to_12(generator, 5, 4) * (np.arange(4) < num_facts[:, None])
    question = ids(generator, lengths_up_to_12(generator, 5))
    return [question, ids(generator, lengths), num_facts, generator.integers(0, 3, 5)]


def passages(seed: int) -> Arrays:
    generator = np.random.default_rng(seed)
    asked, told = generator.integers(1, 5, 5), generator.integers(2, 7, 5)
    ends = np.sort(generator.integers(0, told - 1, (2, 5)), axis=0).T
    return [ids(generator, asked), asked, ids(generator, told), told, ends]


def captions(seed: int, kind: str) -> Arrays:
    generator = np.random.default_rng(seed)
    lengths = lengths_up_to_12(generator, 5)
    targets = [ids(generator, lengths), ids(generator, lengths)]
    if kind == "pixels":
        return [generator.integers(0, 256, (5, 3, 8, 12), dtype=np.uint8), *targets]
    num_regions = generator.integers(1, 5, 5)
    features = generator.normal(size=(5, 4, 5)).astype(np.float32) * (np.arange(4) < num_regions[:, None])[..., None]
    return [features, num_regions, *targets]


def labels(config: Any, kind: Any = TokenInputs, num_labels: int = 3) -> TrainingStep:
    return LabelStep(config.build(NUM_TOKENS, num_labels).double(), 0.1, kind)


def captioner(config: Any, is_pixels: bool) -> TrainingStep:
    model = config.build(*((3, 4, 4, 6) if is_pixels else (5, 0, 0, 0)), NUM_TOKENS).double()
    return PairStep(model, 0.1, kind=PixelInputs if is_pixels else FeatureInputs)


SHOWN: Final = ShowAttendTellConfig(annotation_size=8, **SIZES)
TRANSFORMER: Final = ImageTransformerConfig(
    layers=TransformerConfig(
        num_encoder_layers=1, num_decoder_layers=1, model_size=8, num_heads=2, feedforward_size=12, dropout=0.0
    )
)
STEPS: Final[Mapping[str, tuple[Callable[[], TrainingStep], Callable[[int], Arrays]]]] = {
    **{
        name: (lambda config=config: labels(config), texts)
        for name, config in {
            "bag": TextClassifierConfig(encoder="bag", **SIZES),
            "gru": TextClassifierConfig(encoder="gru", **SIZES),
            "words": TextClassifierConfig(encoder="words", num_queries=2, **SIZES),
            "steps": TextClassifierConfig(encoder="gru", query_vectors="step", num_steps=16, **SIZES),
            "self-attentive": SelfAttentiveConfig.model_validate({**SIZES, "penalty": 0.7}),
        }.items()
    },
    "memory": (lambda: labels(MemoryNetworkConfig(hidden_size=8), StoryInputs), stories),
    "spans": (lambda: labels(BidafConfig(**SIZES), PassageInputs, 0), passages),
    "pixels": (lambda: captioner(SHOWN, True), lambda seed: captions(seed, "pixels")),
    "features": (lambda: captioner(SHOWN, False), lambda seed: captions(seed, "features")),
    "image-transformer": (lambda: captioner(TRANSFORMER, True), lambda seed: captions(seed, "pixels")),
}


def made(name: str) -> tuple[TrainingStep, Callable[[int], Arrays]]:
    torch.manual_seed(1)
    make, arrays = STEPS[name]
    step = make().train()
    assert step.recording_problem == ""
    return step, arrays


def double(array: np.ndarray) -> Tensor:
    tensor = torch.from_numpy(array)
    return tensor.double() if tensor.is_floating_point() else tensor


def launched(step: TrainingStep, batch: Arrays) -> tuple[float, list[Tensor]]:
    loss = step(*map(double, batch)).total / 7.0
    return float(loss.detach()), list(
        torch.autograd.grad(loss, list(step.parameters()), allow_unused=True, materialize_grads=True)
    )


@pytest.mark.parametrize("name", STEPS)
def test_replayed_gradients_are_those_of_the_launched_step(name: str):
    step, arrays = made(name)
    said, tapes = list[str](), Tapes()
    recorded = RecordedStep(step, "float32", tapes, said.append)
    for number, seed in enumerate((1, 2, 3, 1)):
        batch = arrays(seed)
        wanted_loss, wanted = launched(step, batch)
        recorded.begin()
        loss = recorded.add(batch, 7.0, double)
        assert (loss is None) == (number < RARE), said
        if loss is None:
            continue
        assert float(loss) == pytest.approx(wanted_loss, abs=1e-11)
        for parameter, grad in zip(step.parameters(), wanted, strict=True):
            assert parameter.grad is not None
            assert float((parameter.grad - grad).abs().max()) <= 1e-11
        with torch.no_grad():
            for parameter, grad in zip(step.parameters(), wanted, strict=True):
                parameter -= 0.1 * grad
    assert len(tapes.lengths) == 1


@pytest.mark.parametrize("name", STEPS)
def test_padding_counts_for_nothing(name: str):
    step, arrays = made(name)
    batch = arrays(1)
    padded = step.pad(batch)
    assert {len(part) for part in padded} == {8}
    assert all(np.array_equal(one, other) for one, other in zip(padded, step.pad(padded), strict=True))
    packed = step(*map(double, batch))
    step.has_fixed_shape = True
    for one, other in zip(packed, step(*map(double, padded)), strict=True):
        assert float(one.detach()) == pytest.approx(float(other.detach()), abs=1e-11)


@pytest.mark.parametrize("name", STEPS)
def test_a_step_touches_nothing_on_the_host(name: str, monkeypatch: pytest.MonkeyPatch):
    """On PyTorch's device without numbers, which takes the branches of a GPU."""
    without_autocast(monkeypatch)
    monkeypatch.setattr(dispatch, "concrete", lambda *tensors: True)
    step, arrays = made(name)
    for positions in (module for module in step.modules() if isinstance(module, SinusoidalPositions)):
        positions.codes(0, 8)
    step = step.to("meta")
    step.has_fixed_shape = True
    tensors = [double(part).to("meta") for part in step.pad(arrays(1))]
    with Watch("meta"):
        loss = step(*tensors).total / torch.empty((), device="meta")
        torch.autograd.grad(loss, list(step.parameters()), allow_unused=True)


def classifier(**settings: Any) -> Any:
    return TextClassifierConfig(**settings).build(NUM_TOKENS, 3)


class OwnLosses(TextClassifier):  # type: ignore[misc]
    """A classifier with a loss for each text, whoever the text is."""

    def extra_losses(self, encoded: Encoded, log_probs: Tensor) -> dict[str, Tensor]:
        return {"norm": encoded.vectors.square().sum()}


def with_batch_norm(step: TrainingStep) -> TrainingStep:
    step.model.register_module("norm", nn.BatchNorm1d(8))
    return step


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: LabelStep(classifier(), 0.1, label_kind="several"), "targets of several labels are made on the host"),
        (
            lambda: LabelStep(HierarchicalConfig().build(NUM_TOKENS, 3), 0.1),
            "the sentences of a source depend on its tokens",
        ),
        (
            lambda: labels(MemoryNetworkConfig(start="soft"), StoryInputs),
            "the first batches are others, which the host counts",
        ),
        (
            lambda: labels(MemoryNetworkConfig(empty_share=0.1), StoryInputs),
            "the number of drawn empty facts differs from batch to batch",
        ),
        (
            lambda: LabelStep(OwnLosses(TextClassifierConfig(), NUM_TOKENS, 3), 0.1),
            "losses of the model's own would count padding",
        ),
        (lambda: with_batch_norm(labels(TextClassifierConfig())), "means over a batch would count padding"),
        (
            lambda: captioner(ShowAttendTellConfig(transcription_weight=0.5), False),
            "the sum over transcriptions depends on the lengths",
        ),
        (
            lambda: PairStep(SHOWN.build(5, 0, 0, 0, NUM_TOKENS), 0.1, Guidance(0.5), FeatureInputs),
            "batches have different numbers of alignment links",
        ),
    ],
)
def test_what_is_not_recorded_says_why(make: Callable[[], TrainingStep], reason: str):
    step = make()
    assert isinstance(step, nn.Module)
    assert step.recording_problem == reason
