"""Memory of a page with a model inside: Chromium in a group of processes that gets so much (Linux, as root).

    heedful export MODEL --to html -o model.html
    python benchmarks/page_memory.py model.html 'Some text' [--megabytes 1024]

Printed is the time until the output is shown and the most that all processes of the browser and of this program had
together. The group is one of the controller of memory, version 1 or 2.
"""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Final
from urllib.parse import quote

GROUPS: Final = Path("/sys/fs/cgroup")
SHOWN: Final = "#output:not(.busy) :is(.word, .shares, .part)"


def limited(megabytes: int) -> Path:
    """Put this process into a group with so much memory; the file with the most bytes that the group had."""
    is_first = (GROUPS / "memory").is_dir()
    group = (GROUPS / "memory" if is_first else GROUPS) / f"heedful-{os.getpid()}"
    group.mkdir()
    (group / ("memory.limit_in_bytes" if is_first else "memory.max")).write_text(str(megabytes << 20))
    (group / "cgroup.procs").write_text(str(os.getpid()))
    return group / ("memory.max_usage_in_bytes" if is_first else "memory.peak")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("text")
    parser.add_argument("--megabytes", type=int, default=1024)
    wanted = parser.parse_args()
    try:
        peak = limited(wanted.megabytes)
    except OSError as error:
        sys.exit(f"needs Linux, root and the controller of memory: {error}")
    sys.path.append(str(Path(__file__).parents[1]))
    from tests.pages.browser import Tab, chromium

    with chromium() as browser:
        begun = time.perf_counter()
        tab = Tab(browser, f"{wanted.page.resolve().as_uri()}#text={quote(wanted.text)}")
        tab.page.wait_for_selector(SHOWN, timeout=60_000)
        seconds = time.perf_counter() - begun
        print(
            f"shown after {seconds:.1f} s with {int(peak.read_text()) / 2**20:.0f} of {wanted.megabytes} MB, "
            f"{len(tab.faults)} errors"
        )


if __name__ == "__main__":
    main()
