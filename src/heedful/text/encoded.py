"""A corpus as token ids in memory-mapped files: encoded once, read without parsing, constant memory."""

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import FileRefused

Ids = NDArray[np.integer]


@final
class EncodedSide:
    """One side of a corpus: all ids in one array, and where each sequence starts."""

    def __init__(self, ids: Ids, offsets: NDArray[np.int64]) -> None:
        self._ids = ids
        self._offsets = offsets
        self.lengths: Final[NDArray[np.int64]] = np.diff(offsets)
        """[sequence] number of ids in each."""

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> Ids:
        return self._ids[self._offsets[index] : self._offsets[index + 1]]

    def counts(self, num_tokens: int) -> NDArray[np.int64]:
        """Count how often each token occurs.

        Args:
            num_tokens: size of the vocabulary.

        Returns:
            [token] counts.
        """
        return np.bincount(self._ids, minlength=num_tokens)

    @classmethod
    def of(cls, sequences: Iterable[Sequence[int]]) -> "EncodedSide":
        """Hold sequences in memory.

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
        """Of each pair the source positions and the target positions of linked tokens; None where none were found."""

    def __len__(self) -> int:
        return len(self.source)

    @classmethod
    def read(cls, folder: Path) -> "EncodedCorpus":
        """Map the files that `write_encoded` made.

        Args:
            folder: where they are.

        Returns:
            The corpus; nothing is read until it is used.

        Raises:
            FileRefused: files are missing or have another size than was written.
        """
        try:
            facts = json.loads((folder / "encoded.json").read_text(encoding="utf-8"))
            source, target = (_map_side(folder, name, facts) for name in ("source", "target"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FileRefused(f"{folder}: not an encoded corpus: {error}; delete the folder to encode again") from None
        return cls(source, target)


def _map_side(folder: Path, name: str, facts: dict[str, int | str]) -> EncodedSide:
    ids = _map(folder / f"{name}.ids", str(facts["dtype"]), int(facts[f"num_{name}_ids"]))
    return EncodedSide(ids, _map(folder / f"{name}.offsets", "<i8", int(facts["num_pairs"]) + 1))


def _map(path: Path, dtype: str, count: int) -> NDArray[np.int64]:
    if path.stat().st_size != count * np.dtype(dtype).itemsize:
        raise ValueError(f"{path.name} has {path.stat().st_size} bytes, expected {count * np.dtype(dtype).itemsize}")
    return np.memmap(path, dtype=dtype, mode="r", shape=(count,)) if count else np.zeros(0, dtype=dtype)


def write_encoded(folder: Path, pairs: Iterator[tuple[list[int], list[int]]], vocabulary_size: int) -> int:
    """Write pairs of id sequences into a folder, in constant memory.

    Args:
        folder: made where it does not exist; `encoded.json` in it is written last.
        pairs: source and target ids.
        vocabulary_size: largest id + 1; decides on 2 or 4 bytes an id.

    Returns:
        How many pairs were written.
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
    (folder / "encoded.json").write_text(json.dumps(facts), encoding="utf-8", newline="\n")
    return num_pairs


def _append(file: BinaryIO, code: str, ids: list[int]) -> int:
    array(code, ids).tofile(file)
    return len(ids)
