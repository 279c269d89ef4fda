"""The page with a running model: what is typed, chosen and changed is translated again."""

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from heedful.predictors.page_requests import PageRequests
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.text.links import parse_pharaoh
from tests.cli.conftest import Trained
from tests.pages.browser import AXE, Tab, chromium, needs_chromium
from tests.pages.server import served
from tests.pages.test_app import ALL_TEXT, LATIN
from tests.thorough import sampled, thinned

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def translator(trained: Trained) -> Translator:
    opened = load(trained.model, engine="torch")
    assert isinstance(opened, Translator)
    return opened


@pytest.fixture(scope="module")
def address(translator: Translator) -> Generator[str]:
    with served({"first": translator, "second": translator}) as place:
        yield place


SHOWN = "text => document.querySelector('#output .words')?.textContent === text"


def words(tab: Tab) -> str:
    return tab.page.locator("#output .words").text_content()


def test_typing_gives_the_translation(browser: Any, address: str, translator: Translator):
    tab = Tab(browser, address)
    for text in ("fade", "cab"):
        tab.page.locator("#source").fill(text)
        (expected,) = translator.translate([text], beam=5)
        tab.page.wait_for_function(SHOWN, arg=expected.text)
        assert words(tab) == expected.text
        assert f"text={text}" in tab.page.url
    tab.close()


def test_an_example_of_the_empty_page_is_translated(browser: Any, address: str, translator: Translator):
    tab = Tab(browser, address)
    example = tab.page.locator("#examples button").first
    text = example.inner_text()
    example.click()
    (expected,) = translator.translate([text], beam=5)
    tab.page.wait_for_function(SHOWN, arg=expected.text)
    assert tab.page.locator("#source").input_value() == text
    assert tab.page.locator("#examples").count() == 0
    tab.close()


@pytest.mark.parametrize(("view", "part"), [("evaluate", "svg.lengths"), ("learn", ".vectors")])
def test_a_screen_of_400_pixels_shows_the_whole(browser: Any, address: str, view: str, part: str):
    tab = Tab(browser, address + f"#view={view}", ready=f"#view {part}", width=400)
    frame = tab.page.locator(f".scroll:has({part})")
    assert frame.evaluate("each => each.scrollWidth - each.clientWidth") <= 0
    tab.close()


def test_two_models_show_that_they_are_at_work(browser: Any, address: str):
    tab = Tab(browser, address)
    tab.page.route("**/page/view", lambda route: None)  # an answer that never comes
    tab.page.locator("#source").fill("fade")
    tab.page.locator("#tab-compare").click()
    tab.page.wait_for_function("() => document.querySelectorAll('#view .even .card').length === 2")
    assert tab.page.locator("#view .even").inner_text().count("Translating…") == 2
    tab.close()


def test_a_passage_is_shown_whole_and_one_segment_at_a_time(browser: Any, address: str, translator: Translator):
    tab = Tab(browser, address)
    tab.page.locator("#source").fill("fade\n\ncab")
    tab.page.wait_for_selector("#passage .part")
    (whole,) = translator.translate(["fade\n\ncab"], beam=5)
    assert tab.page.locator("#passage").text_content() == whole.text
    (first, second) = translator.translate(["fade", "cab"], beam=5)
    for part, output, source in ((0, first, "fade"), (1, second, "cab")):
        tab.page.locator("#passage .part").nth(part).focus()
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector(f"#passage .part:nth-of-type({part + 1})[aria-pressed=true]")
        tab.page.wait_for_function(SHOWN.replace("#output", "#segment"), arg=output.text)
        assert tab.page.locator("#segment .said").first.text_content() == source
    assert "segment=1" in tab.page.url
    tab.page.locator("#source").fill("fade")
    tab.page.wait_for_selector("#passage", state="detached")
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


@sampled(2)
@pytest.mark.parametrize("view", ["compare", "evaluate", "training", "search"])
def test_views_of_a_server(browser: Any, address: str, view: str):
    tab = Tab(browser, address + f"#text=fade&view={view}")
    shown = {
        "compare": "#view .even svg.map",
        "evaluate": "#view .figure",
        "training": "#view svg",
        "search": "#finished tr",
    }
    tab.page.wait_for_selector(shown[view])
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


STATES = {
    "translate": "#view=translate",
    "linking": "#view=translate",
    "inside": "#view=inside&cell=[0,0]",
    "linking inside": "#view=inside",
    **{name: f"#view=inside&measure={name}" for name in ("value-norm", "rollout", "alti", "gradients")},
    "search": "#view=search",
    "compare": "#view=compare",
    "evaluate": "#view=evaluate",
    "training": "#view=training",
    "refused": "#view=translate&prefix=[9999999]",
}
"""Views, editors and messages of a server's page, by the address that shows them."""
SYMBOLS = {
    "unk",
    "heedful",
    "English",
    "API",
    "token",
    "first",
    "second",
    "SVG",
    "PNG",
    "CSV",
    "ALTI",
    "BLEU",
    "Pharaoh",
}
"""Names, an unknown token, and the button that leads to English."""


