"""Messages about lines: those split into segments, and those with faults, lost spans or unknown letters."""

from typing import TYPE_CHECKING, Final, final

from heedful.cli.messages import Messages, RepeatedWarning
from heedful.text.quoting import listed

if TYPE_CHECKING:
    from heedful.predictors.translation import Translation

REPLACEMENT: Final = "\ufffd"
"""Character in the place of bytes that are no text, which are told where they are read."""


@final
class SegmentNotes:
    """Notes about lines: the first that was split, those with faults, lost spans or unknown letters."""

    def __init__(self, messages: Messages) -> None:
        """Start at zero.

        Args:
            messages: where to print.
        """
        self._messages: Final = messages
        self._has_split = False
        self._faults: Final = RepeatedWarning(messages, "lines have parts without a translation")
        self._lost: Final = RepeatedWarning(messages, "lines lack spans that should stay as they are")
        self._unknown: Final = RepeatedWarning(messages, "lines have letters that the model does not know")

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
        if output.lost:
            self._lost.add(f"line {number}: the output lacks {listed(output.lost)}, which should stay as it is")
        letters = [repr(one) if one.isspace() else one for one in output.unknown if one != REPLACEMENT]
        if letters:
            self._unknown.add(f"line {number}: the model does not know {listed(letters)}")

    def close(self) -> None:
        """Print the counts of lines that were not printed."""
        self._faults.close()
        self._lost.close()
        self._unknown.close()
