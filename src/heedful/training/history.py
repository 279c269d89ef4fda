"""History of a run, one line of JSON each: began, resumed, finished, stopped, failed."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, final

from heedful.files.formats import HISTORY_FORMAT
from heedful.files.records import sealed

if TYPE_CHECKING:
    from heedful.training.progress import Progress, Watcher

HISTORY: Final = "history.jsonl"
Ending = Literal["finished", "stopped", "failed"]


@final
class History:
    """Writer of `history.jsonl`; a beginning without an end means that the process was killed.

    Write errors are ignored, because training should not fail for lack of a history.
    """

    def __init__(self, folder: Path, step: int, facts: Mapping[str, Any]) -> None:
        """Set the facts about the beginning.

        Args:
            folder: folder of the run, with metrics and checkpoints.
            step: step from which training resumes; 0 = it begins.
            facts: facts before the first step, as JSON values.
        """
        self._path: Final = folder / HISTORY
        self.step = step
        """Step at the beginning; may be set until the first report."""
        self._facts: Final = facts
        self._is_begun = False

    def watched(self, watch: "Watcher") -> "Watcher":
        """Record the beginning at the first report: a finished training that is started again has none.

        Args:
            watch: callback that receives the reports.

        Returns:
            The callback to pass to training.
        """

        def report(progress: "Progress") -> None:
            self._begin()
            watch(progress)

        return report

    def end(self, ending: Ending, step: int, reason: str) -> None:
        """Record the end of training."""
        if ending != "finished" or self._is_begun:
            self._begin()
            self._append({"event": ending, "step": step, "reason": reason})

    def _begin(self) -> None:
        if not self._is_begun:
            self._is_begun = True
            self._append({"event": "resumed" if self.step else "began", "step": self.step, **self._facts})

    def _append(self, event: Mapping[str, Any]) -> None:
        line = sealed(HISTORY_FORMAT, {**event, "time": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")})
        with suppress(OSError), self._path.open("a+b") as file:
            # A crash may have truncated the last line; start a new line.
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - 1))
            is_cut = end > 0 and file.read(1) != b"\n"
            file.write(b"\n" * is_cut + json.dumps(line, ensure_ascii=False).encode() + b"\n")
