"""Progress of a training: a live display on a terminal and in a notebook, plain lines elsewhere."""

import sys
import time
import unicodedata
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any, Final, final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn
from rich.table import Table
from rich.text import Text

from heedful.text.counts import counted
from heedful.text.durations import duration

if TYPE_CHECKING:
    from heedful.training.progress import Ends, Validation, Watcher
    from heedful.training.progress import Progress as TrainingProgress

PLAIN_SECONDS: Final = 30.0
"""Seconds between plain lines without a validation."""
VALIDATION_SECONDS: Final = 5.0
"""Least seconds between plain lines of validations, of which a small training has hundreds."""
SAMPLE_LABELS: Final = ("source", "reference", "model")
SAMPLE_CHARACTERS: Final = 300
"""Characters of a sample that are shown; documents are longer."""


@contextmanager
def followed(say: Callable[[str], None], is_quiet: bool = False) -> "Generator[Watcher]":
    """Show the progress of a training while it runs.

    Args:
        say: function that prints a plain line.
        is_quiet: whether to show nothing.

    Yields:
        The callback for progress reports.
    """
    if is_quiet:
        yield lambda progress: None
    elif (show := _notebook_display()) is not None:
        yield NotebookDisplay(show)
    elif sys.stderr.isatty():
        display = LiveDisplay(Console(stderr=True))
        with Live(display, console=display.console, refresh_per_second=4):
            yield display
    else:
        lines = PlainLines(say)
        try:
            yield lines
        finally:
            lines.end()


def _notebook_display() -> Callable[[str], None] | None:
    """Function that shows HTML in the output of the running cell, in place of what it showed before; None elsewhere."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)
    if not hasattr(get_ipython(), "kernel"):
        return None
    from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

    handle: Any = display(HTML(""), display_id=True)
    return lambda text: handle.update(HTML(text))


@final
class PlainLines:
    """Plain progress: a line for each validation, but every few seconds at most, and one every half minute.

    The first and the last validation are printed always, and of those between, if they come faster, the newest and the
    newest best. Texts of the sample are printed when they change.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        """Start the clock.

        Args:
            say: function that prints a line.
        """
        self._say: Final = say
        self._said_at = time.monotonic()
        self._is_first = True
        self._unsaid: list[tuple[TrainingProgress, Validation]] = []
        self._sample: Final[dict[str, str]] = {}

    def __call__(self, progress: "TrainingProgress") -> None:
        """Print the lines that are due."""
        if progress.validation is not None:
            unsaid_best = [each for each in self._unsaid if each[0].is_best and not progress.is_best]
            self._unsaid = [*unsaid_best, (progress, progress.validation)]
        waited = time.monotonic() - self._said_at
        if self._unsaid and (self._is_first or waited >= VALIDATION_SECONDS):
            self.end()
        elif waited >= PLAIN_SECONDS:
            self._say(where(progress))
            self._said_at = time.monotonic()

    def end(self) -> None:
        """Print the validations that wait for their time."""
        for progress, validation in self._unsaid:
            self._say_validation(progress, validation)
            self._is_first, self._said_at = False, time.monotonic()
        self._unsaid = []

    def _say_validation(self, progress: "TrainingProgress", validation: "Validation") -> None:
        best = " (best so far)" if progress.is_best else ""
        self._say(f"step {progress.step:,}, epoch {progress.epoch:.2f}: {scores(validation.scores)}{best}")
        for label, text in zip(SAMPLE_LABELS, validation.sample, strict=True):
            if text != self._sample.get(label):
                self._say(f"  {label:<10} {one_line(beginning(text))}")
                self._sample[label] = text


