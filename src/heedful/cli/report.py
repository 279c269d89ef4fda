"""Write a page about a training: curves, samples getting better, data, configuration, how it ended.

One HTML file that needs no network. Training writes it too when it ends; this command shows a training that still
runs, or writes the page elsewhere.
"""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Debug, IdleDevice, IdleThreads, ModelPath, Quiet


def run(
    model: ModelPath,
    output: Annotated[
        Path | None,
        typer.Option("--output", "--out", "-o", metavar="FILE", help="The page.", show_default="MODEL/run/report.html"),
    ] = None,
    device: IdleDevice = "auto",
    threads: IdleThreads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write the page."""
    from heedful.pages.training import PAGE, write_training_page

    path = output or model / "run" / PAGE
    write_training_page(model, path)
    print(path)
