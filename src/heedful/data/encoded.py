"""Encoded corpora: token ids in binary files with checksums; 4 bytes of memory per pair and side."""

import hashlib
import os
import weakref
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import FileRefused
from heedful.files.bounded_read import open_regular
from heedful.files.formats import ENCODED_FORMAT
from heedful.files.records import read_facts, write_facts

Ids = NDArray[np.integer]
ENCODED: Final = "encoded.json"
"""Record of an encoded corpus: the types, numbers and checksums of the arrays beside it."""
SIDES: Final = ("source", "target")
_PIECE: Final = 1 << 18
_ADVICE: Final = "encode the data again"


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
        file = open_regular(path)
        weakref.finalize(self, file.close)
        self._descriptor: Final = file.fileno()
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
            raise FileRefused(f"{self._path}: truncated while in use; {_ADVICE}")
        return np.frombuffer(data, self._dtype)

    def verify(self, checksum: object, num_tokens: int | None) -> None:
        """Read all integers once and check them.

        Args:
            checksum: sha256 of the file; None = unknown, in files of earlier versions.
            num_tokens: number that all integers are below; None = any.

        Raises:
            ValueError: the file does not match its checksum, or an integer is too large.
        """
        sha256 = hashlib.sha256()
        largest = -1
        for start in range(0, self._count, _PIECE):
            piece = self[start : start + _PIECE]
            sha256.update(piece.data)
            largest = max(largest, int(piece.max()))
        if checksum not in (None, sha256.hexdigest()):
            raise ValueError(f"{self._path.name} does not match its checksum")
        if num_tokens is not None and largest >= num_tokens:
            raise ValueError(f"{self._path.name} has the id {largest}, but there are {num_tokens} tokens")


