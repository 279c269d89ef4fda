"""Notes about translations: matches in the translation memory, parts of lines, and outputs that are left out."""

from typing import TYPE_CHECKING, Final, final

from heedful.cli.memory_notes import MatchNotes
from heedful.cli.messages import Messages
from heedful.cli.segment_notes import SegmentNotes
from heedful.text.counts import counted

if TYPE_CHECKING:
    from heedful.predictors.translation import Translation


@final
class OutputNotes:
    """Notes about the outputs of lines, printed while they come, and the number of those that are left out."""

    def __init__(self, messages: Messages, min_confidence: float | None) -> None:
        """Start at zero.

        Args:
            messages: where to print.
            min_confidence: smallest confidence of an output that is given; None = confidence is not computed.
        """
        self._messages: Final = messages
        self._min_confidence: Final = min_confidence
        self._matches: Final = MatchNotes(messages)
        self._parts: Final = SegmentNotes(messages)
        self._num_lines = 0
        self._num_withheld = 0

    def add(self, number: int, output: "Translation", is_withheld: bool) -> None:
        """Note the output of a line.

        Args:
            number: number of the line, from 1.
            is_withheld: whether the output is left out.
        """
        self._num_lines += 1
        self._num_withheld += is_withheld
        self._matches.add(number, output.memory)
        self._parts.add(number, output)

    def close(self) -> None:
        """Print what was counted."""
        self._matches.close()
        self._parts.close()
        if self._num_withheld:
            self._messages.say(
                f"{self._num_withheld:,} of {counted(self._num_lines, 'output')} left out: "
                f"confidence below {self._min_confidence:g}"
            )
