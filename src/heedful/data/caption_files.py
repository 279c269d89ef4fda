"""Files of images and captions as they are published: columns, JSON of COCO and Flickr, folders; and their images."""

import filecmp
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, final

from heedful.data.cells import CellStyle, cell_style, whole_records
from heedful.data.corpus import Pair, PairFile, find_pairs, first_line, found_pairs, is_json_lines
from heedful.data.folders import PICTURES
from heedful.data.images import FEATURES_SUFFIX, inside
from heedful.data.label_rows import LabelColumnRows, LabelJsonRows, json_sample
from heedful.data.rows import Columns, are_open
from heedful.data.tables import check_data_file, first_lines
from heedful.data.text_columns import LabelColumns
from heedful.errors import DataError

_NUMBER: Final = re.compile(r"#\d+$")
"""Number of a caption behind the name of its image, as in Flickr8k."""
_NOUNS: Final = ("picture", "description")
"""Names of the two kinds of columns in a description of the file."""
_SAMPLE_LINES: Final = 200
DOUBT: Final = " is read, not "
"""Words of a note about an image that was found twice."""
_LOOKED_AT: Final = 20
"""First images whose folder is looked for."""


@final
class CaptionFile:
    """File of images and captions; or a folder of images, each beside a text of its name."""

    def __init__(self, paths: Sequence[Path], columns: Columns, leaves_out_faults: bool = False) -> None:
        """Inspect the file.

        Args:
            paths: one file, or a file of paths and an aligned file of captions.
            columns: (1, 2) are found by headings, keys, and names of pictures.
            leaves_out_faults: as for `heedful.data.corpus.find_pairs`.

        Raises:
            DataError: a file is missing, empty, or lacks the columns.
        """
        is_open = len(paths) == 1 and are_open(columns)
        by_name = _find_columns(paths[0], leaves_out_faults) if is_open else None
        self.pairs: Final[PairFile] = by_name or find_pairs(paths, columns, leaves_out_faults)
        self.path: Final = paths[0]
        self.name: Final = self.pairs.name
        """Name from which the model folder's default name is derived."""
        self._folders: Final = self._find_folders()
        self.folder: Final = self._folders.main
        """Folder that the paths of the images are relative to."""

    def __iter__(self) -> Iterator[Pair]:
        """Read the path of each image and its caption."""
        for pair in self.pairs:
            yield pair._replace(source=image_name(pair.source))

    def _find_folders(self) -> "ImageFolders":
        if self.path.is_dir():
            return ImageFolders(self.path, ())
        try:
            return ImageFolders(self.path, [pair.source for pair in islice(self, _LOOKED_AT)])
        except DataError:  # a row that cannot be read is refused with all others
            return ImageFolders(self.path, ())

    @property
    def notes(self) -> list[str]:
        """Repairs so far, and an image in doubt among those that were found."""
        return [*self.pairs.notes, *filter(None, (self._folders.doubt,))]

    def identity(self) -> tuple[Any, ...]:
        """Return values that change whenever the rows change.

        Returns:
            The identity of each file.
        """
        return self.pairs.identity()

    def fingerprint(self) -> dict[str, Any]:
        """Describe the rows so that any change is detected; the images are stored with checksums by `write_images`."""
        return self.pairs.fingerprint()

    def where(self, pair: Pair) -> str:
        """Name the place of a row, for messages.

        Args:
            pair: a row.
        """
        return f"{self.path}:{pair.line}"

    def image(self, pair: Pair) -> Path:
        """Find the image of a row.

        Args:
            pair: a row.

        Raises:
            DataError: the path leads out of the file's folder.
        """
        return self._folders.find(pair.source, self.where(pair))

    def placed(self, pair: Pair) -> Pair:
        """Return a row with the path of its image as it is from `folder`.

        Args:
            pair: a row.
        """
        return pair._replace(source=os.path.relpath(self.image(pair), self.folder))


def image_name(cell: str) -> str:
    """Read the path of an image from a cell.

    Returns:
        The path, without space around it and a number of a caption behind it, as in "dog.jpg#2".
    """
    return _NUMBER.sub("", cell.strip())


