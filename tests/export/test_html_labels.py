"""Pages with a classifier or a model that answers questions inside: Chromium shows from disk what the server says."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from heedful.cli.messages import Messages
from heedful.cli.web_export import export_web
from heedful.predictors.captioner import Captioner
from heedful.predictors.label_views import answer_view, classification_view
from heedful.predictors.table import load
from tests.js.node import needs_runtime
from tests.pages.browser import Tab, assert_accessible, chromium, needs_chromium
from tests.serving.task_models import TaskModels
from tests.serving.test_inference import claiming
from tests.thorough import thorough

pytestmark = [needs_runtime, needs_chromium]
TEXT = "A clean <b>room</b>, Dr. Who. 房间很好。Rude staff."
FACTS = "Ada went to the attic.\nBoris went to the cellar 😀."
QUESTION = "Where is Ada?"


@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    with chromium() as started:
        yield started


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", TaskModels._fields)
@thorough
def test_pages_of_every_task_are_accessible(
    browser: Any, task_models: TaskModels, name: str, scheme: str, tmp_path: Path
):
    address = written(getattr(task_models, name), tmp_path, "a quiet room | Where is Ada?")
    for width in (1280, 400):
        tab = Tab(browser, address, width=width, scheme=scheme)
        assert_accessible(tab)
        if name == "captioner":
            tab.page.locator("#file").set_input_files(
                {"name": "a.png", "mimeType": "image/png", "buffer": task_models.picture}
            )
            tab.page.wait_for_selector("#caption .word")
        else:
            tab.page.locator("#source").fill(FACTS)
            if name != "classifier":
                tab.page.locator("#question").fill(QUESTION)
            tab.page.wait_for_selector("#words, #facts")
        assert_accessible(tab)
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
        tab.close()


def written(model: Path, folder: Path, *examples: str) -> str:
    path = folder / f"{model.stem}.html"
    export_web(load(model, engine="torch"), "html", Messages(True), path, "float32", examples)
    return path.as_uri()


def shades(tab: Tab) -> list[int]:
    """Strength of the colour of each word, in percent."""
    script = """() => [...document.querySelectorAll('.weighed')].map((each) =>
        Number(/ ([0-9]+)%/.exec(each.getAttribute('style'))[1]))"""
    return tab.page.evaluate(script)


def expected_shades(values: list[float]) -> list[float]:
    largest = max(map(abs, values))
    return [60 * abs(value) / largest if abs(value) >= 0.05 * largest else 0 for value in values]


def test_the_page_of_a_classifier_says_what_the_server_says(browser: Any, task_models: TaskModels, tmp_path: Path):
    tab = Tab(browser, written(task_models.classifier, tmp_path, "a quiet room"))
    assert tab.page.locator("[role=tab]").all_text_contents() == ["Classify", "Learn"]
    tab.page.locator("#examples button").click()
    tab.page.wait_for_selector("#words .weighed")
    tab.page.locator("#source").fill(TEXT)
    view = classification_view(load(task_models.classifier), {"text": TEXT}, None)
    words = [word for sentence in view["sentences"] for word in sentence if word[0].strip()]
    shown = "() => [...document.querySelectorAll('.weighed')].map((each) => each.textContent)"
    tab.page.wait_for_function(f"count => ({shown})().length === count", arg=len(words))
    assert tab.page.evaluate(shown) == [word.strip() for word, _, _ in words]
    assert tab.page.locator("#label").inner_text() == view["label"]
    assert shades(tab) == pytest.approx(expected_shades([weight for _, weight, _ in words]), abs=1.5)
    tab.page.locator("#words .segments button").last.click()
    assert shades(tab) == pytest.approx(expected_shades([effect for _, _, effect in words]), abs=1.5)
    assert f"{view['correlation']:.2f}".replace("-", "−") in tab.page.locator("#words").inner_text()
    tab.close()


@pytest.mark.parametrize("name", ["answerer", "finder"])
def test_the_page_of_an_answerer_says_what_the_server_says(
    browser: Any, task_models: TaskModels, name: str, tmp_path: Path
):
    model = getattr(task_models, name)
    tab = Tab(browser, written(model, tmp_path, f"Ada sat down. | {QUESTION}"), width=400, scheme="dark")
    tab.page.locator("#examples button").click()
    tab.page.wait_for_selector("#facts")
    tab.page.locator("#source").fill(FACTS)
    tab.page.locator("#question").fill(QUESTION)
    tab.page.wait_for_function("() => document.querySelector('#facts')?.textContent.includes('cellar')")
    view = answer_view(load(model), {"text": FACTS, "question": QUESTION})
    assert tab.page.locator("#answer").inner_text() == view["answer"]
    if view["span"] is None:
        shares = tab.page.evaluate(
            "() => [...document.querySelectorAll('#facts td .number')].map((e) => e.textContent)"
        )
        wanted = [row[fact] for fact in range(2) for row in view["weights"]]
        assert [float(share.removesuffix(" %")) for share in shares] == pytest.approx(
            [100 * one for one in wanted], abs=1
        )
    else:
        span = view["span"]
        ends = [(one + other) / 2 for one, other in zip(span["start_weights"], span["end_weights"], strict=True)]
        visible = [value for value, token in zip(ends, span["tokens"], strict=True) if token.strip()]
        assert shades(tab) == pytest.approx(expected_shades(visible), abs=1.5)
        marked = "".join(tab.page.locator(".weighed.answer").all_text_contents())
        assert marked.replace(" ", "") == view["answer"].replace(" ", "")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 400
    tab.close()


def test_the_page_of_a_captioner_shows_where_words_look(browser: Any, task_models: TaskModels, tmp_path: Path):
    tab = Tab(browser, written(task_models.captioner, tmp_path))
    file = {"name": "a.png", "mimeType": "image/png", "buffer": task_models.picture}
    tab.page.locator("#file").set_input_files(file)
    tab.page.wait_for_selector("#caption .word")
    (caption,) = load(task_models.captioner, kind=Captioner).caption([task_models.picture], beam=5, attention=True)
    assert tab.page.locator("#caption").inner_text() == caption.text
    tab.page.locator("#caption .word").nth(1).click()
    dark = "() => [...document.querySelectorAll('.veil rect')].map((each) => Number(each.getAttribute('fill-opacity')))"
    assert caption.attention is not None
    weights = caption.attention[1]
    wanted = [0.78 * (1 - weight / weights.max()) for weight in weights]
    assert tab.page.evaluate(dark) == pytest.approx(wanted, abs=2e-3)
    for content, reason in ((b"no picture", "cannot be read"), (claiming(10_000, 10_000), "10000 x 10000 pixels")):
        tab.page.locator("#file").set_input_files(file | {"buffer": content})
        tab.page.wait_for_selector("[role=alert]")
        tab.page.wait_for_function(
            "reason => document.querySelector('[role=alert]').innerText.includes(reason)", arg=reason
        )
    tab.close()
