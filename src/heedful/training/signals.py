"""Handling of Ctrl-C, SIGTERM and SIGPIPE: finish the step, save and stop."""

import signal
from types import FrameType, TracebackType
from typing import Final, Self, final

_SIGNALS: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGPIPE") if hasattr(signal, name))
"""Signals that stop a training; SIGPIPE means that nobody reads the progress any more, and Windows does not have it."""


@final
class StopRequest:
    """Context in which the first signal is only recorded; a second one has its usual effect."""

    def __init__(self) -> None:
        self.signal_number = 0
        """Signal received; 0 = none."""
        self._before: dict[int, object] = {}

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

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.signal_number = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal.signal itself returned
        self._before = {}
