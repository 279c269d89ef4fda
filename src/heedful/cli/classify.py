"""Classify texts.

Texts are arguments, lines of a file, or lines of standard input; one line in, one line out: the label, a tab and its
probability. With --format jsonl, each line gives the probability of every label, and the weights of the words where the
model has attention; --show-attention shows them in the text. A file whose name ends in .csv, .tsv, .jsonl, .json or
.parquet is a table: it is given back, in order, with the columns "label" and "probability" behind its own, in the form
that the name of the output tells.

Examples:
  heedful classify reviews.model 'A quiet room with a view'
  heedful classify reviews.model -i reviews.txt -o labels.tsv
  heedful classify reviews.model -i reviews.csv -o labelled.csv --top 3 --min-confidence 0.8
  heedful classify reviews.model 'A quiet room. Rude staff.' --show-attention
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from heedful.cli.answered_tables import InputColumn, answer_table, is_table_file, text_of_row
from heedful.cli.lines import InputPath, LineFormat, OutputFormat, Texts, answer_lines, one_line, require_one
from heedful.cli.messages import Messages
from heedful.cli.options import Debug, Device, Engine, ModelPath, OutputPath, Quiet, Threads, use_threads
from heedful.errors import DataError, UsageError

if TYPE_CHECKING:
    from heedful.predictors.classifier import Classification, Classifier

UNSURE: Final = "unsure"
"""Label of texts for which the model is less confident than is wanted."""
ShowAttention = Annotated[
    bool, typer.Option("--show-attention", help="Show the weights of sentences and words in the text.")
]
Top = Annotated[int, typer.Option("--top", min=1, max=1_000, metavar="INTEGER", help="Number of labels of each text.")]
MinConfidence = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=1.0,
        metavar="FLOAT",
        help=f"Probability below which the label is {UNSURE!r}; see the curve of heedful evaluate.",
    ),
]


def run(
    model: ModelPath,
    texts: Texts = None,
    source: InputPath = None,
    target: OutputPath = None,
    columns: InputColumn = "",
    output_format: LineFormat = "text",
    top: Top = 1,
    min_confidence: MinConfidence = 0.0,
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
    is_table = is_table_file(source)
    if columns and not is_table:
        raise UsageError("--columns: only a table has columns; give one with --input, such as texts.csv")
    if is_table and show_attention:
        raise UsageError("--show-attention: for texts, not for tables; give texts, or --format jsonl")
    from heedful.cli.scoring import load_to_run
    from heedful.predictors.classifier import WINDOW_TEXTS, Classifier

    classifier = load_to_run(model, engine, device, kind=Classifier)

    messages = Messages(quiet)
    if is_table and source is not None:
        _label_table(classifier, source, target, columns, top, min_confidence, messages)
        return
    write_attention = _attention_writer(target) if show_attention else None

    def labels(window: list[str], first_index: int) -> Iterator[tuple[str, bool]]:
        for result in classifier.stream(window):
            if write_attention is not None and result.attention is None:
                raise UsageError(f"{model}: this model has no attention to show")
            shown = write_attention(result) if write_attention is not None else ""
            yield f"{_line(result, output_format, top, min_confidence)}\n{shown}", result.was_cut

    answer_lines(labels, texts or (), source, target, messages, WINDOW_TEXTS, classifier.text.max_tokens)


def _attention_writer(target: Path | None) -> "Callable[[Classification], str]":
    """Function that writes a text with the weights of its words: in colours on a terminal, else in numbers."""
    from rich.console import Console

    from heedful.cli.attention_text import weighted_text

    is_terminal = target is None and sys.stdout.isatty()
    console = Console(color_system="auto" if is_terminal else None)
    return partial(weighted_text, console=console)


def _label_table(
    classifier: "Classifier",
    source: Path,
    target: Path | None,
    columns: str,
    top: int,
    min_confidence: float,
    messages: Messages,
) -> None:
    """Give a table back with labels.

    Raises:
        DataError: the table lacks the column of texts.
    """
    from heedful.data.answered_tables import AnsweredTable
    from heedful.data.text_columns import choose_text_column
    from heedful.predictors.classifier import WINDOW_TEXTS

    trained = classifier.text_columns
    table = AnsweredTable(source, (*trained, *columns.split("+")))
    if columns:
        names = table.column(columns)
    elif trained and {*trained} <= {*table.names}:
        names = trained
    else:
        rows = [[*row.values.values()] for row in islice(table, 1000)]
        names = table.column(choose_text_column(table.names, rows))
        index = table.names.index(names[0])
        cells = (str(row[index]) for row in rows if len(row) == len(table.names))
        if trained and not any(map(str.isalpha, "".join(cells))):
            missing = f"no column {' and '.join(trained)}, which the model was trained on, and none of texts"
            raise DataError(f"{source}: {missing}; name it with --columns")
    messages.say(f"{source}: text in {' and '.join(names)}")
    if trained and not columns and names != trained:
        messages.warn(f"{source}: no column {' and '.join(trained)}, which the model was trained on; is it another?")
    kinds = ("label", "probability")
    added = (*kinds, *(f"{kind}_{number}" for number in range(2, top + 1) for kind in kinds))

    def results(texts: Sequence[str]) -> Iterator[dict[str, Any]]:
        for result in classifier.stream(texts):
            best = _best(result, top, min_confidence)
            yield dict(zip(added, chain.from_iterable(best), strict=False))

    answer_table(table, target, text_of_row(names), results, added, messages, WINDOW_TEXTS)


def _best(result: "Classification", top: int, min_confidence: float) -> list[tuple[str, float]]:
    """The most probable labels with their probabilities; the first is unsure below a limit."""
    label = result.label if result.probability >= min_confidence else UNSURE
    others = [each for each in result.probabilities.items() if each[0] != result.label]
    return [(label, round(result.probability, 6)), *((name, round(share, 6)) for name, share in others[: top - 1])]


def _line(result: "Classification", output_format: OutputFormat, top: int, min_confidence: float) -> str:
    if output_format == "text":
        best = _best(result, top, min_confidence)
        return "\t".join(f"{one_line(label)}\t{probability:.4f}" for label, probability in best)
    facts = {
        "text": result.text,
        "label": result.label if result.probability >= min_confidence else UNSURE,
        "probabilities": result.probabilities,
        "was_cut": result.was_cut,
    }
    if result.attention is not None:
        facts |= {"pieces": result.pieces, "attention": [round(float(weight), 6) for weight in result.attention]}
    return json.dumps(facts, ensure_ascii=False)
