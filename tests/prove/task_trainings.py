"""Tiny trainings of the tasks other than translation: labels, captions and spans of a passage."""

import tempfile
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import nn

from heedful.data.batch import Sampler
from heedful.data.captioned import CaptionSampler, StoredImages, write_images
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.data.images import ImageConfig
from heedful.data.labelled import LabelSampler
from heedful.models.bidaf import BidafConfig
from heedful.models.inputs import FeatureInputs, PassageInputs, TokenInputs
from heedful.models.show_attend_tell import ShowAttendTellConfig
from heedful.models.text_classifier import TextClassifierConfig
from heedful.search.inputs import TokenArrays
from heedful.search.passages import PassageArrays
from heedful.text.vocabulary import EOS
from heedful.training.caption_step import CaptionStep
from heedful.training.config import TrainingConfig
from heedful.training.label_step import LabelStep
from heedful.training.loss import TrainingStep

KINDS: Final = ("label", "caption", "span")
_NUM_TOKENS: Final = 20
_NUM_LABELS: Final = 3
_NUM_FEATURES: Final = 5


class Parts(NamedTuple):
    """Model with its loss, and the sampler of its batches."""

    model: nn.Module
    step: TrainingStep
    sampler: Sampler


def parts(kind: str, training: TrainingConfig, num_examples: int, dropout: float, dtype: torch.dtype) -> Parts:
    """Make a model by torch's random numbers, and the same examples each time."""
    generator = np.random.default_rng(5)
    small: dict[str, Any] = {"embedding_size": 8, "hidden_size": 8, "dropout": dropout}

    def words(least: int) -> list[int]:
        return generator.integers(4, _NUM_TOKENS, size=generator.integers(least, 7)).tolist()

    numbers = training.batch_tokens, training.seed
    if kind == "label":
        texts = EncodedSide.of([[*words(1), EOS] for _ in range(num_examples)])
        labels = EncodedSide.of([[int(generator.integers(_NUM_LABELS))] for _ in range(num_examples)])
        classifier = TextClassifierConfig.model_validate(small).build(_NUM_TOKENS, _NUM_LABELS).to(dtype)
        step = LabelStep(classifier, training.label_smoothing, TokenInputs)
        return Parts(classifier, step, LabelSampler(EncodedCorpus(texts, labels), *numbers, TokenArrays))
    if kind == "span":
        questions, passages = [[[*words(1), EOS] for _ in range(num_examples)] for _ in range(2)]
        ends = [sorted(generator.integers(0, len(passage) - 1, size=2).tolist()) for passage in passages]
        sources = [question + passage for question, passage in zip(questions, passages, strict=True)]
        corpus = EncodedCorpus(EncodedSide.of(sources), EncodedSide.of(ends))
        reader = BidafConfig.model_validate(small).build(_NUM_TOKENS, 0).to(dtype)
        return Parts(reader, LabelStep(reader, 0.0, PassageInputs), LabelSampler(corpus, *numbers, PassageArrays))
    config = ImageConfig(kind="features", num_features=_NUM_FEATURES)
    with tempfile.TemporaryDirectory(prefix="heedful-") as name:
        folder = Path(name)
        for number in range(num_examples):
            shape = int(generator.integers(1, 5)), _NUM_FEATURES
            np.save(folder / f"{number}.npy", generator.normal(size=shape).astype(np.float32))
        write_images(folder, [(folder / f"{number}.npy", "") for number in range(num_examples)], config)
        images = StoredImages(folder, config)  # stays mapped when its files are gone
    sources = EncodedSide.of([[number] for number in range(num_examples)])
    captions = EncodedSide.of([[*words(1), EOS] for _ in range(num_examples)])
    teller = (
        ShowAttendTellConfig.model_validate(small | {"annotation_size": 8}).build(*config.sizes, _NUM_TOKENS).to(dtype)
    )
    step = CaptionStep(teller, FeatureInputs, training.label_smoothing)
    return Parts(teller, step, CaptionSampler(images, EncodedCorpus(sources, captions), *numbers))
