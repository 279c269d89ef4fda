"""Options shared by all commands, and the setup that they imply."""

import atexit
import os
import re
import shutil
import sys
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from heedful.cli.completion import DEVICES, completed, engines
from heedful.cli.help import COMMON
from heedful.cli.messages import Messages
from heedful.cpu.contention import watch_contention
from heedful.cpu.cores import physical_cores, processors
from heedful.errors import UsageError
from heedful.files.atomic_write import private_folder
from heedful.training.memory_settings import use_large_pages

if TYPE_CHECKING:
    from heedful.data.rows import Columns

_STANDARD_INPUT: Final = Path("-")
DATA: Final = "Data"
FILES: Final = "Input and output"
MODEL: Final = "Model"
SEARCH: Final = "Search"
SPEED: Final = "Speed"

MOST_THREADS: Final = 1024
"""Upper bound of threads and worker processes."""
MOST_TOKENS: Final = 10_000_000
"""Upper bound of the positions computed together, which all need memory at once."""
MOST_HYPOTHESES: Final = 1000
"""Upper bound of the hypotheses carried for a source, as in `heedful.search.config`, which takes long to import."""
MOST_ITEMS: Final = 10**9
"""Upper bound of counts of lines, pairs and passes."""
MOST_MINUTES: Final = 1e6
"""Upper bound of a time limit, two years."""
MOST_SEED: Final = (1 << 31) - 1
"""Largest seed that all random generators take."""


def store_standard_input(context: typer.Context, paths: list[Path] | None) -> list[Path] | None:
    """Replace `-` by a file with the content of standard input, because data are read more than once.

    Args:
        context: context of the command; while the shell completes a command, nothing is read.
        paths: data files of the command line.

    Returns:
        The files; the stored one is deleted when the process ends.
    """
    if context.resilient_parsing or not paths:
        return paths
    return [_stored() if path == _STANDARD_INPUT else path for path in paths]


def _stored() -> Path:
    until_exit = ExitStack()
    atexit.register(until_exit.close)
    folder = until_exit.enter_context(private_folder())
    start = sys.stdin.buffer.read(_START_BYTES)
    path = folder / f"standard-input{_suffix(start)}"
    with path.open("wb") as file:
        file.write(start)
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


_START_BYTES: Final = 4096


def _suffix(start: bytes) -> str:
    """File suffix of the format that the first bytes are in; empty for columns separated by tabs.

    A file's name says its format, and standard input has no name.
    """
    if start.startswith(b"\x1f\x8b"):
        try:
            return f"{_suffix(zlib.decompressobj(wbits=31).decompress(start, _START_BYTES))}.gz"
        except zlib.error:  # reading the file will say what is wrong
            return ".gz"
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        return ".jsonl"
    if text.startswith((b"<?xml", b"<tmx")):
        return ".tmx"
    line = text.partition(b"\n")[0]
    return ".csv" if b"," in line and b"\t" not in line else ""


Device = Annotated[
    str,
    typer.Option(
        help="Device: auto, cpu, cuda, cuda:1, mps.",
        metavar="NAME",
        rich_help_panel=COMMON,
        autocompletion=completed(lambda: DEVICES),
    ),
]
Threads = Annotated[
    int,
    typer.Option(
        min=0,
        max=MOST_THREADS,
        metavar="INTEGER",
        help="Number of threads; 0 = one per physical core, fewer while other programs keep them busy.",
        rich_help_panel=COMMON,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results and warnings only.", rich_help_panel=COMMON)]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks and warnings.", rich_help_panel=COMMON)]
# Commands that compute nothing accept it too, so that every command has the same set.
IdleDevice = Annotated[str, typer.Option("--device", metavar="NAME", hidden=True)]
IdleThreads = Annotated[int, typer.Option("--threads", metavar="INTEGER", min=0, max=MOST_THREADS, hidden=True)]

