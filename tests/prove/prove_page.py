"""Proof that no script of the data runs: 300 payloads in the page, and in translated documents of every format.

In the page they are texts, attributes, titles, file and model names; in documents texts, attributes and translations.

It also measures how long a map of 200 x 200 weights takes to draw.
"""

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from heedful.pages.bundle import offline_page
from tests.pages.browser import Tab, chromium
from tests.pages.hostile_documents import alive
from tests.pages.hostile_pages import executed
from tests.pages.payloads import PAYLOADS
from tests.pages.views import sentence_view

SIDE: Final = 200
NUM_DRAWN: Final = 11
CHANGE: Final = """head => new Promise(resolve => {
  const address = () => document.querySelector("svg.map image").getAttribute("href");
  const before = address(), started = performance.now();
  const look = () => address() === before
    ? requestAnimationFrame(look) : requestAnimationFrame(() => resolve(performance.now() - started));
  location.hash = `#view=inside&head=${head}`;
  look();
})"""
"""Chooses a head and waits until the frame after its map has appeared; milliseconds."""


def milliseconds_of_a_map(browser: Any, folder: Path) -> list[float]:
    """Measure the time from choosing another head to a drawn map.

    Args:
        browser: Chromium.
        folder: folder for the page.

    Returns:
        Milliseconds of each change, ascending.
    """
    pieces = tuple(f"▁w{index}" for index in range(SIDE - 1))
    path = folder / "map.html"
    view = sentence_view((*pieces, "</s>"), (*pieces, "</s>"))
    path.write_text(offline_page("page", view.to_dict()), encoding="utf-8", newline="\n")
    tab = Tab(browser, path.as_uri() + "#view=inside&head=0")
    times = sorted(tab.page.evaluate(CHANGE, number % 2) for number in range(1, NUM_DRAWN + 1))
    tab.close()
    return times


def main() -> int:
    """Try every payload, and print those that were run.

    Returns:
        0 if there were none.
    """
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        times = milliseconds_of_a_map(browser, Path(folder))
        print(
            f"map of {SIDE} x {SIDE}: median {statistics.median(times):.0f} ms, longest {times[-1]:.0f} ms", flush=True
        )
        failures = list(executed(browser, Path(folder), PAYLOADS))
        failures += alive(browser, Path(folder), PAYLOADS)
    for payload in failures:
        print(f"run, or broke the page: {payload!r}")
    print(f"{len(PAYLOADS)} payloads, {len(failures)} executed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
