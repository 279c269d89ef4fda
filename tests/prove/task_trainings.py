"""Tiny trainings of every task: pairs for each model that translates, labels, captions, and spans of a passage."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import nn

from heedful.data.batching import LengthSampler, PairSampler
from heedful.data.captioned import CaptionSampler, StoredImages, write_images
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.data.images import ImageConfig
from heedful.data.label_batches import LabelSampler
from heedful.engines.passages import PassageArrays
from heedful.files.atomic_write import private_folder
from heedful.models.bidaf import BidafConfig
from heedful.models.inputs import FeatureInputs, PassageInputs, TokenInputs
from heedful.models.show_attend_tell import ShowAttendTellConfig
from heedful.models.text_classifier import TextClassifierConfig
from heedful.search.inputs import TokenArrays
from heedful.text.vocabulary import EOS
from heedful.training.config import TrainingConfig
from heedful.training.guided import Guidance
from heedful.training.label_step import LabelStep
from heedful.training.loss import TrainingStep
from heedful.training.pair_step import PairStep
from tests.models.tiny import CONFIGS, NUM_SOURCE_TOKENS, NUM_TARGET_TOKENS, changed

_NUM_TOKENS: Final = 20
_NUM_LABELS: Final = 3
_NUM_FEATURES: Final = 5
_SMALL: Final[Mapping[str, Any]] = {"embedding_size": 8, "hidden_size": 8}


class Parts(NamedTuple):
    """Model, its loss, and the sampler of its batches."""

    model: nn.Module
    make_step: Callable[[Any], TrainingStep]
    """Joins the model, or a copy of it, with its loss."""
    sampler: LengthSampler[Any]


def parts(kind: str, training: TrainingConfig, num_examples: int, has_chance: bool, dtype: torch.dtype) -> Parts:
    """Make a model by torch's random numbers, and the same examples each time.

    Args:
        kind: one of `TASKS`, or of the models in `tests.models.tiny.CONFIGS`, which is trained on pairs.
        training: batches, seed and label smoothing.
        num_examples: number of examples.
        has_chance: whether there is dropout.
        dtype: of the parameters.
    """
    make = TASKS[kind] if kind in TASKS else partial(_pairs, kind)
    task = make(training, num_examples, has_chance)
    task.model.to(dtype)
    return task


def make_corpus(num_pairs: int) -> EncodedCorpus:
    generator = np.random.default_rng(3)

    def side(vocabulary: int) -> EncodedSide:
        lengths = generator.integers(1, 7, size=num_pairs)
        return EncodedSide.of([[*generator.integers(4, vocabulary, size=length).tolist(), 3] for length in lengths])

    return EncodedCorpus(side(NUM_SOURCE_TOKENS), side(NUM_TARGET_TOKENS))


def _pairs(kind: str, training: TrainingConfig, num_examples: int, has_chance: bool) -> Parts:
    config = CONFIGS[kind]
    if not has_chance:
        chances = [name for name in type(config).model_fields if "dropout" in name]
        config = changed(config, **dict.fromkeys(chances, 0.0))
    model = config.build(NUM_SOURCE_TOKENS, NUM_TARGET_TOKENS, is_shared=False)
    sampler = PairSampler(make_corpus(num_examples), training.batch_tokens, training.seed)
    return Parts(model, partial(PairStep, label_smoothing=training.label_smoothing), sampler)


def _labels(training: TrainingConfig, num_examples: int, has_chance: bool) -> Parts:
    generator = np.random.default_rng(5)
    labels = EncodedSide.of([[int(generator.integers(_NUM_LABELS))] for _ in range(num_examples)])
    corpus = EncodedCorpus(EncodedSide.of(_texts(generator, num_examples)), labels)
    config = TextClassifierConfig(encoder="gru", dropout=0.1 * has_chance, **_SMALL)
    step = partial(LabelStep, label_smoothing=training.label_smoothing, kind=TokenInputs)
    sampler = LabelSampler(corpus, training.batch_tokens, training.seed, TokenArrays)
    return Parts(config.build(_NUM_TOKENS, _NUM_LABELS), step, sampler)


def _spans(training: TrainingConfig, num_examples: int, has_chance: bool) -> Parts:
    generator = np.random.default_rng(5)
    questions, passages = (_texts(generator, num_examples) for _ in range(2))
    ends = [sorted(generator.integers(0, len(passage) - 1, size=2).tolist()) for passage in passages]
    sources = [question + passage for question, passage in zip(questions, passages, strict=True)]
    corpus = EncodedCorpus(EncodedSide.of(sources), EncodedSide.of(ends))
    config = BidafConfig(dropout=0.1 * has_chance, **_SMALL)
    step = partial(LabelStep, label_smoothing=0.0, kind=PassageInputs)
    sampler = LabelSampler(corpus, training.batch_tokens, training.seed, PassageArrays)
    return Parts(config.build(_NUM_TOKENS, 0), step, sampler)


def _captions(training: TrainingConfig, num_examples: int, has_chance: bool) -> Parts:
    generator = np.random.default_rng(5)
    images = _images(generator, num_examples)
    sources = EncodedSide.of([[number] for number in range(num_examples)])
    texts = _texts(generator, num_examples)
    # The first word of every second caption has a place, its last region.
    linked = [[len(rows) - 1][: number % 2] for number, rows in enumerate(images.take(range(num_examples)))]
    links = EncodedCorpus(EncodedSide.of(linked), EncodedSide.of([[0] * len(each) for each in linked]))
    corpus = EncodedCorpus(sources, EncodedSide.of(texts), links)
    config = ShowAttendTellConfig(annotation_size=8, dropout=0.1 * has_chance, **_SMALL)
    label_smoothing = training.label_smoothing
    step = partial(PairStep, kind=FeatureInputs, label_smoothing=label_smoothing, guidance=Guidance(0.5))
    sampler = CaptionSampler(images, corpus, training.batch_tokens, training.seed)
    return Parts(config.build(*images.config.sizes, _NUM_TOKENS), step, sampler)


def _texts(generator: np.random.Generator, number: int) -> list[list[int]]:
    """Texts of one to six words and EOS."""
    lengths = generator.integers(1, 7, size=number)
    return [[*generator.integers(4, _NUM_TOKENS, size=length).tolist(), EOS] for length in lengths]


def _images(generator: np.random.Generator, number: int) -> StoredImages:
    """Precomputed features of one to four regions."""
    config = ImageConfig(kind="features", num_features=_NUM_FEATURES)
    with private_folder() as folder:
        files = [folder / f"{index}.npy" for index in range(number)]
        for file in files:
            shape = int(generator.integers(1, 5)), _NUM_FEATURES
            np.save(file, generator.normal(size=shape).astype(np.float32))
        write_images(folder, [(file, "") for file in files], config)
        return StoredImages(folder, config)  # stays mapped when its files are gone


TASKS: Final[Mapping[str, Callable[[TrainingConfig, int, bool], Parts]]] = {
    "label": _labels,
    "caption": _captions,
    "span": _spans,
}
"""Tasks other than translation, with one model each."""
