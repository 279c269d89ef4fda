"""Handling of Ctrl-C, SIGTERM and SIGPIPE: acknowledge at once, then save and stop."""

import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from threading import Thread
from types import FrameType, TracebackType
from typing import Final, Self, final

_SIGNALS: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGPIPE") if hasattr(signal, name))
"""Signals that stop a training; SIGPIPE means that nobody reads the progress any more, and Windows does not have it."""


@final
class Interrupted(BaseException):
    """End of a block of `StopRequest.interruptible` by a signal; caught where the block stands."""


@final
class WorkingTime:
    """Clock that counts no time in which the process stood still, stopped by SIGSTOP or Ctrl-Z."""

    def __init__(self) -> None:
        """Start the clock."""
        self._num_continued = 0
        self._before: object = None
        self._mark: Final = [0.0, 0.0, 0]

    def __enter__(self) -> Self:
        with suppress(ValueError, AttributeError):  # not the main thread, or a system without this signal
            self._before = signal.signal(signal.SIGCONT, self._continued)
        self.restart()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGCONT, self._before)  # type: ignore[arg-type]  # what signal.signal itself returned

    def restart(self) -> None:
        """Begin to count."""
        self._mark[:] = time.monotonic(), time.process_time(), self._num_continued

    @property
    def seconds(self) -> float:
        """Seconds since `restart`: of a process that was stopped meanwhile, only its processor time is known."""
        wall, processor, num_continued = self._mark
        elapsed = time.monotonic() - wall
        was_stopped = self._num_continued != num_continued
        return min(elapsed, time.process_time() - processor) if was_stopped else elapsed

    def _continued(self, number: int, frame: FrameType | None) -> None:
        self._num_continued += 1


@final
class StopRequest:
    """Context in which the first signal is recorded and acknowledged; a second one has its usual effect."""

    def __init__(self, acknowledge: Callable[[str], None]) -> None:
        """Set the callback.

        Args:
            acknowledge: callback for one line at the moment of the signal; called by another thread, because a signal
                may interrupt a write to the same stream.
        """
        self.signal_number = 0
        """Signal received; 0 = none."""
        self._acknowledge: Final = acknowledge
        self._before: dict[int, object] = {}
        self._is_interruptible = False

    def __enter__(self) -> Self:
        try:
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._remember)
        except ValueError:
            pass  # not the main thread, whose owner handles signals
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._restore()

    @contextmanager
    def interruptible(self) -> Generator[None]:
        """Mark a block that a signal ends at once, because the work in it can be repeated.

        Yields:
            Nothing.

        Raises:
            Interrupted: a signal arrived before or in the block.
        """
        try:
            self._is_interruptible = True
            if self.signal_number:
                raise Interrupted
            yield
        finally:
            self._is_interruptible = False

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.signal_number = number
        self._restore()
        name = signal.Signals(number).name
        line = f"{name} received: saving and stopping; a second one stops at once, without saving"
        if name != "SIGPIPE":  # nobody reads any more
            Thread(target=self._acknowledge, args=(line,)).start()
        if self._is_interruptible:
            self._is_interruptible = False
            raise Interrupted

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal itself returned
        self._before = {}
