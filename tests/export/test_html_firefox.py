"""The page with a model inside in Firefox, from disk: what Python answers, in a worker, for every task."""

import base64
from collections.abc import Generator
from pathlib import Path

import pytest

from heedful.cli.messages import Messages
from heedful.cli.web_export import export_web
from heedful.predictors.answerer import Answerer
from heedful.predictors.captioner import Captioner
from heedful.predictors.classifier import Classifier
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.text.stories import Story
from tests.cli.conftest import Trained
from tests.export.test_html_memory import DROP
from tests.js.node import needs_runtime
from tests.pages.firefox import Firefox, firefox, needs_firefox
from tests.serving.task_models import TaskModels
from tests.thorough import thorough

pytestmark = [needs_runtime, needs_firefox, thorough]

ASK = "location.hash = new URLSearchParams(arguments[0])"
SAID = "return document.querySelector('#output:not(.busy) ' + arguments[0])?.textContent"
TEXT = "A clean room. Rude staff."
STORY = Story(("Ada went to the attic.", "Boris went to the cellar."), "Where is Ada?")


@pytest.fixture(scope="module")
def browser() -> Generator[Firefox]:
    with firefox() as started:
        yield started


def opened(browser: Firefox, model: Path, folder: Path, policy: str = "worker-src blob:") -> None:
    path = folder / "page.html"
    export_web(load(model, engine="torch"), "html", Messages(True), path, "float32")
    html = path.read_text("utf-8")
    path.write_text(html.replace("worker-src blob:", policy), encoding="utf-8", newline="\n")
    browser.open(path.as_uri())


@pytest.mark.parametrize("policy", ["worker-src blob:", "worker-src 'none'"], ids=["worker", "page"])
def test_a_text_is_translated(browser: Firefox, trained: Trained, policy: str, tmp_path: Path):
    opened(browser, trained.model, tmp_path, policy)
    browser.run(ASK, {"text": "fade cab"})
    (expected,) = load(trained.model, kind=Translator).translate(["fade cab"], beam=5)
    assert browser.wait(SAID, ".words") == expected.text
    selected = """const words = document.querySelector('#output .words');
      getSelection().selectAllChildren(words);
      return [words.innerText, getSelection().toString()];"""
    assert browser.run(selected) == [expected.text, expected.text]


def test_a_text_is_classified(browser: Firefox, task_models: TaskModels, tmp_path: Path):
    opened(browser, task_models.classifier, tmp_path)
    browser.run(ASK, {"text": TEXT})
    (expected,) = load(task_models.classifier, kind=Classifier).classify([TEXT])
    assert browser.wait(SAID, "#label") == expected.label
    shares = browser.run("return [...document.querySelectorAll('.shares .what')].map((one) => one.textContent)")
    assert shares == list(expected.probabilities)


@pytest.mark.parametrize("name", ["answerer", "finder"])
def test_a_question_is_answered(browser: Firefox, task_models: TaskModels, name: str, tmp_path: Path):
    opened(browser, getattr(task_models, name), tmp_path)
    browser.run(ASK, {"text": "\n".join(STORY.facts), "question": STORY.question})
    (expected,) = load(getattr(task_models, name), kind=Answerer).answer([STORY])
    assert browser.wait(SAID, "#answer") == expected.answer


def test_a_picture_is_described(browser: Firefox, task_models: TaskModels, tmp_path: Path):
    opened(browser, task_models.captioner, tmp_path)
    browser.wait("return document.querySelector('#drop') !== null")
    browser.run(f"({DROP})(arguments[0])", base64.b64encode(task_models.picture).decode())
    browser.wait(SAID, "#caption .word")
    (expected,) = load(task_models.captioner, kind=Captioner).caption([task_models.picture], beam=5)
    assert browser.run("return document.querySelector('#caption').innerText") == expected.text
