"""Images with captions: the data file that names them, stored arrays of images, and batches."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.data.batching import IntArray, LengthSampler, collect_links, select_links, teacher_forced
from heedful.data.cells import CellStyle, cell_style, whole_records
from heedful.data.corpus import Pair, PairFile, find_pairs, first_line, found_pairs, is_json_lines
from heedful.data.encoded import EncodedCorpus, Ids
from heedful.data.folders import PICTURES
from heedful.data.images import FEATURES_SUFFIX, ImageConfig, inside, read_image, stack_features
from heedful.data.label_rows import LabelColumnRows, LabelJsonRows, json_sample
from heedful.data.prepared_files import verify_files
from heedful.data.row_faults import RowFaults
from heedful.data.rows import Columns
from heedful.data.tables import check_data_file, data_lines
from heedful.data.text_columns import LabelColumns
from heedful.errors import DataError, FileRefused
from heedful.files.formats import PREPARED_FORMAT
from heedful.files.records import read_facts, write_facts

IMAGES: Final = "images.json"
"""Record of stored images: sizes and checksums of the arrays beside it."""
_DATA: Final = "images.data"
_OFFSETS: Final = "images.offsets"
_ADVICE: Final = "prepare the data again"


_NUMBER: Final = re.compile(r"#\d+$")
"""Number of a caption behind the name of its image, as in Flickr8k."""
_SAMPLE_LINES: Final = 200
_LOOKED_AT: Final = 20
"""First images whose folder is looked for."""
MOST_BROKEN: Final = 0.05
"""Largest share of images that are left out because they are missing or damaged."""


@final
class ImageFaults:
    """Images that cannot be read, each counted once for the file that names it, up to a share of its images."""

    def __init__(self) -> None:
        self._of_files: Final[dict[str, RowFaults]] = {}
        self._seen: Final[set[str]] = set()

    def add(self, where: str, error: DataError | None) -> None:
        """Count an image.

        Args:
            where: file and line that name it.
            error: why it cannot be read; None = it can.

        Raises:
            DataError: most images of the file cannot.
        """
        if where in self._seen:
            return
        self._seen.add(where)
        file, _, line = where.rpartition(":")
        own = self._of_files.setdefault(file, RowFaults(file, "image", MOST_BROKEN))
        own.num_rows += 1
        if error is not None:
            own.add(int(line), error)

    def notes(self) -> list[str]:
        """Say what was left out.

        Returns:
            A line for each file of which images were left out.

        Raises:
            DataError: more images of a file cannot be read than may be left out.
        """
        for own in self._of_files.values():
            own.check_share()
        return [note for own in self._of_files.values() if (note := own.note())]


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
        is_open = len(paths) == 1 and columns == (1, 2)
        by_name = _find_columns(paths[0], leaves_out_faults) if is_open else None
        self.pairs: Final[PairFile] = by_name or find_pairs(paths, columns, leaves_out_faults)
        self.path: Final = paths[0]
        self.name: Final = self.pairs.name
        """Name from which the model folder's default name is derived."""
        self.folder: Final = self._find_folder()
        """Folder that the paths of the images are relative to."""

    def __iter__(self) -> Iterator[Pair]:
        """Read the path of each image and its caption."""
        for pair in self.pairs:
            yield pair._replace(source=image_name(pair.source))

    def _find_folder(self) -> Path:
        if self.path.is_dir():
            return self.path
        try:
            return image_folder(self.path, [pair.source for pair in islice(self, _LOOKED_AT)])
        except DataError:  # a row that cannot be read is refused with all others
            return self.path.parent

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
        return inside(self.folder, pair.source, self.where(pair))


def image_name(cell: str) -> str:
    """Read the path of an image from a cell.

    Returns:
        The path, without space around it and a number of a caption behind it, as in "dog.jpg#2".
    """
    return _NUMBER.sub("", cell.strip())


def image_folder(path: Path, names: Iterable[str]) -> Path:
    """Find the folder that the paths in a file are relative to.

    Args:
        path: the file.
        names: some of its cells of images.

    Returns:
        The file's own folder; or, as in COCO and Flickr, the first folder in it or beside it that has one of the
        images.
    """
    own = path.parent
    shown = [name for name in map(image_name, islice(names, _LOOKED_AT)) if name]
    try:
        around = (own.iterdir(), own.resolve().parent.iterdir())
        folders = [own, *(child for listed in around for child in sorted(listed) if child.is_dir())]
        return next((each for each in folders if any((each / name).is_file() for name in shown)), own)
    except (OSError, ValueError):
        return own


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


