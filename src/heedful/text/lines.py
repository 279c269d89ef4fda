"""Line reader: text lines from files or byte streams, for training data, evaluation files and standard input.

A line ends only at the byte 0x0A: U+2028, U+0085, form feeds and lone carriage returns are ordinary characters, so line
n here is line n of ``sed`` and ``paste``. UTF-16 with a byte order mark is converted. The error for bytes that are not
UTF-8 names their position and a command that converts the file.
"""

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, cast, final

from heedful.errors import DamagedFile, DataError
from heedful.files.bounded_read import open_regular
from heedful.text.encodings import GZIP_MAGIC, explain_bad_byte, guess_encoding

MAX_LINE_BYTES: Final = 1 << 26  # 64 MiB; keeps memory bounded on a file that has no line ends
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_HEAD_BYTES: Final = 4
_SAMPLE_BYTES: Final = 1 << 14
_MOST_FREE_BYTES: Final = 1 << 22
_MOST_EXPANSION: Final = 100
"""Largest ratio of decompressed to compressed bytes, beyond the first 4 MiB; text of any language is below 20."""
_CHUNK_BYTES: Final = 1 << 20
_UTF16_NUL_SHARE: Final = 0.7  # minimum share of NUL among the even or the odd bytes of a UTF-16 line


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading bytes, decompress gzip, and convert UTF-16 to UTF-8.

    Args:
        path: a file; gzip is recognised by content, not by name, and UTF-16 by its byte order mark.

    Returns:
        The stream of decompressed and converted bytes; the caller closes it.

    Raises:
        DataError: the file cannot be opened.
    """
    try:
        return _unpacked(open_regular(path))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except DamagedFile as error:
        raise DataError(str(error)) from None


def _unpacked(stream: BinaryIO) -> BinaryIO:
    """Stream of decompressed and converted bytes for a stream that is already open; no byte is lost."""
    is_gzip = _head(stream).startswith(GZIP_MAGIC)
    return _in_utf8(io.BufferedReader(_Decompressed(stream)) if is_gzip else stream)


@final
class _Decompressed(io.RawIOBase):
    """Decompressed bytes of a gzip stream; a damage error if they are far more than text would be."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream: Final = stream
        self._content: Final = gzip.GzipFile(fileobj=cast(BinaryIO, _Counted(self)))
        self._num_bytes = 0
        self._num_packed = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._content.read1(len(buffer))
        buffer[: len(piece)] = piece
        self._num_bytes += len(piece)
        if self._num_bytes > _MOST_FREE_BYTES + _MOST_EXPANSION * self._num_packed:
            raise gzip.BadGzipFile(f"it unpacks to more than {_MOST_EXPANSION} times its size, as no text does")
        return len(piece)

    def read_packed(self, size: int) -> bytes:
        """Read compressed bytes and count them.

        Args:
            size: most bytes.

        Returns:
            The bytes; none at the end.
        """
        piece = self._stream.read(size)
        self._num_packed += len(piece)
        return piece

    def close(self) -> None:
        self._content.close()
        self._stream.close()
        super().close()


@final
class _Counted:
    """Compressed side of a `_Decompressed`, for `gzip`."""

    def __init__(self, stream: _Decompressed) -> None:
        self.read: Final = stream.read_packed


def _head(stream: BinaryIO) -> bytes:
    """First bytes of a stream, which stays at its position; none if it cannot go back."""
    if isinstance(stream, io.BufferedReader):
        return stream.peek(_HEAD_BYTES)[:_HEAD_BYTES]
    if not stream.seekable():
        return b""
    start = stream.tell()
    head = stream.read(_HEAD_BYTES)
    stream.seek(start)
    return head


