"""Lines of text from bytes: one reader for training data, evaluation files and standard input.

A line ends at the byte 0x0A and nowhere else: U+2028, U+0085, form feeds and lone carriage returns are ordinary
characters, so line n here is line n of ``sed`` and ``paste``. Anything that is not UTF-8 is refused with its place
and with the command that would convert it.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, Literal, cast, final

from heedful.errors import DataError
from heedful.text.encodings import GZIP_MAGIC, explain_bad_byte, guess_encoding

MAX_LINE_BYTES: Final = 1 << 26  # 64 MiB; keeps memory bounded on a file that has no line ends
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_SAMPLE_BYTES: Final = 1 << 14
_CHUNK_BYTES: Final = 1 << 20
_UTF16_NUL_SHARE: Final = 0.7  # of every other byte of a line


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading bytes, through gzip where its content says so.

    Args:
        path: a file; its name does not matter.

    Returns:
        The stream of decompressed bytes; the caller closes it.

    Raises:
        DataError: the file cannot be opened.
    """
    try:
        with path.open("rb") as file:
            is_gzip = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        return cast(BinaryIO, gzip.open(path, "rb")) if is_gzip else path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def _unpacked(stream: BinaryIO) -> BinaryIO:
    """Look for gzip in a stream that is already open, without losing bytes."""
    if isinstance(stream, io.BufferedReader):
        is_gzip = stream.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC)
    elif stream.seekable():
        start = stream.tell()
        is_gzip = stream.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        stream.seek(start)
    else:
        is_gzip = False
    return cast(BinaryIO, gzip.GzipFile(fileobj=stream)) if is_gzip else stream


def _failure(error: Exception, position: str = "") -> str:
    if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
        return f"cannot be read{position}: {error.strerror or error}"
    return f"damaged gzip data{position}: {error}; fetch or compress the file again"


def raw_lines(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """Split a stream at 0x0A.

    Args:
        stream: bytes.
        name: what to call it in messages.

    Yields:
        Each line without its 0x0A; the last one too where the stream does not end in 0x0A.

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
    """Read the decompressed content of a file in pieces.

    Args:
        path: the file.

    Yields:
        Pieces of up to 1 MiB.

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
    """Lines of a file or stream, with counts of repairs. Made by `read_lines`."""

    def __init__(self, source: Path | BinaryIO, name: str, replaces: bool, refuses_nul: bool) -> None:
        """Prepare to read; nothing is opened before the first line is needed.

        Args:
            source: a path, or a binary stream.
            name: what to call it in messages.
            replaces: whether to put U+FFFD for bytes that are not UTF-8 instead of raising.
            refuses_nul: whether to raise at NUL.
        """
        self.name: Final = name
        self.num_lines = 0
        """Number of lines read so far: the 1-based number of the last one."""
        self.num_carriage_returns = 0
        """Number of lines that ended in CR LF."""
        self.num_replaced = 0
        """Number of lines in which U+FFFD replaces bytes that are not UTF-8."""
        self.first_replaced = ""
        """Message of the error that the first of them would have raised."""
        self.had_byte_order_mark = False
        self._source: Final = source
        self._replaces: Final = replaces
        self._refuses_nul: Final = refuses_nul
        self._seen_utf8 = False
        self._lines: Final = self._read()

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
        # What follows makes for a better guess, but a terminal could keep us waiting for it.
        following = b"\n" + stream.read(_SAMPLE_BYTES) if is_path and not self._replaces else b""
        if not self.first_replaced:
            self.first_replaced = self._refusal(raw + following, start)
        if not self._replaces or (self.num_lines == 1 and guess_encoding(raw).startswith("UTF")):
            raise DataError(self.first_replaced)
        self.num_replaced += 1
        return raw.removeprefix(BYTE_ORDER_MARK if self.num_lines == 1 else b"").decode("utf-8", "replace")

    def _check_nul(self, raw: bytes) -> None:
        # Valid UTF-8 with NUL may be meant; UTF-16 shows from its first line on.
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

    A line ends at ``\n`` only; one ``\r`` before it is taken off and counted, and so is a byte order mark at the
    start. Gzip is recognised by content. A last line without ``\n`` is a line.

    Args:
        source: a path, or a binary stream such as ``sys.stdin.buffer`` that the caller closes.
        name: what to call it in messages; empty takes the path.
        bad_bytes: where bytes are not UTF-8, "refuse" raises and "replace" puts U+FFFD and counts the line; UTF-16
            is always refused.
        nul: "refuse" raises at a NUL character.

    Returns:
        An iterator of lines; its attributes count what was met so far. While it is read it raises `DataError` where
        the file cannot be read, is not UTF-8 (with file:line:byte and the command that converts it), or has a line
        of more than `MAX_LINE_BYTES`.

    Example:
        >>> list(read_lines(io.BytesIO("a\u2028b\r\n\nc".encode()))) == ["a\u2028b", "", "c"]
        True
    """
    shown = name or (str(source) if isinstance(source, Path) else "input")
    return Lines(source, shown, bad_bytes == "replace", nul == "refuse")
