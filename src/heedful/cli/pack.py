"""Pack a model for shipping: the folder without `run/`, which only training needs.

OUT is a new model folder, or an archive of one if its name ends in .zip, .tar or .tar.xz. The last is the smallest: the
weights and the engine that runs without PyTorch hold the same numbers, which it stores once (in models of up to 64 MB).
Every file is checked against its recorded hash; OUT is written completely or not at all. A README.md in it says what
the model is, how it was trained and how good it is, with the metadata that model hubs read, and the licence that
--license names. If the model folder has a README.md of yours, that is packed instead. Corrections of outputs, such as a
lexicon of exceptions, are packed with --corrections.

If OUT ends in .html, it is one page with the model inside, which any browser opens from disk, offline; `heedful export
MODEL --to html` writes the same one, and has options for it.

Examples:
  heedful pack pairs.model -o pairs.zip
  heedful pack pairs.model -o pairs.tar.xz
  heedful pack pairs.model -o pairs.zip --license cc-by-4.0
  heedful pack pairs.model -o pairs.html
"""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.messages import Messages, readable_size
from heedful.cli.options import Debug, IdleDevice, IdleThreads, License, ModelPath, Quiet
from heedful.errors import UsageError
from heedful.text.counts import counted

if TYPE_CHECKING:
    from heedful.engines.folder import ModelFolder


def run(
    model: ModelPath,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "--out",
            "-o",
            metavar="OUT",
            help="Folder, .zip, .tar, .tar.xz or .html to write.",
            show_default=False,
        ),
    ],
    license: License = "",
    corrections: Annotated[bool, typer.Option("--corrections", help="Pack the corrections in force too.")] = False,
    device: IdleDevice = "auto",
    threads: IdleThreads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Pack a model.

    Raises:
        UsageError: --license is given for a model that has a card of its own, or --corrections for a page.
        FileRefused: a file of the model was changed, or a graph is not one that could run.
    """
    if output.suffix.lower() == ".html":
        if corrections:
            raise UsageError(
                f"{output}: a page has no corrections; leave out --corrections, or choose a folder or archive"
            )
        _pack_page(model, output, license, Messages(quiet))
        return
    from heedful.cli.memory_notes import corrections_of, note_left_out
    from heedful.data.corrections import journal_of
    from heedful.engines.folder import open_folder
    from heedful.engines.pack import CARD, pack, packed_name
    from heedful.pages.model_card import model_card, own_card

    messages = Messages(quiet)
    folder = open_folder(model, will_run=False)
    num_before = sum(path.stat().st_size for path in model.rglob("*") if path.is_file())
    card = own_card(model / CARD)
    if card and license:
        raise UsageError(f"{model / CARD}: packed as it is; write the licence into it, and leave out --license")
    _check_graphs(folder)
    card = card or model_card(model, folder.facts, "heedful", packed_name(output), license)
    journal = journal_of(corrections_of(model, messages)) if corrections else b""
    packed = pack(folder, output, card, journal)
    for name, reason in packed.left_out.items():
        messages.say(f"engine {name} left out: {reason}")
    engines = f", engines {', '.join(packed.engines)}" if packed.engines else ""
    sizes = f"{readable_size(packed.num_bytes)} of {readable_size(num_before)}"
    if not corrections:
        note_left_out(model, output, "--corrections packs them", messages)
    print(f"{packed.path}: {sizes}, {counted(packed.num_files, 'file')}{engines}")


def _check_graphs(folder: "ModelFolder") -> None:
    """Refuse graphs that would be refused where they run; without ONNX Runtime, nothing can say so here.

    Raises:
        FileRefused: a graph is damaged, reads files outside its folder, or is none of such a model.
    """
    from heedful.engines.exported import FOLDER
    from heedful.predictors.table import find_predictor

    if (folder.path / FOLDER).is_dir() and find_spec("onnxruntime") is not None:
        from heedful.cli.graph_check import check_graphs

        check_graphs(find_predictor(folder)(folder))


def _pack_page(model: Path, output: Path, license: str, messages: Messages) -> None:
    from heedful.cli.web_export import export_web
    from heedful.predictors.table import load

    print(export_web(load(model), "html", messages, output, license=license))