def _in_utf8(stream: BinaryIO) -> BinaryIO:
    """Convert a stream that begins with a byte order mark of UTF-16."""
    try:
        head = _head(stream)
    except (EOFError, zlib.error, OSError):  # damaged gzip, which the reader of the stream reports
        return stream
    is_little = head.startswith(codecs.BOM_UTF16_LE) and not head.startswith(codecs.BOM_UTF32_LE)
    if not is_little and not head.startswith(codecs.BOM_UTF16_BE):
        return stream
    return cast(BinaryIO, io.BufferedReader(_Utf16(stream, "utf-16-le" if is_little else "utf-16-be")))


@final
class _Utf16(io.RawIOBase):
    """Stream of UTF-8 with the text of a UTF-16 stream; what is no UTF-16 becomes bytes that are no UTF-8."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._stream: Final = stream
        self._decoder: Final = codecs.getincrementaldecoder(encoding)("surrogatepass")
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._rest:
            chunk = self._stream.read(_CHUNK_BYTES)
            if not chunk:
                half = self._decoder.getstate()[0]  # a character cut by the end of the file
                self._decoder.reset()
                self._rest = b"\xff" if half else b""
                break
            self._rest = self._decoder.decode(chunk).encode("utf-8", "surrogatepass")
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def close(self) -> None:
        self._stream.close()
        super().close()


def _failure(error: Exception, position: str = "") -> str:
    if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
        return f"cannot be read{position}: {error.strerror or error}"
    return f"damaged gzip data{position}: {error}; fetch or compress the file again"


def raw_lines(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """Split a stream at 0x0A.

    Args:
        stream: bytes.

    Yields:
        Each line without its 0x0A, including a last line that does not end in 0x0A.

    Raises:
        DataError: reading fails, compressed data are damaged, or a line is longer than `MAX_LINE_BYTES`.
    """
    number = 0
    while True:
        try:
            raw = stream.readline(MAX_LINE_BYTES + 1)
        except (EOFError, zlib.error, OSError) as error:
            raise DataError(f"{name}: {_failure(error, f' after line {number}')}") from None
        if not raw:
            return
        number += 1
        if len(raw) > MAX_LINE_BYTES:
            raise DataError(f"{name}:{number}: line longer than {MAX_LINE_BYTES >> 20} MiB; is this a text file?")
        yield raw[:-1] if raw.endswith(b"\n") else raw


def read_chunks(path: Path) -> Iterator[bytes]:
    """Read the decompressed content of a file in chunks.

    Yields:
        Chunks of at most 1 MiB.

    Raises:
        DataError: reading fails or compressed data are damaged.
    """
    with open_bytes(path) as stream:
        while True:
            try:
                chunk = stream.read(_CHUNK_BYTES)
            except (EOFError, zlib.error, OSError) as error:
                raise DataError(f"{path}: {_failure(error)}") from None
            if not chunk:
                return
            yield chunk


@final
class Lines(Iterator[str]):
    """Iterator over the lines of a file or stream, with counts of repairs; created by `read_lines`."""

    def __init__(self, source: Path | BinaryIO, name: str, replaces: bool, refuses_nul: bool) -> None:
        """Prepare to read; nothing is opened before the first line is needed.

        Args:
            source: a path, or a binary stream.
            replaces: whether bytes that are not UTF-8 are replaced by U+FFFD instead of raising an error.
            refuses_nul: whether a NUL character raises an error.
        """
        self.name: Final = name
        self.num_lines = 0
        """Number of lines read so far, which is also the 1-based number of the last line read."""
        self.num_carriage_returns = 0
        """Number of lines that ended in CR LF."""
        self.num_replaced = 0
        """Number of lines in which U+FFFD replaces bytes that are not UTF-8."""
        self.first_replaced = ""
        """Error message for the first replaced line; empty if no line was replaced."""
        self.had_byte_order_mark = False
        self._source: Final = source
        self._replaces: Final = replaces
        self._refuses_nul: Final = refuses_nul
        self._seen_utf8 = False
        self._lines: Final = self._read()

    def __iter__(self) -> Iterator[str]:
        return self._lines

    def __next__(self) -> str:
        return next(self._lines)

    def _read(self) -> Iterator[str]:
        if isinstance(self._source, Path):
            with open_bytes(self._source) as stream:
                yield from self._decode(stream)
        else:
            yield from self._decode(_unpacked(self._source))

    def _decode(self, stream: BinaryIO) -> Iterator[str]:
        for raw in raw_lines(stream, self.name):
            self.num_lines += 1
            skipped = 0
            if self.num_lines == 1 and raw.startswith(BYTE_ORDER_MARK):
                self.had_byte_order_mark = True
                skipped = len(BYTE_ORDER_MARK)
            if raw.endswith(b"\r"):
                self.num_carriage_returns += 1
                raw = raw[:-1]
            if b"\0" in raw:
                self._check_nul(raw)
            try:
                text = raw[skipped:].decode("utf-8")
            except UnicodeDecodeError as error:
                text = self._replaced(raw, error.start + skipped, stream)
            else:
                self._seen_utf8 = self._seen_utf8 or not text.isascii()
            yield text

    def _replaced(self, raw: bytes, start: int, stream: BinaryIO) -> str:
        is_path = isinstance(self._source, Path)
        # The bytes that follow improve the guess of the encoding, but reading them from a terminal could block.
        following = b"\n" + stream.read(_SAMPLE_BYTES) if is_path and not self._replaces else b""
        if not self.first_replaced:
            self.first_replaced = self._refusal(raw + following, start)
        if not self._replaces or (self.num_lines == 1 and guess_encoding(raw).startswith("UTF")):
            raise DataError(self.first_replaced)
        self.num_replaced += 1
        return raw.removeprefix(BYTE_ORDER_MARK if self.num_lines == 1 else b"").decode("utf-8", "replace")

    def _check_nul(self, raw: bytes) -> None:
        # A NUL may be intended in valid UTF-8, but in the first line many NULs mean UTF-16.
        if self.num_lines == 1 and guess_encoding(raw, _UTF16_NUL_SHARE).startswith("UTF"):
            raise DataError(self._refusal(raw, 0))
        if self._refuses_nul:
            raise DataError(f"{self.name}:{self.num_lines}:{raw.index(0) + 1}: NUL character; remove it")

    def _refusal(self, sample: bytes, start: int) -> str:
        path = self._source if isinstance(self._source, Path) else None
        explained = explain_bad_byte(sample, start, self._seen_utf8, path)
        return f"{self.name}:{self.num_lines}:{start + 1}: {explained}"


def read_lines(
    source: Path | BinaryIO,
    name: str = "",
    bad_bytes: Literal["refuse", "replace"] = "refuse",
    nul: Literal["keep", "refuse"] = "keep",
) -> Lines:
    r"""Read text line by line, in constant memory.

    A line ends only at ``\n``; one ``\r`` before it is removed and counted. A byte order mark at the start is removed
    and noted. Gzip is recognised by content, UTF-16 by its byte order mark. A last line without ``\n`` counts too.

    Args:
        source: a path, or a binary stream such as ``sys.stdin.buffer`` that the caller closes.
        name: name of the source in messages; empty = its path.
        bad_bytes: "refuse" raises an error at bytes that are not UTF-8; "replace" replaces them by U+FFFD and counts
            the line. UTF-16 without a byte order mark is always refused.
        nul: "refuse" raises an error at a NUL character.

    Returns:
        An iterator over lines, whose attributes count lines and repairs so far. Iteration raises `DataError` if the
        file cannot be read, is not UTF-8 (the message has file:line:byte and a command that converts it), or has a
        line longer than `MAX_LINE_BYTES`.

    Example:
        >>> list(read_lines(io.BytesIO("a\u2028b\r\n\nc".encode()))) == ["a\u2028b", "", "c"]
        True
    """
    shown = name or (str(source) if isinstance(source, Path) else "input")
    return Lines(source, shown, bad_bytes == "replace", nul == "refuse")
