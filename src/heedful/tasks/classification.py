"""Classification: texts with a label each, learned by a text classifier."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from heedful.config.base import Tree
from heedful.data.corpus import Pair, PairFile
from heedful.data.corpus_filter import CorpusFilter
from heedful.data.labelled import LabelledTexts, find_labelled
from heedful.data.prepared_files import is_texts
from heedful.data.prepared_tokenizers import TOKENIZER_LINES
from heedful.data.split import MIN_PAIRS, Split
from heedful.engines.scored_pairs import encode_source
from heedful.errors import DataError, FileRefused
from heedful.tasks.experiment import Experiment
from heedful.tasks.interface import DataPaths
from heedful.tasks.label_files import MOST_LABELS, check_labels, kept_labels, store_items
from heedful.tasks.label_task import LabelTask
from heedful.text.counts import counted
from heedful.text.tokenizer import TextConfig, Tokenizer


@final
class Classification(LabelTask[PairFile]):
    """Task of text classification: from texts with labels to a `heedful.predictors.classifier.Classifier`."""

    name = "classification"
    default_preset = "bag"
    command = "classify"
    kinds = frozenset({"text_classifier", "hierarchical", "self_attentive"})

    def find(self, paths: DataPaths) -> dict[str, PairFile]:
        return {name: find_labelled(files, paths.columns) for name, files in paths.parts.items()}

    def suited(self, files: Mapping[str, PairFile], resolve: Callable[[Tree], Experiment]) -> Tree:
        # Long texts are truncated, while long pairs are left out; and documents are longer than sentences.
        reads_sentences = getattr(resolve({}).model, "reads_sentences", False)
        most = 2_000 if reads_sentences else 400
        return {"text": {"max_characters": 100_000, "max_tokens": most, "split_sentences": reads_sentences}}

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
        described = (
            *(part.describe() for part in files.values()),
            *report.notes,
            report.summary(),
            *([] if has_own_validation else ["validation is on the training texts and says nothing about new ones"]),
            f"{counted(len(parts['train']), 'text')} for training, {len(parts['dev']):,} for validation, "
            f"{len(parts['test']):,} for testing; {counted(len(labels), 'label')}: {', '.join(labels[:10])}",
            *_unseen(parts, labels),
        )
        sets = {name: asdict(LabelledTexts.of(parts[name])) for name in ("dev", "test")}
        lines = [pair.source for pair in islice(parts["train"], TOKENIZER_LINES)]
        encoded = partial(_encoded, parts["train"], labels, config)
        facts = {"report": described, **sets}
        store_items(folder, self.prepared_path, lines, config, len(pairs), labels, encoded, facts)

    def items(self, stored: Any) -> LabelledTexts:
        items = LabelledTexts(**stored)
        if not (is_texts(items.texts) and is_texts(items.labels)):
            raise FileRefused("its texts are no lists of texts")
        return items

    def encode(self, items: Any, tokenizer: Tokenizer, experiment: Experiment) -> list[NDArray[np.int64]]:
        return [encode_source(tokenizer, text, experiment.text)[0] for text in items.texts]


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
    pairs: list[Pair], labels: list[str], config: TextConfig, tokenizer: Tokenizer
) -> Iterator[tuple[list[int], list[int]]]:
    numbers = {label: number for number, label in enumerate(labels)}
    for pair in pairs:
        yield encode_source(tokenizer, pair.source, config)[0].tolist(), [numbers[pair.target.strip()]]
