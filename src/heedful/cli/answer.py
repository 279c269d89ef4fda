"""Answer questions about facts.

Input is a file or standard input: one JSON object a line, {"facts": ["...", "..."], "question": "..."}, or facts
separated by " | ", a tab, and the question. A line of another form is a fact, or if it ends in a question mark a
question about the facts before it; an empty line forgets them. Where the lines are numbered as in the bAbI tasks, so
does the number 1. One question in, one line out: the answer, a tab and its probability. With --format jsonl, each line
gives the probability of every answer and the weight of each fact at each step; where the answer is a span of the facts,
also the place of the span and the weight of each token. An empty answer says that the facts have none. A file of CSV,
Parquet or SQuAD's JSON, or any if the output is .csv, .jsonl or .parquet, is a table: it is given back with the columns
"answer" and "probability" behind its own; with --format jsonl, as lines of JSON.

Examples:
  heedful answer stories.model
  heedful answer stories.model questions.jsonl --format jsonl -o answers.jsonl
  heedful answer stories.model questions.csv -o answered.csv
"""

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, final

import typer

from heedful.cli.answered_tables import answer_table, is_table_file, warn_of_cut
from heedful.cli.lines import LineFormat, OutputFormat, answer_lines, one_line
from heedful.cli.messages import Messages, RepeatedWarning
from heedful.cli.options import Debug, Device, Engine, ModelPath, OutputPath, Quiet, Threads, use_threads
from heedful.errors import DataError

if TYPE_CHECKING:
    from heedful.data.answered_tables import AnsweredTable
    from heedful.predictors.answerer import Answer, Answerer
    from heedful.text.stories import Story

_QUESTION_MARKS: Final = ("?", "？")
_HINT: Final = "Type facts, one a line, and questions, which end in a question mark."
_SAMPLE_ROWS: Final = 1000
_LEAST_SHOWN: Final = 0.1
"""Least weight of a fact that is shown on a terminal."""

StoriesPath = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="File of stories; - or none is standard input.", show_default=False),
]


