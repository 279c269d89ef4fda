"""Rows of a data file that cannot be read: they are left out and told once, unless they are more than a small share."""

from collections.abc import Iterator
from typing import Final, final

from heedful.data.cells import Record
from heedful.errors import DataError
from heedful.text.counts import counted
from heedful.text.lines import Lines

MOST_SHARE: Final = 0.01
"""Largest share of the rows of a file that are left out because they cannot be read."""
ROWS_FOR_ONE: Final = 20
"""Number of rows from which on one of them may be left out."""
LEFT_OUT: Final = "left out as unreadable"
"""Words of a note about rows that cannot be read."""
_LEAST_STOP: Final = 100
"""Number of faults from which on a file of little else is not read to its end."""
_SHOWN_LINES: Final = 5


def most_faults(num_rows: int, most_share: float = MOST_SHARE) -> int:
    """Return the number of rows of a file that may be left out because they cannot be read.

    Args:
        num_rows: number of all.
        most_share: largest share of them.

    Example:
        >>> [most_faults(number) for number in (10, 20, 1000)]
        [0, 1, 10]
    """
    return max(int(most_share * num_rows), int(num_rows >= ROWS_FOR_ONE))


@final
class RowFaults:
    """Rows of a file that cannot be read, as far as it is read."""

    def __init__(self, name: str, noun: str = "row", most_share: float = MOST_SHARE) -> None:
        """Begin without any.

        Args:
            name: file, for messages.
            noun: noun for what is left out.
            most_share: largest share of the rows that is left out.
        """
        self.num_rows = 0
        """Number of rows so far, those left out included."""
        self._name: Final = name
        self._noun: Final = noun
        self._most_share: Final = most_share
        self._first = ""
        self._numbers: Final[list[int]] = []
        self._num_faults = 0
        self._of_lines: Final[dict[int, str]] = {}

    def watched(self, lines: Lines) -> Iterator[str]:
        """Read lines, and note those that are not UTF-8, or contain NUL characters.

        Args:
            lines: lines whose bad bytes are replaced.

        Yields:
            Every line.
        """
        num_replaced = 0
        for number, line in enumerate(lines, start=1):
            if lines.num_replaced > num_replaced:
                is_first, num_replaced = not num_replaced, lines.num_replaced
                self._of_lines[number] = lines.first_replaced if is_first else f"{lines.name}:{number}: not UTF-8"
            elif "\0" in line:
                self._of_lines[number] = f"{lines.name}:{number}:{line.index(chr(0)) + 1}: NUL character; remove it"
            yield line

    def check(self, record: Record) -> None:
        """Refuse a row with a line that was noted.

        Raises:
            DataError: it has one.
        """
        if not self._of_lines:
            return
        if fault := max(self._of_lines.pop(number, "") for number in range(record.line, record.end + 1)):
            raise DataError(fault)

    def add(self, line: int, error: DataError) -> None:
        """Note a row that cannot be read.

        Args:
            line: 1-based number of its first line.
            error: what is wrong with it.

        Raises:
            DataError: so far, most rows are of this kind.
        """
        self._num_faults += 1
        self._first = self._first or str(error)
        if self._num_faults <= _SHOWN_LINES:
            self._numbers.append(line)
        if self._num_faults >= _LEAST_STOP and 2 * self._num_faults > self.num_rows:
            self.check_share()

    def check_share(self) -> None:
        """Refuse a file of which too many rows cannot be read.

        Raises:
            DataError: there are more than may be left out; the message is that of the first.
        """
        if self._num_faults > most_faults(self.num_rows, self._most_share):
            others = self._num_faults - 1
            rest = f" (and {counted(others, f'more {self._noun}')} of {self.num_rows:,})" if others else ""
            raise DataError(f"{self._first}{rest}")

    def note(self) -> str:
        """Say what was left out.

        Returns:
            One line; empty if every row was read.
        """
        if not self._num_faults:
            return ""
        shown = ", ".join(f"{number:,}" for number in self._numbers)
        more = ", ..." if self._num_faults > len(self._numbers) else ""
        return (
            f"{self._name}: {self._num_faults:,} of {counted(self.num_rows, self._noun)} {LEFT_OUT}: "
            f"line{'s' if self._num_faults > 1 else ''} {shown}{more}; the first: {self._first}"
        )
