"""Messages about the translation memory: corrections that were used, and near matches."""

from typing import TYPE_CHECKING, Final, final

from heedful.cli.messages import MOST_WARNINGS, Messages

if TYPE_CHECKING:
    from heedful.engines.translation_memory import MemoryMatch
    from heedful.predictors.translator import Translator


@final
class MatchNotes:
    """Notes about the matches of lines: the first few in full, then a count."""

    def __init__(self, messages: Messages) -> None:
        """Start at zero.

        Args:
            messages: where to print.
        """
        self._messages: Final = messages
        self._counts = {True: 0, False: 0}

    def add(self, number: int, match: "MemoryMatch | None") -> None:
        """Note the match of a line.

        Args:
            number: number of the line, from 1.
            match: its match; None if it has none.
        """
        if match is None:
            return
        self._counts[match.is_exact] += 1
        if sum(self._counts.values()) <= MOST_WARNINGS:
            self._messages.say(f"line {number}: {match}")

    def close(self) -> None:
        """Print the counts if some notes were not printed."""
        if sum(self._counts.values()) > MOST_WARNINGS:
            self._messages.say(
                f"... {self._counts[True]:,} lines corrected, {self._counts[False]:,} near matches in all"
            )


def warn_of_damage(translator: "Translator", messages: Messages) -> None:
    """Warn of damaged lines in the journal of corrections.

    Args:
        messages: where to warn.
    """
    memory = translator.memory
    if error := memory.state().content.error(memory.journal.path):
        messages.warn(error)