def _find_columns(path: Path, leaves_out_faults: bool) -> PairFile | None:
    """File whose columns of images and captions are told by the names of pictures; None = they are not.

    Raises:
        DataError: the file is unusable.
    """
    check_data_file(path)
    number, line = first_line(path)
    lines = data_lines(path, bad_bytes="replace")
    if is_json_lines(path, line):
        names, rows = json_sample(path, lines, _SAMPLE_LINES)
        chosen = _chosen(rows)
        return found_pairs(path, LabelJsonRows(chosen, names), number, leaves_out_faults) if chosen else None
    sample = [text for text in islice(lines, _SAMPLE_LINES) if text]
    style = cell_style(path, sample)
    lenient = CellStyle(style.separator, "lenient" if style.quotes == "strict" else style.quotes)
    cells = [lenient.split(text) for text in whole_records(sample, style)]
    heads, body = cells[0], [row for row in cells if len(row) == len(cells[0])]
    chosen = _chosen(body)
    if chosen is None:
        return None
    is_header = len(body) > 1 and not _is_picture(heads[chosen.texts[0]])
    return found_pairs(
        path, LabelColumnRows(style, len(heads), chosen, heads if is_header else ()), number, leaves_out_faults
    )


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


def write_images(
    folder: Path, images: Iterable[tuple[Path, str]], config: ImageConfig, faults: ImageFaults | None = None
) -> list[bool]:
    """Read images and store them as one array, in constant memory.

    Args:
        folder: output folder; its record is written last.
        images: path of each image, and the file and line that name it.
        faults: receives the images that are unusable; None = the first raises an error.

    Returns:
        Whether each image is stored.

    Raises:
        DataError: an image is unusable, or more than may be left out are.
    """
    (folder / IMAGES).unlink(missing_ok=True)
    sha256, offsets = hashlib.sha256(), [0]
    are_stored: list[bool] = []
    with (folder / _DATA).open("wb") as stream:
        for path, where in images:
            rows = readable_image(path, config, where, faults)
            are_stored.append(rows is not None)
            if rows is None:
                continue
            sha256.update(rows.data)
            stream.write(rows.data)
            offsets.append(offsets[-1] + len(rows))
    starts = np.array(offsets, dtype="<i8")
    (folder / _OFFSETS).write_bytes(starts.tobytes())
    checksums = {_DATA: sha256.hexdigest(), _OFFSETS: hashlib.sha256(starts.tobytes()).hexdigest()}
    facts = {"num_images": len(offsets) - 1, "row_shape": list(config.row_shape), "files": checksums}
    write_facts(folder / IMAGES, PREPARED_FORMAT, facts)
    return are_stored


def readable_image(path: Path, config: ImageConfig, where: str, faults: ImageFaults | None) -> NDArray[Any] | None:
    """Read an image, or note that it is unusable.

    Args:
        where: file and line that name it.
        faults: as for `write_images`.

    Returns:
        As from `read_image`; None = it is unusable.

    Raises:
        DataError: it is, and there is nowhere to note it, or too many are.
    """
    if faults is None:
        return np.ascontiguousarray(read_image(path, config, where))
    try:
        image = np.ascontiguousarray(read_image(path, config, where))
    except DataError as error:
        faults.add(where, error)
        return None
    faults.add(where, None)
    return image


@final
class StoredImages:
    """Stored images, memory-mapped: of a batch only its own are read."""

    def __init__(self, folder: Path, config: ImageConfig, is_verified: bool = False) -> None:
        """Open the arrays of `write_images`.

        Args:
            folder: where they are.
            is_verified: whether the checksums are known to be right; checking them reads every file once.

        Raises:
            FileRefused: a file is missing, damaged, or of other sizes.
        """
        facts = read_facts(folder / IMAGES, PREPARED_FORMAT, _ADVICE)
        self.config: Final = config
        shape = config.row_shape
        if not is_verified:
            verify_files(folder, facts)
        try:
            offsets = np.fromfile(folder / _OFFSETS, dtype="<i8")
            num_images, stored_shape = facts["num_images"], facts["row_shape"]
            dtype = np.dtype("u1" if config.kind == "pixels" else "<f4")
            self._rows: Final = np.memmap(folder / _DATA, dtype, "r", shape=(int(offsets[-1]), *shape))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise FileRefused(f"{folder / IMAGES}: not stored images: {error}; {_ADVICE}") from None
        if len(offsets) != num_images + 1 or stored_shape != [*shape]:
            raise FileRefused(f"{folder / IMAGES}: images of shape {stored_shape}, not {[*shape]}; {_ADVICE}")
        self._offsets: Final = offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def take(self, indices: Iterable[int]) -> list[NDArray[Any]]:
        """Read images.

        Args:
            indices: their numbers, in any order.

        Returns:
            The images, each as `read_image` gave it.
        """
        bounds = [(self._offsets[index], self._offsets[index + 1]) for index in indices]
        return [np.array(self._rows[start:stop]) for start, stop in bounds]


