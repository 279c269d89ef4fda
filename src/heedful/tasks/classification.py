"""Classification: texts with a label each, learned by a text classifier."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import ClassVar, Final, final

import numpy as np
from torch import nn

from heedful.config import Tree, merge
from heedful.data.corpus import Pair, PairFile, find_pairs
from heedful.data.corpus_filter import CorpusFilter
from heedful.data.encoded import ENCODED, EncodedCorpus, EncodedSide, write_encoded
from heedful.data.labelled import LabelledTexts, LabelSampler, make_label_batch
from heedful.data.prepare import TOKENIZER_LINES
from heedful.data.prepared_files import is_texts, repaired, store_tokenizers, verify_files
from heedful.data.split import MIN_PAIRS, Split
from heedful.errors import DataError, FileRefused
from heedful.evaluation.labels import score_labels
from heedful.experiment import Experiment
from heedful.export.labels import ENGINE, export_classifier
from heedful.files import digest, written_whole
from heedful.formats import PREPARED_FORMAT
from heedful.models.label_model import LabelModel, label_run
from heedful.predictors.classifier import Classifier
from heedful.predictors.interface import Predictor, spaced
from heedful.records import read_facts, write_facts
from heedful.runtime.exported import Exported
from heedful.runtime.labels import run_labels
from heedful.runtime.scored_pairs import encode_source
from heedful.search.inputs import TokenArrays
from heedful.tasks.interface import Prepared, Recipe, Task
from heedful.tasks.pace import Pace
from heedful.text.counts import counted
from heedful.text.tokenizer import TextConfig, Tokenizer, choose_size, train_tokenizer
from heedful.text.tokenizer_files import load_tokenizer
from heedful.training.label_step import LabelStep
from heedful.training.likelihood import log_likelihood
from heedful.training.progress import Validation

LABELS: Final = "labels.json"
PREPARED: Final = "run/data/classification.json"
MOST_LABELS: Final = 1000
BATCH_TEXTS: Final = 128
"""Number of texts in a batch of the validation loss."""


@final
@dataclass(frozen=True)
class ClassificationData(Prepared):
    """Texts with labels, ready to train on."""

    tokenizer: Tokenizer
    labels: tuple[str, ...]
    """Labels in alphabetical order; the id of a label is its index."""
    train: EncodedCorpus
    dev: LabelledTexts


@final
class Classification(Task[PairFile, ClassificationData]):
    """Task of text classification: from texts with labels to a `heedful.predictors.classifier.Classifier`."""

    name = "classification"
    default_preset = "bag"
    command = "classify"
    kinds = frozenset({"text_classifier", "hierarchical", "self_attentive"})
    model = LabelModel
    higher_is_better: ClassVar = {"loss": False, "accuracy": True, "macro_f1": True}

    def find(self, recipe: Recipe) -> dict[str, PairFile]:
        parts = {"train": recipe.data, "dev": recipe.dev, "test": recipe.test}
        return {name: find_pairs(paths, recipe.columns) for name, paths in parts.items() if paths}

    def suited(self, files: Mapping[str, PairFile], resolve: Callable[[Tree], Experiment]) -> Tree:
        # Long texts are truncated, while long pairs are left out; and documents are longer than sentences.
        is_hierarchical = resolve({}).model.kind == "hierarchical"
        most = 2_000 if is_hierarchical else 400
        return {"text": {"max_characters": 100_000, "max_tokens": most, "split_sentences": is_hierarchical}}

    def prepare(
        self, files: Mapping[str, PairFile], experiment: Experiment, folder: Path, recipe: Recipe
    ) -> ClassificationData:
        text = experiment.text

        def read_or_make() -> ClassificationData:
            if not ((folder / PREPARED).is_file() and (folder / "run/data" / ENCODED).is_file()):
                _prepare(files, text, folder)
            return _read(folder, text)

        data, damage = repaired(read_or_make, folder)
        return replace(data, report=(*data.report, damage)) if damage else data

    def adapted(self, data: ClassificationData, experiment: Experiment) -> Tree:
        num_tokens = int(data.train.source.lengths.sum())
        batch_tokens = max(512, min(4096, num_tokens // 100 // 64 * 64))
        steps_per_epoch = max(1, num_tokens // batch_tokens)
        return {
            "training": {
                "batch_tokens": batch_tokens,
                "validate_every": max(20, min(1000, steps_per_epoch)),
                "select_by": "accuracy",
                "optimizer": {"mean_over": "pairs", "schedule": {"warmup_steps": max(20, min(1000, steps_per_epoch))}},
            }
        }

    @property
    def poor_scores(self) -> Mapping[str, float]:
        return {"accuracy": 70.0, "macro_f1": 60.0}

    def planned(self, data: ClassificationData, experiment: Experiment, pace: Pace) -> Tree:
        training = experiment.training
        texts_per_step = len(data.train) * training.batch_tokens / int(data.train.source.lengths.sum())
        tenth = max(1, int(pace.num_units / texts_per_step) // 10)
        limits = {
            "validate_every": min(training.validate_every, tenth),
            "validation_items": pace.validation_items,
            "optimizer": {"schedule": {"warmup_steps": min(training.optimizer.schedule.warmup_steps, tenth)}},
        }
        return merge(self.adapted(data, experiment), {"training": limits})

    def sampler(self, experiment: Experiment, folder: Path, data: ClassificationData | None) -> LabelSampler:
        corpus = EncodedCorpus.read(folder / "run/data") if data is None else data.train
        return LabelSampler(corpus, experiment.training.batch_tokens, experiment.training.seed)

    def step(self, experiment: Experiment, model: nn.Module) -> LabelStep:
        return LabelStep(model, experiment.training.label_smoothing)

    def validator(self, data: ClassificationData, experiment: Experiment) -> Callable[[nn.Module], Validation]:
        number = experiment.training.validation_items
        dev = spaced(data.dev, number) if number else data.dev
        encoded = [encode_source(data.tokenizer, text, experiment.text)[0] for text in dev.texts]
        numbers = {label: number for number, label in enumerate(data.labels)}
        known = [index for index, label in enumerate(dev.labels) if label in numbers]
        corpus = EncodedCorpus(
            EncodedSide.of([encoded[index].tolist() for index in known]),
            EncodedSide.of([[numbers[dev.labels[index]]] for index in known]),
        )
        texts = TokenArrays(encoded)

        def validate(model: nn.Module) -> Validation:
            if not isinstance(model, LabelModel):
                raise TypeError(f"classification is validated with a classifier, got {type(model).__name__}")
            log_probs, *_ = run_labels(label_run(model), texts)
            said = [data.labels[number] for number in log_probs.argmax(axis=1)]
            report = score_labels(said, dev.labels)
            starts = range(0, len(known), BATCH_TEXTS)
            batches = (
                make_label_batch(corpus, np.arange(start, min(start + BATCH_TEXTS, len(known)))) for start in starts
            )
            loss = log_likelihood(LabelStep(model, 0.0), batches).loss
            samples = tuple(zip(dev.texts[:5], dev.labels[:5], said[:5], strict=True))
            scores = {"loss": loss, "accuracy": report.accuracy, "macro_f1": report.macro_f1}
            return Validation(scores, samples[0], samples)

        return validate

    def exports(self, predictor: Predictor) -> Mapping[str, Callable[[], Exported]]:
        if not isinstance(predictor, Classifier):
            return {}
        num_tokens, most = len(predictor.tokenizer), predictor.text.max_tokens
        return {ENGINE: partial(export_classifier, predictor.model(), predictor.folder, num_tokens, most)}


def _read(folder: Path, config: TextConfig) -> ClassificationData:
    """Read prepared data.

    Raises:
        FileRefused: a file is missing or damaged.
    """
    facts = read_facts(folder / PREPARED, PREPARED_FORMAT, "prepare the data again")
    try:
        labels, report, name = facts["labels"], facts["report"], str(facts["tokenizer"])
        dev, test = (LabelledTexts(**facts[part]) for part in ("dev", "test"))
        lists = (labels, report, dev.texts, dev.labels, test.texts, test.labels)
    except (KeyError, TypeError) as error:
        raise FileRefused(f"{folder / PREPARED}: damaged: {error}") from None
    if not all(map(is_texts, lists)):
        raise FileRefused(f"{folder / PREPARED}: damaged: its texts are no lists of texts")
    tokenizer = load_tokenizer(folder / name, config.source_units, config.normalization)
    verify_files(folder, facts)  # after the version of the tokenizer, which a newer heedful may have written
    train = EncodedCorpus.read(folder / "run/data", (len(tokenizer), len(labels)))
    return ClassificationData(
        sizes=(len(tokenizer), len(labels)),
        facts={"tokenizer": name, "labels": LABELS},
        report=tuple(report),
        num_examples=len(train),
        vocabulary=f"{len(tokenizer):,} {config.source_units}, {len(labels):,} labels",
        test=test,
        tokenizer=tokenizer,
        labels=tuple(labels),
        train=train,
        dev=dev,
    )


def _prepare(files: Mapping[str, PairFile], config: TextConfig, folder: Path) -> None:
    """Split the texts, train a tokenizer and write the encoded texts into the folder.

    Raises:
        DataError: the file has too few texts, or too few or too many different labels.
    """
    file = files["train"]
    corpus_filter = CorpusFilter(config.max_characters)
    pairs = [pair for pair in corpus_filter.apply(file) if pair.target.strip()]
    report = corpus_filter.report(file.notes)
    if len(pairs) < MIN_PAIRS:
        raise DataError(f"{file.paths[0]}: {report.summary()}; training needs at least {MIN_PAIRS}: give more rows")
    split = Split(len(pairs), "dev" in files, "test" in files)
    parts: dict[str, list[Pair]] = {"train": [], "dev": [], "test": []}
    for pair in pairs:
        parts[split(pair)].append(pair)
    for name in ("dev", "test"):
        if name in files:
            parts[name] = [*files[name]]
    parts["dev"] = parts["dev"] or parts["train"]
    labels = sorted({pair.target.strip() for pair in parts["train"]})
    if not 2 <= len(labels) <= min(MOST_LABELS, len(parts["train"]) // 2):
        raise DataError(
            f"{file.paths[0]}: column {file.columns[1]} has {len(labels):,} different labels in "
            f"{counted(len(parts['train']), 'row')}; name the columns of text and label with --columns TEXT,LABEL"
        )
    size = config.vocabulary_size or (choose_size(len(pairs)) if config.source_units == "pieces" else 0)
    lines = [pair.source for pair in islice(parts["train"], TOKENIZER_LINES)]
    tokenizer = train_tokenizer(lines, config.source_units, size, config)
    names, checksums = store_tokenizers({"tokenizer": (tokenizer, "tokenizer")}, folder)
    data = folder / "run/data"
    data.mkdir(parents=True, exist_ok=True)
    write_encoded(data, _encoded(parts["train"], labels, tokenizer, config), max(len(tokenizer), len(labels)))
    with written_whole(folder / LABELS, is_internal=True) as stream:
        json.dump(labels, stream, ensure_ascii=False, indent=1)
    lines = [
        *(part.describe() for part in files.values()),
        *report.notes,
        report.summary(),
        f"{counted(len(parts['train']), 'text')} for training, {len(parts['dev']):,} for validation, "
        f"{len(parts['test']):,} for testing; {counted(len(labels), 'label')}: {', '.join(labels[:10])}",
    ]
    sets = {name: asdict(LabelledTexts.of(parts[name])) for name in ("dev", "test")}
    facts = {"labels": labels, "report": lines, **sets, "files": checksums | {LABELS: digest(folder / LABELS)}}
    write_facts(folder / PREPARED, PREPARED_FORMAT, {**names, **facts})


def _encoded(
    pairs: list[Pair], labels: list[str], tokenizer: Tokenizer, config: TextConfig
) -> Iterator[tuple[list[int], list[int]]]:
    numbers = {label: number for number, label in enumerate(labels)}
    for pair in pairs:
        yield encode_source(tokenizer, pair.source, config)[0].tolist(), [numbers[pair.target.strip()]]
