"""The widget in a real JupyterLab: a notebook is run in Chromium, and its page follows what is typed."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.architecture.package import SOURCE
from tests.cli.conftest import Trained
from tests.pages.browser import Tab, chromium
from tests.prove.ranks import free_port

CELL: Final = 'import heedful\n\nheedful.widget(heedful.load("words.model", engine="torch"), "fade")'
PATIENCE: Final = 120_000.0
"""Milliseconds that a kernel may take to start and to load a model."""


def write_notebook(folder: Path) -> None:
    cell = {"cell_type": "code", "id": "one", "execution_count": None, "metadata": {}, "outputs": [], "source": CELL}
    kernel = {"name": "python3", "display_name": "Python 3"}
    notebook = {"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "widget.ipynb").write_text(json.dumps(notebook), encoding="utf-8")


def prove(folder: Path) -> None:
    """Train a tiny model, open a notebook with its widget, and type another word.

    Raises:
        AssertionError: the page does not follow.
    """
    assert Trained(folder).done.code == 0
    write_notebook(folder)
    port = free_port()
    options = ("--no-browser", "--allow-root", "--IdentityProvider.token=", "--LabApp.news_url=None", f"--port={port}")
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *options, f"--ServerApp.root_dir={folder}"],
        env=os.environ
        | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "JUPYTER_CONFIG_DIR": str(folder / "none")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    try:
        while "is running at" not in (line := server.stderr.readline()):
            assert line, "JupyterLab ended"
        with chromium() as browser:
            tab = Tab(browser, f"http://127.0.0.1:{port}/lab/tree/widget.ipynb?reset", ready=".jp-Notebook .jp-Cell")
            tab.page.set_default_timeout(PATIENCE)
            tab.page.get_by_text("(ipykernel) | Idle").wait_for()
            tab.page.locator(".jp-Notebook .jp-InputArea .cm-content").first.click()
            tab.page.keyboard.press("Shift+Enter")
            line, frame = (
                tab.page.get_by_role("textbox", name="source", exact=True),
                tab.page.locator("iframe[title=attention]"),
            )
            frame.wait_for()
            assert line.input_value() == "fade"
            before = frame.get_attribute("srcdoc")
            assert before is not None
            assert '"text": "fade"' in before
            line.fill("bead")
            line.press("Enter")
            tab.page.wait_for_function(
                "document.querySelector('iframe[title=attention]').srcdoc.includes('\"text\": \"bead\"')"
            )
            # The page runs in its sandbox, and shows the characters of the source.
            tab.page.frame_locator("iframe[title=attention]").locator("#view > *").first.wait_for()
            tab.close()
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        prove(Path(folder))
    print("the widget shows a page in JupyterLab, and the page follows what is typed")


if __name__ == "__main__":
    main()
