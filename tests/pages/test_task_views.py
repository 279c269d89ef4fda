"""Views of the page for models that classify, answer and caption: what Python says is shown, as text, on any screen."""

from collections.abc import Generator
from typing import Any

import pytest

from heedful.predictors.answerer import Answerer
from heedful.predictors.captioner import Captioner
from heedful.predictors.classifier import Classifier
from heedful.predictors.page_requests import PageRequests
from heedful.predictors.table import load
from heedful.text.stories import Story
from tests.cli.conftest import Trained
from tests.pages.browser import Tab, assert_accessible, chromium, needs_chromium
from tests.pages.server import served
from tests.pages.test_app import ALL_TEXT, LATIN
from tests.serving.task_models import TaskModels

pytestmark = needs_chromium
FACTS = "Ada went to the attic.\nBoris went to the cellar."
QUESTION = "Where is Ada?"
NAMES = ("reviews.model", "stories.model", "notices.model", "scenes.model")


@pytest.fixture(scope="module")
def browser() -> Generator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def address(task_models: TaskModels, trained: Trained) -> Generator[str]:
    paths = (trained.model, *task_models)
    with served({path.name: load(path, engine="torch") for path in paths}) as place:
        yield place


def opened(browser: Any, address: str, model: str, **options: Any) -> Tab:
    return Tab(browser, f"{address}#model={model}&view=inside", ready="#tab-training", **options)


def test_a_label_is_shown_with_its_words_and_markup_stays_text(
    browser: Any, address: str, task_models: TaskModels, trained: Trained
):
    tab = opened(browser, address, "reviews.model")
    tabs = "() => [...document.querySelectorAll('[role=tab]')].map((each) => each.id)"
    assert tab.page.evaluate(tabs) == ["tab-classify", "tab-training", "tab-learn"]
    text = "A clean <img src=x onerror=window.hacked=1>. Rude staff."
    tab.page.locator("#source").fill(text)
    tab.page.wait_for_selector("#words .weighed")
    (result,) = load(task_models.classifier, kind=Classifier).classify([text])
    assert tab.page.locator("#label").inner_text() == result.label
    names = tab.page.locator(".shares .what").all_text_contents()
    assert names == list(result.probabilities)
    assert tab.page.locator(".weighed-line").count() == 2
    assert "<img" in tab.page.locator("#words").text_content()
    before = tab.page.locator(".weighed").first.get_attribute("style")
    tab.page.locator("#words .segments button").last.click()
    tab.page.wait_for_function(
        "before => document.querySelector('.weighed').getAttribute('style') !== before", arg=before
    )
    tab.page.locator(".weighed").first.hover()
    assert "nats" in tab.page.locator("#words .status").inner_text()
    assert tab.page.evaluate("window.hacked") is None
    # Another model brings its own views, and the text stays.
    tab.page.locator("select").select_option(trained.model.name)
    tab.page.wait_for_selector("#tab-translate[aria-selected=true]")
    assert tab.page.locator("#source").input_value() == text
    tab.page.locator("#source").fill("fade")
    tab.page.wait_for_selector("#output .word")
    tab.close()


def test_an_answer_is_shown_with_its_facts_or_its_place(browser: Any, address: str, task_models: TaskModels):
    tab = opened(browser, address, "stories.model")
    tab.page.locator("#source").fill(FACTS)
    tab.page.locator("#question").fill(QUESTION)
    tab.page.wait_for_selector("#facts table")
    story = Story(tuple(FACTS.split("\n")), QUESTION)
    (answer,) = load(task_models.answerer, kind=Answerer).answer([story])
    assert tab.page.locator("#answer").inner_text() == answer.answer
    assert tab.page.locator("#facts td.fact").all_text_contents() == list(story.facts)
    assert answer.weights is not None
    assert tab.page.locator("#facts thead th").count() == 1 + len(answer.weights)
    tab.page.locator("select").select_option("notices.model")
    tab.page.wait_for_selector("#facts .weighed.answer")
    (found,) = load(task_models.finder, kind=Answerer).answer([story])
    assert tab.page.locator("#answer").inner_text() == found.answer
    assert "".join(tab.page.locator(".weighed.answer").all_text_contents()) == found.answer.replace(" ", "")
    tab.close()


def test_a_caption_shows_where_its_words_look(browser: Any, address: str, task_models: TaskModels):
    tab = opened(browser, address, "scenes.model")
    file = {"name": "a.png", "mimeType": "image/png", "buffer": task_models.picture}
    tab.page.locator("#file").set_input_files(file)
    tab.page.wait_for_selector("#caption .word")
    (caption,) = load(task_models.captioner, kind=Captioner).caption([task_models.picture], beam=5, attention=True)
    assert tab.page.locator("#caption").inner_text() == caption.text
    others = tab.page.locator("tbody td:first-child").all_text_contents()
    assert others
    assert caption.text not in others
    dark = "() => [...document.querySelectorAll('.veil rect')].map((each) => Number(each.getAttribute('fill-opacity')))"
    assert set(tab.page.evaluate(dark)) == {0}
    tab.page.locator("#caption .word").nth(1).click()
    shown = tab.page.evaluate(dark)
    assert caption.attention is not None
    weights = caption.attention[1]
    assert shown == pytest.approx([0.78 * (1 - weight / weights.max()) for weight in weights], abs=2e-3)
    tab.page.locator("#file").set_input_files(file | {"buffer": b"no picture"})
    tab.page.wait_for_selector("[role=alert]")
    assert "no picture" in tab.page.locator("[role=alert]").inner_text()
    tab.context.close()


@pytest.mark.parametrize("model", NAMES)
def test_views_fit_a_narrow_screen_in_chinese_and_are_accessible(
    browser: Any, address: str, model: str, task_models: TaskModels
):
    tab = opened(browser, address, model, width=400, scheme="dark", language="zh-CN")
    if model == "scenes.model":
        tab.page.locator("#file").set_input_files(
            {"name": "a.png", "mimeType": "image/png", "buffer": task_models.picture}
        )
        tab.page.wait_for_selector("#caption .word")
    else:
        tab.page.locator("#source").fill(FACTS)
        if tab.page.locator("#question").count():
            tab.page.locator("#question").fill(QUESTION)
        tab.page.wait_for_selector("#words, #facts")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 400
    predictor: Any = load(task_models[NAMES.index(model)])
    data = " ".join(
        (
            FACTS,
            QUESTION,
            model,
            *getattr(predictor, "labels", ()),
            *predictor.tokenizer.pieces(range(len(predictor.tokenizer))),
        )
    )
    english = {*LATIN.findall(tab.page.evaluate(ALL_TEXT))} - {*LATIN.findall(data), *LATIN.findall(data.lower())}
    assert english <= {"heedful", "English"}
    assert_accessible(tab)
    tab.close()


def test_examples_of_the_empty_page_are_asked(browser: Any, address: str, task_models: TaskModels):
    requests = PageRequests({"stories.model": load(task_models.answerer, engine="torch")})
    sample = requests.training("")["samples"][0]
    assert "\n" in sample["source"]
    assert sample["question"].endswith("?")
    tab = opened(browser, address, "stories.model")
    tab.page.locator("#examples button").first.click()
    tab.page.wait_for_selector("#facts table")
    assert tab.page.locator("#question").input_value() == sample["question"]
    tab.close()