def run(
    model: ModelPath,
    source: StoriesPath = None,
    target: OutputPath = None,
    output_format: LineFormat = "text",
    engine: Engine = "auto",
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Answer questions."""
    use_threads(threads)
    from heedful.cli.scoring import load_to_run
    from heedful.predictors.answerer import WINDOW_STORIES, Answerer

    answerer = load_to_run(model, engine, device, kind=Answerer)
    messages = Messages(quiet)
    if source is not None and _is_table(source, target, output_format):
        _answer_rows(answerer, source, target, output_format, messages)
        return
    is_conversation = source is None and target is None and sys.stdin.isatty()
    name = str(source or "standard input")
    lines = _Lines(name)
    incomplete = RepeatedWarning(messages, "stories without facts or question")

    def answers(window: list[str], first_index: int) -> Iterator[tuple[str, bool]]:
        stories = [lines.story(line, first_index + index) for index, line in enumerate(window, start=1)]
        results = answerer.stream(story for story in stories if story is not None)
        for index, story in enumerate(stories, start=1):
            if story is None:
                yield "", False
            else:
                result = next(results)
                if problem := _problem(result):
                    incomplete.add(f"{name}:{first_index + index}: {problem}")
                is_shown = is_conversation and output_format == "text"
                line = _line(result, "no answer" if is_shown else "")
                text = json.dumps(_facts(result), ensure_ascii=False) if output_format == "jsonl" else line
                shown = _weights(result) if is_shown else ""
                yield f"{text}\n{shown}", result.was_cut

    most = answerer.text.max_tokens
    answer_lines(answers, (), source, target, messages, WINDOW_STORIES, most, _HINT)
    incomplete.close()


def _is_table(source: Path, target: Path | None, output_format: OutputFormat) -> bool:
    """Whether questions are the rows of a table, which is given back, and not lines."""
    from heedful.data.cells import suffix_of
    from heedful.data.table_forms import table_form

    if table_form(source) in ("csv", "parquet") or suffix_of(source) == ".json":
        return True
    return output_format == "text" and is_table_file(source) and table_form(target) in ("csv", "jsonl", "parquet")


def _answer_rows(
    answerer: "Answerer", source: Path, target: Path | None, output_format: OutputFormat, messages: Messages
) -> None:
    """Give a table back with answers.

    Raises:
        DataError: the table has headings, but none of facts or none of questions.
    """
    from heedful.data.answered_tables import AnsweredTable, TableRow
    from heedful.predictors.answerer import WINDOW_STORIES
    from heedful.text.stories import NAMES, known_parts, story_of

    table = AnsweredTable(source, (*NAMES["facts"], *NAMES["question"]))
    heads = _part_names(table)
    if table.has_headings and heads != table.names:
        renamed = [(name, head) for name, head in zip(heads, table.names, strict=True) if name != head]
        messages.say(f"{source}: {', '.join(f'{name} in column {head}' for name, head in renamed)}")
    missing = [
        part for part in ("facts", "question") if part not in known_parts(map(str.casefold, map(str.strip, heads)))
    ]
    if missing:
        expected = " and ".join(f"{part} ({', '.join(NAMES[part][:4])})" for part in missing)
        raise DataError(f"{source}: no column of {expected}; it has {', '.join(heads)}; rename one of them")

    def read(row: "TableRow") -> "Story | None":
        values = dict(zip(heads, row.values.values(), strict=False)) if not table.is_json else dict(row.values)
        try:
            story = story_of(values)
        except DataError as error:
            raise DataError(f"{source}:{row.line}: {error}") from None
        return story if story.question else None

    num_cut = 0

    def results(stories: list[Any]) -> Iterator[dict[str, Any]]:
        nonlocal num_cut
        for result in answerer.stream(stories):
            num_cut += result.was_cut
            yield {"answer": result.answer, "probability": round(result.probability, 6)}

    answer_table(table, target, output_format, read, results, ("answer", "probability"), messages, WINDOW_STORIES)
    warn_of_cut(messages, source, num_cut, answerer.text.max_tokens)


def _part_names(table: "AnsweredTable") -> tuple[str, ...]:
    """Names of the columns of a table of questions; unknown ones are those of facts and question, if texts say so."""
    from heedful.data.first_rows import are_names
    from heedful.data.stories import part_names
    from heedful.text.stories import NAMES

    if not table.has_headings:
        return tuple(NAMES)[: len(table.names)]
    rows = [row.cells for row in islice(table, _SAMPLE_ROWS) if not row.fault]
    return part_names(table.names) if not table.is_json and are_names([table.names, *rows]) else table.names


@final
class _Lines:
    """Reader of lines that are stories, or facts and questions about the facts before them."""

    def __init__(self, name: str) -> None:
        self._name: Final = name
        self._facts: Final[list[str]] = []
        self._is_numbered: bool | None = None

    def story(self, line: str, number: int) -> "Story | None":
        """Story of a line; None for a fact, which is kept, and for an empty line, which forgets the facts.

        Raises:
            DataError: the line is no story.
        """
        from heedful.text.stories import Story, numbered_line, parse_story

        text = line.strip()
        numbered = numbered_line(text)
        if self._is_numbered is None and text:
            self._is_numbered = numbered is not None and numbered[0] == 1 and "\t" not in text
        if numbered is not None and self._is_numbered:
            if numbered[0] == 1:
                self._facts.clear()
            # Answer and supporting facts may follow the question.
            text, *cells = numbered[1].split("\t")
            if cells:
                return Story(tuple(self._facts), text.strip())
        if text.startswith("{") or "\t" in text:
            return parse_story(text, self._name, number)
        if text.endswith(_QUESTION_MARKS):
            return Story(tuple(self._facts), text)
        if text:
            self._facts.append(text)
        else:
            self._facts.clear()
        return None


def _problem(result: "Answer") -> str:
    """Warning about an answer that does not follow from facts and question; empty if there is nothing to warn of."""
    missing = "facts" if not result.story.facts else "question" if not result.story.question else ""
    # An answer that is a span needs facts; one of the training data is chosen nevertheless.
    return missing and f"no {missing}, so {'the answer is a guess' if result.answer else 'no answer'}"


def _line(result: "Answer", none: str) -> str:
    return f"{one_line(result.answer) or none}\t{result.probability:.4f}"


def _weights(result: "Answer") -> str:
    """Facts with a considerable weight at each step, one a line."""
    if result.weights is None:
        return ""
    return "".join(
        f"  {step}: {weight:.2f}  {fact}\n"
        for step, row in zip(result.steps, result.weights.tolist(), strict=True)
        for fact, weight in zip(result.story.facts, row, strict=True)
        if weight >= _LEAST_SHOWN
    )


def _facts(result: "Answer") -> dict[str, Any]:
    weights = (
        None if result.weights is None else [[round(weight, 6) for weight in row] for row in result.weights.tolist()]
    )
    return {
        "facts": result.story.facts,
        "question": result.story.question,
        "answer": result.answer,
        "probabilities": result.probabilities,
        "weights": weights,
        "was_cut": result.was_cut,
        **({} if result.span is None else {"span": result.span.to_dict()}),
    }
