"""Steps of "Five minutes" in docs/page.md, with `heedful serve` as a process in a fresh folder and a browser."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from urllib.request import urlopen

import pytest

from tests.cli.conftest import Trained
from tests.pages.browser import Tab, chromium, needs_chromium

pytestmark = needs_chromium
# Both ends of every line lie on the edge of a word that faces the other side.
LINES_END_AT_WORDS = """() => {
    const node = document.querySelector('.links');
    if (!node) return false;
    const box = node.getBoundingClientRect();
    const edges = (selector, name) => [...node.querySelectorAll(selector)]
        .map((word) => word.getBoundingClientRect()[name] - box.left);
    const sources = edges('.row:not(.lower) .word', 'right'), targets = edges('.row.lower .word', 'left');
    const near = (places, x) => places.some((place) => Math.abs(place - x) < 1);
    const paths = [...node.querySelectorAll('path')].map((path) => path.getAttribute('d'));
    return node.classList.contains('upright') && paths.length > 0 && paths.every((path) => {
        const numbers = path?.match(/-?[\\d.]+/g).map(Number) ?? [];
        const [from, to] = [numbers[0], numbers[numbers.length - 2]];
        return near(sources, from) && near(targets, to) && from < to;
    });
}"""


@pytest.fixture(scope="module")
def address(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    folder = tmp_path_factory.mktemp("newcomer")
    for name in ("first.model", "other.model"):
        shutil.copytree(trained.model, folder / name)
    command = [
        sys.executable,
        "-m",
        "heedful",
        "serve",
        "first.model",
        "other.model",
        "--port",
        "0",
        "--engine",
        "torch",
    ]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        heard: list[str] = []
        for line in process.stderr:
            heard.append(line)
            if "serving on" in line:
                break
        assert any("other.model (on the page only: first.model answers requests)" in line for line in heard), heard
        yield re.findall(r"http://[\d.:]+", heard[-1])[0]
        process.terminate()


def test_five_minutes(address: str):
    with chromium() as browser:
        tab = Tab(browser, address)
        page = tab.page
        page.locator("#source").press_sequentially("fade")
        page.wait_for_selector("#output .word")
        page.locator("#output .word").first.hover()
        assert page.locator("#output .word.hot, .links .row.lower .word.hot").count() == 2
        assert page.locator("svg.map text.hot").count() >= 1
        page.locator("#output .word").first.click()
        page.locator(".choices button:not([disabled])").first.click()
        page.get_by_role("button", name="Back to the best output").click()
        page.get_by_role("tab", name="Compare").click()
        page.wait_for_function("() => document.querySelectorAll('#view .even svg.map').length === 2")
        assert page.locator("#second option").all_text_contents() == ["other.model"]
        page.get_by_role("tab", name="Evaluate").click()
        page.wait_for_selector("#view .figure, #view .notice")
        tab.close()
    with urlopen(address + "/languages") as answer:
        assert len(json.load(answer)) == 2


def test_lines_of_a_narrow_page_cross_no_word(address: str):
    with chromium() as browser:
        tab = Tab(browser, address + "/#text=fade cab bead deaf face&unit=piece", width=320)
        tab.page.wait_for_function(LINES_END_AT_WORDS)
        assert tab.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        tab.close()
