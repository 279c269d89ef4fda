"""TensorBoard events of a running training."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from heedful.errors import MissingExtra
from heedful.training.progress import Progress, Watcher

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

EVENTS: Final = "run/tensorboard"
"""Folder of events, relative to the model's folder."""
SECONDS: Final = 10.0
"""Least time in seconds between events without a validation."""


@contextmanager
def shown_in_tensorboard(
    watch: Watcher, folder: Path, is_wanted: bool, warn: Callable[[str], None]
) -> Generator[Watcher]:
    """Wrap a progress callback so that it writes TensorBoard events too.

    Args:
        watch: the progress callback to wrap.
        folder: the model's folder.
        is_wanted: whether events are written; if not, `watch` is yielded as it is.
        warn: called once if events cannot be written; training continues.

    Yields:
        The progress callback for training.

    Raises:
        MissingExtra: TensorBoard is not installed.
    """
    if not is_wanted:
        yield watch
        return
    events = _Events(folder / EVENTS, warn)

    def report(progress: Progress) -> None:
        events.add(progress)
        watch(progress)

    try:
        yield report
    finally:
        events.close()


@final
class _Events:
    """Event file of one process of a training; TensorBoard shows the files of all its processes as one run."""

    def __init__(self, path: Path, warn: Callable[[str], None]) -> None:
        self._path: Final = path
        self._warn: Final = warn
        self._writer: SummaryWriter | None = None
        self._is_refused = False
        self._written_at = -SECONDS
        _writer_class()  # raises before training begins if TensorBoard is not installed

    def add(self, progress: Progress) -> None:
        now = time.monotonic()
        if self._is_refused or (progress.validation is None and now - self._written_at < SECONDS):
            return
        self._written_at = now
        try:
            self._write(progress)
        except OSError as error:
            self._is_refused = True
            self._warn(f"{self._path}: no more events for TensorBoard: {error.strerror or error}")

    def _write(self, progress: Progress) -> None:
        step = progress.step
        if self._writer is None:
            # Events that a killed process wrote after its last checkpoint are purged: training repeats these steps.
            self._writer = _writer_class()(str(self._path), purge_step=step)
        figures = {
            "training/loss": progress.loss,
            "training/tokens_per_second": progress.tokens_per_second,
            "training/learning_rate": progress.learning_rate,
            "training/epoch": progress.epoch,
        }
        validation = progress.validation
        if validation is not None:
            figures |= {f"validation/{name}": score for name, score in validation.scores.items()}
            # Indented as a code block, so that Markdown syntax in a text has no effect.
            source, reference, output = (f"    {' '.join(text.split())}" for text in validation.sample)
            sample = f"source\n\n{source}\n\nreference\n\n{reference}\n\nmodel\n\n{output}\n"
            self._writer.add_text("validation/sample", sample, step)
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            with suppress(OSError):
                self._writer.close()


def _writer_class() -> "type[SummaryWriter]":
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtra("tensorboard", "tensorboard", "events for TensorBoard") from None
    return SummaryWriter
