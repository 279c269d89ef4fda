"""Write the report page of a training: curves, samples, attention, data, configuration, outcome.

The page is one HTML file that needs no network. Training also writes it when it ends; use this command for a training
that is still running, or to write the page elsewhere.

Examples:
  heedful report pairs.model
  heedful report pairs.model -o report.html
"""

import os
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.info import warn_of_damage
from heedful.cli.lines import refuse_overwriting
from heedful.cli.messages import Messages
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
    from heedful.engines.folder import MANIFEST
    from heedful.pages.training import PAGE
    from heedful.predictors.training_page import write_page

    path = output or model / "run" / PAGE
    refuse_overwriting(path, ())
    messages = Messages(quiet)
    write_page(model, path, warn=messages.warn)
    print(path)
    if not os.path.lexists(model / MANIFEST):
        messages.warn(f"{model}: no {MANIFEST}, so the training has not finished; the page shows it so far")
    warn_of_damage(model, messages)
