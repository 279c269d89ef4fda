"""Classification: texts with a label each, learned by a text classifier."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.config.base import Tree, merge
from heedful.data.corpus import Pair, PairFile
from heedful.data.corpus_filter import CorpusFilter
from heedful.data.label_check import HINTS
from heedful.data.label_kinds import (
    MOST_CHARACTERS,
    MOST_TOKENS,
    LabelKind,
    decide,
    encode_label,
    label_count_fault,
    list_labels,
    mixture,
    target_rows,
)
from heedful.data.label_split import split_labelled
from heedful.data.labelled import find_labelled
from heedful.data.labelled_texts import LabelledTexts
from heedful.data.prepared_files import is_texts
from heedful.data.prepared_tokenizers import TOKENIZER_LINES
from heedful.data.split import MIN_PAIRS, Split, on_training
from heedful.data.split_positions import Part
from heedful.data.task_check import check_task
from heedful.engines.folder import open_folder
from heedful.engines.label_arrays import Floats
from heedful.engines.labels import run_labels
from heedful.engines.members import members_of
from heedful.engines.ngram_model import SHARE
from heedful.errors import DataError, FileRefused
from heedful.evaluation.label_sets import SELECTED
from heedful.models.text_classifier import TextClassifierConfig
from heedful.predictors.classifier import Classifier
from heedful.predictors.label_predictor import SEPARATOR, TEXT_COLUMNS
from heedful.search.inputs import TokenArrays
from heedful.tasks.advice import label_verdict
from heedful.tasks.experiment import Experiment
from heedful.tasks.interface import DataPaths
from heedful.tasks.label_files import check_labels, kept_labels, store_items
from heedful.tasks.label_ngrams import (
    LabelledRows,
    choose_share,
    choose_shifts,
    fit_label_ngrams,
    linear_log_probs,
    store_share,
    usual_share,
)
from heedful.tasks.label_task import LabelData, LabelledItems, LabelTask, Reader
from heedful.tasks.landing import Course, plan_landing
from heedful.tasks.throughput import Throughput
from heedful.text.counts import counted
from heedful.text.encoding import encode_source
from heedful.text.label_sets import split_labels
from heedful.text.quoting import listed, shortened
from heedful.text.tokenizer import TextConfig, Tokenizer

RATES: Final = {"bag": 1e-2, "words": 6e-3, "gru": 4e-3}
"""Peak learning rate by encoder, of Adam."""
USUAL_RATE: Final = 3e-3
TEXTS_PER_UPDATE: Final = (16, 64)
WANTED_UPDATES: Final = 450
UPDATES_PER_LABEL: Final = 6
MOST_UPDATES: Final = 1_500
"""Number of updates: the least, more for each label, and the most."""
EPOCHS: Final = (3, 14)
WORD_EPOCHS: Final = (3, 30)
"""Epochs of attention over the words of long texts, of which few tell: of 300 texts of 1,600 words with a single one
that tells, 94 % of others are right after 14 epochs and 100 % after 30."""
MOST_EPOCHS: Final = 3
"""Epochs of a training in a limited time, in multiples of the usual ones."""
LONG_CHARACTERS: Final = 600
"""Mean length of texts, in characters, from which on attention is over words, without recurrence."""
HELD_OUT: Final[tuple[tuple[Part, str], ...]] = (("dev", "validation"), ("test", "testing"))
_LOOKED_AT: Final = 1000
"""Number of first texts that the model is chosen by."""


@final
class ClassificationTask(LabelTask[PairFile]):
    """Task of text classification: from texts with labels to a `heedful.predictors.classifier.Classifier`."""

    name = "classification"
    default_preset = "classifier"
    examples = "texts"
    command = "classify"
    kinds = frozenset({"text_classifier", "hierarchical", "self_attentive"})

    def find(self, paths: DataPaths) -> dict[str, PairFile]:
        return {
            name: find_labelled(files, paths.columns, paths.separator, leaves_out_faults=True)
            for name, files in paths.parts.items()
        }

    def warnings(self, paths: DataPaths, experiment: Experiment) -> Iterable[str]:
        files = paths.data, paths.dev, paths.test
        report = check_task(self.name, *files, paths.columns, paths.separator, experiment.text.labels)
        kinds = ("ambiguous", "alike labels", "single rows", "long labels", "unseen labels", "leaked pair")
        kinds += ("mixed types", "encoded data", "other files")
        return [
            str(each).removeprefix(f"{each.level}: ")
            for each in report.findings
            if (each.kind in kinds and each.level == "warning") or each.kind in HINTS
        ]

    def file_defaults(self, files: Mapping[str, PairFile], resolve: Callable[[Tree], Experiment]) -> Tree:
        model = resolve({}).model
        chosen: Tree = {}
        if isinstance(model, TextClassifierConfig) and model.has_ngrams:
            lengths = [len(pair.source) for pair in islice(files["train"], _LOOKED_AT)]
            # Recurrence over long texts takes time, and attention over their words finds what matters, too.
            is_long = sum(lengths) > LONG_CHARACTERS * max(1, len(lengths))
            chosen = {"model": {"encoder": "words" if is_long else "gru"}}
        reads_sentences = getattr(model, "reads_sentences", False)
        text = {
            "normalization": "folded",
            "max_characters": MOST_CHARACTERS,
            "max_tokens": MOST_TOKENS,
            "split_sentences": reads_sentences,
        }
        if files["train"].has_label_sets:
            text["labels"] = "several"
        return {**chosen, "text": text}

    def write_prepared(self, files: Mapping[str, PairFile], experiment: Experiment, folder: Path) -> None:
        file, config = files["train"], experiment.text
        corpus_filter = CorpusFilter(config.max_characters)
        pairs = [pair for pair in corpus_filter.apply(file) if pair.target.strip()]
        report = corpus_filter.report(file.notes)
        if report.num_empty and report.num_empty == report.num_read:
            raise DataError(f"{file.paths[0]}: each of {report.num_read:,} rows lacks its text or its label; give both")
        if len(pairs) < MIN_PAIRS:
            raise DataError(f"{file.paths[0]}: {report.summary()}; training needs at least {MIN_PAIRS}: give more rows")
        kind = config.labels
        parts = _parts(pairs, files, kind)
        has_own_validation = bool(parts["dev"])
        parts["dev"] = parts["dev"] or parts["train"]
        labels = kept_labels(folder) or _labels(file, parts["train"], kind)
        check_labels(_all_names(kind, parts["train"]), labels, str(file.paths[0]))
        described = [
            *(part.describe() for part in files.values()),
            *report.notes,
            report.summary(),
            *([] if has_own_validation else [on_training("texts")]),
            f"{counted(len(parts['train']), 'text')} for training, {len(parts['dev']):,} for validation, "
            f"{len(parts['test']):,} for testing; {_about(kind, labels)}",
            *_unseen(kind, parts, labels),
        ]
        held_out = {name: LabelledTexts.of(parts[name]) for name in ("dev", "test")}
        sets = {name: {"texts": items.texts, "labels": items.labels} for name, items in held_out.items()}
        lines = [pair.source for pair in islice(parts["train"], TOKENIZER_LINES)]
        encoded = partial(_encoded, parts["train"], labels, config, described)
        facts: dict[str, Any] = {"report": described, TEXT_COLUMNS: file.source_names, **sets}
        facts |= {SEPARATOR: file.separator} if file.separator else {}
        checksums: Mapping[str, str] = {}
        if has_ngrams(experiment):
            dev = parts["dev"] if has_own_validation else []
            sides = (_rows(kind, LabelledTexts.of(part), labels) for part in (parts["train"], dev))
            fitted = fit_label_ngrams(folder, *sides, is_dev_used="dev" not in files, kind=kind)
            facts |= {"ngrams": fitted.name, "baselines": fitted.baselines}
            checksums = fitted.checksums
        store_items(folder, self.prepared_path, lines, config, len(pairs), labels, encoded, facts, checksums)

    def items(self, stored: Any) -> LabelledTexts:
        items = LabelledTexts(**stored)
        if not (is_texts(items.texts) and is_texts(items.labels)):
            raise FileRefused("its texts are no lists of texts")
        return items

    def data_defaults(self, data: LabelData, experiment: Experiment) -> Tree:
        return self._planned(data, experiment)

    def reasons(self, data: LabelData, experiment: Experiment) -> Mapping[str, str]:
        if not has_ngrams(experiment):
            return {}
        is_long = getattr(experiment.model, "encoder", "") == "words"
        over = "words, because texts are long" if is_long else "states of a recurrent encoder"
        others = "--preset hierarchical reads sentences" if is_long else "other models: heedful list presets"
        return {"model": f"chosen: attention over {over}, beside a linear model of n-grams; {others}"}

    def _planned(self, data: LabelData, experiment: Experiment, pace: Throughput | None = None) -> Tree:
        training = experiment.training
        num_tokens = int(data.train.source.lengths.sum())
        num_updates = min(MOST_UPDATES, WANTED_UPDATES + UPDATES_PER_LABEL * len(data.labels))
        encoder = getattr(experiment.model, "encoder", experiment.model.kind)
        course = Course(TEXTS_PER_UPDATE, num_updates, WORD_EPOCHS if encoder == "words" else EPOCHS)
        multiple = MOST_EPOCHS if training.max_minutes else 1
        plan = plan_landing(course, len(data.train), num_tokens, training.max_steps, multiple=multiple, pace=pace)
        is_limited = bool(training.max_steps or training.max_epochs or training.max_target_tokens)
        selected = SELECTED[experiment.text.labels]
        return {"training": {"select_by": selected, **plan.settings(RATES.get(encoder, USUAL_RATE), is_limited)}}

    def time_limited_defaults(
        self, data: LabelData, experiment: Experiment, pace: Throughput, is_named: bool = False
    ) -> Tree:
        planned = self._planned(data, experiment, pace)
        if not pace.seconds:
            return planned
        training = experiment.training
        batch_tokens = planned["training"]["batch_tokens"] if pace.step_seconds else training.batch_tokens
        texts_per_step = len(data.train) * batch_tokens / int(data.train.source.lengths.sum())
        tenth = max(1, int(pace.num_units / (texts_per_step + pace.balanced_units)) // 10)
        limits = {
            "validate_every": min(training.validate_every, tenth),
            "validation_items": pace.validation_items,
            "optimizer": {"schedule": {"warmup_steps": min(training.optimizer.schedule.warmup_steps, tenth)}},
        }
        return merge(planned, {"training": limits})

    def reader(self, items: Any, data: LabelData, experiment: Experiment) -> Reader:
        if data.ngrams is None:
            return super().reader(items, data, experiment)
        kind = experiment.text.labels
        linear = linear_log_probs(kind, data.ngrams, items.texts)
        gold = _rows(kind, items, data.labels).targets

        def read(log_probs: Sequence[Floats]) -> list[str]:
            own = np.stack(log_probs)
            share = _share(kind, data, own, linear, gold)
            return decide(kind, mixture(kind, own, linear, share), data.labels)

        return read

    def judgement(self, data: LabelData, best: float, short: str = "") -> str:
        if data.baselines is None:
            return ""
        return label_verdict(best, *data.baselines, len(data.train), len(data.labels), SELECTED[data.kind], short)

    def finish(self, folder: Path, data: LabelData, experiment: Experiment) -> None:
        opened = open_folder(folder)
        if data.ngrams is None or SHARE in opened.facts:
            return
        kind, dev = experiment.text.labels, data.dev
        encoded = TokenArrays(self.encode(data.dev, data.tokenizer, experiment))
        log_probs, *_ = run_labels(Classifier(opened, "cpu", "torch", members_of(opened)).label_run(), encoded)
        linear, own = linear_log_probs(kind, data.ngrams, dev.texts), np.stack(log_probs)
        share = _share(kind, data, own, linear, _rows(kind, dev, data.labels).targets)
        shifts = None
        if kind == "one" and data.baselines is not None:
            ids = [int(data.train.target[index][0]) for index in range(len(data.train))]
            counts = np.bincount(ids, minlength=len(data.labels))
            mixed = mixture(kind, own, linear, share)
            shifts = choose_shifts(mixed, dev.labels, data.labels, counts.astype(np.float32))
        store_share(opened, share, shifts)

    def encode(self, items: Any, tokenizer: Tokenizer, experiment: Experiment) -> list[NDArray[np.int64]]:
        return [encode_source(tokenizer, text, experiment.text)[0] for text in items.texts]


def _parts(pairs: list[Pair], files: Mapping[str, PairFile], kind: LabelKind) -> dict[Part, list[Pair]]:
    """Texts for training, validation and testing; those for validation may be none.

    Raises:
        DataError: a file for validation or testing has no text with a label.
    """
    split = Split(len(pairs), "dev" in files, "test" in files)
    parts = split_labelled(pairs, split.dev_share, split.test_share, partial(_names, kind))
    for name, _ in HELD_OUT:
        if name in files:
            parts[name] = [pair for pair in files[name] if pair.source.strip() and pair.target.strip()]
            if not parts[name]:
                raise DataError(f"{files[name].paths[0]}: no row has a text and a label")
    return parts


def has_ngrams(experiment: Experiment) -> bool:
    """Tell whether a linear model of n-grams is mixed with a classifier.

    Returns:
        Whether it is so; custom models have none.
    """
    return bool(getattr(experiment.model, "has_ngrams", False))


def _share(kind: LabelKind, data: LabelData, log_probs: Floats, linear: Floats, gold: Floats) -> float:
    if data.baselines is None:  # without validation texts
        return usual_share(data.num_examples, len(data.labels))
    return choose_share(kind, log_probs, linear, gold)


def _rows(kind: LabelKind, items: LabelledItems, labels: Sequence[str]) -> LabelledRows:
    """Texts with encoded labels; that of an unknown label is 0 everywhere."""
    numbers = {label: number for number, label in enumerate(labels)}
    encoded = [encode_label(kind, label, numbers) for label in items.labels]
    known = [index for index, ids in enumerate(encoded) if ids]
    rows = np.zeros((len(items), len(labels)), dtype=np.float32)
    if known:
        ids = np.array([encoded[index] for index in known], dtype=np.int64)
        rows[known] = target_rows(kind, ids if ids.shape[1] > 1 else ids[:, 0], len(labels))
    return LabelledRows(items.texts, rows, labels, items.labels)


def _names(kind: LabelKind, value: str) -> Sequence[str]:
    """Labels of a text; none where they are numbers, all of which may occur."""
    return {"number": (), "several": split_labels(value)}.get(kind, (value,))


def _all_names(kind: LabelKind, pairs: Iterable[Pair]) -> set[str]:
    """Distinct labels of texts."""
    values = {pair.target.strip() for pair in pairs}
    return {label for value in values for label in _names(kind, value)}


def _about(kind: LabelKind, labels: Sequence[str]) -> str:
    if kind == "number":
        return f"numbers from {labels[0]} to {labels[-1]}"
    noun = {"one": "label", "several": "label, any number of them a text", "ordered": "ordered label"}[kind]
    number = counted(len(labels), noun.partition(",")[0])
    return f"{number}{noun.removeprefix(noun.partition(',')[0])}: {listed(labels)}"


def _unseen(kind: LabelKind, parts: Mapping[Part, list[Pair]], labels: list[str]) -> list[str]:
    """Lines about labels of held-out texts that no training text has, and labels that no validation text has."""
    lines: list[str] = []
    known = {*labels}
    for name, purpose in HELD_OUT:
        others = [pair for pair in parts[name] if not _all_names(kind, [pair]) <= known]
        if others:
            unseen = listed(sorted(_all_names(kind, others) - known), 5)
            lines.append(f"{counted(len(others), 'text')} for {purpose} with labels unseen in training: {unseen}")
    lacking = sorted(_all_names(kind, parts["train"]) - _all_names(kind, parts["dev"]))
    if lacking:
        lines.append(
            f"no text for validation has one of these labels, so that it says nothing of them: {listed(lacking, 5)}"
        )
    return lines


def _labels(file: PairFile, pairs: list[Pair], kind: LabelKind) -> list[str]:
    """Labels of training texts.

    Raises:
        DataError: there are too few or too many.
    """
    try:
        labels = list_labels(kind, (pair.target.strip() for pair in pairs))
    except DataError as error:
        raise DataError(f"{file.paths[0]}: {error}") from None
    if len(labels) == 1:
        only = "the label" if kind != "number" else "the number"
        raise DataError(
            f"{file.paths[0]}: every row for training has {only} {shortened(labels[0])}; give rows of another too"
        )
    if fault := label_count_fault(len(labels), len(pairs), file.columns[1]):
        raise DataError(f"{file.paths[0]}: {fault}")
    return labels


def _encoded(
    pairs: list[Pair], labels: list[str], config: TextConfig, report: list[str], tokenizer: Tokenizer
) -> Iterator[tuple[list[int], list[int]]]:
    """Token ids and labels; texts that are cut are reported."""
    numbers, num_cut = {label: number for number, label in enumerate(labels)}, 0
    for pair in pairs:
        ids, was_cut = encode_source(tokenizer, pair.source, config)
        num_cut += was_cut
        yield ids.tolist(), encode_label(config.labels, pair.target.strip(), numbers)
    if num_cut:
        report.append(
            f"{counted(num_cut, 'text')} for training cut after text.max_tokens = {config.max_tokens:,} tokens"
            "; n-grams are those of whole texts"
        )
