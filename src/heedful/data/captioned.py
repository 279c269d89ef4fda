"""Images with captions: stored arrays of images, those that cannot be read, and batches."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.data.batching import IntArray, LengthSampler, collect_links, select_links, teacher_forced
from heedful.data.encoded import EncodedCorpus, Ids
from heedful.data.images import ImageConfig, read_image, stack_features
from heedful.data.picture_changes import change_pictures
from heedful.data.prepared_files import verify_files
from heedful.data.row_faults import RowFaults
from heedful.errors import DataError, FileRefused
from heedful.files.formats import PREPARED_FORMAT
from heedful.files.records import read_facts, write_facts

IMAGES: Final = "images.json"
"""Record of stored images: sizes and checksums of the arrays beside it."""
_DATA: Final = "images.data"
_OFFSETS: Final = "images.offsets"
_ADVICE: Final = "prepare the data again"


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
        """List the arrays that `heedful.training.pair_step.PairStep` takes.

        Returns:
            The arrays of the images, target in, target out, and links if there are any.
        """
        arrays = (*self.images, self.target_in, self.target_out)
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

    def __init__(
        self,
        images: StoredImages,
        corpus: EncodedCorpus,
        batch_tokens: int,
        seed: int,
        changed_share: float = 0.0,
        has_few_shapes: bool = False,
    ) -> None:
        """Prepare the iteration.

        Args:
            corpus: as for `make_caption_batch`.
            batch_tokens: largest number of caption tokens of a batch, padding included; a single one always fits.
            seed: seed of the order, and of the changes.
            changed_share: share of pictures that are changed at random; see `change_pictures`.
            has_few_shapes: as for `LengthSampler`.
        """
        super().__init__(corpus, batch_tokens, seed, has_few_shapes)
        self._images: Final = images
        self._changed_share: Final = changed_share

    def collect(self, indices: Ids) -> CaptionBatch:
        batch = make_caption_batch(self._images, self.corpus, indices)
        if not self._changed_share:
            return batch
        # A resumed training draws the same, because the position of a batch seeds its changes.
        generator = np.random.default_rng((self._seed, *self.position))
        return replace(batch, images=(change_pictures(batch.images[0], self._changed_share, generator),))


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