License = Annotated[
    str,
    typer.Option(
        "--license",
        "--licence",
        metavar="NAME",
        help="Licence that card and page name: an identifier that model hubs know, such as cc-by-4.0, or any text.",
        show_default="as in the model",
    ),
]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder.", show_default=False)]
DataPaths = Annotated[
    list[Path],
    typer.Argument(
        metavar="DATA",
        help="One file of pairs (TSV, CSV, JSONL, TMX, Parquet, Arrow), or two aligned ones; - is standard input.",
        show_default=False,
        callback=store_standard_input,
    ),
]
ColumnsText = Annotated[
    str,
    typer.Option(
        "--columns",
        metavar="N,M",
        help="Columns of source and target, by number or name; A+B,C joins two; 2,1 reverses the direction.",
        rich_help_panel=DATA,
    ),
]
Separator = Annotated[
    str,
    typer.Option(
        "--separator",
        metavar="TEXT",
        help="Separator of several labels in a cell, such as '|'; for classification.",
        show_default=False,
        rich_help_panel=DATA,
    ),
]
LastColumn = Annotated[
    str,
    typer.Option(
        "--as",
        metavar="NAME",
        help="Last column of every source, such as the file that it is like, for a model of train --together.",
        rich_help_panel=DATA,
    ),
]
Dev = Annotated[
    list[Path] | None,
    typer.Option(
        "--dev",
        metavar="FILE",
        help="Validation pairs; twice for two aligned files.",
        rich_help_panel=DATA,
        callback=store_standard_input,
    ),
]
Test = Annotated[
    list[Path] | None,
    typer.Option(
        "--test",
        metavar="FILE",
        help="Test pairs; twice for two aligned files.",
        rich_help_panel=DATA,
        callback=store_standard_input,
    ),
]
Languages = Annotated[
    str,
    typer.Option(
        metavar="SRC:TGT",
        help="Language codes, such as de:en.",
        show_default="from file names",
        rich_help_panel=DATA,
    ),
]
OutputPath = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "--out",
        "-o",
        metavar="FILE",
        help="Output file; named FILE.part until complete.",
        rich_help_panel=FILES,
    ),
]
ReadTokens = Annotated[
    int,
    typer.Option(
        "--batch-tokens",
        min=1,
        max=MOST_TOKENS,
        metavar="INTEGER",
        help="Batch size: source positions scored together.",
        rich_help_panel=SPEED,
    ),
]
BatchTokens = Annotated[
    int,
    typer.Option(
        min=1,
        max=MOST_TOKENS,
        metavar="INTEGER",
        help="Batch size: source positions times beam.",
        rich_help_panel=SPEED,
    ),
]
Beam = Annotated[
    int | None,
    typer.Option(
        "--beam",
        min=1,
        max=MOST_HYPOTHESES,
        metavar="INTEGER",
        help="Hypotheses carried; 1 = greedy.",
        show_default="the model's",
        rich_help_panel=SEARCH,
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        help="Engine: auto, torch, onnx, ctranslate2, onnx-int8, ctranslate2-int8; see: heedful export --help.",
        metavar="NAME",
        rich_help_panel=MODEL,
        autocompletion=completed(engines),
    ),
]
EnsembleModels = Annotated[
    list[Path] | None,
    typer.Option(
        "--ensemble",
        metavar="MODEL",
        help="Decode with an ensemble of this model too, which must have the same vocabulary; may be repeated.",
        show_default=False,
        rich_help_panel=MODEL,
    ),
]
ReplaceUnknown = Annotated[
    bool | None,
    typer.Option(
        "--replace-unknown/--keep-unknown",
        help="Replace unknown words by translations of the source words they attend to, or write <unk>.",
        show_default="the model's",
        rich_help_panel=SEARCH,
    ),
]
Shortlist = Annotated[
    bool,
    typer.Option(
        "--shortlist",
        help="Consider only probable target tokens; for an engine exported with --shortlist.",
        rich_help_panel=SEARCH,
    ),
]
ReportFormat = Annotated[
    Literal["text", "json"],
    typer.Option("--format", metavar="text|json", help="Output format.", rich_help_panel=FILES),
]


def use_threads(threads: int) -> None:
    """Set the number of threads of numeric libraries; call it before they are imported.

    Args:
        threads: number of threads; 0 = OMP_NUM_THREADS if set, else one per physical core, or fewer while other
            programs keep processors busy.

    Raises:
        UsageError: OMP_NUM_THREADS is not a number of threads.
    """
    if not threads and (chosen := os.environ.get("OMP_NUM_THREADS")):
        # One number, or one for each level of nesting.
        if not all(re.fullmatch(r"0*[1-9][0-9]{0,3}", word.strip()) for word in chosen.split(",")):
            raise UsageError(f"OMP_NUM_THREADS={chosen}: expected a number from 1 to 9999; set it to that, or unset it")
        number = int(chosen.split(",")[0])
        _warn_of_too_many(f"OMP_NUM_THREADS={chosen}", number)
        watch_contention(number, may_use_fewer=False)
        return
    number = threads or physical_cores()
    _warn_of_too_many(f"--threads {number}", number)
    watch_contention(number, may_use_fewer=not threads)
    os.environ["OMP_NUM_THREADS"] = str(number)
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(number)