@final
class EncodedSide:
    """One side of a corpus: all ids in one array, and the start of each sequence."""

    def __init__(self, ids: Ids | StoredIds, offsets: NDArray[np.int64] | StoredIds) -> None:
        """Compute the lengths of all sequences.

        Args:
            ids: ids of all sequences, one after another.
            offsets: [sequence + 1] start of each sequence in `ids`, and the end of the last.

        Raises:
            ValueError: the offsets fall, or are not positions of `ids`.
        """
        self._ids = ids
        self._offsets = offsets
        self.lengths: Final[NDArray[np.int32]] = np.empty(len(offsets) - 1, dtype=np.int32)
        """[sequence] number of ids in each."""
        # Computed piece by piece, because a second copy of tens of millions of offsets would cost memory.
        for start in range(0, len(self.lengths), _PIECE):
            stop = min(start + _PIECE, len(self.lengths))
            piece = np.diff(offsets[start : stop + 1])
            if piece.min() < 0 or piece.max() > len(ids):
                raise ValueError("the offsets of its sequences fall, or lie outside of the ids")
            self.lengths[start:stop] = piece
        if (*offsets[:1], *offsets[len(self.lengths) :]) != (0, len(ids)):
            raise ValueError("the offsets of its sequences do not begin and end with the ids")

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> Ids:
        position = index % len(self.lengths) if self.lengths.size else index
        start, stop = self._offsets[position : position + 2]
        return self._ids[int(start) : int(stop)]

    def counts(self, num_tokens: int) -> NDArray[np.int64]:
        """Count how often each token occurs.

        Returns:
            [token] counts.
        """
        counts = np.zeros(num_tokens, dtype=np.int64)
        for start in range(0, len(self._ids), _PIECE):
            counts += np.bincount(self._ids[start : start + _PIECE], minlength=num_tokens)
        return counts

    def lie_below(self, limits: NDArray[np.integer]) -> bool:
        """Tell whether all ids are below a limit of their sequence.

        Args:
            limits: [sequence] limits.
        """
        end = 0
        for start in range(0, len(self), _PIECE):
            lengths = self.lengths[start : start + _PIECE]
            begin, end = end, end + int(lengths.sum())
            if (self._ids[begin:end] >= np.repeat(limits[start : start + _PIECE], lengths)).any():
                return False
        return True

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
    """Pairs of token id sequences, without bos; sources and targets end in eos.

    Example:
        >>> side = EncodedSide(np.array([7, 8, 3, 9, 3]), np.array([0, 3, 5]))
        >>> corpus = EncodedCorpus(side, side)
        >>> len(corpus), corpus.source.lengths.tolist()
        (2, [3, 2])
    """

    def __init__(self, source: EncodedSide, target: EncodedSide, links: "EncodedCorpus | None" = None) -> None:
        self.source: Final = source
        self.target: Final = target
        self.links: Final = links
        """Source and target positions of aligned tokens of each pair; None without alignment."""

    def __len__(self) -> int:
        return len(self.source)

    @classmethod
    def read(cls, folder: Path, vocabulary_sizes: tuple[int, int] | None = None) -> "EncodedCorpus":
        """Open the files of `write_encoded`, after checking them.

        Args:
            folder: where they are.
            vocabulary_sizes: number of tokens of source and target; every id must be below, and every sequence must
                have an id. None = not checked.

        Returns:
            The corpus; ids are read on use.

        Raises:
            FileRefused: a file is missing or damaged, or an id is not below the size of its vocabulary.
            NewerFormat: a newer heedful wrote them.

        Cost: every file is read once.
        """
        facts = read_facts(folder / ENCODED, ENCODED_FORMAT, _ADVICE)
        try:
            source, target = (
                _open_side(folder, name, facts, size)
                for name, size in zip(SIDES, vocabulary_sizes or (None, None), strict=True)
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise FileRefused(f"{folder}: not an encoded corpus: {error}; {_ADVICE}") from None
        return cls(source, target)


def _open_side(folder: Path, name: str, facts: Mapping[str, Any], num_tokens: int | None) -> EncodedSide:
    """Open and check one side.

    Raises:
        ValueError: a file is damaged.
    """
    checksums = facts.get("files", {})
    if facts["dtype"] not in ("<u2", "<u4"):
        raise ValueError(f"its ids are of type {facts['dtype']!r}")
    ids = StoredIds(folder / f"{name}.ids", str(facts["dtype"]), int(facts[f"num_{name}_ids"]))
    offsets = StoredIds(folder / f"{name}.offsets", "<i8", int(facts["num_pairs"]) + 1)
    ids.verify(checksums.get(f"{name}.ids"), num_tokens)
    offsets.verify(checksums.get(f"{name}.offsets"), None)
    side = EncodedSide(ids, offsets)
    if num_tokens is not None and side.lengths.size and not side.lengths.min():
        raise ValueError(f"{name}.offsets has a sequence without ids")
    return side


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
    (folder / ENCODED).unlink(missing_ok=True)
    code, dtype = ("H", "<u2") if vocabulary_size <= 1 << 16 else ("I", "<u4")
    counts = [0, 0]
    num_pairs = 0
    with ExitStack() as files:
        ids, offsets = (
            [files.enter_context(_HashedFile(folder / f"{name}.{kind}")) for name in SIDES]
            for kind in ("ids", "offsets")
        )
        for file in offsets:
            file.write(array("q", [0]))
        for pair in pairs:
            for side, sequence in enumerate(pair):
                ids[side].write(array(code, sequence))
                counts[side] += len(sequence)
                offsets[side].write(array("q", [counts[side]]))
            num_pairs += 1
    facts = {"dtype": dtype, "num_pairs": num_pairs} | {f"num_{name}_ids": counts[i] for i, name in enumerate(SIDES)}
    checksums = {file.path.name: file.sha256.hexdigest() for file in (*ids, *offsets)}
    write_facts(folder / ENCODED, ENCODED_FORMAT, {**facts, "files": checksums})
    return num_pairs


@final
class _HashedFile:
    """File of integers, whose checksum is of what is written, not of what could be read back."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self.sha256: Final = hashlib.sha256()
        self._file: Final = path.open("wb")

    def write(self, integers: "array[int]") -> None:
        self.sha256.update(integers)
        self._file.write(integers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
