"""Hostile documents of 160 KB sent to a server, with `/health` asked beside: `make prove-documents`.

Every family of `tests/contracts/test_linear_time.py` that takes longest in its parser is sent to `/translate_file` of a
real server; meanwhile `/health` is asked and the memory of the server and of its processes is read every 20 ms. Prints
the latest answer of `/health`, the time, the memory and the status of each document.
"""

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import httpx

from tests.contracts.hostile_parsers import cue, xliff
from tests.contracts.test_linear_time import FAMILIES, LARGEST, PAIRED, grown

SLOWEST = (
    "a:\\\n",
    "<b>x",
    "<br>a",
    "<a>",
    "<b><p>",
    "![x](",
    "a=b\n",
    "1. ",
    "[[",
    ("<svg><a>", "</b>"),
    ("*a", "a*"),
)
"""Families that take longest in one parser or another."""
FRAMES = {
    "html": str,
    "xhtml": lambda text: f"<html><body><p>{text}</p></body></html>",
    "md": str,
    "srt": cue,
    "vtt": lambda text: "WEBVTT\n\n" + cue(text),
    "properties": str,
    "txt": str,
    "xlf": xliff,
}
"""File of a text, by its ending."""
MOST_SECONDS = 0.2
"""Latest answer of `/health` that is well."""
MOST_MEGABYTES = 60.0
"""Memory of an upload of at most 1 MB, beside that of a harmless one."""


class Row(NamedTuple):
    """Measurements of one document."""

    latest: float
    """Latest answer of `/health`, in seconds."""
    taken: float
    """Time of the document, in seconds."""
    megabytes: float
    """Largest memory beside that of a harmless document, of the server and of its processes."""
    status: int
    name: str


def memory(pid: int) -> float:
    """Megabytes of a process and its children, pages of files left out."""
    total = 0
    waiting = [pid]
    own = Path(f"/proc/{pid}/cmdline").read_bytes()
    while waiting:
        process = Path(f"/proc/{waiting.pop()}")
        with suppress(OSError):  # it has ended
            if process.name != str(pid) and (process / "cmdline").read_bytes() == own:
                continue  # a child that has not begun its program yet, and shares the pages of its parent
            waiting += [int(word) for word in (process / f"task/{process.name}/children").read_text().split()]
            _, resident, of_files, *_ = (process / "statm").read_text().split()
            total += int(resident) - int(of_files)
    return total * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(address: str, pid: int, families: Sequence[str | tuple[str, str]], size: int) -> list[Row]:
    """Send every family as every kind of file.

    Args:
        pid: process of the server.
        size: length of each text.

    Returns:
        Measurements of each; the latest `/health` first.
    """
    rows: list[Row] = []
    usual = 0.0
    for ending, frame, family in [("html", str, "a"), *((*each, one) for each in FRAMES.items() for one in families)]:
        latest, most, stop = [0.0], [0.0], threading.Event()

        def watch(latest: list[float] = latest, most: list[float] = most, stop: threading.Event = stop) -> None:
            with httpx.Client(timeout=60) as client:
                while not stop.is_set():
                    began = time.monotonic()
                    assert client.get(f"{address}/health").status_code == 200
                    latest[0] = max(latest[0], time.monotonic() - began)
                    most[0] = max(most[0], memory(pid))
                    time.sleep(0.02)

        watcher = threading.Thread(target=watch)
        watcher.start()
        began = time.monotonic()
        content = frame(grown(family, size if rows or usual else 10)).encode("utf-8", "replace")
        form = {"source": "auto", "target": "en"}
        files = {"file": (f"x.{ending}", content)}
        status = httpx.post(f"{address}/translate_file", data=form, files=files, timeout=120).status_code
        taken = time.monotonic() - began
        stop.set()
        watcher.join()
        if not usual:
            usual = most[0]
        else:
            rows.append(Row(latest[0], taken, most[0] - usual, status, f"{ending} {family!r}"))
    return sorted(rows, reverse=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the slowest.

    Returns:
        0 if every `/health` was well and no document ended with a fault of the server.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="all families, not only the slowest")
    parser.add_argument("--size", type=int, default=LARGEST, help="length of each text, in characters")
    given = parser.parse_args(arguments)
    families = (*FAMILIES, *PAIRED) if given.all else SLOWEST
    # A model that only reverses texts: what is measured is the reading and the writing.
    command = [sys.executable, "-m", "tests.prove.reversing_server", "--sentence-seconds", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            address = f"http://127.0.0.1:{server.stdout.readline().split()[0]}"
            rows = measure(address, server.pid, families, given.size)
        finally:
            server.terminate()
    by_memory = sorted(rows, key=lambda row: -row.megabytes)
    for row in dict.fromkeys([*rows[:10], *by_memory[:5]]):
        print(
            f"/health {row.latest:.3f} s  document {row.taken:6.2f} s  memory {row.megabytes:+5.0f} MB  "
            f"status {row.status}  {row.name}"
        )
    num_late = sum(row.latest > MOST_SECONDS for row in rows)
    num_large = sum(row.megabytes > MOST_MEGABYTES for row in rows)
    num_faults = sum(row.status >= 500 and row.status != 503 for row in rows)
    print(
        f"{len(rows)} documents: {num_late} with /health later than {MOST_SECONDS} s, {num_large} with more than "
        f"{MOST_MEGABYTES:.0f} MB, {num_faults} faults"
    )
    return int(bool(num_late or num_large or num_faults))


if __name__ == "__main__":
    sys.exit(main())
