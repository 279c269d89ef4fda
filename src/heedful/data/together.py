"""Pairs of several files as one, in which a column names the file of each: for one model of several languages.

Johnson et al. 2017, arXiv:1611.04558, put a token for the language into the source. Rows of small files are repeated:
a file of n rows is drawn with a probability in proportion to n^(1 / T), as in Arivazhagan et al. 2019,
arXiv:1907.05019, section 4.2.
"""

import heapq
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

from heedful.data.corpus import Pair, PairFile, find_pairs
from heedful.data.pair_rows import quoted_lines
from heedful.data.rows import Columns
from heedful.errors import DataError, UsageError
from heedful.files.atomic_write import atomic_write
from heedful.text.columns import ColumnKind, split_columns
from heedful.text.text_files import stem

TEMPERATURE: Final = 2.0
"""Temperature of sampling: 1 = in proportion to the rows, infinity = each file alike."""
FILE: Final = "file"
"""Heading of the column that names the file."""


class Joined(NamedTuple):
    """Files of joined pairs, and how they are read."""

    paths: dict[str, Path]
    """One by part: "train", and "dev" and "test" where there are any."""
    columns: Columns
    kinds: tuple[ColumnKind, ...]
    """Kinds of the columns of a source, that of the file last."""
    lines: tuple[str, ...]
    """A line about each file."""


def file_tags(paths: Sequence[Path]) -> list[str]:
    """Name files by what differs in their names.

    Raises:
        UsageError: two have the same name.

    Example:
        >>> file_tags([Path("ita_train.tsv"), Path("rum_train.tsv.gz")]), file_tags([Path("de.tsv"), Path("nl.csv")])
        (['ita', 'rum'], ['de', 'nl'])
    """
    stems = [stem(path) for path in paths]
    parts = [re.split("[._-]", name) for name in stems]
    first, last = _num_common(parts), _num_common([each[::-1] for each in parts])
    differing = ["_".join(each[first : len(each) - last]) for each in parts]
    tags = [re.sub(r"[\s;|]", "_", tag) for tag in (differing if all(differing) else stems)]
    if len({*tags}) < len(tags):
        repeated = next(tag for tag in tags if tags.count(tag) > 1)
        raise UsageError(f"--together: two files are named {repeated!r}; rename one, because outputs are asked by name")
    return tags


def join_files(parts: Mapping[str, Sequence[Path]], columns: Columns, folder: Path) -> Joined:
    """Join the files of each part, and write them.

    Args:
        parts: files by part, those of one part in the same order as those of another.
        columns: columns of source and target in each file.
        folder: folder of the files, created if it does not exist. A file that has its content already is left alone.

    Raises:
        DataError: a file is malformed or has no pair, or sources have different numbers of columns.
        UsageError: a part has another number of files.
    """
    tags = file_tags(parts["train"])
    opened = {part: [find_pairs([path], columns, True) for path in paths] for part, paths in parts.items()}
    for part, files in opened.items():
        if len(files) != len(tags):
            raise UsageError(f"--together: {len(tags)} files for training, {len(files)} for {part}; give one for each")
    counts = {part: [sum(map(_is_filled, file)) for file in files] for part, files in opened.items()}
    for part, files in opened.items():
        for file, count in zip(files, counts[part], strict=True):
            if not count:
                raise DataError(f"{file.paths[0]}: no pair")
    width = max(1, len(opened["train"][0].source_names))
    for file in (file for files in opened.values() for file in files):
        if max(1, len(file.source_names)) != width:
            names = f"{opened['train'][0].paths[0]} has {width}"
            raise DataError(f"{file.paths[0]}: a source of {max(1, len(file.source_names))} columns, where {names}")
    repeats = _repeats(counts["train"])
    headings = [*(f"source {index + 1}" for index in range(width)), FILE, "target"]
    folder.mkdir(parents=True, exist_ok=True)
    paths: dict[str, Path] = {}
    for part, files in opened.items():
        times = repeats if part == "train" else [1] * len(files)
        rows = _rows(files, tags, counts[part], times, width)
        paths[part] = folder / f"{part}.tsv"
        _write(paths[part], [headings, *rows])
    kinds = opened["train"][0].source_kinds or ("text",)
    lines = [_described(*each) for each in zip(tags, counts["train"], repeats, strict=True)]
    return Joined(paths, ("+".join(headings[:-1]), headings[-1]), (*kinds, "features"), tuple(lines))


def _num_common(names: Sequence[Sequence[str]]) -> int:
    """Number of first parts that all names share."""
    return len([*takewhile(lambda column: len({*column}) == 1, zip(*names, strict=False))])


def _repeats(counts: Sequence[int]) -> list[int]:
    """Number of times that the rows of each file are taken."""
    most = max(counts)
    return [round((most / count) ** (1 - 1 / TEMPERATURE)) for count in counts]


def _is_filled(pair: Pair) -> bool:
    return bool(pair.source.strip() and pair.target.strip())


def _rows(
    files: Sequence[PairFile], tags: Sequence[str], counts: Sequence[int], repeats: Sequence[int], width: int
) -> Iterator[list[str]]:
    """Rows of all files, mixed evenly: what is chosen by the first rows is chosen for all files."""

    def placed(index: int) -> Iterator[tuple[float, int, list[str]]]:
        number, total = 0, counts[index] * repeats[index]
        for pair in filter(_is_filled, files[index]):
            cells = split_columns(pair.source) if width > 1 else [pair.source]
            for _ in range(repeats[index]):
                yield number / total, index, [*cells, tags[index], pair.target]
                number += 1

    return (row for _, _, row in heapq.merge(*map(placed, range(len(files))), key=lambda each: each[:2]))


def _write(path: Path, rows: Sequence[Sequence[str]]) -> None:
    content = "".join(quoted_lines(rows))
    if not path.is_file() or path.read_text(encoding="utf-8") != content:
        with atomic_write(path, is_internal=True) as stream:
            stream.write(content)


def _described(tag: str, count: int, repeats: int) -> str:
    return f"{tag}: {count:,} pairs{f', each {repeats} times' if repeats > 1 else ''}"