@final
class LiveDisplay:
    """Live progress: a bar of the terminal's width, figures, the last scores, and one sentence getting better."""

    def __init__(self, console: Console) -> None:
        """Prepare the display."""
        self.console: Final = console
        self._bar: Final = Progress(SpinnerColumn(), BarColumn(bar_width=None), console=console, expand=True)
        self._task: Final = self._bar.add_task("", total=None)
        self._where = "starting"
        self._last: Validation | None = None
        self._best = ""

    def __call__(self, progress: "TrainingProgress") -> None:
        """Update the display."""
        if progress.validation is not None:
            self._last = progress.validation
            if progress.is_best:
                self._best = f"{scores(progress.validation.scores)}, at step {progress.step:,}"
        total = 1.0 if progress.done else None
        self._bar.update(self._task, completed=progress.done, total=total)
        self._where = where(progress)

    def __rich__(self) -> RenderableType:
        """Draw the display."""
        above = Group(self._bar, Text(self._where))
        if self._last is None:
            return above
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", no_wrap=True)
        table.add_column()
        table.add_row("validation", Text(scores(self._last.scores)))
        table.add_row("best", Text(self._best))
        for label, text in zip(SAMPLE_LABELS, self._last.sample, strict=True):
            # Text, not str: rich would interpret brackets in the data as markup.
            table.add_row(label, Text(one_line(beginning(text)), style="bold" if label == "model" else ""))
        return Group(above, table)


@final
class NotebookDisplay:
    """Live progress in a notebook: a bar, figures, the last scores, and one sentence getting better."""

    def __init__(self, show: Callable[[str], None]) -> None:
        """Prepare the display.

        Args:
            show: function that shows HTML in place of what it showed before.
        """
        self._show: Final = show
        self._rows: list[tuple[str, str]] = []
        self._best = ""

    def __call__(self, progress: "TrainingProgress") -> None:
        """Update the display."""
        if progress.validation is not None:
            shown = scores(progress.validation.scores)
            self._best = f"{shown}, at step {progress.step:,}" if progress.is_best else self._best
            texts = (one_line(beginning(text)) for text in progress.validation.sample)
            self._rows = [("validation", shown), ("best", self._best), *zip(SAMPLE_LABELS, texts, strict=True)]
        value = f' value="{progress.done:.4f}"' if progress.done else ""
        cells = "".join(f"<tr><th>{name}</th><td dir='auto'>{escape(text)}</td></tr>" for name, text in self._rows)
        self._show(
            f"<progress max='1'{value} style='width: 100%'></progress><div>{escape(where(progress))}</div>"
            f"<table>{cells}</table>"
        )


def where(progress: "TrainingProgress") -> str:
    """Describe the current position of a training.

    Returns:
        Step, epoch, speed, loss, and the remaining time if there is a limit; else what ends the training.
    """
    ends = progress.ends
    left = progress.seconds * (1.0 - progress.done) / progress.done if progress.done else 0.0
    parts = [
        f"{100 * progress.done:.0f} %" if progress.done else "",
        f"step {progress.step:,}",
        f"epoch {progress.epoch:.2f}" + (f" of at most {ends.max_epochs:,}" if ends.max_epochs else ""),
        f"{progress.tokens_per_second:,.0f} {progress.unit}/s",
        f"loss {progress.loss:.3f}",
        f"{duration(left)} left" if progress.done else _without_limit(ends),
    ]
    return ", ".join(part for part in parts if part)


def _without_limit(ends: "Ends") -> str:
    """Words about the end of a training that has no limit; empty if it is unknown."""
    if not ends.patience:
        return ""
    so_far = f", {ends.num_without_better} so far" if ends.num_without_better else ""
    return f"no set end: stops after {counted(ends.patience, 'validation')} without a better score{so_far}"


def scores(values: Mapping[str, float]) -> str:
    """Format validation scores.

    Returns:
        Such as "loss 3.212, BLEU 25.10".
    """
    from heedful.evaluation.metrics.table import score_text

    return ", ".join(score_text(key, value) for key, value in values.items())


def beginning(text: str) -> str:
    """Cut a long text.

    Returns:
        Its first 300 characters and an ellipsis, or the whole of a shorter text.

    Example:
        >>> len(beginning("a" * 1000)), beginning("short")
        (303, 'short')
    """
    return text if len(text) <= SAMPLE_CHARACTERS else text[:SAMPLE_CHARACTERS] + "..."


def one_line(text: str) -> str:
    r"""Replace characters that would break a line of output.

    Returns:
        The text with line ends as spaces and other control characters as escapes.

    Example:
        >>> one_line("a\nb\x1bc")
        'a b\\x1bc'
    """
    return "".join(_visible(character) for character in text.replace("\r\n", " ").replace("\n", " ").replace("\r", " "))


def _visible(character: str) -> str:
    if unicodedata.category(character) not in ("Cc", "Zl", "Zp"):
        return character
    return f"\\x{ord(character):02x}" if character < "\x80" else f"\\u{ord(character):04x}"
