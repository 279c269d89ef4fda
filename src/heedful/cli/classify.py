"""Classify texts.

Texts are arguments, lines of a file, or lines of standard input; one line in, one line out: the label, a tab and its
probability. With --format jsonl, each line gives the probability of every label.

Examples:
  heedful classify reviews.model 'A quiet room with a view'
  heedful classify reviews.model -i reviews.txt -o labels.tsv
"""

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from heedful.cli.options import Debug, Device, Engine, ModelPath, OutputPath, Quiet, Threads, choose_device, use_threads

if TYPE_CHECKING:
    from heedful.predictors.classifier import Classification

Texts = Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts to classify.", show_default=False)]
InputPath = Annotated[
    Path | None, typer.Option("--input", "-i", metavar="FILE", help="File of texts, one per line; - is standard input.")
]


def run(
    model: ModelPath,
    texts: Texts = None,
    source: InputPath = None,
    output: OutputPath = None,
    output_format: Annotated[Literal["text", "jsonl"], typer.Option("--format", help="Output format.")] = "text",
    engine: Engine = "auto",
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Classify texts."""
    use_threads(threads)
    from heedful.files import written_whole
    from heedful.predictors.classifier import load_classifier

    classifier = load_classifier(model, device if engine == "onnx" else choose_device(device), engine)
    # At a terminal, each line is answered at once.
    window = 1 if not texts and source is None and sys.stdin.isatty() else 2048
    with ExitStack() as stack:
        stream = sys.stdout if output is None else stack.enter_context(written_whole(output))
        for result in classifier.stream(_lines(texts, source), window):
            print(_line(result, output_format), file=stream, flush=window == 1)


def _lines(texts: list[str] | None, source: Path | None) -> Iterable[str]:
    from heedful.text.lines import read_lines

    if texts:
        return texts
    if source is None or str(source) == "-":
        return read_lines(sys.stdin.buffer, "standard input", "replace")
    return _file_lines(source)


def _file_lines(source: Path) -> Iterator[str]:
    from heedful.text.lines import read_lines
    from heedful.text.text_files import check_file

    check_file(source)
    yield from read_lines(source)


def _line(result: "Classification", output_format: str) -> str:
    if output_format == "text":
        return f"{result.label}\t{result.probability:.4f}"
    facts = {
        "text": result.text,
        "label": result.label,
        "probabilities": result.probabilities,
        "was_cut": result.was_cut,
    }
    if result.attention is not None:
        facts |= {"pieces": result.pieces, "attention": [round(float(weight), 6) for weight in result.attention]}
    return json.dumps(facts, ensure_ascii=False)
