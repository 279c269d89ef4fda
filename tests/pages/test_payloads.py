"""Scripts in the data of a page are not run. `make prove-page` tries all 300 of them."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from heedful.documents import html
from tests.pages.browser import chromium, needs_chromium
from tests.pages.hostile_documents import alive
from tests.pages.hostile_pages import executed
from tests.pages.payloads import FEW, PAYLOADS
from tests.thorough import thorough

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    with chromium() as started:
        yield started


def test_no_payload_is_run(browser: Any, tmp_path: Path):
    assert len(PAYLOADS) == 300
    assert len(FEW) >= 15
    assert list(executed(browser, tmp_path, FEW)) == []


def test_no_translated_document_brings_a_payload_to_life(browser: Any, tmp_path: Path):
    assert list(alive(browser, tmp_path, PAYLOADS[::7], "payloads, 1")) == []


@thorough
def test_a_document_that_escapes_nothing_is_found_out(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(html, "_escaped", lambda text: text)
    found = list(alive(browser, tmp_path, PAYLOADS[::7], "payloads, 1"))
    assert found == [f"{name}, payloads, 1" for name in ("html", "xhtml", "xml of a request", "epub")]


@thorough
def test_a_page_that_takes_texts_for_markup_is_found_out(browser: Any):
    context = browser.new_context()
    page = context.new_page()
    num_run = 0
    for payload in PAYLOADS[20:60:2]:
        page.goto("about:blank")
        page.evaluate("payload => { document.body.innerHTML = payload; }", payload)
        page.wait_for_timeout(30)
        num_run += page.evaluate("window.hacked") == 1
    context.close()
    assert num_run >= 8