def english(tab: Tab) -> set[str]:
    """Words of Latin letters on the page, but for those of the model's languages, whose letters are a to f."""
    return {word for word in LATIN.findall(tab.page.evaluate(ALL_TEXT)) if not re.fullmatch("[a-fA-F]+", word)}


@sampled(2)
@pytest.mark.parametrize("state", thinned(STATES, 3))
def test_a_server_s_page_is_accessible_and_leaves_no_english_in_chinese(browser: Any, address: str, state: str):
    tab = Tab(browser, address + STATES[state] + "&text=fa", language="zh-CN")
    tab.page.wait_for_load_state("networkidle")
    tab.page.wait_for_function("() => !document.querySelector('.busy')")
    if state.startswith("linking"):
        tab.page.locator("#correct").click()
    tab.page.evaluate("document.querySelectorAll('code').forEach((each) => each.remove())")  # commands
    assert english(tab) <= SYMBOLS
    if AXE.is_file():
        tab.page.evaluate(AXE.read_text(encoding="utf-8"))
        violations = tab.page.evaluate("axe.run()")["violations"]
        assert [one["id"] for one in violations if one["impact"] in ("serious", "critical")] == []
    tab.faults.clear()  # the browser logs a refused request itself
    tab.close()


def test_the_dialog_of_the_key_is_chinese(browser: Any, translator: Translator):
    with served({"first": translator}, key="secret") as address:
        tab = Tab(browser, address, language="zh-CN")
        tab.page.locator("#key").fill("1")
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector("form [role=alert]")
        assert english(tab) <= SYMBOLS
        tab.faults.clear()
        tab.close()


def test_a_refusal_is_shown_as_text(browser: Any, address: str):
    tab = Tab(browser, address + "#text=fade&prefix=[9999999]")
    tab.page.wait_for_selector("[role=alert]")
    assert "token 9999999 is not in the vocabulary" in tab.page.locator("[role=alert]").inner_text()
    tab.faults.clear()  # the browser logs the refused request itself
    tab.close()


def test_an_override_changes_the_output_and_reset_brings_it_back(browser: Any, address: str, translator: Translator):
    requests = PageRequests({"first": translator})
    tried = (
        (text, {"role": role, "layer": 0, "head": head, "kind": kind})
        for text in ("fade", "cab", "deaf", "beadfac", "acedbf")
        for role in ("cross", "encoder", "decoder")
        for head in (-1, 0, 1)
        for kind in ("off", "uniform")
    )
    text, change, before, after = next(
        (text, change, view["unchanged"], view["outputs"][0]["text"])
        for text, change in tried
        if (view := requests.view({"text": text, "beam": 5, "changes": [change]}))["outputs"][0]["text"]
        != view["unchanged"]
    )
    head = "mean" if change["head"] < 0 else change["head"]
    tab = Tab(browser, f"{address}#text={text}&view=inside&role={change['role']}&layer=0&head={head}&unit=piece")
    tab.page.locator(f"[data-change={change['kind']}]").click()
    tab.page.wait_for_selector("#changed")
    assert tab.page.locator("#changed").inner_text() == after != before
    tab.page.locator("#tab-translate").click()
    tab.page.wait_for_function(SHOWN, arg=after)
    tab.page.locator("#tab-inside").click()
    tab.page.locator("[data-change=reset]").click()
    tab.page.wait_for_selector("#changed", state="detached")
    tab.page.locator("#tab-translate").click()
    tab.page.wait_for_function(SHOWN, arg=before)
    tab.close()


def test_the_key_is_asked_for_sent_and_forgotten_with_the_tab(browser: Any, translator: Translator):
    with served({"first": translator}, key="secret") as address:
        tab = Tab(browser, address + "#text=fade")
        tab.page.wait_for_selector("#key")
        assert tab.page.locator("label[for=key]").inner_text() == "API key"
        tab.page.locator("#key").fill("wrong")
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector("form [role=alert]")
        tab.page.locator("#key").fill("secret")
        tab.page.get_by_role("button", name="Use this key").click()
        (expected,) = translator.translate(["fade"], beam=5)
        tab.page.wait_for_function(SHOWN, arg=expected.text)
        assert tab.page.evaluate("[JSON.stringify(sessionStorage), JSON.stringify(localStorage), location.href]") == [
            '{"heedful.key":"secret"}',
            '{"heedful.theme":"auto"}',
            tab.page.url,
        ]
        assert "secret" not in tab.page.url
        tab.faults.clear()  # the browser logs the refused requests itself
        tab.page.reload()
        tab.page.wait_for_function(SHOWN, arg=expected.text)
        tab.close()
        other = Tab(browser, address + "#text=fade")
        other.page.wait_for_selector("#key")
        other.faults.clear()
        other.close()


