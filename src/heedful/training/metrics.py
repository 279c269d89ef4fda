"""Log of a training, metrics.jsonl: one line of JSON per validation."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, final

from heedful.files.atomic_write import atomic_write
from heedful.files.bounded_read import MOST_BULK_BYTES, parse_json, read_bytes
from heedful.files.formats import METRICS_FORMAT
from heedful.files.records import is_as_written, sealed


@final
class MetricsLog:
    """Log that contains each line exactly once, even after kills, full disks and resumes."""

    def __init__(self, path: Path) -> None:
        """Open a log, or start one."""
        self.path: Final = path
        self._lines: list[str] = []
        self._size = path.stat().st_size if path.is_file() else 0

    def add(self, facts: Mapping[str, Any]) -> None:
        """Add a line, to be written by `flush`.

        Args:
            facts: JSON values, including "step".
        """
        self._lines.append(json.dumps(sealed(METRICS_FORMAT, facts), ensure_ascii=False) + "\n")

    def flush(self) -> None:
        """Write the added lines to the disk; after an error the next call writes them all.

        Raises:
            OSError: writing failed, for example because the disk is full.
        """
        if not self._lines:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab", buffering=0) as file:
            if file.tell() > self._size:  # remains of a failed call, possibly half a line
                file.truncate(self._size)
            content = memoryview("".join(self._lines).encode())
            while content:
                content = content[file.write(content) or 0 :]
            os.fsync(file.fileno())
            self._size = file.tell()
        self._lines = []

    def cut(self, step: int) -> int:
        """Remove the lines after a checkpoint, whose steps will be logged again, and damaged lines.

        Returns:
            Number of damaged lines; the last one may be partial, which is no damage.

        Raises:
            DamagedFile: the log is not a regular file.
            NewerFormat: a newer heedful wrote a line; nothing is changed.
        """
        if not self.path.is_file():
            return 0
        lines = read_bytes(self.path, MOST_BULK_BYTES).split(b"\n")[:-1]
        steps = [_logged_step(self.path, line) for line in lines]
        remaining = [line for line, logged in zip(lines, steps, strict=True) if logged <= step]
        if len(b"\n".join([*remaining, b""])) != self.path.stat().st_size:
            with atomic_write(self.path, is_internal=True) as file:
                file.writelines(line.decode() + "\n" for line in remaining)
        self._size = self.path.stat().st_size
        return steps.count(math.inf)


def _logged_step(path: Path, line: bytes) -> float:
    """Step of a line; a damaged line counts as later than all."""
    try:
        facts = parse_json(line)
        if not isinstance(facts, dict) or not is_as_written(facts):
            return math.inf
        METRICS_FORMAT.check(path, facts)
        return int(facts["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf
