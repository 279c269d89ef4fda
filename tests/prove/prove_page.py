"""Proof that the page runs no script of its data: 300 payloads in texts, attributes, titles, file and model names.

It also measures how long a map of 200 x 200 weights takes to draw.
"""

import statistics
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import Any, Final

from markdown_it import MarkdownIt

from heedful.documents.html import HtmlMarkup
from heedful.documents.markdown import MarkdownFile
from heedful.documents.markup_rules import HTML, XHTML, MarkupRules
from heedful.pages.bundle import offline_page
from heedful.text.tagged_text import TaggedText
from tests.pages.browser import Tab, chromium
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


def translated_alive(browser: Any, folder: Path) -> list[str]:
    """Write payloads as translations into documents that browsers show, and as sources of them.

    Args:
        browser: Chromium.
        folder: folder for the pages.

    Returns:
        Names of the documents whose scripts ran.
    """
    frame = '<p title="a" aria-label=a>a <b>a</b> <img alt=a> <input placeholder="a"></p><title>a</title>'
    alive: list[str] = []
    pages = {
        "html": "".join(translated_page(frame, payload) for payload in PAYLOADS),
        "attributes": "".join(
            translated_page(f'<a title="{escape(payload)}" href="#" alt=\'{escape(payload)}\'>a</a>', payload)
            for payload in PAYLOADS
        ),
        "xhtml": "".join(translated_page(frame, payload, XHTML) for payload in PAYLOADS),
        "markdown": "".join(translated_markdown(payload) for payload in PAYLOADS),
    }
    for name, page in pages.items():
        path = folder / f"{name}.html"
        path.write_text(f"<!doctype html><meta charset=utf-8><body>{page}", encoding="utf-8", newline="\n")
        tab = Tab(browser, path.as_uri(), ready="body")
        tab.page.wait_for_timeout(500)
        if tab.page.evaluate("Boolean(window.hacked)"):
            alive.append(f"translations in {name}")
        tab.close()
    return alive


def translated_page(page: str, payload: str, rules: MarkupRules = HTML) -> str:
    """Markup with a payload as the translation of each text, and as it is."""
    markup = HtmlMarkup(page, rules)
    return markup.write([TaggedText(payload, each.tags) for each in markup.passages])


def translated_markdown(payload: str) -> str:
    """Markdown with a payload as translation, as HTML."""
    document = MarkdownFile(b"a *b*\n\n| a |\n|---|\n| a |\n", 0)
    written = document.write([TaggedText(payload.replace("\n", " "), each.tags) for each in document.passages]).decode()
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(written)


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
        failures += translated_alive(browser, Path(folder))
    for payload in failures:
        print(f"run, or broke the page: {payload!r}")
    print(f"{len(PAYLOADS)} payloads, {len(failures)} executed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
