"""Captioning: images with sentences about them, learned by a decoder that attends to regions of the image."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Final, final

import numpy as np
from torch import nn

from heedful.config.base import Tree, merge
from heedful.data.batch import Sampler
from heedful.data.boxes import store_boxes
from heedful.data.caption_files import CaptionFile
from heedful.data.captioned import (
    IMAGES,
    CaptionSampler,
    ImageFaults,
    StoredImages,
    captions_by_length,
    readable_image,
    write_images,
)
from heedful.data.corpus import Pair
from heedful.data.corpus_filter import CorpusFilter
from heedful.data.corpus_links import read_linked, with_links
from heedful.data.encoded import ENCODED, EncodedCorpus, EncodedSide, write_encoded
from heedful.data.images import ImageConfig, look_at
from heedful.data.prepare import EvaluationSet
from heedful.data.prepared_files import is_texts, kept_tokenizer, read_prepared, repaired, verify_files
from heedful.data.prepared_tokenizers import TOKENIZER_LINES, count_characters
from heedful.data.split import MIN_PAIRS, Split, on_training
from heedful.engines.engine import DEFAULT_BATCH_TOKENS, decode_sorted
from heedful.engines.images import image_arrays
from heedful.errors import DataError, FileRefused, UsageError
from heedful.evaluation.evaluate import quick_scores
from heedful.evaluation.metrics.table import METRICS, metric_directions
from heedful.files.formats import PREPARED_FORMAT
from heedful.files.records import read_facts, write_facts
from heedful.models.device_memory import as_memory_allows
from heedful.models.engine import torch_backend
from heedful.models.inputs import FeatureInputs, PixelInputs
from heedful.models.interface import Seq2Seq
from heedful.models.show_attend_tell import ShowAttendTellConfig
from heedful.predictors.captioner import caption_metrics
from heedful.predictors.interface import spaced
from heedful.search.config import SearchConfig
from heedful.tasks.experiment import Experiment
from heedful.tasks.interface import FOR_TRANSLATION, DataPaths, Prepared, Task
from heedful.tasks.landing import Course, plan_landing
from heedful.tasks.throughput import Throughput
from heedful.text.counts import counted
from heedful.text.tokenizer import TextConfig, Tokenizer
from heedful.text.tokenizer_files import load_tokenizer
from heedful.text.tokenizer_training import choose_size, train_tokenizer
from heedful.text.vocabulary import EOS
from heedful.training.config import TrainingConfig
from heedful.training.likelihood import validation_loss
from heedful.training.pair_step import PairStep
from heedful.training.progress import Validation

PREPARED: Final = "run/data/captioning.json"
VALIDATION_IMAGES: Final = 500
VALIDATION_CAPTIONS: Final = 64
"""Number of captions in a batch of the validation loss that suits a CPU."""
BLEU_WORDS: Final = 4
"""Words of a caption from which on it can have a score in BLEU, which counts sequences of four."""
COURSE: Final = Course((16, 64), 4_000, (4, 80))
"""Course of a training; most batches have 64 captions, as in Xu et al. 2015, section 4.3."""
CHANGED_SHARE: Final = 0.8
"""Share of the pictures that are changed at random."""
LEARNING_RATE: Final = 1e-3
"""Peak learning rate of Adam."""
_LOOKED_AT: Final = 50
"""First images that the settings are chosen from."""
_MOST_SIDE: Final = 128
"""Longest side of a picture that is chosen by itself, in pixels."""
_SPARE: Final = 1.5
"""Longest generated caption, in lengths of the longest gold one."""


@final
@dataclass(frozen=True)
class CaptioningData(Prepared):
    """Images with captions, ready to train on."""

    tokenizer: Tokenizer
    images: StoredImages
    """Images of the training and of the validation set, in this order."""
    train: EncodedCorpus
    """The number of an image as the only source id, its caption as targets."""
    dev: EvaluationSet
    first_dev: int
    """Number of the first image of the validation set."""


@final
class CaptioningTask(Task[CaptionFile, CaptioningData]):
    """Task of captioning: from images with captions to a `heedful.predictors.captioner.Captioner`."""

    name = "captioning"
    default_preset = "show_attend_tell"
    examples = "pictures"
    command = "caption"
    kinds = frozenset({"show_attend_tell", "image_transformer"})
    model = Seq2Seq
    higher_is_better: ClassVar = {"loss": False, **metric_directions()}
    without_effect = (
        *("text.source_vectors", "text.target_vectors", "text.vectors", "text.split_sentences", "text.labels"),
        *FOR_TRANSLATION,
    )

    def find(self, paths: DataPaths) -> dict[str, CaptionFile]:
        return {name: CaptionFile(files, paths.columns, True) for name, files in paths.parts.items()}

    def file_defaults(self, files: Mapping[str, CaptionFile], resolve: Callable[[Tree], Experiment]) -> Tree:
        file, most = files["train"], resolve({}).text.max_characters
        captions = [pair.target.strip() for pair in file if 0 < len(pair.target.strip()) <= most]
        has_words = 2 * sum(" " in caption for caption in captions) > len(captions)
        units = "words" if has_words else "characters"
        longest = max((len(each.split()) if has_words else len(each) for each in captions), default=1)
        text = {"target_units": units, "max_tokens": max(20, int(_SPARE * longest) + 2)}
        settings = resolve({})
        chosen: Tree = {"text": text, "images": _suited_images(file, settings.images.region_size)}
        if isinstance(settings.model, ShowAttendTellConfig) and not has_words:
            # Writing is read, not described: few regions matter, and a penalty on the others keeps attention spread.
            chosen["model"] = {"doubly_stochastic": 0.0}
        return chosen

    def prepare(
        self, files: Mapping[str, CaptionFile], experiment: Experiment, folder: Path, paths: DataPaths
    ) -> CaptioningData:
        text, images, training = experiment.text, experiment.images, experiment.training
        data, boxes = folder / "run/data", Path(training.links) if training.links else None
        if training.alignment_weight:
            _check_guidance(training, images)
        parts = (folder / PREPARED, data / IMAGES, data / ENCODED, *([data / "links" / ENCODED] if boxes else []))

        def read_or_make() -> CaptioningData:
            if not all(part.is_file() for part in parts):
                _prepare(files, text, images, folder, boxes)
            return _read(files, text, images, folder)

        prepared, damage = repaired(read_or_make, folder)
        return replace(prepared, report=(*prepared.report, damage)) if damage else prepared

    def own_validation(self, folder: Path) -> EvaluationSet:
        facts = read_prepared(folder / PREPARED)
        return _rooted(EvaluationSet.read(facts["dev"]), Path(str(facts["dev_folder"])))

    def data_defaults(self, data: CaptioningData, experiment: Experiment) -> Tree:
        return _planned(data, experiment)

    def time_limited_defaults(
        self, data: CaptioningData, experiment: Experiment, pace: Throughput, is_named: bool = False
    ) -> Tree:
        limits = {"training": {"validation_items": pace.validation_items}}
        return merge(_planned(data, experiment, pace), limits)

    @property
    def poor_scores(self) -> Mapping[str, float]:
        return {"bleu": 10.0, "exact_match": 20.0, "character_error_rate": 40.0, "token_error_rate": 40.0}

    def trial_sizes(self, experiment: Experiment) -> tuple[int, ...]:
        return (*experiment.images.sizes, 8)

    def sampler(self, experiment: Experiment, folder: Path, data: CaptioningData | None) -> Sampler:
        stored = folder / "run/data"
        corpus = read_linked(stored, _num_regions(experiment.images)) if data is None else data.train
        images = StoredImages(stored, experiment.images, is_verified=True) if data is None else data.images
        training = experiment.training
        return CaptionSampler(
            images, corpus, training.batch_tokens, training.seed, training.noise, training.has_few_shapes
        )

    def step(self, experiment: Experiment, model: nn.Module) -> PairStep:
        smoothing, kind = experiment.training.label_smoothing, _inputs(experiment)
        return PairStep(_seq2seq(model), smoothing, experiment.guidance, kind)

    def validator(self, data: CaptioningData, experiment: Experiment) -> Callable[[nn.Module], Validation]:
        number = experiment.training.validation_items or VALIDATION_IMAGES
        dev = spaced(data.dev, number)
        numbers = spaced([*range(data.first_dev, data.first_dev + len(data.dev))], number)
        images = image_arrays(data.images.take(numbers), experiment.images)
        selected, usual = experiment.training.select_by, caption_metrics(experiment.text.target_units)
        metrics = tuple(dict.fromkeys((*usual, *((selected,) if selected in METRICS else ()))))
        most = experiment.text.max_tokens - 1
        gold = [[*data.tokenizer.encode(texts[0])[:most], EOS] for texts in dev.references]
        corpus = EncodedCorpus(EncodedSide.of([[number] for number in numbers]), EncodedSide.of(gold))

        def validate(model: nn.Module) -> Validation:
            backend = torch_backend(_seq2seq(model), experiment.text.max_tokens)
            decoded = as_memory_allows(
                lambda positions: decode_sorted(backend, images, SearchConfig(beam=1), batch_tokens=positions),
                DEFAULT_BATCH_TOKENS,
                next(model.parameters()).device,
            )
            outputs = [data.tokenizer.decode(hypotheses[0].token_ids) for hypotheses in decoded]
            scores = quick_scores(outputs, dev.references, metrics=metrics)
            step = PairStep(_seq2seq(model), 0.0, kind=_inputs(experiment))
            loss = validation_loss(
                step, lambda number: captions_by_length(data.images, corpus, number), VALIDATION_CAPTIONS
            )
            samples = tuple(zip(dev.sources[:5], [texts[0] for texts in dev.references[:5]], outputs[:5], strict=True))
            return Validation({"loss": loss, **scores}, samples[0], samples)

        return validate


def _planned(data: CaptioningData, experiment: Experiment, pace: Throughput | None = None) -> Tree:
    """Settings of a training.

    Args:
        pace: measured speeds, in tokens of captions, and limit of time; None = not measured, and no limit.
    """
    training = experiment.training
    num_captions, num_tokens = len(data.train), int(data.train.target.lengths.sum())
    num_seen = pace.num_units * num_captions / num_tokens if pace else 0.0
    per_token = num_captions / num_tokens
    plan = plan_landing(
        COURSE, num_captions, num_tokens, training.max_steps, num_seen, pace=pace, items_per_unit=per_token
    )
    select_by = caption_metrics(experiment.text.target_units)[-1]
    if select_by == "bleu" and num_tokens < (BLEU_WORDS + 1) * num_captions:  # EOS is a token too
        select_by = "token_error_rate"
    can_change = experiment.images.kind == "pixels" and not training.alignment_weight
    chosen = {"select_by": select_by, "noise": CHANGED_SHARE if can_change else 0.0}
    return {"training": {**chosen, **plan.settings(LEARNING_RATE, training.is_limited, "tokens")}}


def _check_guidance(training: TrainingConfig, images: ImageConfig) -> None:
    """Refuse settings by which attention cannot be taught the places of words.

    Raises:
        UsageError: the data are features, there are no boxes, or a setting is for texts.
    """
    if images.kind == "features":
        raise UsageError("training.alignment_weight: features have no places in a picture; leave it at 0")
    if not training.links:
        raise UsageError(
            "training.alignment_weight: the places of words in images are not found by themselves; give their boxes "
            "with --links FILE, or leave it at 0"
        )
    usual = TrainingConfig()
    for name in ("alignment_model", "alignment_step"):
        if getattr(training, name) != getattr(usual, name):
            raise UsageError(f"training.{name}: it is for links between texts; leave it out")


def _inputs(experiment: Experiment) -> type[PixelInputs | FeatureInputs]:
    """Kind of images that the model reads."""
    return PixelInputs if experiment.images.kind == "pixels" else FeatureInputs


def _seq2seq(model: nn.Module) -> Seq2Seq:
    if not isinstance(model, Seq2Seq):
        raise TypeError(f"captioning needs a sequence-to-sequence model, got {type(model).__name__}")
    return model


def _suited_images(file: CaptionFile, region_size: int) -> Tree:
    """Settings by the first images: their kind, their most usual channels and their median size within limits.

    Raises:
        DataError: no row has an image and a caption, or an image is unusable.
    """
    usable = (pair for pair in file if pair.source.strip() and pair.target.strip())
    looks: list[dict[str, Any]] = []
    first: DataError | None = None
    for pair in islice(usable, _LOOKED_AT):
        try:
            looks.append(look_at(file.image(pair), file.where(pair)))
        except DataError as error:
            first = first or error
    if first and not looks:
        raise first
    if not looks:
        raise DataError(f"{file.path}: no row has an image and a caption; name their columns with --columns PATH,TEXT")
    if looks[0]["kind"] == "features":
        return {key: looks[0][key] for key in ("kind", "num_features")}
    pictures = [each for each in looks if each["kind"] == "pixels"]
    height, width = (float(np.median([each[side] for each in pictures])) for side in ("height", "width"))
    scale = min(1.0, _MOST_SIDE / max(height, width))
    sides = {"height": height * scale, "width": width * scale}
    chosen = {name: max(1, round(side / region_size)) * region_size for name, side in sides.items()}
    channels = Counter(each["channels"] for each in pictures)
    return {"kind": "pixels", **chosen, "channels": max(channels, key=lambda number: channels[number])}


def _read(files: Mapping[str, CaptionFile], config: TextConfig, images: ImageConfig, folder: Path) -> CaptioningData:
    """Read prepared data.

    Raises:
        FileRefused: a file is missing or damaged.
    """
    facts = read_facts(folder / PREPARED, PREPARED_FORMAT, "prepare the data again")
    try:
        report, name, first_dev = facts["report"], str(facts["tokenizer"]), int(facts["first_dev"])
        dev, test = (EvaluationSet.read(facts[part]) for part in ("dev", "test"))
    except (KeyError, TypeError, ValueError) as error:
        raise FileRefused(f"{folder / PREPARED}: damaged: {error}") from None
    if not is_texts(report):
        raise FileRefused(f"{folder / PREPARED}: damaged: its report is no list of texts")
    tokenizer = load_tokenizer(folder / name, config.target_units, config.normalization)
    verify_files(folder, facts)  # after the version of the tokenizer, which a newer heedful may have written
    stored = StoredImages(folder / "run/data", images)
    if first_dev + len(dev) > len(stored):
        raise FileRefused(f"{folder / PREPARED}: damaged: it lists more images than there are")
    train = EncodedCorpus.read(folder / "run/data", (len(stored), len(tokenizer)))
    if (links := folder / "run/data/links").is_dir():
        train = with_links(train, links, _num_regions(images))
    roots = {part: files.get(part, files["train"]).folder for part in ("dev", "test")}
    return CaptioningData(
        sizes=(*images.sizes, len(tokenizer)),
        facts={"tokenizer": name},
        report=tuple(report),
        num_examples=len(train),
        vocabulary=f"{len(tokenizer):,} {config.target_units}, {_describe(images)}",
        test=_rooted(test, roots["test"]),
        tokenizer=tokenizer,
        images=stored,
        train=train,
        dev=_rooted(dev, roots["dev"]),
        first_dev=first_dev,
    )


def _num_regions(images: ImageConfig) -> int:
    rows, columns = images.grid
    return rows * columns


def _describe(images: ImageConfig) -> str:
    if images.kind == "features":
        return f"{images.num_features:,} features per region"
    rows, columns = images.grid
    return f"{images.width} x {images.height} pixels in {columns} x {rows} regions"


def _rooted(items: EvaluationSet, root: Path) -> EvaluationSet:
    """Items whose sources are paths from the working folder."""
    return EvaluationSet([str(root / source) for source in items.sources], items.references)


def _prepare(
    files: Mapping[str, CaptionFile], config: TextConfig, images: ImageConfig, folder: Path, boxes: Path | None
) -> None:
    """Split the examples, train a tokenizer, and store images, encoded captions and links in the folder.

    Raises:
        DataError: the file has too few captions, an image is unusable, or the boxes are not of these captions.
        UsageError: all captions are too long.
    """
    file = files["train"]
    corpus_filter = CorpusFilter(config.max_characters)
    pairs = [*map(_trimmed, corpus_filter.apply(file))]
    report = corpus_filter.report()
    if len(pairs) < MIN_PAIRS:
        raise DataError(f"{file.path}: {report.summary()}; training needs at least {MIN_PAIRS}: give more rows")
    parts = _divided(files, pairs, config.max_characters)
    has_own_validation = bool(parts["dev"])
    parts["dev"] = parts["dev"] or parts["train"]
    if not parts["train"]:
        raise DataError(f"{file.path}: too few different images: none is left for training; give --dev FILE")
    lines = [pair.target for pair in islice(parts["train"], TOKENIZER_LINES)]
    are_pieces = config.target_units == "pieces"
    size = config.vocabulary_size or (choose_size(len(pairs), count_characters(lines)) if are_pieces else 0)
    train = partial(train_tokenizer, lines, config.target_units, size, config)
    tokenizer, names, checksums = kept_tokenizer(train, config.target_units, config.normalization, folder)
    data = folder / "run/data"
    data.mkdir(parents=True, exist_ok=True)
    parts, (train_images, _, _), left_out = _stored(files, parts, images, data)
    numbers, num_images = {source: number for number, source in enumerate(train_images)}, len(train_images)
    captions = [(pair, [*tokenizer.encode(pair.target), EOS]) for pair in parts["train"]]
    fitting = [(pair, ids) for pair, ids in captions if len(ids) <= config.longest]
    if not fitting:
        raise UsageError(f"text.max_tokens: all captions are longer than {config.longest} tokens; raise it")
    write_encoded(data, (([numbers[pair.source]], ids) for pair, ids in fitting), max(len(tokenizer), num_images))
    boxed = [store_boxes(boxes, file, fitting, tokenizer, images, data / "links")] if boxes else []
    num_long = len(captions) - len(fitting)
    sets = {name: EvaluationSet.of(map(files.get(name, file).placed, parts[name])) for name in ("dev", "test")}
    lines = [
        *(part.pairs.describe() for part in files.values()),
        *file.notes,
        *left_out,
        report.summary(),
        *([f"{counted(num_long, 'caption')} longer than {config.longest} tokens left out"] if num_long else []),
        *boxed,
        *([] if has_own_validation else [on_training("images")]),
        f"{counted(len(train_images), 'image')} for training, {len(sets['dev']):,} for validation, "
        f"{len(sets['test']):,} for testing",
    ]
    dev_folder = files.get("dev", file).folder.resolve()
    facts = {"report": lines, "first_dev": len(train_images), "files": checksums, "dev_folder": str(dev_folder)}
    evaluation = {name: {"sources": one.sources, "references": one.references} for name, one in sets.items()}
    write_facts(folder / PREPARED, PREPARED_FORMAT, {**names, **facts, **evaluation})


def _stored(
    files: Mapping[str, CaptionFile], parts: Mapping[str, list[Pair]], config: ImageConfig, data: Path
) -> tuple[dict[str, list[Pair]], list[dict[str, tuple[Path, str]]], list[str]]:
    """Store the images for training and validation.

    Returns:
        Captions and images of each part, without those of images that cannot be read, and notes about these.

    Raises:
        DataError: more than may be left out cannot be read.
    """
    named = [_images(files.get(part, files["train"]), own) for part, own in parts.items()]
    faults = ImageFaults()
    for source, (path, where) in [*named[2].items()]:  # refused now, and not after the training
        if readable_image(path, config, where, faults) is None:
            del named[2][source]
    are_stored = iter(write_images(data, [*named[0].values(), *named[1].values()], config, faults))
    for own in named[:2]:
        for source in [*own]:
            if not next(are_stored):
                del own[source]
    left_out = faults.notes()
    both = zip(parts.items(), named, strict=True)
    return {part: [pair for pair in pairs if pair.source in own] for (part, pairs), own in both}, named, left_out


def _divided(files: Mapping[str, CaptionFile], pairs: list[Pair], max_characters: int) -> dict[str, list[Pair]]:
    """Captions for training, validation and test: those of files of their own, or split off."""
    split = Split(len(pairs), "dev" in files, "test" in files)
    parts: dict[str, list[Pair]] = {"train": [], "dev": [], "test": []}
    for pair in pairs:
        parts[split(pair)].append(pair)
    own = {name: CorpusFilter(max_characters).apply(files[name]) for name in ("dev", "test") if name in files}
    return parts | {name: [*map(_trimmed, captions)] for name, captions in own.items()}


def _trimmed(pair: Pair) -> Pair:
    """A row without space around its path, by which its image is found."""
    return pair._replace(source=pair.source.strip())


def _images(file: CaptionFile, pairs: Iterable[Pair]) -> dict[str, tuple[Path, str]]:
    """Path of each different image, with the first row that names it."""
    paths: dict[str, tuple[Path, str]] = {}
    for pair in pairs:
        if pair.source not in paths:
            paths[pair.source] = file.image(pair), file.where(pair)
    return paths