def _warn_of_too_many(choice: str, number: int) -> None:
    if number > (usable := processors()):
        Messages(is_quiet=True).warn(
            f"{choice}: this process may use {usable} processor{'s' * (usable > 1)}; more threads than that wait for "
            "each other"
        )


def prepare_training(threads: int) -> None:
    """Set environment variables of numeric libraries before their import, for a training process.

    Args:
        threads: as for `use_threads`.
    """
    use_threads(threads)
    use_large_pages()


def choose_device(name: str) -> str:
    """Choose the device.

    Args:
        name: device that the user named; "auto" = a CUDA device if there is one, else the CPU.

    Returns:
        A device name of PyTorch; "cpu" for auto without PyTorch.

    Raises:
        UsageError: the device does not exist.
        ModuleNotFoundError: a device was named but PyTorch is not installed.
    """
    try:
        import torch
    except ModuleNotFoundError:
        if name in ("auto", "cpu"):
            return "cpu"
        raise
    if name == "auto":
        from heedful.models.devices import has_cuda

        return "cuda" if has_cuda() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UsageError(f"--device {name!r}: no such kind of device; known: auto, cpu, cuda, cuda:1, mps") from None
    if device.type not in DEVICES or (device.type == "cpu" and device.index):
        raise UsageError(f"--device {name}: heedful does not run there; known: auto, cpu, cuda, cuda:1, mps")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UsageError(f"--device {name}: PyTorch sees {torch.cuda.device_count()} CUDA devices; see: heedful doctor")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise UsageError(f"--device {name}: PyTorch sees no such device here; see: heedful doctor")
    return name


def named_device(name: str) -> str:
    """Check the device of a model that is only run, without importing PyTorch unless the user named one.

    Args:
        name: device that the user named.

    Returns:
        The same name; "auto" is chosen when PyTorch runs the model, if it ever does.

    Raises:
        UsageError: the device does not exist.
        ModuleNotFoundError: a device was named but PyTorch is not installed.
    """
    return name if name in ("auto", "cpu") else choose_device(name)


def choose_training_device(name: str) -> str:
    """Choose the device of a training, which compares CPU and GPU where the user leaves the choice.

    Args:
        name: device that the user named.

    Returns:
        The result of `choose_device`; "auto" for auto.

    Raises:
        UsageError: the device does not exist.
    """
    return name if name == "auto" else choose_device(name)


def parse_columns(text: str) -> "Columns":
    """Parse two columns.

    Args:
        text: such as "2,1" or "english,german"; empty where the option is not given.

    Returns:
        Columns of source and target: 1-based numbers, or names. Those of an empty text are the first two, or those that
        headings and content say.

    Raises:
        UsageError: the text is not two numbers of at most nine digits, or names.

    Example:
        >>> parse_columns("2,1"), parse_columns("english, german")
        ((2, 1), ('english', 'german'))
    """
    from heedful.data.rows import RequestedColumns

    if not text:
        return 1, 2
    words = [word.strip() for word in text.split(",")]
    if len(words) != 2 or not all(words) or any(len(word) > 9 and word.isdecimal() for word in words):
        raise UsageError(
            f"--columns {text[:80]!r}: expected two numbers or names separated by a comma, "
            "such as 2,1 or english,german"
        )
    source, target = (int(word) if word.isdecimal() else word for word in words)
    # 2,1 turns round whatever columns are found, as it turns round two files.
    return (2, 1) if (source, target) == (2, 1) else RequestedColumns((source, target))


def parse_languages(text: str, option: str = "--languages") -> tuple[str, str]:
    """Parse two language codes.

    Args:
        text: such as "de:en"; may be empty.

    Returns:
        Codes of source and target; two empty strings for an empty text.

    Raises:
        UsageError: the text is not two codes.

    Example:
        >>> parse_languages("de:en")
        ('de', 'en')
    """
    source, colon, target = text.partition(":")
    if text and not (source and colon and target):
        raise UsageError(f"{option} {text!r}: expected two codes separated by a colon, such as de:en")
    return source, target
