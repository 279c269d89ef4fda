"""Speed of a page with a model inside, in Chromium: from opening the file to a ready model, and each text after that.

    heedful export MODEL --to html -o model.html
    python benchmarks/page.py model.html sources.txt [--opens 9] [--num 200] [--neighbours 0,2]

A source is put into the box of the page, which translates it with a beam of 5 and shows the words, alternatives and
attention; its time ends when the output is there, less the pause in typing that the page waits for. Frames are watched
meanwhile: the longest time between two of them, and the longest task. `--neighbours 2` does all of it beside two loops
that never wait.
"""

import argparse
import statistics
import sys
from itertools import islice
from pathlib import Path
from typing import Final

from _neighbours import neighbours

PAUSE: Final = 30
"""Milliseconds that the page waits for the next key."""
SHOWN: Final = "#output:not(.busy) :is(.word, .shares, .part)"
READY: Final = f"""() => new Promise((resolve) => {{
  const look = () => document.querySelector('{SHOWN}') ? resolve(performance.now()) : setTimeout(look, 2);
  look();
}})"""
OPENED: Final = "() => performance.getEntriesByName('heedful-ready')[0].startTime"
TRANSLATE: Final = f"""text => new Promise((resolve) => {{
  const begun = performance.now(), box = document.querySelector('#source'), before = document.querySelector('#output');
  box.value = text;
  box.dispatchEvent(new Event('input', {{ bubbles: true }}));
  const look = () => {{
    const isOther = document.querySelector('#output') !== before;
    if (isOther && document.querySelector('{SHOWN}')) resolve(performance.now() - begun); else setTimeout(look, 1);
  }};
  look();
}})"""


def measure(page: Path, sources: list[str], num_opens: int) -> None:
    sys.path.append(str(Path(__file__).parents[1]))
    from tests.pages.browser import Frames, Tab, chromium

    with chromium() as browser:
        opens: list[list[float]] = []
        for _ in range(num_opens):
            tab = Tab(browser, f"{page.resolve().as_uri()}#text={sources[0]}")
            shown = tab.page.evaluate(READY)
            opens.append([tab.page.evaluate(OPENED), shown])
            tab.close()
        for name, column in zip(("a ready model", "the first output"), zip(*opens, strict=True), strict=True):
            print(
                f"  from opening the file to {name}: {statistics.median(column) / 1000:.2f} s (median of {num_opens}, "
                f"{min(column) / 1000:.2f} to {max(column) / 1000:.2f})"
            )
        tab = Tab(browser, f"{page.resolve().as_uri()}#text={sources[0]}")
        tab.page.evaluate(READY)
        frames = Frames(tab)
        times = [tab.page.evaluate(TRANSLATE, source) - PAUSE for source in sources[1:]]
        drawn = frames.longest()
        ordered = sorted(times)
        print(
            f"  a source: {statistics.median(times):.0f} ms (median of {len(times)}; nine of ten below "
            f"{ordered[len(times) * 9 // 10]:.0f}); longest task {drawn.task:.0f} ms (0 = none of 50), two frames "
            f"at most {drawn.gap:.0f} ms apart, {drawn.working_gap:.0f} while the model works",
            flush=True,
        )
        tab.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("sources", type=Path)
    parser.add_argument("--opens", type=int, default=9)
    parser.add_argument("--num", type=int, default=200, help="sources")
    parser.add_argument("--neighbours", default="0,2", help="numbers of loops beside")
    wanted = parser.parse_args()
    with wanted.sources.open(encoding="utf-8") as file:
        lines = [line.rstrip("\n").partition("\t")[0] for line in islice(file, wanted.num + 1)]
    for number in map(int, wanted.neighbours.split(",")):
        print(f"beside {number} loops:")
        with neighbours(number):
            measure(wanted.page, lines, wanted.opens)


if __name__ == "__main__":
    main()
