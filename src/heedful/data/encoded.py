"""Encoded corpora: token ids in binary files; 4 bytes of memory per pair and side."""

import json
import os
import weakref
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import FileRefused
from heedful.formats import ENCODED_FORMAT

Ids = NDArray[np.integer]
_PIECE: Final = 1 << 18


@final
class StoredIds:
    """Integers in a file, read when they are indexed.

    The file is not memory-mapped, because random access would page in the neighbourhood of every pair.
    """

    def __init__(self, path: Path, dtype: str, count: int) -> None:
        """Open a file.

        Args:
            path: file of little-endian integers.
            dtype: NumPy's name of their type.
            count: number of integers.

        Raises:
            ValueError: the file size does not match.
        """
        self._path: Final = path
        self._dtype: Final = np.dtype(dtype)
        self._count: Final = count
        self._descriptor: Final = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, self._descriptor)
        size, wanted = os.fstat(self._descriptor).st_size, count * self._dtype.itemsize
        if size != wanted:
            raise ValueError(f"{path.name} has {size} bytes, expected {wanted}")

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, part: slice) -> Ids:
        start, stop, _ = part.indices(self._count)
        size, offset = (stop - start) * self._dtype.itemsize, start * self._dtype.itemsize
        if hasattr(os, "pread"):
            data = os.pread(self._descriptor, size, offset)
        else:
            os.lseek(self._descriptor, offset, os.SEEK_SET)
            data = os.read(self._descriptor, size)
        if len(data) != size:
            raise FileRefused(f"{self._path}: truncated while in use; delete its folder to encode again")
        return np.frombuffer(data, self._dtype)


@final
class EncodedSide:
    """One side of a corpus: all ids in one array, and the start of each sequence."""

    def __init__(self, ids: Ids | StoredIds, offsets: NDArray[np.int64] | StoredIds) -> None:
        self._ids = ids
        self._offsets = offsets
        self.lengths: Final[NDArray[np.int32]] = np.empty(len(offsets) - 1, dtype=np.int32)
        """[sequence] number of ids in each."""
        # Computed piece by piece, because a second copy of tens of millions of offsets would cost memory.
        for start in range(0, len(self.lengths), _PIECE):
            stop = min(start + _PIECE, len(self.lengths))
            self.lengths[start:stop] = np.diff(offsets[start : stop + 1])

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> Ids:
        position = index % len(self.lengths) if self.lengths.size else index
        start, stop = self._offsets[position : position + 2]
        return self._ids[int(start) : int(stop)]

    def counts(self, num_tokens: int) -> NDArray[np.int64]:
        """Count how often each token occurs.

        Args:
            num_tokens: size of the vocabulary.

        Returns:
            [token] counts.
        """
        counts = np.zeros(num_tokens, dtype=np.int64)
        for start in range(0, len(self._ids), _PIECE):
            counts += np.bincount(self._ids[start : start + _PIECE], minlength=num_tokens)
        return counts

    @classmethod
    def of(cls, sequences: Iterable[Sequence[int]]) -> "EncodedSide":
        """Pack sequences into one side of a corpus, in memory.

        Args:
            sequences: token ids.

        Returns:
            The same, packed.
        """
        listed = [np.asarray(sequence, dtype=np.int32) for sequence in sequences]
        offsets = np.zeros(len(listed) + 1, dtype=np.int64)
        np.cumsum([len(sequence) for sequence in listed], out=offsets[1:])
        return cls(np.concatenate(listed) if listed else np.zeros(0, dtype=np.int32), offsets)


@final
class EncodedCorpus:
    """Pairs of token id sequences, without bos; sources and targets end in eos."""

    def __init__(self, source: EncodedSide, target: EncodedSide, links: "EncodedCorpus | None" = None) -> None:
        self.source: Final = source
        self.target: Final = target
        self.links: Final = links
        """Source and target positions of aligned tokens of each pair; None without alignment."""

    def __len__(self) -> int:
        return len(self.source)

    @classmethod
    def read(cls, folder: Path) -> "EncodedCorpus":
        """Open the files of `write_encoded`.

        Args:
            folder: where they are.

        Returns:
            The corpus; ids are read on use.

        Raises:
            FileRefused: a file is missing or has the wrong size.
            NewerFormat: a newer heedful wrote them.
        """
        try:
            path = folder / "encoded.json"
            facts = ENCODED_FORMAT.strip(path, dict(json.loads(path.read_text(encoding="utf-8"))))
            source, target = (_open_side(folder, name, facts) for name in ("source", "target"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FileRefused(f"{folder}: not an encoded corpus: {error}; delete the folder to encode again") from None
        return cls(source, target)


def _open_side(folder: Path, name: str, facts: dict[str, int | str]) -> EncodedSide:
    ids = StoredIds(folder / f"{name}.ids", str(facts["dtype"]), int(facts[f"num_{name}_ids"]))
    return EncodedSide(ids, StoredIds(folder / f"{name}.offsets", "<i8", int(facts["num_pairs"]) + 1))


def write_encoded(folder: Path, pairs: Iterator[tuple[list[int], list[int]]], vocabulary_size: int) -> int:
    """Write pairs of id sequences into a folder, in constant memory.

    Args:
        folder: output folder, created if missing; `encoded.json` is written last.
        pairs: source and target ids.
        vocabulary_size: largest id + 1; decides between 2 and 4 bytes per id.

    Returns:
        The number of pairs written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "encoded.json").unlink(missing_ok=True)
    dtype = "<u2" if vocabulary_size <= 1 << 16 else "<u4"
    code = "H" if dtype == "<u2" else "I"
    counts = [0, 0]
    num_pairs = 0
    names = ("source", "target")
    with (
        (folder / "source.ids").open("wb") as source_ids,
        (folder / "target.ids").open("wb") as target_ids,
        (folder / "source.offsets").open("wb") as source_offsets,
        (folder / "target.offsets").open("wb") as target_offsets,
    ):
        sides = ((source_ids, source_offsets), (target_ids, target_offsets))
        for _, offsets in sides:
            array("q", [0]).tofile(offsets)
        for pair in pairs:
            for side, (ids_file, offsets_file) in enumerate(sides):
                counts[side] += _append(ids_file, code, pair[side])
                array("q", [counts[side]]).tofile(offsets_file)
            num_pairs += 1
    facts = {"dtype": dtype, "num_pairs": num_pairs} | {f"num_{name}_ids": counts[i] for i, name in enumerate(names)}
    (folder / "encoded.json").write_text(json.dumps(ENCODED_FORMAT.stamp(facts)), encoding="utf-8", newline="\n")
    return num_pairs


def _append(file: BinaryIO, code: str, ids: list[int]) -> int:
    array(code, ids).tofile(file)
    return len(ids)
