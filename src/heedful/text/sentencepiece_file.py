"""Parts of a SentencePiece model as its file has them: pieces, scores, and how it normalises texts.

The file is a message of Protocol Buffers; field numbers are those of sentencepiece_model.proto. The library itself does
not give the table of its normalization.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, final

from heedful.errors import FileRefused

UNIGRAM: Final = 1
"""Kind of a model whose segmentation is the most probable one."""


class PieceKind(IntEnum):
    """Kind of a piece."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@final
@dataclass(frozen=True)
class Pieces:
    """Pieces of a SentencePiece model, and how it normalises texts."""

    pieces: list[tuple[str, float, PieceKind]]
    """Text, log probability and kind of each piece."""
    kind: int = UNIGRAM
    charsmap: bytes = b""
    """Table of replaced characters: size of a trie, its units (darts-clone), and the texts that its values point to."""
    has_prefix: bool = True
    """Whether a text begins with a space."""
    merges_spaces: bool = True
    """Whether spaces at both ends are left out, and several become one."""
    marks_spaces: bool = True
    """Whether a space becomes U+2581."""
    is_suffix: bool = False
    """Whether the mark of a space stands at the end of a word."""


def read_pieces(model: bytes) -> Pieces:
    """Read a serialized SentencePiece model.

    Raises:
        FileRefused: it is damaged.
    """
    pieces: list[tuple[str, float, PieceKind]] = []
    trainer: dict[int, int | bytes] = {}
    normalizer: dict[int, int | bytes] = {}
    try:
        for number, value in _fields(model):
            if number == 1:
                piece = dict(_fields(_as_bytes(value)))
                (score,) = struct.unpack("<f", _as_bytes(piece.get(2, bytes(4))))
                kind = PieceKind(_whole(piece.get(3, PieceKind.NORMAL)))
                pieces.append((_as_bytes(piece.get(1, b"")).decode("utf-8"), score, kind))
            elif number == 2:
                trainer = dict(_fields(_as_bytes(value)))
            elif number == 3:
                normalizer = dict(_fields(_as_bytes(value)))
    except (ValueError, IndexError, TypeError, struct.error) as error:
        raise FileRefused(f"not a SentencePiece model: {error}") from None
    return Pieces(
        pieces,
        kind=_whole(trainer.get(3, UNIGRAM)),
        charsmap=_as_bytes(normalizer.get(2, b"")),
        has_prefix=bool(normalizer.get(3, 1)),
        merges_spaces=bool(normalizer.get(4, 1)),
        marks_spaces=bool(normalizer.get(5, 1)),
        is_suffix=bool(trainer.get(24, 0)),
    )


def _as_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise TypeError("a field has another type")
    return value


def _whole(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise TypeError("a field has another type")
    return value


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Fields of a message by their numbers; numbers of fixed width are bytes.

    Raises:
        ValueError: the message is cut, or a field is of an unknown kind.
    """
    offset = 0

    def varint() -> int:
        nonlocal offset
        value = shift = 0
        while True:
            byte = message[offset]
            offset += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def taken(size: int) -> bytes:
        nonlocal offset
        if offset + size > len(message):
            raise ValueError("it is cut")
        offset += size
        return message[offset - size : offset]

    while offset < len(message):
        key = varint()
        match key & 7:
            case 0:
                yield key >> 3, varint()
            case 1:
                yield key >> 3, taken(8)
            case 2:
                yield key >> 3, taken(varint())
            case 5:
                yield key >> 3, taken(4)
            case wire:
                raise ValueError(f"a field of kind {wire}")