@final
@dataclass(frozen=True)
class CaptionBatch:
    """Images with gold captions; the padding of captions is 0."""

    images: tuple[NDArray[Any], ...]
    """[batch, channel, row, column] uint8; or [batch, region, feature] float32 and [batch] numbers of regions."""
    target_in: IntArray
    """[batch, target] decoder input: BOS and the gold caption without EOS (teacher forcing)."""
    target_out: IntArray
    """[batch, target] decoder output: the gold caption and EOS."""
    target_lengths: IntArray
    """[batch] number of ids in each row, without padding."""
    links: IntArray | None = None
    """[link, 3] row, target position and region of the tokens whose places are taught; None = none are."""

    def __len__(self) -> int:
        return len(self.target_lengths)

    @property
    def num_units(self) -> int:
        """Number of real target tokens, EOS included."""
        return int(self.target_lengths.sum())

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """List the arrays that `heedful.training.caption_step.CaptionStep` takes.

        Returns:
            Target in, target out, the arrays of the images, and links if there are any.
        """
        arrays = (self.target_in, self.target_out, *self.images)
        return arrays if self.links is None else (*arrays, self.links)

    def rows(self, selection: slice) -> "CaptionBatch":
        """Select some of the examples, trimming the padding.

        Args:
            selection: slice of rows; at least one row.

        Returns:
            A smaller batch.
        """
        lengths = self.target_lengths[selection]
        width = slice(int(lengths.max()))
        first, *lengths_of_regions = (part[selection] for part in self.images)
        for regions in lengths_of_regions:
            first = first[:, : int(regions.max())]
        return CaptionBatch(
            (first, *lengths_of_regions),
            self.target_in[selection, width],
            self.target_out[selection, width],
            lengths,
            select_links(self.links, selection, len(self)),
        )


def make_caption_batch(images: StoredImages, corpus: EncodedCorpus, indices: Ids) -> CaptionBatch:
    """Collect examples of a corpus into a batch.

    Args:
        corpus: the number of an image as the only source id, its caption as targets.
        indices: [batch] indices of the examples.
    """
    targets = teacher_forced([corpus.target[index] for index in indices])
    rows = images.take(int(corpus.source[index][0]) for index in indices)
    arrays = (np.concatenate(rows),) if images.config.kind == "pixels" else stack_features(rows)
    return CaptionBatch(arrays, *targets, None if corpus.links is None else collect_links(corpus.links, indices))


@final
class CaptionSampler(LengthSampler[CaptionBatch]):
    """Endless batches of images with captions of similar length; each epoch contains every caption once."""

    unit: ClassVar[str] = "tokens"

    def __init__(self, images: StoredImages, corpus: EncodedCorpus, batch_tokens: int, seed: int) -> None:
        """Prepare the iteration.

        Args:
            corpus: as for `make_caption_batch`.
            batch_tokens: largest number of caption tokens of a batch, padding included; a single one always fits.
            seed: seed of the order.
        """
        super().__init__(corpus, batch_tokens, seed)
        self._images: Final = images

    def collect(self, indices: Ids) -> CaptionBatch:
        return make_caption_batch(self._images, self.corpus, indices)


def captions_by_length(images: StoredImages, corpus: EncodedCorpus, batch_captions: int = 64) -> Iterator[CaptionBatch]:
    """Iterate over a corpus once, in batches of captions of similar length.

    Args:
        corpus: as for `make_caption_batch`.
        batch_captions: largest number of captions in a batch.

    Yields:
        Padded batches, the shortest captions first.
    """
    order = np.argsort(corpus.target.lengths, kind="stable")
    for start in range(0, len(order), batch_captions):
        yield make_caption_batch(images, corpus, order[start : start + batch_captions])
