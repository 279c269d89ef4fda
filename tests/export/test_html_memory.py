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
from tests.pages.browser import Frames, PageMemory, Tab, WorkerMemory, chromium, needs_chromium
from tests.serving.task_models import TaskModels
from tests.thorough import thorough

pytestmark = [needs_runtime, needs_chromium, thorough]

SHOWN: Final = """text => document.querySelector('#source').value === text && !document.querySelector('#output.busy')
  && document.querySelector('#output .word, #output .shares, #output .part') !== null"""
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


WORKER: Final = """data:text/html,<div id=view><p>shown</p></div><p id=output class=busy></p><script>
window.worker = new Worker(URL.createObjectURL(new Blob(['const kept = []; onmessage = ({ data }) => {' +
  'kept.push(Array.from({ length: data }, Math.random)); postMessage(0); };'])));
window.grown = (size) => new Promise((go) => { worker.onmessage = go; worker.postMessage(size); });
</script>"""


def test_what_a_worker_keeps_is_counted():
    """The measure sees a worker that keeps what it has computed, and the page's own does not."""
    with chromium() as browser:
        tab = Tab(browser, WORKER)
        tab.page.evaluate("() => window.grown(1).then(() => 0)")
        memories = PageMemory(tab), WorkerMemory(tab)
        before = [one.bytes() for one in memories]
        tab.page.evaluate("() => window.grown(1_000_000).then(() => 0)")
        page, worker = (one.bytes() - size for one, size in zip(memories, before, strict=True))
        assert worker > 7_900_000 > 1_000_000 > page
        tab.close()


def test_frames_while_a_model_works_are_told_from_those_that_draw_an_answer():
    """A task of the page that draws an answer is none of the frames while the model works; one without an answer is."""
    block = "const end = performance.now() + 200; while (performance.now() < end);"
    answer = (
        "document.querySelector('#output').replaceWith(Object.assign(document.createElement('p'), { id: 'output' }))"
    )
    with chromium() as browser:
        for script, is_working in ((f"{block} {answer}", False), (block, True)):
            tab = Tab(browser, WORKER)
            frames = Frames(tab)
            tab.page.wait_for_timeout(200)
            tab.page.evaluate(f"() => {{ {script} }}")
            tab.page.wait_for_timeout(300)
            drawn = frames.longest()
            assert drawn.gap >= 150
            assert (drawn.working_gap >= 150) == is_working, drawn
            tab.close()