def shown_links(tab: Tab) -> str:
    """Links in Pharaoh format, once they are there: they are written when the words have their places."""
    tab.page.wait_for_function("() => document.querySelector('#pharaoh')?.textContent")
    return str(tab.page.locator("#pharaoh").inner_text())


@pytest.mark.parametrize("view", ["translate", "inside"])
def test_links_are_drawn_by_drag_and_by_keyboard_and_saved(browser: Any, address: str, view: str):
    tab = Tab(browser, address + f"#text=fa-de-cab&view={view}")
    tab.page.wait_for_selector("#view .word")
    tab.page.locator("#correct").click()
    tab.page.locator("[data-links=clear]").click()
    assert shown_links(tab) == "–"
    word = "#linking [data-side='{}'][data-index='{}']"
    middles = [tab.page.locator(word.format(*place)).bounding_box() for place in ((0, 2), (1, 0))]
    from_x, from_y, to_x, to_y = (
        box[corner] + box[size] / 2 for box in middles for corner, size in (("x", "width"), ("y", "height"))
    )

    def drag() -> None:
        tab.page.mouse.move(from_x, from_y)
        tab.page.mouse.down()
        tab.page.mouse.move((from_x + to_x) / 2, (from_y + to_y) / 2)
        tab.page.mouse.move(to_x, to_y)
        tab.page.mouse.up()

    drag()
    assert shown_links(tab) == "2-0"
    tab.page.locator(word.format(0, 0)).focus()
    for key in ("ArrowRight", "Enter", "ArrowDown", "Home", "Enter"):
        tab.page.keyboard.press(key)
    assert shown_links(tab) == "1-0 2-0"
    drag()
    assert shown_links(tab) == "1-0"
    assert tab.page.locator("#linking path[data-link]").count() == 1
    with tab.page.expect_download() as download:
        tab.page.locator("[data-links=save]").click()
    source, target, links = Path(download.value.path()).read_text("utf-8").removesuffix("\n").split("\t")
    assert source.split() == tab.page.locator("#linking [data-side='0']").all_inner_texts()
    assert target.split() == tab.page.locator("#linking [data-side='1']").all_inner_texts()
    assert parse_pharaoh(links) == [(1, 0)]
    tab.close()


def test_links_corrected_in_one_view_are_those_of_the_other(browser: Any, address: str):
    tab = Tab(browser, address + "#text=fa-de-cab&view=inside")
    tab.page.wait_for_selector("#view .word")
    tab.page.locator("#correct").click()
    # They begin with the links of the head that is shown.
    first = {shown_links(tab)}
    for button in tab.page.locator(".thumbs button").all():
        button.click()
        first.add(shown_links(tab))
    assert len(first) > 1
    tab.page.locator("[data-links=clear]").click()
    tab.page.evaluate("location.hash = '#text=fa-de-cab&view=translate'")
    tab.page.wait_for_selector("#output")
    assert shown_links(tab) == "–"
    assert tab.page.locator("#correct").get_attribute("aria-pressed") == "true"
    tab.close()


@pytest.mark.parametrize("is_recorded", [False, True])
def test_the_worst_outputs_are_loaded_by_a_click(
    browser: Any,
    address: str,
    translator: Translator,
    monkeypatch: pytest.MonkeyPatch,
    is_recorded: bool,
):
    bucket = {"shortest": 1, "longest": 4, "numItems": 9, "score": 30.0, "low": 20.0, "high": 40.0}
    metric = {"key": "bleu", "name": "BLEU", "unit": "", "score": 25.0, "low": 20.0, "high": 30.0}
    record = {
        "metrics": [{**metric, "byLength": [bucket, bucket]}] if is_recorded else [],
        "numItems": 18,
        "lengthUnit": "words",
        "worstBy": "BLEU",
        "worst": [{"source": "fade", "reference": "FADED", "output": "F", "score": 1.0}],
        "command": "heedful evaluate first TEST.tsv --record",
    }
    monkeypatch.setattr(PageRequests, "evaluation", lambda *_: record)
    with served({"first": translator}) as place:
        tab = Tab(browser, place + "#view=evaluate")
        if not is_recorded:
            tab.page.wait_for_selector("#view .notice")
            assert record["command"] in tab.page.locator("#view").inner_text()
        else:
            tab.page.wait_for_function("() => document.querySelectorAll('svg.lengths rect').length === 2")
            tab.page.locator(".worst button").click()
            (expected,) = translator.translate(["fade"], beam=5)
            tab.page.wait_for_function(SHOWN, arg=expected.text)
            assert tab.page.locator("#source").input_value() == "fade"
            assert "FADED" in tab.page.locator("#reference").inner_text()
            assert "reference=FADED" in tab.page.url
        tab.close()
