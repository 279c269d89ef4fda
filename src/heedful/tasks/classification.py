"""Classification: texts with a label each, learned by a text classifier."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.config.base import Tree
from heedful.data.corpus import Pair, PairFile
from heedful.data.corpus_filter import CorpusFilter
from heedful.data.labelled import LabelledTexts, find_labelled
from heedful.data.prepared_files import is_texts
from heedful.data.prepared_tokenizers import TOKENIZER_LINES
from heedful.data.split import MIN_PAIRS, Split
from heedful.data.task_check import check_task
from heedful.engines.folder import open_folder
from heedful.engines.label_arrays import Floats
from heedful.engines.labels import run_labels
from heedful.engines.ngram_model import SHARE, mixture
from heedful.engines.scored_pairs import encode_source
from heedful.errors import DataError, FileRefused
from heedful.models.label_model import label_run
from heedful.models.store import load_model
from heedful.models.text_classifier import TextClassifierConfig
from heedful.predictors.label_predictor import TEXT_COLUMNS
from heedful.search.inputs import TokenArrays
from heedful.tasks.advice import label_verdict
from heedful.tasks.experiment import Experiment
from heedful.tasks.interface import DataPaths
from heedful.tasks.label_files import MOST_LABELS, check_labels, kept_labels, store_items
from heedful.tasks.label_ngrams import choose_share, fit_label_ngrams, linear_log_probs, store_share, usual_share
from heedful.tasks.label_plan import plan_labels
from heedful.tasks.label_task import LabelData, LabelTask, Reader
from heedful.text.counts import counted
from heedful.text.tokenizer import TextConfig, Tokenizer

RATES: Final = {"bag": 1e-2, "words": 6e-3, "gru": 4e-3}
"""Peak learning rate by encoder, of Adam."""
USUAL_RATE: Final = 3e-3
LONG_CHARACTERS: Final = 600
"""Mean length of texts, in characters, from which on attention is over words, without recurrence."""
MOST_CHARACTERS: Final = 10_000_000
MOST_TOKENS: Final = 20_000
"""Largest length of a text that is attended to; n-grams are those of the whole text."""
_LOOKED_AT: Final = 1000
"""Number of first texts that the model is chosen by."""


@final
class ClassificationTask(LabelTask[PairFile]):
    """Task of text classification: from texts with labels to a `heedful.predictors.classifier.Classifier`."""

    name = "classification"
    default_preset = "classifier"
    command = "classify"
    kinds = frozenset({"text_classifier", "hierarchical", "self_attentive"})

    def find(self, paths: DataPaths) -> dict[str, PairFile]:
        return {
            name: find_labelled(files, paths.columns, leaves_out_faults=True) for name, files in paths.parts.items()
        }

    def warnings(self, paths: DataPaths, experiment: Experiment) -> Iterable[str]:
        report = check_task(self.name, paths.data, paths.dev, paths.test, paths.columns)
        kinds = ("ambiguous", "alike labels", "single rows", "unseen labels", "leaked pair")
        return [
            str(each).removeprefix("warning: ")
            for each in report.findings
            if each.kind in kinds and each.level == "warning"
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
        return {**chosen, "text": text}

    def write_prepared(self, files: Mapping[str, PairFile], experiment: Experiment, folder: Path) -> None:
        file, config = files["train"], experiment.text
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
                parts[name] = [pair for pair in files[name] if pair.source.strip() and pair.target.strip()]
                if not parts[name]:
                    raise DataError(f"{files[name].paths[0]}: no row has a text and a label")
        has_own_validation = bool(parts["dev"])
        parts["dev"] = parts["dev"] or parts["train"]
        labels = kept_labels(folder) or _labels(file, parts["train"])
        check_labels((pair.target.strip() for pair in parts["train"]), labels, str(file.paths[0]))
        described = [
            *(part.describe() for part in files.values()),
            *report.notes,
            report.summary(),
            *([] if has_own_validation else ["validation is on the training texts and says nothing about new ones"]),
            f"{counted(len(parts['train']), 'text')} for training, {len(parts['dev']):,} for validation, "
            f"{len(parts['test']):,} for testing; {counted(len(labels), 'label')}: {', '.join(labels[:10])}",
            *_unseen(parts, labels),
        ]
        sets = {name: asdict(LabelledTexts.of(parts[name])) for name in ("dev", "test")}
        lines = [pair.source for pair in islice(parts["train"], TOKENIZER_LINES)]
        encoded = partial(_encoded, parts["train"], labels, config, described)
        facts: dict[str, Any] = {"report": described, TEXT_COLUMNS: file.source_names, **sets}
        checksums: Mapping[str, str] = {}
        if has_ngrams(experiment):
            dev = parts["dev"] if has_own_validation else []
            sides = (_numbered(part, labels) for part in (parts["train"], dev))
            fitted = fit_label_ngrams(folder, *sides, is_dev_used="dev" not in files, num_labels=len(labels))
            facts |= {"ngrams": fitted.name, "baselines": fitted.baselines}
            checksums = fitted.checksums
        store_items(folder, self.prepared_path, lines, config, len(pairs), labels, encoded, facts, checksums)

    def items(self, stored: Any) -> LabelledTexts:
        items = LabelledTexts(**stored)
        if not (is_texts(items.texts) and is_texts(items.labels)):
            raise FileRefused("its texts are no lists of texts")
        return items

    def data_defaults(self, data: LabelData, experiment: Experiment) -> Tree:
        training = experiment.training
        num_tokens = int(data.train.source.lengths.sum())
        plan = plan_labels(len(data.train), num_tokens, len(data.labels), training.max_minutes > 0, training.max_steps)
        encoder = getattr(experiment.model, "encoder", experiment.model.kind)
        is_limited = bool(training.max_steps or training.max_epochs or training.max_target_tokens)
        return {"training": {"select_by": "accuracy", **plan.settings(RATES.get(encoder, USUAL_RATE), is_limited)}}

    def reader(self, items: Any, data: LabelData, experiment: Experiment) -> Reader:
        if data.ngrams is None:
            return super().reader(items, data, experiment)
        linear = linear_log_probs(data.ngrams, items.texts)
        gold = _numbers(items.labels, data.labels)

        def read(log_probs: Sequence[Floats]) -> list[str]:
            own = np.stack(log_probs)
            share = _share(data, own, linear, gold)
            return [data.labels[index] for index in mixture(own, linear, share).argmax(axis=1)]

        return read

    def judgement(self, data: LabelData, best: float) -> str:
        if data.baselines is None:
            return ""
        return label_verdict(best, *data.baselines, len(data.train), len(data.labels))

    def finish(self, folder: Path, data: LabelData, experiment: Experiment) -> None:
        opened = open_folder(folder)
        if data.ngrams is None or SHARE in opened.facts:
            return
        texts = data.dev.texts
        encoded = TokenArrays(self.encode(data.dev, data.tokenizer, experiment))
        model = self._classifier(load_model(opened, data.sizes))
        log_probs, *_ = run_labels(label_run(model), encoded)
        linear = linear_log_probs(data.ngrams, texts)
        store_share(opened, _share(data, np.stack(log_probs), linear, _numbers(data.dev.labels, data.labels)))

    def encode(self, items: Any, tokenizer: Tokenizer, experiment: Experiment) -> list[NDArray[np.int64]]:
        return [encode_source(tokenizer, text, experiment.text)[0] for text in items.texts]


def has_ngrams(experiment: Experiment) -> bool:
    """Tell whether a linear model of n-grams is mixed with a classifier.

    Returns:
        Whether it is so; custom models have none.
    """
    return bool(getattr(experiment.model, "has_ngrams", False))


def _share(data: LabelData, log_probs: Floats, linear: Floats, gold: NDArray[np.int64]) -> float:
    if data.baselines is None:  # without validation texts
        return usual_share(data.num_examples, len(data.labels))
    return choose_share(log_probs, linear, gold)


def _numbers(names: Sequence[str], labels: Sequence[str]) -> NDArray[np.int64]:
    """[item] ids of labels; -1 = unknown."""
    known = {label: number for number, label in enumerate(labels)}
    return np.array([known.get(name, -1) for name in names], dtype=np.int64)


def _numbered(pairs: Sequence[Pair], labels: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Texts, and the id of the label of each."""
    return [pair.source for pair in pairs], _numbers([pair.target.strip() for pair in pairs], labels)


