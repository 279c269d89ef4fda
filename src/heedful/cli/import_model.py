"""Import a Marian model, such as those of OPUS-MT, as a model folder.

DIR is in Hugging Face's layout: config.json, model.safetensors, source.spm, target.spm, vocab.json. The result works
with translate, evaluate, align, score and export. Pickled weights, such as pytorch_model.bin, are refused, because
reading a pickle can run code.

Examples:
  heedful import opus-mt-de-en
  heedful import opus-mt-de-en --out de-en.model --languages de:en
"""

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.messages import Messages
from heedful.cli.options import Debug, IdleDevice, Quiet, Threads, parse_languages, use_threads
from heedful.errors import UsageError


def run(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder in Hugging Face's layout.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--output", "--out", "-o", metavar="MODEL", help="Model folder to write.", show_default="DIR.model"
        ),
    ] = None,
    languages: Annotated[
        str,
        typer.Option(metavar="SRC:TGT", help="Language codes, such as de:en.", show_default="from config.json"),
    ] = "",
    device: IdleDevice = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Import a model.

    Raises:
        UsageError: the model folder exists already.
    """
    use_threads(threads)
    target = out or Path(f"{folder.resolve().name}.model")
    codes = parse_languages(languages)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target}: already exists; name another folder with --out")
    from heedful.runs.marian import import_marian

    experiment = import_marian(folder, target, codes)
    Messages(quiet).say(f"{target}: {experiment.model.kind}; try: heedful translate {target}")
