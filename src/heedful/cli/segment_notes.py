"""Messages about the segments of lines: lines that were split, and segments without a translation."""

from typing import TYPE_CHECKING, Final, final

from heedful.cli.messages import Messages, RepeatedWarning

if TYPE_CHECKING:
    from heedful.predictors.translation import Translation


@final
class SegmentNotes:
    """Notes about the segments of lines: the first line that was split, and the lines with faults."""

    def __init__(self, messages: Messages) -> None:
        """Start at zero.

        Args:
            messages: where to print.
        """
        self._messages: Final = messages
        self._has_split = False
        self._faults: Final = RepeatedWarning(messages, "lines have parts without a translation")

    def add(self, number: int, output: "Translation") -> None:
        """Note the segments of a line.

        Args:
            number: number of the line, from 1.
        """
        if len(output.segments) > 1 and not self._has_split:
            self._has_split = True
            self._messages.say(
                f"line {number}: {len(output.segments)} sentences, translated one by one, as in other lines; "
                "--segments line translates lines at once"
            )
        if output.fault:
            self._faults.add(f"line {number}: no translation, only a fault ({output.fault}); the source stands for it")

    def close(self) -> None:
        """Print the count of faults if some were not printed."""
        self._faults.close()
