"""Classify texts.

Texts are arguments, lines of a file, or lines of standard input; one line in, one line out: the label, a tab and its
probability. With --format jsonl, each line gives the probability of every label, and the weights of the words where the
model has attention; --show-attention shows them in the text.

Examples:
  heedful classify reviews.model 'A quiet room with a view'
  heedful classify reviews.model -i reviews.txt -o labels.tsv
  heedful classify reviews.model 'A quiet room. Rude staff.' --show-attention
"""

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.lines import InputPath, LineFormat, OutputFormat, Texts, answer_lines, one_line, require_one
from heedful.cli.messages import Messages
from heedful.cli.options import Debug, Device, Engine, ModelPath, OutputPath, Quiet, Threads, use_threads
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.predictors.classifier import Classification

ShowAttention = Annotated[
    bool, typer.Option("--show-attention", help="Show the weights of sentences and words in the text.")
]


def run(
    model: ModelPath,
    texts: Texts = None,
    source: InputPath = None,
    target: OutputPath = None,
    output_format: LineFormat = "text",
    show_attention: ShowAttention = False,
    engine: Engine = "auto",
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Classify texts.

    Raises:
        UsageError: attention is to be shown, but the model has none, or the format is not text.
    """
    use_threads(threads)
    require_one(texts, source)
    if show_attention and output_format != "text":
        raise UsageError("--show-attention is for --format text; the format jsonl has the weights already")
    from heedful.cli.scoring import load_to_run
    from heedful.predictors.classifier import WINDOW_TEXTS, Classifier

    classifier = load_to_run(model, engine, device, kind=Classifier)

    write_attention = _attention_writer(target) if show_attention else None

    def labels(window: list[str], first_index: int) -> Iterator[tuple[str, bool]]:
        for result in classifier.stream(window):
            if write_attention is not None and result.attention is None:
                raise UsageError(f"{model}: this model has no attention to show")
            shown = write_attention(result) if write_attention is not None else ""
            yield f"{_line(result, output_format)}\n{shown}", result.was_cut

    answer_lines(labels, texts or (), source, target, Messages(quiet), WINDOW_TEXTS, classifier.text.max_tokens)


def _attention_writer(target: Path | None) -> "Callable[[Classification], str]":
    """Function that writes a text with the weights of its words: in colours on a terminal, else in numbers."""
    from rich.console import Console

    from heedful.cli.attention_text import weighted_text

    is_terminal = target is None and sys.stdout.isatty()
    console = Console(color_system="auto" if is_terminal else None)
    return partial(weighted_text, console=console)


def _line(result: "Classification", output_format: OutputFormat) -> str:
    if output_format == "text":
        return f"{one_line(result.label)}\t{result.probability:.4f}"
    facts = {
        "text": result.text,
        "label": result.label,
        "probabilities": result.probabilities,
        "was_cut": result.was_cut,
    }
    if result.attention is not None:
        facts |= {"pieces": result.pieces, "attention": [round(float(weight), 6) for weight in result.attention]}
    return json.dumps(facts, ensure_ascii=False)
