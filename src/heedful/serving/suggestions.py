"""Files of suggested translations and of corrected word links, one line each."""

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, final

from heedful.errors import DataError, UsageError
from heedful.files.append import append_whole, locked_for_append
from heedful.files.bounded_read import open_regular
from heedful.text.links import format_pharaoh, parse_pharaoh

_MOST_LINE_BYTES: Final = 2 << 20
"""More bytes than a line has."""


@final
class AppendedFile:
    """File to which lines are appended, up to a size."""

    def __init__(
        self,
        path: Path,
        is_line: Callable[[str], bool],
        is_beginning: Callable[[str], bool],
        most_bytes: int = 100_000_000,
    ) -> None:
        """Open the file once, so that a path that cannot be written to is reported at the start.

        Args:
            path: file to append to; created if it does not exist.
            is_line: tells whether a text is a line of such a file.
            is_beginning: tells whether a text may be the beginning of one, which is all that a crash may have left.
            most_bytes: size above which no more lines are taken.

        Raises:
            DamagedFile: the path is a folder, a pipe, a socket or a device.
            UsageError: it is a file of another kind, by its first line.
        """
        if path.exists():
            with open_regular(path) as file:
                first, ended, _ = file.read(_MOST_LINE_BYTES).partition(b"\n")
            is_torn = not ended and len(first) < _MOST_LINE_BYTES
            text = first.decode("utf-8", "replace")
            if not (is_line(text) or (is_torn and is_beginning(text))):
                raise UsageError(f"{path}: a file of another kind, nothing is appended to it; name a new file")
        self._path: Final = path
        self._most_bytes: Final = most_bytes
        self._lock: Final = threading.Lock()
        with path.open("a", encoding="utf-8", newline="\n"):
            pass

    def add(self, line: str) -> bool:
        """Append a line.

        Args:
            line: text without line end.

        Returns:
            Whether it was stored, and is on disk; False where the file is full.

        Raises:
            DamagedFile: the path is a file no longer.
            ResourceError: the disk is full or refuses, or another process keeps the file locked; the file is as it was.
        """
        content = f"{line}\n".encode("utf-8", "surrogatepass")
        with self._lock, locked_for_append(self._path) as descriptor:
            if os.fstat(descriptor).st_size + len(content) > self._most_bytes:
                return False
            append_whole(self._path, descriptor, content)
        return True


@final
class LinksFile:
    """Append-only file of corrected word links: source words, target words and Pharaoh links, separated by tabs."""

    def __init__(self, path: Path, most_bytes: int = 100_000_000) -> None:
        """Open the file once.

        Args:
            path: file to append to; created if it does not exist.
            most_bytes: size above which no more lines are taken.

        Raises:
            DamagedFile: the path is a folder, a pipe, a socket or a device.
            UsageError: it is a file of another kind.
        """
        self._file: Final = AppendedFile(path, _is_pair_with_links, _begins_a_pair, most_bytes)

    def add(self, source: str, target: str, links: str) -> bool:
        """Append the links of one pair.

        Args:
            source: words separated by spaces.
            target: words separated by spaces.
            links: Pharaoh links between them, such as ``0-0 1-2``.

        Returns:
            Whether they were stored; False where the file is full.

        Raises:
            ResourceError: the disk is full or refuses.
            DataError: `links` is not in Pharaoh format.
            UsageError: a link is of a word that the pair does not have.
        """
        words = source.split(), target.split()
        parsed = parse_pharaoh(links, where="links")
        for left, right in parsed:
            if left >= len(words[0]) or right >= len(words[1]):
                raise UsageError(f"links: {left}-{right} is of a word that the pair does not have")
        return self._file.add("\t".join((" ".join(words[0]), " ".join(words[1]), format_pharaoh(parsed))))


@final
class Suggestions:
    """Append-only file of suggestions by users."""

    def __init__(self, path: Path, most_bytes: int = 100_000_000) -> None:
        """Open the file once, so that a path that cannot be written to is reported at the start.

        Args:
            path: file to append to; created if it does not exist.
            most_bytes: size above which no more suggestions are taken.

        Raises:
            DamagedFile: the path is a folder, a pipe, a socket or a device.
            UsageError: it is a file of another kind.
        """
        self._file: Final = AppendedFile(path, _is_suggestion, _begins_a_suggestion, most_bytes)

    def add(self, text: str, suggestion: str, source: str, target: str) -> bool:
        """Append a suggestion.

        Returns:
            Whether it was stored; False where the file is full.

        Raises:
            ResourceError: the disk is full or refuses.
        """
        row = {"q": text, "s": suggestion, "source": source, "target": target, "time": round(time.time())}
        return self._file.add(json.dumps(row, ensure_ascii=False))


def _is_suggestion(line: str) -> bool:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and {"q", "s", "source", "target"} <= row.keys()


def _begins_a_suggestion(text: str) -> bool:
    beginning = '{"q": "'
    return text.startswith(beginning) or beginning.startswith(text)


def _begins_a_pair(text: str) -> bool:
    cells = text.split("\t")
    return text == "" or (len(cells) in (2, 3) and all(map(str.isprintable, cells)))


def _is_pair_with_links(line: str) -> bool:
    cells = line.split("\t")
    if len(cells) != 3:
        return False
    try:
        parse_pharaoh(cells[2], where="links")
    except DataError:
        return False
    return True
