"""Classify texts.

Texts are arguments, lines of a file, or lines of standard input; one line in, one line out: the label, a tab and its
probability; both are empty for a blank text. With --format jsonl, each line gives the probability of every label, and
the weights of the words where the model has attention; --show-attention shows them in the text. A file whose name ends
in .csv, .tsv, .jsonl, .json or .parquet is a table: it is given back, in order, with the columns "label" and
"probability" behind its own, in the form that the name of the output tells; with --format jsonl, as lines of JSON. Of a
folder, each file of text is a text: a line has its path before the label, in alphabetical order.

Where texts may have several labels, a text gets those with a probability of one half and more, or none, and the
probability is that exactly these are right; --top lists single labels. A number has no probability.

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
from itertools import chain, islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, final

import typer

from heedful.cli.answered_tables import (
    InputColumn,
    answer_table,
    is_table_file,
    named_headings,
    text_of_row,
    warn_of_cut,
)
from heedful.cli.lines import InputPath, LineFormat, OutputFormat, Texts, answer_lines, one_line, require_one
from heedful.cli.messages import Messages
from heedful.cli.options import Debug, Device, Engine, ModelPath, OutputPath, Quiet, Threads, use_threads
from heedful.errors import DataError, UsageError

if TYPE_CHECKING:
    from heedful.data.label_kinds import LabelKind
    from heedful.predictors.classifier import Classification, Classifier

UNSURE: Final = "unsure"
"""Label of texts for which the model is less confident than is wanted."""
ShowAttention = Annotated[
    bool, typer.Option("--show-attention", help="Show the weights of sentences and words in the text.")
]
Top = Annotated[
    int | None,
    typer.Option(
        "--top",
        min=1,
        max=1_000,
        metavar="INTEGER",
        help="Number of labels of each text, the most probable first.",
        show_default="its label or set of labels",
    ),
]
MinConfidence = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=1.0,
        metavar="FLOAT",
        help=f"Probability below which the label is {UNSURE!r}; see heedful evaluate --precision.",
    ),
]


def run(
    model: ModelPath,
    texts: Texts = None,
    source: InputPath = None,
    target: OutputPath = None,
    columns: InputColumn = "",
    output_format: LineFormat = "text",
    top: Top = None,
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
        UsageError: attention is to be shown, but the model has none, or the format is not text; or labels are to be
            chosen by probability, but the model gives numbers.
    """
    use_threads(threads)
    require_one(texts, source)
    if show_attention and output_format != "text":
        raise UsageError("--show-attention is for --format text; the format jsonl has the weights already")
    is_table = is_table_file(source)
    if columns and not is_table:
        raise UsageError("--columns: only a table has columns; give one with --input, such as texts.csv")
    if is_table and show_attention:
        raise UsageError("--show-attention: for texts, not for tables; give texts")
    from heedful.cli.scoring import load_to_run
    from heedful.predictors.classifier import WINDOW_TEXTS, Classifier

    classifier = load_to_run(model, engine, device, kind=Classifier)
    if classifier.text.labels == "number" and (top is not None or min_confidence):
        name = "--top" if top is not None else "--min-confidence"
        raise UsageError(f"{name}: {model} gives numbers, which have no probability; leave it out")
    wanted = _Wanted(classifier.text.labels, top, min_confidence)
    messages = Messages(quiet)
    if is_table and source is not None:
        _label_table(classifier, source, target, columns, wanted, output_format, messages)
        return
    files = _files_of(source)
    write_attention = _attention_writer(target) if show_attention else None

    def labels(window: list[str], first_index: int) -> Iterator[tuple[str, bool]]:
        results = classifier.stream(text for text in window if text.strip())
        for text, name in zip(window, files[first_index:] or repeat(""), strict=False):
            if not text.strip():
                yield wanted.empty_line(text, output_format, name) + "\n", False
                continue
            result = next(results)
            if write_attention is not None and result.attention is None:
                raise UsageError(f"{model}: this model has no attention to show")
            shown = write_attention(result) if write_attention is not None else ""
            yield f"{wanted.line(result, output_format, name)}\n{shown}", result.was_cut

    rows = map(_read_text, files) if files else None
    answer_lines(labels, texts or (), source, target, messages, WINDOW_TEXTS, classifier.text.max_tokens, rows=rows)


def _files_of(source: Path | None) -> list[str]:
    """Paths of the files of texts in a folder; none where the source is no folder.

    Raises:
        DataError: the folder has none.
    """
    from heedful.data.folders import text_files

    if source is None or not source.is_dir():
        return []
    files = text_files(source)
    if not files:
        raise DataError(f"{source}: no file of texts in this folder; their names end in .txt or .md")
    return [str(file) for file in files]


