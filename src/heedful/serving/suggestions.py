"""File of suggested translations, one JSON object per line."""

import json
import threading
import time
from pathlib import Path
from typing import Final, final

from heedful.regular_files import open_regular


@final
class Suggestions:
    """Append-only file of suggestions by users."""

    def __init__(self, path: Path, most_bytes: int = 100_000_000) -> None:
        """Open the file once, so that a path that cannot be written to is reported at the start.

        Args:
            path: file to append to; created if it does not exist.
            most_bytes: size above which no more suggestions are taken.

        Raises:
            DamagedFile: the path is a folder, a pipe, a socket or a device.
        """
        if path.exists():
            open_regular(path).close()
        self._path: Final = path
        self._most_bytes: Final = most_bytes
        self._lock: Final = threading.Lock()
        with path.open("a", encoding="utf-8", newline="\n"):
            pass

    def add(self, text: str, suggestion: str, source: str, target: str) -> bool:
        """Append a suggestion.

        Args:
            text: source text.
            suggestion: better translation.
            source: code of the source language.
            target: code of the target language.

        Returns:
            Whether it was stored; False where the file is full.
        """
        row = {"q": text, "s": suggestion, "source": source, "target": target, "time": round(time.time())}
        line = json.dumps(row, ensure_ascii=False) + "\n"
        with self._lock, self._path.open("a", encoding="utf-8", newline="\n") as file:
            if file.tell() + len(line) > self._most_bytes:
                return False
            file.write(line)
        return True
