"""Train a model by a receipt, and compare its scores with those that are recorded and published.

A receipt is a TOML file: where the data are and their hashes, the options of heedful train, published scores, the
scores that an earlier training had, and the files that are made of the model. Files that differ from those of the
receipt are refused. The same command resumes. A receipt that lacks hashes or scores is completed by the lines that are
printed at the end.

Examples:
  heedful reproduce examples/packs/g2p-low/rum.toml --data 2021-task1/data/low
  heedful reproduce dates.toml --data data --out dates --format json

Files beside the model, by `outputs` of the receipt:
  pack      an archive of the model with its card
  page      one HTML file with the model inside
  graph     one ONNX graph, for models of characters
  lexicon   the words of the data with their phones, for speech programs
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.messages import Messages
from heedful.cli.options import DATA, FILES, Debug, Device, Quiet, ReportFormat, Threads

if TYPE_CHECKING:
    from heedful.runs.receipt import Output, Receipt

ReceiptPath = Annotated[Path, typer.Argument(metavar="RECEIPT", help="TOML file of the receipt.", show_default=False)]
DataFolder = Annotated[
    Path,
    typer.Option("--data", metavar="FOLDER", help="Folder of the receipt's data.", rich_help_panel=DATA),
]
OutFolder = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "--out",
        "-o",
        metavar="DIR",
        help="Folder of the model and of the files made of it.",
        show_default="named after RECEIPT",
        rich_help_panel=FILES,
    ),
]


def run(
    receipt: ReceiptPath,
    data: DataFolder = Path(),
    output: OutFolder = None,
    output_format: ReportFormat = "text",
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Reproduce a training."""
    from contextlib import redirect_stdout
    from sys import stderr

    from heedful.engines.folder import open_folder
    from heedful.pages.evaluation import stored_scores
    from heedful.runs.receipt import check_data, comparison, missing_lines, read_receipt

    messages = Messages(quiet)
    content = read_receipt(receipt)
    hashes = check_data(content, data)
    folder = output or Path(receipt.stem)
    folder.mkdir(parents=True, exist_ok=True)
    model = folder / f"{receipt.stem}.model"
    with redirect_stdout(stderr):  # the comparison alone is the result
        _train(content, data, model, device, threads, quiet)
        files = [path for kind in content.outputs if (path := _write(kind, content, data, model, messages))]
    scores, number = stored_scores(model, str(open_folder(model).facts["weights"]))
    lines, is_within = comparison(content, scores)
    if output_format == "json":
        facts = {
            "title": content.title,
            "items": number,
            "scores": scores,
            "recorded": {key: one.model_dump() for key, one in content.recorded.items()},
            "published": [one.model_dump() for one in content.published],
            "reproduced": is_within,
            "files": [str(model), *map(str, files)],
        }
        print(json.dumps(facts, ensure_ascii=False, indent=1))
        return
    print(f"{content.title}; {number:,} test items", *lines, sep="\n")
    if is_within is not None:
        print("reproduced: within the recorded interval" if is_within else "not reproduced: outside the interval")
    print("files:", *(f"  {path}" for path in (model, *files)), sep="\n")
    if lacking := missing_lines(content, hashes, scores):
        print(f"\n# lines for {receipt}", *lacking, sep="\n")


def _train(receipt: "Receipt", data: Path, model: Path, device: str, threads: int, quiet: bool) -> None:
    from heedful.cli import train

    recipe = receipt.train
    train.run(
        [data / name for name in recipe.files],
        dev=[data / name for name in recipe.dev],
        test=[data / name for name in recipe.test],
        columns=recipe.columns,
        languages=recipe.languages,
        together=recipe.together,
        preset=recipe.preset,
        settings=[f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in recipe.settings.items()],
        minutes=recipe.minutes,
        out=model,
        task=recipe.task,
        seed=recipe.seed,
        device=device,
        threads=threads,
        quiet=quiet,
    )


def _write(kind: "Output", receipt: "Receipt", data: Path, model: Path, messages: Messages) -> Path | None:
    """Write one form of the model, unless it cannot be had, which is said.

    Returns:
        The file; None if there is none.
    """
    from heedful.cli import export, lexicon, pack
    from heedful.export.web_runtime import has_runtime

    suffix = {"pack": ".tar.xz", "page": ".html", "graph": ".onnx", "lexicon": ".lexicon.txt"}[kind]
    path = model.with_name(f"{model.stem}{suffix}")
    path.unlink(missing_ok=True)
    if kind == "pack":
        pack.run(model, path, receipt.license, quiet=messages.is_quiet)
    elif kind == "graph":
        export.run(model, "onnx", path, single=True, quiet=messages.is_quiet)
    elif kind == "lexicon":
        words = _store_words(receipt, data, model.with_name(f"{model.stem}.words.txt"))
        lexicon.run(model, words, target=path, quiet=messages.is_quiet)
    elif has_runtime():
        export.run(model, "html", path, license=receipt.license, quiet=messages.is_quiet)
    else:
        messages.warn(f"{path}: not written: the runtime for browsers is not installed; make runtime fetches it")
        return None
    return path


def _store_words(receipt: "Receipt", data: Path, path: Path) -> Path:
    """Write the sources of all files of a receipt, each once, as the words of a lexicon."""
    from heedful.cli.options import parse_columns
    from heedful.data.corpus import find_pairs
    from heedful.files.atomic_write import atomic_write

    columns = parse_columns(receipt.train.columns)
    pairs = (pair for name in receipt.files for pair in find_pairs([data / name], columns, True))
    with atomic_write(path) as stream:
        stream.writelines(f"{word}\n" for word in dict.fromkeys(pair.source for pair in pairs) if word)
    return path
