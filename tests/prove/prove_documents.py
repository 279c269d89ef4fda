"""Hostile documents of 160 KB sent to a server, with `/health` asked beside: `make prove-documents`.

Every family of `tests/contracts/test_linear_time.py` that takes longest in its parser is sent to `/translate_file` of a
real server; meanwhile `/health` is asked every 20 ms. Prints the latest answer of `/health`, the time and the status of
each document.
"""

import argparse
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

import httpx

from tests.contracts.test_linear_time import FAMILIES, LARGEST, PAIRED, cue, grown, xliff

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


def measure(address: str, families: Sequence[str | tuple[str, str]]) -> list[tuple[float, float, int, str]]:
    """Send every family as every kind of file.

    Returns:
        Latest `/health` in seconds, time of the document, its status, and what it was; the worst first.
    """
    rows: list[tuple[float, float, int, str]] = []
    for ending, frame in FRAMES.items():
        for family in families:
            latest, stop = [0.0], threading.Event()

            def watch(latest: list[float] = latest, stop: threading.Event = stop) -> None:
                with httpx.Client(timeout=60) as client:
                    while not stop.is_set():
                        began = time.monotonic()
                        assert client.get(f"{address}/health").status_code == 200
                        latest[0] = max(latest[0], time.monotonic() - began)
                        time.sleep(0.02)

            watcher = threading.Thread(target=watch)
            watcher.start()
            began = time.monotonic()
            content = frame(grown(family, LARGEST)).encode("utf-8", "replace")
            form = {"source": "auto", "target": "en"}
            files = {"file": (f"x.{ending}", content)}
            status = httpx.post(f"{address}/translate_file", data=form, files=files, timeout=120).status_code
            taken = time.monotonic() - began
            stop.set()
            watcher.join()
            rows.append((latest[0], taken, status, f"{ending} {family!r}"))
    return sorted(rows, reverse=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the slowest.

    Returns:
        0 if every `/health` was well and no document ended with a fault of the server.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="all families, not only the slowest")
    given = parser.parse_args(arguments)
    families = (*FAMILIES, *PAIRED) if given.all else SLOWEST
    # A model that only reverses texts: what is measured is the reading and the writing.
    command = [sys.executable, "-m", "tests.prove.reversing_server", "--sentence-seconds", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            rows = measure(f"http://127.0.0.1:{server.stdout.readline().split()[0]}", families)
        finally:
            server.terminate()
    for latest, taken, status, name in rows[:12]:
        print(f"/health {latest:.3f} s  document {taken:6.2f} s  status {status}  {name}")
    num_late = sum(latest > MOST_SECONDS for latest, *_ in rows)
    num_faults = sum(status >= 500 and status != 503 for _, _, status, _ in rows)
    print(f"{len(rows)} documents: {num_late} with /health later than {MOST_SECONDS} s, {num_faults} faults")
    return int(bool(num_late or num_faults))


if __name__ == "__main__":
    sys.exit(main())
