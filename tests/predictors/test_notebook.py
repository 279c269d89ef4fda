"""Widget for notebooks; its script runs in a browser with a model that stands in for the notebook's."""

import json
import sys
from pathlib import Path

import pytest

from heedful.errors import MissingExtra, UsageError
from heedful.predictors import notebook
from heedful.predictors.notebook import SCRIPT, make_widget
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from tests.cli.conftest import Trained
from tests.pages.browser import Tab, chromium, needs_chromium

HOST = """<!DOCTYPE html><html lang="en"><title>host</title><body><script type="module">
window.traits = {text: "fade", page: "<p>first</p>", error: ""};
const heard = {};
const model = {
    get: (name) => window.traits[name],
    set: (name, value) => { window.traits[name] = value; },
    on: (name, call) => { heard[name] = call; },
    save_changes: () => {
        window.traits.page = `<p>page of ${window.traits.text}</p>`;
        window.traits.error = window.traits.text === "bad" ? "no such word" : "";
        heard["change:page"](); heard["change:error"]();
    },
};
const module = await import("data:text/javascript," + encodeURIComponent(SOURCE));
module.default.render({model, el: document.body});
</script></body></html>"""


@pytest.fixture
def translator(trained: Trained) -> Translator:
    return load(trained.model, engine="torch", kind=Translator)


def test_without_anywidget_the_extra_is_named(translator: Translator, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    notebook._widget_kind.cache_clear()  # type: ignore[attr-defined]
    with pytest.raises(MissingExtra, match=r"heedful.widget needs anywidget: .*notebook"):
        make_widget(translator, "fade")


def test_the_page_follows_the_text(translator: Translator):
    pytest.importorskip("anywidget", reason="anywidget is not installed: the extra notebook")
    widget = make_widget(translator, "fade")
    output = translator.translate(["fade"])[0].text
    assert widget.error == ""
    assert '"text": "fade"' in widget.page
    assert output in widget.page
    before = widget.page
    widget.text = "bead"
    assert '"text": "bead"' in widget.page
    assert widget.page != before
    widget.text = "  "
    assert (widget.page, widget.error) == ("", "")
    widget.close()


def test_an_error_takes_the_place_of_the_page():
    class Viewer:
        def view(self, request: object) -> object:
            raise UsageError("the model has left")

    assert notebook._page(Viewer(), "fade") == ("the model has left", "")  # type: ignore[arg-type]


@needs_chromium
def test_its_script_sends_what_is_typed_and_shows_what_comes_back(tmp_path: Path):
    (tmp_path / "host.html").write_text(HOST.replace("SOURCE", json.dumps(SCRIPT)), encoding="utf-8")
    with chromium() as browser:
        tab = Tab(browser, (tmp_path / "host.html").as_uri(), ready="iframe")
        frame = tab.page.frame_locator("iframe").locator("p")
        assert (frame.inner_text(), tab.page.input_value("input")) == ("first", "fade")
        tab.page.fill("input", "bead")
        tab.page.press("input", "Enter")
        frame.get_by_text("page of bead").wait_for()
        assert not tab.page.locator("[role=alert]").is_visible()
        tab.page.fill("input", "bad")
        tab.page.press("input", "Enter")
        tab.page.get_by_text("no such word").wait_for()
        tab.close()
