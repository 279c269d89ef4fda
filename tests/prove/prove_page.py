"""Proof that the page runs no script of its data: 300 payloads in texts, attributes, titles, file and model names."""

import sys
import tempfile
from pathlib import Path

from tests.pages.browser import chromium
from tests.pages.hostile_pages import executed
from tests.pages.payloads import PAYLOADS


def main() -> int:
    """Try every payload, and print those that were run.

    Returns:
        0 if there were none.
    """
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        found = list(executed(browser, Path(folder), PAYLOADS))
    for payload in found:
        print(f"run, or broke the page: {payload!r}")
    print(f"{len(PAYLOADS)} payloads, {len(found)} executed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
