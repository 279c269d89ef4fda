"""Chromium for tests of the page, with every request that leaves the machine refused."""

import importlib.util
import json
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, final

import pytest

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AXE: Final = Path(os.environ.get("HEEDFUL_AXE", "axe.min.js"))
"""Script of axe-core, which checks accessibility; not part of the project."""
SWITCHES: Final = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    # WebAssembly is compiled once and quickly, since no model of a test runs for long.
    "--disable-component-update --disable-sync --js-flags=--liftoff-only"
).split()
needs_chromium: Final = pytest.mark.skipif(
    CHROMIUM is None or importlib.util.find_spec("playwright") is None,
    reason="needs Chromium and the package playwright: apt-get install chromium, pip install playwright",
)


@contextmanager
def chromium() -> Generator[Any]:
    """Start a browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield browser
        for key in [key for key in _FREE if key[0] == id(browser)]:
            del _FREE[key]
        browser.close()


@final
class _Window:
    """Window that shows one tab after another, because starting one takes as long as most tests of a page."""

    def __init__(self, browser: Any, width: int, language: str, scheme: Literal["light", "dark"], is_touched: bool):
        self.faults: list[str] = []
        self.refused: list[str] = []
        self.context = browser.new_context(
            viewport={"width": width, "height": 900},
            locale=language,
            color_scheme=scheme,
            reduced_motion="reduce",
            has_touch=is_touched,
        )
        self.page = self.context.new_page()
        self.page.route("**/*", self._check)
        self.page.on("console", lambda message: self.faults.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def forget(self) -> None:
        """Leave nothing of a tab: neither its page, nor what that stored, nor where the mouse was."""
        self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        self.context.clear_cookies()
        self.page.unroute_all(behavior="ignoreErrors")
        self.page.goto("about:blank")
        self.page.route("**/*", self._check)
        self.page.mouse.move(0, 0)
        self.faults, self.refused = [], []

    def _check(self, route: Any) -> None:
        address = route.request.url
        if address.startswith(("about:", "file:", "data:", "blob:", "http://127.0.0.1:")):
            route.continue_()
        else:
            self.refused.append(address)
            route.abort()


class Tab:
    """Page in a browser that records errors and refuses requests to other machines."""

    def __init__(
        self,
        browser: Any,
        address: str,
        ready: str = "#view > *",
        width: int = 1280,
        language: str = "en-US",
        scheme: Literal["light", "dark"] = "light",
        is_touched: bool = False,
    ) -> None:
        self._free = _FREE.setdefault((id(browser), width, language, scheme, is_touched), [])
        self._window = self._free.pop() if self._free else _Window(browser, width, language, scheme, is_touched)
        self.context, self.page = self._window.context, self._window.page
        self.page.goto(address)
        self.page.wait_for_selector(ready)

    @property
    def faults(self) -> list[str]:
        """Errors that the page has logged."""
        return self._window.faults

    @property
    def refused(self) -> list[str]:
        """Addresses of other machines that the page has asked."""
        return self._window.refused

    def close(self) -> None:
        """Close the tab; the page has logged no error and asked nobody else."""
        faults, refused = self.faults, self.refused
        if faults or refused or len(self.context.pages) > 1:
            self.context.close()
        else:
            self._window.forget()
            self._free.append(self._window)
        assert faults == [], faults
        assert refused == [], refused


_FREE: Final[dict[tuple[Any, ...], list[_Window]]] = {}
"""Windows without a tab, by browser and the settings of tabs."""


def assert_accessible(tab: Tab) -> None:
    """axe-core, where there is its script, finds nothing serious in what a tab shows."""
    if AXE.is_file():
        tab.page.evaluate(AXE.read_text("utf-8"))
        violations = tab.page.evaluate("axe.run()")["violations"]
        assert [one["id"] for one in violations if one["impact"] in ("serious", "critical")] == []


class PageMemory:
    """Memory of a tab's page after a collection.

    Whoever measures keeps no element: Playwright holds every element that a script returns, and with it the whole tree
    that it belongs to.
    """

    def __init__(self, tab: Tab) -> None:
        self._session = tab.context.new_cdp_session(tab.page)

    def bytes(self) -> int:
        """Bytes of the heap, arrays included."""
        self._session.send("HeapProfiler.collectGarbage")
        # `performance.memory` is rounded, and seldom counted again.
        usage = self._session.send("Runtime.getHeapUsage")
        return int(usage["usedSize"] + usage.get("backingStorageSize", 0))

    def nodes(self) -> int:
        """Number of nodes, those outside of the document included."""
        self._session.send("HeapProfiler.collectGarbage")
        return int(self._session.send("Memory.getDOMCounters")["nodes"])


class WorkerMemory:
    """Memory of the worker of a tab, after a collection."""

    def __init__(self, tab: Tab) -> None:
        self._page = tab.page
        self._answers: dict[int, dict[str, Any]] = {}
        self._workers: list[str] = []
        self._count = 0
        self._session = tab.context.new_cdp_session(tab.page)
        self._session.on("Target.attachedToTarget", self._attached)
        self._session.on("Target.receivedMessageFromTarget", self._received)
        # Playwright gives no session of a worker; its messages go through that of the page.
        self._session.send(
            "Target.setAutoAttach", {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": False}
        )

    def _attached(self, event: dict[str, Any]) -> None:
        if event["targetInfo"]["type"] == "worker":
            self._workers.append(event["sessionId"])

    def _received(self, event: dict[str, Any]) -> None:
        answer = json.loads(event["message"])
        if "id" in answer:
            self._answers[answer["id"]] = answer

    def _ask(self, method: str) -> dict[str, Any]:
        self._count += 1
        message = json.dumps({"id": self._count, "method": method})
        (worker,) = self._workers
        self._session.send("Target.sendMessageToTarget", {"sessionId": worker, "message": message})
        for _ in range(600):
            if self._count in self._answers:
                return self._answers.pop(self._count)["result"]
            self._page.wait_for_timeout(50)
        raise TimeoutError(f"the worker does not answer {method}")

    def bytes(self) -> int:
        """Bytes of the heap, arrays included."""
        self._ask("HeapProfiler.collectGarbage")
        usage = self._ask("Runtime.getHeapUsage")
        return int(usage["usedSize"] + usage.get("backingStorageSize", 0))


class Drawn(NamedTuple):
    """Longest times of the frames of a tab, in milliseconds."""

    task: float
    """Longest task; 0 if none took 50."""
    gap: float
    """Longest time between two frames."""
    working_gap: float
    """Longest time between two frames between which the model worked, and no answer was drawn."""


class Frames:
    """Frames that a tab draws from now on."""

    _WATCH: Final = """() => {
      window.longest = window.gaps = window.working = 0;
      new PerformanceObserver((list) => list.getEntries().forEach(({ duration }) => {
        window.longest = Math.max(window.longest, duration);
      })).observe({ type: 'longtask' });
      let last = Infinity, before = null;
      const draw = (now) => {
        window.gaps = Math.max(window.gaps, now - last);
        // An answer is drawn as another element.
        const busy = document.querySelector('#output.busy');
        if (busy && busy === before) window.working = Math.max(window.working, now - last);
        before = busy;
        last = now;
        requestAnimationFrame(draw);
      };
      requestAnimationFrame(draw);
    }"""

    def __init__(self, tab: Tab) -> None:
        self._page = tab.page
        self._page.evaluate(self._WATCH)

    def longest(self) -> Drawn:
        """Longest times until now."""
        return Drawn(*map(float, self._page.evaluate("() => [window.longest, window.gaps, window.working]")))
