"""Bounded reads: bytes, text, JSON and TOML of a regular file whose size is checked before it is read.

A pipe or a device in the place of a file of a model would block a command or fill its memory. All files that heedful
wrote are therefore read through this module.
"""

import json
import os
import re
import stat
import tomllib
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, cast

from heedful.errors import DamagedFile

MOST_BYTES: Final = 64 << 20
"""Default size limit: more than any manifest or configuration has."""
MOST_BULK_BYTES: Final = 1 << 30
"""Size limit of files that grow with the data: vocabularies, stored texts, logs."""
_NAMES: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading.

    Args:
        path: the file; a symbolic link is followed.

    Returns:
        Stream of its bytes; the caller closes it.

    Raises:
        DamagedFile: the path is a folder, a pipe, a socket or a device.
        OSError: the file does not exist, or the system refuses to open it.
    """
    mode = path.stat().st_mode  # before opening, because opening a pipe that nobody writes to blocks
    if not stat.S_ISREG(mode):
        kind = _NAMES.get(stat.S_IFMT(mode), "something else")
        raise DamagedFile(f"{path}: {kind}, not a file; copy the file again")
    return path.open("rb")


def read_bytes(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Read a regular file.

    Args:
        most_bytes: size limit in bytes.

    Raises:
        DamagedFile: the path is not a regular file, or the file is larger than the limit.
        OSError: the file does not exist, or cannot be read.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(most_bytes + 1) if size <= most_bytes else b""
    if size > most_bytes or len(content) > most_bytes:
        raise DamagedFile(f"{path}: larger than the {most_bytes >> 20} MiB that such a file may have; copy it again")
    return content


def read_text(path: Path, most_bytes: int = MOST_BYTES) -> str:
    """Read a regular file of UTF-8 text.

    Args:
        most_bytes: size limit in bytes.

    Returns:
        Its text; line ends are unchanged.

    Raises:
        DamagedFile: the path is not a regular file, is larger than the limit, or is not UTF-8.
        OSError: the file does not exist, or cannot be read.
    """
    try:
        return read_bytes(path, most_bytes).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DamagedFile(f"{path}: damaged: not UTF-8 at byte {error.start + 1}; copy the file again") from None


def read_json(path: Path, most_bytes: int = MOST_BYTES) -> Any:
    """Read a regular file of JSON.

    Args:
        most_bytes: size limit in bytes.

    Returns:
        Its value; all strings can be encoded as UTF-8.

    Raises:
        DamagedFile: the path is not a regular file, is larger than the limit, or is not JSON.
        OSError: the file does not exist, or cannot be read.
    """
    return _parsed_json(path, read_text(path, most_bytes))


def read_json_object(path: Path, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """Read a regular file of one JSON object.

    Args:
        most_bytes: size limit in bytes.

    Returns:
        The object; all strings can be encoded as UTF-8.

    Raises:
        DamagedFile: the path is not a regular file, is larger than the limit, or is not a JSON object.
        OSError: the file does not exist, or cannot be read.
    """
    value = read_json(path, most_bytes)
    if not isinstance(value, dict):
        raise DamagedFile(f"{path}: damaged: not a JSON object; copy the file again")
    return cast(dict[str, Any], value)


def parse_json(text: str | bytes) -> Any:
    """Parse JSON that may be damaged.

    Returns:
        Its value; all strings can be encoded as UTF-8.

    Raises:
        ValueError: the text is not JSON, is nested too deeply, or has a number of thousands of digits or half a
            surrogate pair.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if _SURROGATE_ESCAPE.search(text):
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # raises if half of a pair is missing
    return value


def _parsed_json(path: Path, text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise DamagedFile(f"{path}: damaged: {error}; copy the file again") from None


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML that may be damaged.

    Raises:
        ValueError: the text is not TOML, is nested too deeply, or has a number of thousands of digits.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
