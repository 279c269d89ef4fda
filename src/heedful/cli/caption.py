"""Describe images.

Images are arguments, or paths in the lines of a file or of standard input: PNG, JPEG and other pictures, or .npy arrays
[regions, features] for a model of precomputed features. One line out for each: its path, a tab and the caption. An
image that cannot be read gets no caption; the others do, and the exit code is that of bad data. A file whose name ends
in .csv, .tsv, .jsonl, .json or .parquet is a table: it is given back with the columns "caption" and "log_prob" behind
its own, with --format jsonl as lines of JSON; its paths are relative to its folder.

Examples:
  heedful caption photos.model dog.jpg cat.png
  heedful caption photos.model dog.jpg --png dog-attention.png
  heedful caption photos.model -i paths.txt --format jsonl -o captions.jsonl
"""

import json
import os
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from heedful.cli.answered_tables import InputColumn, answer_table, is_table_file, named_headings
from heedful.cli.lines import LineFormat, OutputFormat, answer_lines, one_line, refuse_overwriting, require_one
from heedful.cli.messages import Messages, SummedWarning
from heedful.cli.options import (
    FILES,
    Beam,
    Debug,
    Device,
    Engine,
    ModelPath,
    OutputPath,
    Quiet,
    Threads,
    use_threads,
)
from heedful.cli.search_options import Nbest
from heedful.errors import DataError, UsageError
from heedful.text.counts import counted

if TYPE_CHECKING:
    from heedful.predictors.captioner import Caption, Captioner
    from heedful.search.config import SearchConfig

_HINT: Final = "Type the path of an image and press Enter."
Images = Annotated[
    list[str] | None,
    typer.Argument(metavar="IMAGE", help="Paths of images.", show_default=False),
]
PathList = Annotated[
    Path | None,
    typer.Option(
        "--input",
        "-i",
        metavar="FILE",
        help="File of paths of images, one per line; - is standard input.",
        rich_help_panel=FILES,
    ),
]
Picture = Annotated[
    Path | None,
    typer.Option(
        "--png", metavar="FILE", help="Draw the attention over the image, word by word.", rich_help_panel=FILES
    ),
]


def run(
    model: ModelPath,
    images: Images = None,
    source: PathList = None,
    target: OutputPath = None,
    columns: InputColumn = "",
    output_format: LineFormat = "text",
    picture: Picture = None,
    beam: Beam = None,
    nbest: Nbest = 1,
    engine: Engine = "auto",
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Describe images.

    Raises:
        UsageError: --png is given for more or fewer images than one.
        DataError: some images could not be read; the others have their captions.
    """
    use_threads(threads)
    require_one(images, source)
    if picture is not None:
        if len(images or ()) != 1:
            raise UsageError("--png draws one image: give exactly one IMAGE")
        refuse_overwriting(picture, map(Path, images or ()))
    from heedful.cli.scoring import load_to_run
    from heedful.predictors.captioner import WINDOW_IMAGES, Captioner
    from heedful.search.config import with_outputs

    captioner = load_to_run(model, engine, device, kind=Captioner)
    search = with_outputs(captioner.search, beam or 0, nbest)
    messages = Messages(quiet)
    if source is not None and is_table_file(source):
        _caption_rows(captioner, search, source, target, columns, output_format, messages)
        return
    if columns:
        raise UsageError("--columns: only a table has columns; give one with --input, such as images.csv")
    needs_attention = picture is not None or output_format == "jsonl"
    is_single = len(images or ()) == 1
    unusable = SummedWarning(messages, str(source or "arguments"), "images could not be read")

    def captions(window: list[str], first_index: int) -> Iterator[tuple[str, bool]]:
        results = captioner.stream(window, search, needs_attention, skips_unusable=not is_single)
        for line, caption in enumerate(results, start=1 + first_index):
            if picture is not None:
                _draw(caption, picture, messages)
            if caption.error:
                unusable.add(line, caption.error)
            yield _written(caption, output_format == "jsonl", nbest), False

    most = captioner.text.max_tokens
    answer_lines(captions, images or (), source, target, messages, WINDOW_IMAGES, most, _HINT, are_paths=True)
    unusable.close()
    if unusable.count:
        raise DataError(f"{counted(unusable.count, 'image')} could not be read; the others have their captions")


def _caption_rows(
    captioner: "Captioner",
    search: "SearchConfig",
    source: Path,
    target: Path | None,
    columns: str,
    output_format: OutputFormat,
    messages: Messages,
) -> None:
    """Give a table back with captions.

    Raises:
        DataError: some images could not be read, or the table has no column of images.
    """
    from heedful.data.answered_tables import AnsweredTable, TableRow
    from heedful.data.caption_files import ImageFolders, find_image_column, have_picture_headings, image_name
    from heedful.predictors.captioner import WINDOW_IMAGES

    table = AnsweredTable(source, named_headings(columns), have_picture_headings)
    first = [*islice(table, 200)]
    (name, *_) = table.column(columns or find_image_column(table.names, [row.values for row in first], source))
    folders = ImageFolders(source, [str(row.values.get(name, "")) for row in first])
    unusable = SummedWarning(messages, str(source), "images could not be read")
    lines = deque[int]()

    def read(row: "TableRow") -> str | None:
        value = image_name(str(row.values.get(name) or ""))
        image = str(folders.find(value, f"{source}:{row.line}")) if value else None
        lines.extend([row.line] if image else [])
        return image

    def results(images: list[Any]) -> Iterator[dict[str, Any]]:
        for caption in captioner.stream(images, search, skips_unusable=True):
            line = lines.popleft()
            if caption.error:
                unusable.add(line, caption.error)
                yield {}
            else:
                yield {"caption": caption.text, "log_prob": round(caption.log_prob, 6)}

    answer_table(table, target, output_format, read, results, ("caption", "log_prob"), messages, WINDOW_IMAGES)
    unusable.close()
    if folders.doubt:
        messages.warn(folders.doubt)
    if unusable.count:
        raise DataError(f"{counted(unusable.count, 'image')} could not be read; the others have their captions")


def _draw(caption: "Caption", path: Path, messages: Messages) -> None:
    from heedful.inspection.picture_plot import save_attention_over_image

    if caption.attention is not None:
        sizes = caption.grid, caption.region
        note = save_attention_over_image(path, caption.image, caption.pieces, caption.attention, *sizes)
        if note:
            messages.say(note)


def _written(caption: "Caption", is_json: bool, nbest: int) -> str:
    # A name of a file need not be text.
    name = os.fsencode(caption.image).decode("utf-8", "replace")
    if is_json:
        return json.dumps({"image": name, **_facts(caption)}, ensure_ascii=False) + "\n"
    name = one_line(name)
    texts = [each.text for each in caption.alternatives] if nbest > 1 and not caption.error else [caption.text]
    return "".join(f"{name}\t{one_line(text)}\n" for text in texts)


def _facts(caption: "Caption") -> dict[str, Any]:
    if caption.error:
        return {"text": "", "error": one_line(caption.error)}
    facts: dict[str, Any] = {
        "text": caption.text,
        "log_prob": caption.log_prob,
        "score": caption.score,
        "alternatives": [vars(other) for other in caption.alternatives],
    }
    if caption.attention is not None:
        facts |= {
            "pieces": list(caption.pieces),
            "grid": list(caption.grid),
            "attention": [[round(float(weight), 6) for weight in row] for row in caption.attention],
        }
    return facts
