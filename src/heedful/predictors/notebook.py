"""Widget for notebooks: a line to type in, and the page of its sentence, translated by the model of the notebook."""

from functools import cache
from importlib import import_module
from typing import Any, Final

from heedful.errors import HeedfulError, needed_for
from heedful.pages.bundle import offline_page
from heedful.predictors.sentence_view import SentenceViewer, ViewRequest
from heedful.predictors.translator import Translator

TRACED_BEAMS: Final = (1, 5)
"""Beams whose searches the page shows."""
SCRIPT: Final = """
export default {
  render({ model, el }) {
    const line = Object.assign(document.createElement("input"), { type: "text", value: model.get("text") });
    line.setAttribute("aria-label", "source");
    line.style.cssText = "box-sizing: border-box; width: 100%; padding: .4rem; font: inherit";
    const note = Object.assign(document.createElement("p"), { hidden: true });
    note.setAttribute("role", "alert");
    const frame = Object.assign(document.createElement("iframe"), { title: "attention" });
    frame.sandbox = "allow-scripts allow-downloads";
    frame.style.cssText = "width: 100%; height: 42rem; border: 0";
    const show = () => {
      note.textContent = model.get("error");
      note.hidden = !note.textContent;
      frame.srcdoc = model.get("page");
    };
    const send = () => {
      if (line.value === model.get("text")) return;
      model.set("text", line.value);
      model.save_changes();
    };
    line.addEventListener("change", send);
    // In JupyterLab no change follows the Enter key.
    line.addEventListener("keydown", (event) => { if (event.key === "Enter") send(); });
    model.on("change:text", () => { line.value = model.get("text"); });
    model.on("change:page", show);
    model.on("change:error", show);
    el.append(line, note, frame);
    show();
  },
};
"""
"""Module that the notebook runs: a source is sent when Enter is pressed, and the page comes back."""


def make_widget(translator: Translator, text: str = "") -> Any:
    """Make a widget that shows the page of a sentence and follows what is typed.

    Args:
        translator: model that translates what is typed.
        text: first source; empty = none yet.

    Returns:
        The `anywidget.AnyWidget`, with the traits `text`, `page` and `error`; setting `text` from Python has the same

    Raises:
        MissingExtra: anywidget is not installed.

    Cost: a translation, and two recorded searches, for each change of the text.

    Example:
        >>> widget = heedful.widget(heedful.load("de-en.model"), "Ein Mann schläft.")  # doctest: +SKIP
    """
    with needed_for("heedful.widget"):
        kind = _widget_kind()
    viewer = SentenceViewer(translator)
    widget = kind(text=text)

    def update(change: object = None) -> None:
        widget.error, widget.page = _page(viewer, widget.text)

    widget.observe(update, names="text")
    update()
    return widget


def _page(viewer: SentenceViewer, text: str) -> tuple[str, str]:
    """Message about an error, and page; both are empty for a blank text."""
    if not text.strip():
        return "", ""
    try:
        view = viewer.view(ViewRequest(text, is_offline=True, traced_beams=TRACED_BEAMS))
    except HeedfulError as error:
        return str(error), ""
    return "", offline_page(f"{view.text} · {view.model}", view.to_dict())


@cache
def _widget_kind() -> Any:
    """Class of widgets, made on first use, because its base is an optional package."""
    base, text = import_module("anywidget").AnyWidget, import_module("traitlets").Unicode
    traits = {name: text().tag(sync=True) for name in ("text", "page", "error")}
    return type("SentenceWidget", (base,), {"_esm": SCRIPT, **traits})
