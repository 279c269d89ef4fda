"""The page with a running model: what is typed, chosen and changed is translated again."""

import re
from collections.abc import Generator
from typing import Any

import pytest

from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from tests.cli.conftest import Trained, trained  # noqa: F401
from tests.pages.browser import AXE, Tab, chromium, needs_chromium
from tests.pages.server import served

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def translator(trained: Trained) -> Translator:  # noqa: F811
    opened = load(trained.model, engine="torch")
    assert isinstance(opened, Translator)
    return opened


@pytest.fixture(scope="module")
def address(translator: Translator) -> Generator[str]:
    with served({"first": translator, "second": translator}) as place:
        yield place


SHOWN = """text => [...document.querySelectorAll('#output .word')].map((each) => each.textContent).join('')
    .replace('⏎', '').replaceAll('␣', ' ') === text"""


def words(tab: Tab) -> str:
    return "".join(tab.page.locator("#output .word").all_text_contents()).replace("⏎", "").replace("␣", " ")


def test_typing_gives_the_translation(browser: Any, address: str, translator: Translator):
    tab = Tab(browser, address)
    for text in ("fade", "cab"):
        tab.page.locator("#source").fill(text)
        (expected,) = translator.translate([text], beam=5)
        tab.page.wait_for_function(SHOWN, arg=expected.text)
        assert words(tab) == expected.text
        assert f"text={text}" in tab.page.url
    tab.close()


def test_an_alternative_of_a_word_is_the_prefix_of_the_next_search(browser: Any, address: str, translator: Translator):
    tab = Tab(browser, address + "#text=fade&unit=piece")
    tab.page.wait_for_selector("#output .word")
    tab.page.locator("#output .word").first.click()
    button = tab.page.locator(".choices button:not([disabled])").first
    token = int(button.get_attribute("data-token"))
    button.click()
    tab.page.wait_for_selector("#output button:has-text('Back')")
    tab.page.wait_for_function("() => !document.querySelector('#output').classList.contains('busy')")
    assert words(tab).startswith(translator.target_tokenizer.decode([token]))
    assert f"prefix=%5B{token}%5D" in tab.page.url
    tab.page.get_by_role("button", name="Back to the best output").click()
    (expected,) = translator.translate(["fade"], beam=5)
    tab.page.wait_for_function("() => !document.querySelector('#output button.plain')")
    assert words(tab) == expected.text
    tab.close()


def test_a_head_is_switched_off_and_on_again(browser: Any, address: str):
    tab = Tab(browser, address + "#text=fade&view=inside&role=cross&layer=0&head=1&unit=piece")
    tab.page.wait_for_selector("[data-change=off]")
    cells = "svg.map > rect[fill='var(--accent)']"
    before = tab.page.locator(cells).count()
    tab.page.locator("[data-change=off]").click()
    tab.page.wait_for_selector("#changed")
    assert before > 0
    assert tab.page.locator(cells).count() == 0
    tab.page.locator("[data-change=reset]").click()
    tab.page.wait_for_selector("#changed", state="detached")
    tab.page.wait_for_function(
        "count => document.querySelectorAll(\"svg.map > rect[fill='var(--accent)']\").length === count", arg=before
    )
    tab.close()


def test_another_measure_changes_the_map_and_the_address(browser: Any, address: str):
    tab = Tab(browser, address + "#view=inside&text=fade")
    tab.page.wait_for_selector("#measures")
    buttons = tab.page.locator("#measures .segments button")
    assert buttons.all_text_contents() == ["Attention", "Value norm", "Rollout", "ALTI", "Gradients"]
    seen = {tab.page.evaluate("() => document.querySelector('#view canvas').toDataURL()")}
    for index, name in ((3, "alti"), (4, "gradients")):
        buttons.nth(index).click()
        tab.page.wait_for_selector(f"#measures button:nth-child({index + 1})[aria-pressed=true]")
        assert f"measure={name}" in tab.page.url
        seen.add(tab.page.evaluate("() => document.querySelector('#view canvas').toDataURL()"))
    assert len(seen) == 3
    tab.close()


def test_a_weight_is_set_by_a_click_on_its_cell(browser: Any, address: str):
    tab = Tab(browser, address + "#text=fade&view=inside&role=cross&layer=0&head=0&unit=piece&cell=[1,2]")
    tab.page.wait_for_selector("[data-change=set]")
    tab.page.locator("[data-change=set]").click()
    tab.page.wait_for_selector("#changed")
    tab.page.locator("svg.map").focus()
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("ArrowRight")
    assert re.search(r"← d: 1\.00 · row sum 1\.000", tab.page.locator(".status").inner_text())
    tab.close()


@pytest.mark.parametrize("view", ["compare", "training", "search"])
def test_views_of_a_server(browser: Any, address: str, view: str):
    tab = Tab(browser, address + f"#text=fade&view={view}")
    tab.page.wait_for_selector(
        {"compare": "#view .even svg.map", "training": "#view svg", "search": "#finished tr"}[view]
    )
    if view == "compare":
        # The view is drawn again when the list of models arrives, so both conditions must hold at one moment.
        tab.page.wait_for_function(
            "() => document.querySelectorAll('#view .said').length === 2"
            " && document.querySelector('#view').innerText.includes('Both outputs are the same.')"
        )
    if AXE.is_file():
        tab.page.evaluate(AXE.read_text(encoding="utf-8"))
        violations = tab.page.evaluate("axe.run()")["violations"]
        assert [one["id"] for one in violations if one["impact"] in ("serious", "critical")] == []
    tab.close()


def test_a_refusal_is_shown_as_text(browser: Any, address: str):
    tab = Tab(browser, address + "#text=fade&prefix=[9999999]")
    tab.page.wait_for_selector("[role=alert]")
    assert "token 9999999 is not in the vocabulary" in tab.page.locator("[role=alert]").inner_text()
    tab.faults.clear()  # the browser logs the refused request itself
    tab.close()