def _unseen(parts: Mapping[str, list[Pair]], labels: list[str]) -> list[str]:
    """Lines about held-out texts whose labels no training text has, so that none of them can be right."""
    lines: list[str] = []
    for name, purpose in (("dev", "validation"), ("test", "testing")):
        others = [label for pair in parts[name] if (label := pair.target.strip()) and label not in labels]
        if others:
            listed = ", ".join(sorted({*others})[:5])
            lines.append(f"{counted(len(others), 'text')} for {purpose} with labels unseen in training: {listed}")
    return lines


def _labels(file: PairFile, pairs: list[Pair]) -> list[str]:
    """Labels of training texts.

    Raises:
        DataError: there are too few or too many.
    """
    labels = sorted({pair.target.strip() for pair in pairs})
    if len(labels) == 1:
        raise DataError(
            f"{file.paths[0]}: all {counted(len(pairs), 'row')} have the label {labels[0]!r}; give rows of another too"
        )
    if not 2 <= len(labels) <= min(MOST_LABELS, len(pairs) // 2):
        raise DataError(
            f"{file.paths[0]}: column {file.columns[1]} has {counted(len(labels), 'different label')} in "
            f"{counted(len(pairs), 'row')}; a label needs two rows on average, and there may be {MOST_LABELS:,} of "
            "them; name the columns of text and label with --columns TEXT,LABEL"
        )
    return labels


def _encoded(
    pairs: list[Pair], labels: list[str], config: TextConfig, report: list[str], tokenizer: Tokenizer
) -> Iterator[tuple[list[int], list[int]]]:
    """Token ids and labels; texts that are cut are reported."""
    numbers, num_cut = {label: number for number, label in enumerate(labels)}, 0
    for pair in pairs:
        ids, was_cut = encode_source(tokenizer, pair.source, config)
        num_cut += was_cut
        yield ids.tolist(), [numbers[pair.target.strip()]]
    if num_cut:
        report.append(
            f"{counted(num_cut, 'text')} for training cut after text.max_tokens = {config.max_tokens:,} tokens"
            "; n-grams are those of whole texts"
        )
