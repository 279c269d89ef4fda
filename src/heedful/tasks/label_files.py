"""Stored labels and items of a label task: those that a training goes on from, and those that it writes."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from heedful.data.encoded import write_encoded
from heedful.data.label_kinds import PARTS
from heedful.data.prepared_files import TOKENIZERS, kept_tokenizer, read_prepared
from heedful.data.prepared_tokenizers import count_characters
from heedful.errors import DataError
from heedful.files.atomic_write import atomic_write, digest
from heedful.files.formats import PREPARED_FORMAT
from heedful.files.records import write_facts
from heedful.predictors.label_predictor import read_labels
from heedful.text.counts import counted
from heedful.text.tokenizer import TextConfig, Tokenizer
from heedful.text.tokenizer_training import choose_size, train_tokenizer

LABELS: Final = "labels.json"
PIECES_PER_CHARACTER: Final = 1.1
"""Pieces for each different character, at least. Labels are told by few pieces, each of which has to occur often: on
Chinese hotel reviews 4,008 pieces bring 2 points of accuracy over 7,376, which translation would have."""


def kept_labels(folder: Path) -> list[str] | None:
    """Read the labels of the model that a training goes on from.

    Returns:
        Labels in the order of their ids; None = the training begins with fresh weights, and its data give the labels.

    Raises:
        FileRefused: the labels are damaged.
    """
    name = read_prepared(folder / TOKENIZERS).get("labels") if (folder / TOKENIZERS).is_file() else None
    return None if name is None else read_labels(folder / str(name))


def check_labels(labels: Iterable[str], known: Sequence[str], where: str) -> None:
    """Refuse labels that the model that a training goes on from does not have.

    Args:
        where: place of the training data, for the message.

    Raises:
        DataError: a label is not one of the model's.
    """
    if others := sorted({*labels}.difference(known)):
        raise DataError(
            f"{where}: {counted(len(others), 'label')} unknown to the model of --from: {', '.join(others[:5])}; it has "
            f"{', '.join(known[:5])}{', ...' if len(known) > 5 else ''}; leave these rows out, or train without --from"
        )


def store_items(
    folder: Path,
    name: str,
    lines: Sequence[str],
    config: TextConfig,
    num_items: int,
    labels: Sequence[str],
    encoded: Callable[[Tokenizer], Iterator[tuple[list[int], list[int]]]],
    facts: Mapping[str, Any],
    checksums: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the tokenizer of a label task, trained unless the folder has one, labels, encoded items, and a record.

    Args:
        folder: the model's folder.
        name: file of the record, `LabelTask.prepared_path`.
        num_items: number of items, which the size of a vocabulary of pieces is chosen by.
        labels: labels in the order of their ids; none where answers are spans.
        encoded: function from the tokenizer to the ids of the training items, and the target ids of each.
        facts: further entries of the record: report, dev and test.
        checksums: further files of the data, and the checksum of each.
    """
    are_pieces = config.source_units == "pieces"
    size = config.vocabulary_size
    if are_pieces and not size:
        size = choose_size(num_items, count_characters(lines), PIECES_PER_CHARACTER)
    train = partial(train_tokenizer, lines, config.source_units, size, config)
    tokenizer, names, own = kept_tokenizer(train, config.source_units, config.normalization, folder)
    data = folder / "run/data"
    data.mkdir(parents=True, exist_ok=True)
    write_encoded(data, encoded(tokenizer), max(len(tokenizer), len(labels), config.max_tokens, PARTS + 1))
    with atomic_write(folder / LABELS, is_internal=True) as stream:
        json.dump(labels, stream, ensure_ascii=False, indent=1)
    files = {**own, **checksums, LABELS: digest(folder / LABELS)}
    write_facts(folder / name, PREPARED_FORMAT, {**names, "labels": labels, **facts, "files": files})
