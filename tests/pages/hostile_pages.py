"""Pages with a payload in every text, attribute, title, file name and model name, walked through in a browser."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from heedful.pages.bundle import offline_page
from heedful.pages.sentence import SentenceView
from tests.pages.browser import Tab
from tests.pages.views import sentence_view

VIEWS: Final = ("translate", "inside", "search", "evaluate", "learn")
_KEYS: Final = ("role", "head", "unit", "text", "model", "metric", "reference", "second")

_WALK: Final = """async (views) => {
    for (const view of views) {
        document.getElementById(`tab-${view}`).click();
        await new Promise(requestAnimationFrame);
        const point = new PointerEvent('pointermove', { clientX: 300, clientY: 300 });
        document.querySelector('#view svg.map')?.dispatchEvent(point);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
    return window.hacked === undefined && document.title.includes('heedful')
        && document.querySelectorAll('nav .tabs button').length === views.length;
}"""


def hostile_view(payload: str) -> dict[str, Any]:
    """Data of a page whose every text is a payload."""
    view: SentenceView = sentence_view((payload, "</s>"), (f"▁{payload}", "</s>"), (f"▁{payload}", "</s>"))
    searches = tuple(
        replace(one, pieces=dict.fromkeys(one.pieces, payload), texts=(payload,) * len(one.texts))
        for one in view.searches
    )
    named = replace(view, model=payload, kind=payload, languages=(payload, payload), engine=payload, searches=searches)
    hostile = replace(named, reference=payload, missing={"layers": payload, "attention": payload})
    bucket = {"shortest": 1, "longest": 4, "numItems": 9, "score": 30.0, "low": 20.0, "high": 40.0}
    metric = {"key": payload, "name": payload, "unit": "", "score": 25.0, "low": 20.0, "high": 30.0}
    record = {
        "metrics": [{**metric, "byLength": [bucket]}],
        "numItems": 9,
        "lengthUnit": payload,
        "worstBy": payload,
        "worst": [{"source": payload, "reference": payload, "output": payload, "score": 1.0}],
        "command": payload,
    }
    return hostile.to_dict() | {"evaluation": record}


def file_name(payload: str) -> str:
    """Name of a file that has as much of a payload as a file system takes."""
    return f"{payload.replace('/', '∕').replace(chr(0), '')[:60]}.html"


def executed(browser: Any, folder: Path, payloads: Iterable[str]) -> Iterator[str]:
    """Open a page for each payload, go through all its views, and yield the payloads that ran or broke the page."""
    tab = Tab(browser, "about:blank", "body")
    for payload in payloads:
        path = folder / file_name(payload)
        path.write_text(offline_page(payload, hostile_view(payload)), encoding="utf-8", newline="\n")
        spoilt = "&".join(f"{key}={quote(payload)}" for key in _KEYS)
        is_sound = True
        for fragment in ("", f"#{spoilt}"):
            tab.page.goto("about:blank")
            tab.page.goto(path.as_uri() + fragment)
            is_sound &= tab.page.evaluate(_WALK, list(VIEWS))
        if tab.faults or not is_sound:
            yield payload
        tab.faults.clear()
        path.unlink()
    tab.close()
