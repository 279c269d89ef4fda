"""Messages on standard error, beside the results."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, TextIO, final

from heedful.text.quoting import harmless

MOST_WARNINGS: Final = 20
_SHOWN_LINES: Final = 5


@final
class Messages:
    """Printer of messages; when quiet, of warnings only."""

    def __init__(self, is_quiet: bool) -> None:
        """Choose between all messages and warnings only.

        Args:
            is_quiet: whether to print warnings only.
        """
        self.is_quiet: Final = is_quiet

    def say(self, text: str = "") -> None:
        """Print a line unless quiet."""
        if not self.is_quiet:
            print_message(text)

    def warn(self, text: str) -> None:
        """Print a warning, even if quiet."""
        print_message(f"heedful: warning: {text}")


def print_message(text: str) -> None:
    """Print lines on standard error; if that fails, drop them, because results matter more.

    What steers a terminal is shown as an escape: names of files and texts of others stand in many messages.
    """
    try:
        print("\n".join(map(harmless, text.split("\n"))), file=sys.stderr, flush=True)
    except BrokenPipeError:
        pass  # a signal says the same to a training, which it stops
    except OSError:
        discard_output(sys.stderr)


def discard_output(stream: TextIO) -> None:
    """Replace a stream that cannot be written to by the null device, so that no later write fails, at exit either.

    Args:
        stream: standard output or standard error.
    """
    with suppress(OSError):
        descriptor = stream.fileno()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)


@final
class RepeatedWarning:
    """Warning about many lines of a file: the first few in full, then a count."""

    def __init__(self, messages: Messages, what: str) -> None:
        """Start at zero.

        Args:
            messages: where to print.
            what: summary for the count, such as "lines were cut".
        """
        self._messages: Final = messages
        self._what: Final = what
        self.count = 0
        """Number of lines warned of."""

    def add(self, text: str) -> None:
        """Warn of one line."""
        self.count += 1
        if self.count <= MOST_WARNINGS:
            self._messages.warn(text)

    def close(self) -> None:
        """Print the count if some warnings were not printed."""
        if self.count > MOST_WARNINGS:
            self._messages.warn(f"... {self.count:,} {self._what} in all")


@final
class SummedWarning:
    """Warning about rows of a file, in one line: how many, the first few line numbers, and what is wrong with one."""

    def __init__(self, messages: Messages, name: str, what: str) -> None:
        """Start at zero.

        Args:
            messages: where to print.
            name: the file.
            what: noun and what is the matter, such as "rows could not be read".
        """
        self._messages: Final = messages
        self._name: Final = name
        self._what: Final = what
        self._lines: Final[list[int]] = []
        self._first = ""
        self.count = 0
        """Number of rows warned of."""

    def add(self, line: int, text: str) -> None:
        """Count one row.

        Args:
            line: its 1-based line.
            text: what is wrong with it.
        """
        self.count += 1
        self._first = self._first or text
        if self.count <= _SHOWN_LINES:
            self._lines.append(line)

    def close(self) -> None:
        """Print the line, if there was a row; about a single one, what is wrong with it."""
        if self.count == 1:
            self._messages.warn(self._first)
        elif self.count:
            shown = ", ".join(f"{line:,}" for line in self._lines)
            more = ", ..." if self.count > _SHOWN_LINES else ""
            self._messages.warn(
                f"{self._name}: {self.count:,} {self._what}: lines {shown}{more}; the first: {self._first}"
            )


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Write rows with aligned columns, two spaces apart; what would steer a terminal is shown as an escape.

    Args:
        rows: cells, the same number in every row.

    Returns:
        Lines joined by line feeds, without trailing blanks and without a final line feed.

    Example:
        >>> print(aligned([("dot", "short"), ("additive", "longer")]))
        dot       short
        additive  longer
    """
    rows = [[harmless(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def readable_size(num_bytes: int) -> str:
    """Format a number of bytes for people.

    Args:
        num_bytes: 0 or more.

    Returns:
        Megabytes or kilobytes with one digit after the point.

    Example:
        >>> readable_size(30_240_000), readable_size(512)
        ('30.2 MB', '0.5 kB')
    """
    return f"{num_bytes / 1e6:,.1f} MB" if num_bytes >= 1e6 else f"{num_bytes / 1e3:.1f} kB"
