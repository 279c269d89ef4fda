"""Signs that labelled texts are meant otherwise than they are read: ordered and joined labels, values of two types."""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from heedful.data.corpus import PairFile, first_line, is_json_lines
from heedful.data.findings import Level
from heedful.data.folders import UNLABELLED, folder_files, is_folder_table
from heedful.data.label_kinds import is_number
from heedful.data.rows import parse_object
from heedful.data.tables import data_lines
from heedful.errors import DataError
from heedful.text.counts import counted
from heedful.text.quoting import shortened

HINTS: Final = ("ordered labels", "number labels", "joined labels")
"""Kinds of notes that name another way of learning the labels."""
_RANK: Final = re.compile(r"([-+]?\d{1,3})(?:[.,]0+)?( \w+)?")
"""Grade, such as 4, 4.0 and "4 stars"."""
_RANKS: Final = range(3, 12)
"""Numbers of grades of a scale."""
_SEPARATORS: Final = ("|", ";", ",", "/", "+", "&")
_JOINED_SHARE: Final = 0.02
"""Share of rows with joined labels from which on these are told."""
_RECURRING_SHARE: Final = 0.9
"""Share of the rows with combinations of which each part must be in several combinations."""
_LEAST_JOINED: Final = 3
_SAMPLED_ROWS: Final = 1_000
_MOST_SUFFIXES: Final = 3


class Sign(NamedTuple):
    """Sign in the data, as a finding tells it."""

    level: Level
    kind: str
    message: str
    advice: str
    line: int = 0
    """Line that shows it; 0 = none."""


def order_sign(labels: Collection[str]) -> Sign | None:
    """Find labels that are grades or measured numbers, whose order is lost if each is a class of its own."""
    ranks = [_RANK.fullmatch(label) for label in labels]
    grades = sorted({int(rank[1]) for rank in ranks if rank})
    is_scale = len(grades) in _RANKS and grades[-1] - grades[0] == len(grades) - 1
    if is_scale and len(grades) == len(labels) and all(ranks):
        message = f"labels are the whole numbers from {grades[0]} to {grades[-1]}"
        return Sign("note", "ordered labels", message, "if they are grades: --set text.labels=ordered")
    if len(labels) >= _RANKS.stop and all(map(is_number, labels)):
        message = f"labels are {len(labels):,} different numbers"
        return Sign("note", "number labels", message, "if they are measured: --set text.labels=number")
    return None


def joined_sign(labels: Mapping[str, int]) -> Sign | None:
    """Find labels that are several, joined by a separator, because the parts are labels of other rows.

    Args:
        labels: number of rows of each label.
    """
    least = max(_LEAST_JOINED, _JOINED_SHARE * sum(labels.values()))
    for separator in _SEPARATORS:
        parts = {label: [part.strip() for part in label.split(separator)] for label in labels if separator in label}
        joined = [label for label, own in parts.items() if all(part in labels for part in own)]
        number = sum(labels[label] for label in joined)
        if number >= max(least, sum(labels[label] for label in parts) / 2):
            message = (
                f"{counted(number, 'row')} with labels such as {shortened(joined[0])}, whose parts are labels of other "
                "rows"
            )
        elif num_parts := _num_combined(labels, separator):
            number = sum(labels[label] for label in parts)
            first = shortened(next(iter(parts)))
            message = f"{counted(number, 'row')} with labels such as {first}, combinations of {num_parts} parts"
        else:
            continue
        return Sign("note", "joined labels", message, f"if a text may have several labels: --separator '{separator}'")
    return None


def _num_combined(labels: Mapping[str, int], separator: str) -> int:
    """Number of parts where most rows have combinations of a few of them; 0 = they do not.

    A part of a combination is in several, and not always at the same place, as parts of names and addresses are.
    """
    combined = {label: [part.strip() for part in label.split(separator)] for label in labels}
    joined = [label for label, own in combined.items() if len(own) > 1]
    owners = Counter(part for own in combined.values() for part in {*own})
    places = Counter(part for part, _ in {(part, index) for own in combined.values() for index, part in enumerate(own)})
    moving = sum(places[part] > 1 for part in owners)
    recurring = sum(labels[label] for label in joined if all(owners[part] > 1 for part in combined[label]))
    number, total = sum(labels[label] for label in joined), sum(labels.values())
    is_most = 2 * number > total and recurring >= _RECURRING_SHARE * number and number >= _LEAST_JOINED
    is_few = 2 < len(owners) <= len(labels) and 3 * moving >= len(owners) and "" not in owners
    return len(owners) if is_most and is_few else 0


def type_sign(file: PairFile) -> Sign | None:
    """Find keys of JSON whose first values are of several types.

    Args:
        file: texts with labels.

    Raises:
        DataError: the file cannot be read.
    """
    path = file.paths[0]
    if len(file.paths) > 1 or path.is_dir() or not is_json_lines(path, first_line(path)[1]):
        return None
    keys = [*dict.fromkeys((*file.source_names, *map(str, file.columns)))]
    counts = {key: Counter[str]() for key in keys}
    lines: dict[tuple[str, str], int] = {}
    for number, line in enumerate(islice(data_lines(path, bad_bytes="replace"), _SAMPLED_ROWS), start=1):
        try:
            row = parse_object(line, str(path), number) if line else {}
        except DataError:  # told as a row that cannot be read
            continue
        for key in keys:
            if kind := _type_of(row.get(key)):
                counts[key][kind] += 1
                lines.setdefault((key, kind), number)
    for key, own in counts.items():
        if len(own) > 1:
            types = ", ".join(counted(number, kind) for kind, number in own.most_common())
            message = f"key {key!r} has values of several types: {types} in the first {counted(own.total(), 'row')}"
            return Sign(
                "warning",
                "mixed types",
                message,
                "write all as one",
                max(lines[key, kind] for kind in own),
            )
    return None


def _type_of(value: Any) -> str:
    """Noun for the type of a value; empty for one that is missing, or holds others."""
    if isinstance(value, bool):
        return "true or false"
    return "text" if isinstance(value, str) else "number" if isinstance(value, int | float) and value == value else ""


def file_sign(path: Path) -> Sign | None:
    """Find files in folders of labels that are not read, because their names are not those of texts.

    Args:
        path: data file or folder.
    """
    if not is_folder_table(path):
        return None
    read = {*folder_files(path)}
    folders = [child for child in path.iterdir() if child.is_dir() and _is_shown(child)]
    others = [file for folder in folders for file in folder.iterdir() if file.is_file() and _is_shown(file)]
    suffixes = Counter(file.suffix or "no suffix" for file in others if file not in read)
    if number := sum(file.parent.name == UNLABELLED for file in others):
        message = f"{counted(number, 'text')} in the folder {UNLABELLED} left out: in aclImdb, they have no label"
        return Sign("warning", "other files", message, "rename the folder if this is a label")
    if not suffixes:
        return None
    shown = ", ".join(f"{number:,} {suffix}" for suffix, number in suffixes.most_common(_MOST_SUFFIXES))
    more = ", ..." if len(suffixes) > _MOST_SUFFIXES else ""
    message = f"{counted(suffixes.total(), 'file')} left out, because of their suffixes: {shown}{more}"
    return Sign("warning", "other files", message, "save texts as .txt")


def _is_shown(path: Path) -> bool:
    return not path.name.startswith((".", "__"))