@final
class ImageFolders:
    """Folders in which the images that a file names are looked for: its own, then those in it, or else beside it."""

    def __init__(self, path: Path, names: Iterable[str]) -> None:
        """List the folders.

        Args:
            path: the file, or a folder of images.
            names: some of its cells of images; if its own folder lacks most of them, others are looked into that have
                more, as in COCO and Flickr.
        """
        own = path if path.is_dir() else path.parent
        shown = [name for name in map(image_name, islice(names, _LOOKED_AT)) if name]
        num_own, others = _num_files(own, shown), list[Path]()
        for rank in (_inside, _beside) if 2 * num_own < len(shown) else ():
            counts = {each: _num_files(each, shown) for each in rank(own)}
            if max(counts.values(), default=0) > num_own:
                others = sorted(filter(lambda each: counts[each], counts), key=lambda each: -counts[each])
                break
        self._ranks: Final = ([own], others)
        self.main: Final = others[0] if others else own
        """Folder of most images."""
        self.doubt = ""
        """Line about the first image that was found twice, with different content; empty = none was."""

    def find(self, name: str, where: str) -> Path:
        """Find an image.

        Args:
            name: its path in the file.
            where: file and line, for messages.

        Returns:
            Its path from the working folder; in `main` where it is nowhere.

        Raises:
            DataError: the name leads out of the folders.
        """
        for rank in self._ranks:
            images = [path for folder in rank if os.path.isfile(path := inside(folder, name, where))]
            if images:
                if not self.doubt:
                    self.doubt = _doubt(images, where)
                return images[0]
        return inside(self.main, name, where)


def _num_files(folder: Path, names: Iterable[str]) -> int:
    """Number of names that are files in a folder."""
    return sum(os.path.isfile(folder / name) for name in names)


def _inside(folder: Path) -> list[Path]:
    """Folders in a folder; none where it cannot be listed."""
    try:
        return sorted(child for child in folder.iterdir() if child.is_dir())
    except OSError:
        return []


def _beside(folder: Path) -> list[Path]:
    """Folders beside a folder."""
    own = folder.resolve()
    return [each for each in _inside(own.parent) if each != own]


def _doubt(images: Sequence[Path], where: str) -> str:
    """Line about files of one name that differ; empty = they do not."""
    try:
        other = next((each for each in images[1:] if not filecmp.cmp(images[0], each, shallow=False)), None)
    except OSError:
        return ""
    if other is None:
        return ""
    return f"{where}: {images[0]}{DOUBT}{other}, which is another picture; write the folder before the name"


def find_image_column(names: Sequence[str], rows: Sequence[Mapping[str, Any]], path: Path) -> str:
    """Find the column of images in a table.

    Args:
        names: headings or keys.
        rows: the first rows, values by name.
        path: the table, for messages.

    Returns:
        Its name.

    Raises:
        DataError: no column has names of pictures.
    """
    for name in names:
        if rows and all(_is_picture(row.get(name)) for row in rows if row.get(name)):
            return name
    raise DataError(f"{path}: no column of names of pictures, such as dog.jpg; name it with --columns")


def have_picture_headings(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether a first row has headings, because in a column all others alone name pictures.

    Args:
        rows: the first rows, all of the same width.
    """
    columns = zip(*rows, strict=True)
    return len(rows) > 1 and any(not _is_picture(head) and all(map(_is_picture, cells)) for head, *cells in columns)


def _find_columns(path: Path, leaves_out_faults: bool) -> PairFile | None:
    """File whose columns of images and captions are told by the names of pictures; None = they are not.

    Raises:
        DataError: the file is unusable.
    """
    check_data_file(path)
    number, line = first_line(path)
    if is_json_lines(path, line):
        names, rows = json_sample(path, _SAMPLE_LINES)
        chosen = _chosen(rows)
        return found_pairs(path, LabelJsonRows(chosen, names, _NOUNS), number, leaves_out_faults) if chosen else None
    sample = first_lines(path, _SAMPLE_LINES)
    style = cell_style(path, sample)
    lenient = CellStyle(style.separator, "lenient" if style.quotes == "strict" else style.quotes)
    cells = [lenient.split(text) for text in whole_records(sample, style)]
    heads, body = cells[0], [row for row in cells if len(row) == len(cells[0])]
    chosen = _chosen(body)
    if chosen is None:
        return None
    is_header = len(body) > 1 and not _is_picture(heads[chosen.texts[0]])
    rows = LabelColumnRows(style, len(heads), chosen, heads if is_header else (), _NOUNS)
    return found_pairs(path, rows, number, leaves_out_faults)


def _chosen(rows: Sequence[Sequence[Any]]) -> LabelColumns | None:
    """Columns of pictures, by their names in all rows but one of headings, and of captions, the longest texts."""
    columns = [*zip(*rows, strict=True)]
    images = [
        index
        for index, cells in enumerate(columns)
        if any(map(_is_picture, cells)) and all(map(_is_picture, cells[1:]))
    ]
    others = [
        index
        for index, cells in enumerate(columns)
        if index not in images and any(isinstance(cell, str) for cell in cells)
    ]
    if not images or not others:
        return None
    caption = max(others, key=lambda index: sum(len(cell) for cell in columns[index] if isinstance(cell, str)))
    return LabelColumns((images[0],), (caption,))


def _is_picture(cell: Any) -> bool:
    return isinstance(cell, str) and Path(image_name(cell)).suffix.lower() in (*PICTURES, FEATURES_SUFFIX)
