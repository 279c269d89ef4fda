"""Memory of the page with a model inside: what it has shown and computed is let go, whatever the model's task."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from heedful.cli.messages import Messages
from heedful.cli.web_export import export_web
from heedful.predictors.table import load
from tests.cli.conftest import Trained
from tests.js.node import needs_runtime
from tests.pages.browser import PageMemory, Tab, chromium, needs_chromium
from tests.serving.task_models import TaskModels
from tests.thorough import thorough

pytestmark = [needs_runtime, needs_chromium, thorough]

SHOWN: Final = """text => document.querySelector('#source').value === text && !document.querySelector('#output.busy')
  && document.querySelector('#output .word, #output .shares') !== null"""
DROP: Final = """data => {
  const files = new DataTransfer();
  files.items.add(new File([Uint8Array.from(atob(data), (one) => one.charCodeAt(0))], 'a.png', { type: 'image/png' }));
  document.querySelector('#drop').dispatchEvent(new DragEvent('drop', { dataTransfer: files, cancelable: true }));
}"""
FEW: Final = 60
"""Requests before the first measure: more than the page keeps answers of."""
MORE: Final = 120
MOST_BYTES: Final = 400_000
"""Growth of the heap, which swings by half of that. A page that keeps what it has drawn grows by as much, and one that
keeps the long texts of a classifier by 590,000."""


def ask_text(tab: Tab, text: str, question: str = "") -> None:
    tab.page.evaluate("given => { location.hash = new URLSearchParams(given) }", {"text": text, "question": question})
    tab.page.wait_for_function(SHOWN, arg=text)


def ask_picture(tab: Tab, picture: bytes) -> None:
    # Dropped on the page, because Playwright holds the elements that it gives files to.
    tab.page.evaluate(DROP, base64.b64encode(picture).decode())
    tab.page.wait_for_function("() => document.querySelector('#caption .word') !== null")


ASK: Final[dict[str, Callable[[Tab, int, TaskModels], None]]] = {
    "translator": lambda tab, number, _: ask_text(tab, "fade cab deaf"[number % 9 :] + "abcdef"[number % 6] * 4),
    "classifier": lambda tab, number, _: ask_text(tab, f"A clean room {number}. {number}{'z' * 4900}"),
    "answerer": lambda tab, number, _: ask_text(tab, f"Ada went to attic {number}.", "Where is Ada?"),
    "finder": lambda tab, number, _: ask_text(tab, f"Ada went to attic {number}.", "Where is Ada?"),
    "captioner": lambda tab, number, models: ask_picture(tab, models.picture),
}


@pytest.mark.parametrize("name", ASK)
def test_a_page_lets_go_of_what_it_has_shown(name: str, task_models: TaskModels, trained: Trained, tmp_path: Path):
    model = trained.model if name == "translator" else getattr(task_models, name)
    path = tmp_path / "page.html"
    export_web(load(model, engine="torch"), "html", Messages(True), path)
    with chromium() as browser:
        tab = Tab(browser, path.as_uri())
        memory = PageMemory(tab)
        for number in range(FEW):
            ASK[name](tab, number, task_models)
        nodes, size = memory.nodes(), memory.bytes()
        for number in range(FEW, FEW + MORE):
            ASK[name](tab, number, task_models)
        assert memory.nodes() - nodes < MORE, "a page keeps nodes that it no longer shows"
        assert memory.bytes() - size < MOST_BYTES
        tab.close()


def test_nodes_that_stay_are_counted():
    """The measure sees a page that keeps its nodes."""
    with chromium() as browser:
        tab = Tab(browser, "data:text/html,<div id=view><p>shown</p></div>")
        memory = PageMemory(tab)
        nodes = memory.nodes()
        tab.page.evaluate("() => { window.kept = Array.from({ length: 500 }, () => document.createElement('p')) }")
        assert memory.nodes() - nodes >= 500
        tab.close()
