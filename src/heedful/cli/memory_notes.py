"""Messages about the translation memory: corrections that were used, near matches, and those left out of a file."""

from typing import TYPE_CHECKING, Final, final

from heedful.cli.messages import MOST_WARNINGS, Messages
from heedful.data.corrections import Correction
from heedful.text.counts import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from heedful.engines.translation_memory import MemoryMatch
    from heedful.predictors.translator import Translator

HAS_NONE: Final = "a folder or archive has them: heedful pack MODEL -o OUT --corrections"
"""Advice on kinds of files that have no corrections."""


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


def corrections_of(model: "Path", messages: Messages) -> "Sequence[Correction]":
    """List the corrections in force of a model, oldest first; damaged ones get a warning.

    Args:
        model: folder of the model, of any task.
        messages: where to warn.
    """
    from heedful.data.corrections import NAME
    from heedful.predictors.table import load
    from heedful.predictors.translator import Translator

    if not (model / NAME).exists():
        return ()
    predictor = load(model)
    if not isinstance(predictor, Translator):
        return ()
    warn_of_damage(predictor, messages)
    return predictor.memory.state().content.corrections


def note_left_out(model: "Path", target: "Path", advice: str, messages: Messages) -> None:
    """Say how many corrections of a model a file made of it lacks, if it has any.

    Args:
        model: folder of the model.
        target: the file.
        advice: what to do about it.
        messages: where to print.
    """
    if number := len(corrections_of(model, messages)):
        messages.say(f"{target}: {counted(number, 'correction')} left out; {advice}")