def _read_text(file: str) -> str:
    """The text of a file, in one line."""
    from heedful.data.folders import text_of_file

    return text_of_file(Path(file)).replace("\n", " ")


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
    wanted: "_Wanted",
    output_format: OutputFormat,
    messages: Messages,
) -> None:
    """Give a table back with labels.

    Raises:
        DataError: the table lacks the column of texts.
    """
    from heedful.data.text_columns import choose_text_column
    from heedful.predictors.classifier import WINDOW_TEXTS
    from heedful.predictors.trained_columns import opened_table, trained_columns

    trained = classifier.text_columns
    table = opened_table(source, trained, *named_headings(columns))
    advice = "name the column of the texts with --columns"
    names = table.column(columns) if columns else trained_columns(table, trained, advice)
    if not names:
        rows = [[*row.values.values()] for row in islice(table, 1000)]
        names = table.column(choose_text_column(table.names, rows))
        texts = [str(row.values.get(names[0]) or "").strip() for row in islice(table, 1000)]
        if sum(text in classifier.labels for text in texts) > len(texts) / 2:
            raise DataError(f"{source}: no column of texts; column {names[0]} has labels of the model; {advice}")
    if trained and not table.has_headings and not columns:
        messages.warn(
            f"{source}: no heading {trained[0]}, as in the training data; texts in column {names[0]}, row 1 on"
        )
    else:
        messages.say(f"{source}: texts in column {' and '.join(names)}")
    is_other = trained and table.has_headings and {*map(_folded, names)} != {*map(_folded, trained)}
    if is_other and not columns:
        messages.warn(f"{source}: no column {trained[0]}, which the model was trained on; {names[0]} is read instead")
    num_cut = 0

    def results(texts: Sequence[str]) -> Iterator[dict[str, Any]]:
        nonlocal num_cut
        for result in classifier.stream(texts):
            num_cut += result.was_cut
            yield dict(zip(wanted.columns, chain.from_iterable(wanted.best(result)), strict=False))

    read = text_of_row(names)
    answer_table(table, target, output_format, read, results, wanted.columns, messages, WINDOW_TEXTS)
    warn_of_cut(messages, source, num_cut, classifier.text.max_tokens)


@final
class _Wanted:
    """Labels that are wanted of each text, and how they are written."""

    def __init__(self, kind: "LabelKind", top: int | None, min_confidence: float) -> None:
        """Store what is wanted.

        Args:
            kind: kind of the model's labels.
            top: number of labels; None = the label, or the set of several.
            min_confidence: probability below which the label is unsure.
        """
        self._kind: Final = kind
        self._top: Final = top
        self._min_confidence: Final = min_confidence
        names = ("label",) if kind == "number" else ("label", "probability")
        self.columns: Final = (*names, *(f"{name}_{number}" for number in range(2, (top or 1) + 1) for name in names))
        """Names of the results of a text."""

    def best(self, result: "Classification") -> list[tuple[Any, ...]]:
        """Labels with their probabilities, the most probable first; a number alone."""
        if self._kind == "number":
            return [(result.label,)]
        best = [(result.label, result.probability)]
        if self._top is not None:
            # A set of labels has another probability than each of them: beside single labels it has no place.
            own = {} if self._kind == "several" else {result.label: result.probability}
            best = [*{**own, **result.probabilities}.items()][: self._top]
        first = best[0][0] if best[0][1] >= self._min_confidence else UNSURE
        return [(label, round(share, 6)) for label, share in ((first, best[0][1]), *best[1:])]

    def line(self, result: "Classification", output_format: OutputFormat, name: str = "") -> str:
        """Line of a text, without its end.

        Args:
            name: path of its file; empty = it has none.
        """
        if output_format == "text":
            cells: list[Any] = [*([name] if name else []), *chain.from_iterable(self.best(result))]
            return "\t".join(one_line(cell) if isinstance(cell, str) else f"{cell:.4f}" for cell in cells)
        probabilities = {} if self._kind == "number" else {"probabilities": result.probabilities}
        label = result.label if result.probability >= self._min_confidence else UNSURE
        facts = _named(name) | {"text": result.text, "label": label, **probabilities, "was_cut": result.was_cut}
        if result.attention is not None:
            facts |= {"pieces": result.pieces, "attention": [round(float(weight), 6) for weight in result.attention]}
        return json.dumps(facts, ensure_ascii=False)

    def empty_line(self, text: str, output_format: OutputFormat, name: str = "") -> str:
        """Line of a blank text, which has no label, without its end."""
        if output_format == "text":
            return (f"{one_line(name)}\t" if name else "") + "\t" * (len(self.columns) - 1)
        probabilities = {} if self._kind == "number" else {"probabilities": {}}
        return json.dumps(
            {**_named(name), "text": text, "label": None, **probabilities, "was_cut": False}, ensure_ascii=False
        )


def _named(name: str) -> dict[str, Any]:
    """Entry of a line of JSON for the file of a text, if it has one."""
    return {"file": one_line(name)} if name else {}


def _folded(heading: str) -> str:
    return heading.strip().casefold()
