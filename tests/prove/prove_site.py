"""Site in Chromium, from disk: every page of both languages loads alone, fits a phone, is light, and can be searched.

`make docs && make prove-site`. With HEEDFUL_AXE=axe.min.js each page is also checked for accessibility. ARGS="5" opens
every fifth page only; links and sizes are always those of all pages. ARGS="--links" checks these alone, without a
browser.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urldefrag

from tests.architecture.package import ROOT

SITE: Final = ROOT / "build" / "site"
LARGEST: Final = 300_000
"""Bytes of a page."""
FIRST_PAINT: Final = 1000.0
"""Milliseconds."""
SEARCHES: Final = {
    "index.html": ("sparsemax", "bandwidth"),
    "zh/index.html": ("瓶颈", "双线性", "注意力", "软性注意力", "位置编码"),
}


def broken_links(page: Path, ids: dict[Path, set[str]]) -> list[str]:
    """Links of a page to files or places that are not there."""
    found: list[str] = []
    for link in re.findall(r'(?:href|src)="([^"]+)"', page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:|//", link):
            continue
        name, anchor = urldefrag(unquote(link))
        target = (page.parent / name).resolve() if name else page
        if not target.exists():
            found.append(f"{page.relative_to(SITE)}: no {link}")
        elif anchor and "=" not in anchor and target in ids and anchor not in ids[target]:  # `view=learn` is a state
            found.append(f"{page.relative_to(SITE)}: no place {link}")
    return found


def faults(browser: Any, page: Path, width: int, scheme: str) -> list[str]:
    """Complaints about a page as a browser shows it."""
    from tests.pages.browser import AXE

    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )
    tab = context.new_page()
    found: list[str] = []
    tab.on("console", lambda message: found.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: found.append(str(error)))
    tab.on("request", lambda each: found.append(each.url) if each.url.startswith(("http", "ws")) else None)
    tab.goto(page.as_uri())
    paint = tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0")
    if paint > FIRST_PAINT:
        found.append(f"first paint after {paint:.0f} ms")
    if tab.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found.append(f"scrolls sideways at {width} px")
    if AXE.is_file():
        tab.evaluate(AXE.read_text("utf-8"))  # not as a tag, which the policy of pages with a model inside forbids
        problems = tab.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa'], preload: false})")["violations"]
        found += [f"{each['id']}: {each['nodes'][0]['html'][:100]}" for each in problems]
    context.close()
    return [f"{page.relative_to(SITE)}: {each}" for each in found]


def without_hits(browser: Any, page: str, word: str) -> list[str]:
    """Complaint where a search from disk finds nothing."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.goto((SITE / page).as_uri())
    tab.click("input.md-search__input")
    tab.keyboard.insert_text(word)
    tab.keyboard.type(" ")
    try:
        tab.wait_for_selector(".md-search-result__item", timeout=20_000)
    except Exception as error:  # of the browser's own kinds
        return [f"{page}: nothing found for {word}: {error}"]
    finally:
        tab.close()
    return []


def files_and_links(pages: Sequence[Path]) -> list[str]:
    """Complaints about links and sizes of pages, which need no browser."""
    ids = {page.resolve(): set(re.findall(r'\bid="([^"]+)"', page.read_text(encoding="utf-8"))) for page in pages}
    found = [line for page in pages for line in broken_links(page, ids)]
    return found + [f"{page.relative_to(SITE)}: large" for page in pages if page.stat().st_size > LARGEST]


def shown(pages: Sequence[Path]) -> list[str]:
    """Complaints about pages as a browser shows them, and about searches."""
    from tests.pages.browser import chromium

    found: list[str] = []
    with chromium() as browser:
        for number, page in enumerate(pages):
            found += faults(browser, page, (1280, 400)[number % 2], ("light", "dark")[number // 2 % 2])
        for page, words in SEARCHES.items():
            found += [line for word in words for line in without_hits(browser, page, word)]
    return found


def main(argument: str = "1") -> int:
    """Check the site.

    Args:
        argument: distance of the pages that are opened, or `--links` if none are.

    Returns:
        The exit code: 0, or 1 if anything is wrong.
    """
    pages = sorted(page for page in SITE.rglob("*.html") if page.name != "404.html")  # for servers alone
    found = files_and_links(pages)
    if argument != "--links":
        found += shown(pages[:: int(argument)])
    print(*found, f"{len(pages)} pages, {len(found)} complaints", sep="\n")
    return int(bool(found) or len(pages) < 100)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
