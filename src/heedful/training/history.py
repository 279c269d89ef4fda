"""History of a run, one line of JSON each: began, resumed, finished, stopped, failed."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, final

from heedful.formats import HISTORY_FORMAT

if TYPE_CHECKING:
    from heedful.training.loop import Progress, Watcher

HISTORY: Final = "history.jsonl"
Ending = Literal["finished", "stopped", "failed"]


@final
class History:
    """Writer of `history.jsonl`; a beginning without an end means that the process was killed.

    What cannot be written is left out: no training ends for want of a diary.
    """

    def __init__(self, folder: Path, step: int, facts: Mapping[str, Any]) -> None:
        """Set the facts about the beginning.

        Args:
            folder: of the run, with metrics and checkpoints.
            step: from which training goes on; 0 = it begins.
            facts: what is known before the first step; JSON can hold it.
        """
        self._path: Final = folder / HISTORY
        self.step = step
        """Step at the beginning; may be set until the first report."""
        self._facts: Final = facts
        self._is_begun = False

    def watched(self, watch: "Watcher") -> "Watcher":
        """Record the beginning at the first report: a finished training that is started again has none.

        Args:
            watch: whom reports are passed on to.

        Returns:
            What training should report to.
        """

        def report(progress: "Progress") -> None:
            self._begin()
            watch(progress)

        return report

    def end(self, ending: Ending, step: int, reason: str) -> None:
        """Record the end of training.

        Args:
            ending: how.
            step: of the newest checkpoint.
            reason: in words.
        """
        if ending != "finished" or self._is_begun:
            self._begin()
            self._append({"event": ending, "step": step, "reason": reason})

    def _begin(self) -> None:
        if not self._is_begun:
            self._is_begun = True
            self._append({"event": "resumed" if self.step else "began", "step": self.step, **self._facts})

    def _append(self, event: Mapping[str, Any]) -> None:
        line = HISTORY_FORMAT.stamp({**event, "time": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")})
        with suppress(OSError), self._path.open("a+b") as file:
            # A crash may have cut the last line off: it must not swallow this one.
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - 1))
            is_cut = end > 0 and file.read(1) != b"\n"
            file.write(b"\n" * is_cut + json.dumps(line, ensure_ascii=False).encode() + b"\n")
