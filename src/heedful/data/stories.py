"""Files of stories with questions, as training data: reading, checking, and token ids."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.data.cells import TABS, CellStyle, Record, cell_style, split_record, whole_records
from heedful.data.corpus import Pair
from heedful.data.first_rows import are_names
from heedful.data.passages import answer_place
from heedful.data.row_faults import RowFaults
from heedful.data.tables import check_data_file, data_lines, fingerprint_table, first_lines, is_table, table_identity
from heedful.data.text_columns import is_id
from heedful.errors import DataError, UsageError
from heedful.text.counts import counted
from heedful.text.quoting import shortened
from heedful.text.stories import NAMES, SEPARATOR, Story, known_parts, numbered_line, parse_story, story_of
from heedful.text.text_files import stem
from heedful.text.tokenizer import TextConfig, Tokenizer
from heedful.text.vocabulary import EOS

IMPOSSIBLE: Final = "has_impossible"
"""Entry of `heedful.json`: whether training data had questions that their facts do not answer."""
MOST_WITHOUT: Final = 0.1
"""Largest share of stories that are left out because their answers are not in their facts."""
_LABELS: Final = 0.9
"""Share of answers that are not in their facts from which on they are labels, such as yes and no."""
_SAMPLE_LINES: Final = 1000


@final
@dataclass(frozen=True)
class Stories:
    """Stories with their answers.

    Example:
        >>> stories = Stories((Story(("Ada went to the attic.",), "Where is Ada?", "attic"),))
        >>> stories.labels, len(stories)
        (['attic'], 1)
    """

    stories: tuple[Story, ...]
    """The stories."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """Lines about rows that were left out as unreadable."""

    def __len__(self) -> int:
        return len(self.stories)

    def __getitem__(self, selection: slice) -> "Stories":
        return replace(self, stories=self.stories[selection])

    @property
    def texts(self) -> list[str]:
        """Facts and question of each story in one line."""
        return [story_line(story) for story in self.stories]

    @property
    def labels(self) -> list[str]:
        """Answer of each story."""
        return [story.answer for story in self.stories]

    @property
    def sources(self) -> list[str]:
        """Facts and question of each story in one line."""
        return self.texts

    @property
    def references(self) -> list[list[str]]:
        """Answer of each story."""
        return [[label] for label in self.labels]


def story_line(story: Story) -> str:
    """Write facts and question in one line.

    Returns:
        The line, the question last; JSON where a text contains the separator. The same for stories that differ in
    """
    parts = [*story.facts, story.question]
    line = SEPARATOR.join(parts)
    if line.split(SEPARATOR) == parts and not line.startswith("{"):
        return line
    return replace(story, answer="", supporting=(), is_impossible=False).to_json()


@final
class StoryFile:
    """Stories in a file; construct with `find_stories`."""

    def __init__(self, path: Path, leaves_out_faults: bool = False) -> None:
        """Store the path.

        Args:
            leaves_out_faults: as for `find_stories`.
        """
        self.path: Final = path
        self.name: Final = stem(path)
        """Name from which the model folder's default name is derived."""
        self._leaves_out_faults: Final = leaves_out_faults
        self.notes: Final[list[str]] = []
        """Lines about rows that were left out so far."""

    def __iter__(self) -> Iterator[tuple[int, Story]]:
        """Read the stories from the start.

        Yields:
            The 1-based line and its story; empty lines are left out.

        Raises:
            DataError: a line is no story, or its story has no question.
        """
        lines = data_lines(self.path, "replace") if self._leaves_out_faults else data_lines(self.path, nul="refuse")
        faults, reader = RowFaults(str(self.path), "question"), _StoryReader(lines.name)
        table = self._table()
        records = (table or _LINES).records(faults.watched(lines))
        for record in records:
            if not record.text.strip():
                continue
            try:
                faults.check(record)
                story = reader.story(record, table)
                if story is not None and not story.question:
                    raise DataError(f"{lines.name}:{record.line}: the question is blank; write one")
            except DataError as error:
                faults.num_rows += 1
                if not self._leaves_out_faults:
                    raise
                faults.add(record.line, error)
                continue
            if story is not None:
                faults.num_rows += 1
                yield record.line, story
        faults.check_share()
        if (note := faults.note()) and note not in self.notes:
            self.notes.append(note)

    def _table(self) -> "_StoryColumns | None":
        """Columns of a file whose first row has headings."""
        if is_table(self.path):
            return None
        sample = first_lines(self.path, _SAMPLE_LINES)
        style = cell_style(self.path, sample) if sample else TABS
        records = whole_records(sample, style) if sample else [""]
        heads = [cell.strip().casefold() for cell in style.split(records[0], str(self.path), 1)]
        lenient = CellStyle(style.separator, "lenient" if style.quotes == "strict" else style.quotes)
        rows = [heads, *(row for row in map(lenient.split, records[1:]) if len(row) == len(heads))]
        if {"facts", "question"} <= known_parts(heads) or are_names(rows):
            return _StoryColumns(style, tuple(heads), len(heads), part_names(heads))
        if style.separator == "\t":
            return None
        return _StoryColumns(style, (), len(heads))  # facts, question and answer, in this order

    def identity(self) -> tuple[Any, ...]:
        """Return values that change whenever the content changes."""
        return (table_identity(self.path),)

    def fingerprint(self) -> dict[str, Any]:
        """Describe the content so that any change is detected.

        Returns:
            "files": name, size, sha256 and number of lines. JSON can hold it.
        """
        return {"files": [fingerprint_table(self.path)]}

    def describe(self) -> str:
        """Describe the file in one line, and show the first question.

        Returns:
            Such as "stories.jsonl: stories; first: 5 facts, 'Where is Ada?' -> 'cellar'".
        """
        first = next((story for _, story in self), None)
        if first is None:
            return f"{self.path}: no stories"
        shown = f"{counted(len(first.facts), 'fact')}, {shortened(first.question)} -> {shortened(first.answer)}"
        return f"{self.path}: stories; first: {shown}"


@final
class _StoryReader:
    """Reader of the stories of a file, which remembers the facts of bAbI's numbered lines."""

    def __init__(self, name: str) -> None:
        self._name: Final = name
        self._facts: Final[dict[int, str]] = {}
        self._is_numbered: bool | None = None

    def story(self, record: Record, table: "_StoryColumns | None") -> Story | None:
        """Story of a row; None for a fact, and for headings."""
        if table is not None:
            return table.story(record, self._name)
        numbered = numbered_line(record.text)
        if self._is_numbered is None:
            self._is_numbered = numbered is not None and numbered[0] == 1 and "\t" not in record.text
        if numbered is None or not self._is_numbered:
            return parse_story(record.text, self._name, record.line)
        return _numbered_story(self._facts, *numbered, f"{self._name}:{record.line}")


@final
@dataclass(frozen=True)
class _StoryColumns:
    """Columns of stories."""

    style: CellStyle
    heads: tuple[str, ...]
    """Headings; none = facts, question and answer."""
    num_columns: int
    names: tuple[str, ...] = ()
    """Names of the columns; none = facts, question and answer."""

    def records(self, lines: Iterable[str]) -> Iterator[Record]:
        return self.style.records(lines, self.num_columns)

    def story(self, record: Record, name: str) -> Story | None:
        cells = split_record(self.style, self.num_columns, record.text, name, record.line)
        names = self.names or tuple(next(iter(each)) for each in NAMES.values())
        if self.heads and tuple(cell.strip().casefold() for cell in cells) == self.heads:
            return None
        try:
            return story_of(dict(zip(names, cells, strict=False)))
        except DataError as error:
            raise DataError(f"{name}:{record.line}: {error}") from None


def part_names(heads: Sequence[str]) -> tuple[str, ...]:
    """Name the columns of a table of stories.

    Args:
        heads: headings.

    Returns:
        Known ones as they are; where facts or questions have none, the unknown ones are those of facts, question and
        answer, in this order, unless there are more or fewer of them than that.

    Example:
        >>> part_names(["id", "context", "q", "a"])
        ('id', 'context', 'question', 'answer')
    """
    known = known_parts(head.strip().casefold() for head in heads)
    if {"facts", "question"} <= known:
        return tuple(heads)
    missing = [part for part in ("facts", "question", "answer") if part not in known]
    are_open = [not is_id(head) and not known_parts([head.strip().casefold()]) for head in heads]
    if sum(are_open) not in (len(missing), len(missing) - ("answer" in missing)):  # a table to be answered has none
        return tuple(heads)
    parts = iter(missing)
    return tuple(next(parts) if is_open else head for head, is_open in zip(heads, are_open, strict=True))


_LINES: Final = _StoryColumns(TABS, (), 0)


def _numbered_story(facts: dict[int, str], number: int, text: str, name: str) -> Story | None:
    """Story of a line of the bAbI tasks; None for a fact, which is added to those before it.

    Raises:
        DataError: the line has other cells than question, answer and numbers of facts.
    """
    if number == 1:
        facts.clear()
    question, *cells = text.split("\t")
    if not cells:
        facts[number] = text
        return None
    indices = {known: index for index, known in enumerate(facts)}
    supporting = cells[1].split() if len(cells) > 1 else []
    if len(cells) > 2 or not all(one.isdecimal() and int(one) in indices for one in supporting):
        raise DataError(f"{name}: expected a question, a tab, its answer, a tab and the numbers of facts before it")
    numbers = [indices[int(one)] for one in supporting]
    return story_of({"facts": [*facts.values()], "question": question, "answer": cells[0], "supporting": numbers})


def find_stories(paths: Sequence[Path], leaves_out_faults: bool = False) -> StoryFile:
    """Check a file of stories.

    Args:
        paths: one file of JSON lines, of rows separated by tabs, or a table; see `heedful.text.stories.parse_story`. Or
            SQuAD's JSON; CSV or TSV with headings; or one in the format of the bAbI tasks: every line begins with its
            number in the story, and a question has its answer and the numbers of its supporting facts in columns after
            tabs.
        leaves_out_faults: whether a small share of rows that are no stories are left out and noted.

    Raises:
        UsageError: there is more than one file.
        DataError: the file is missing, empty, or neither text nor a table.
    """
    if len(paths) != 1:
        raise UsageError(f"expected one file of stories, got {len(paths)}")
    check_data_file(paths[0])
    return StoryFile(paths[0], leaves_out_faults)


def answered_stories(file: StoryFile, in_facts: bool = False, keeps_impossible: bool = False) -> Iterator[Story]:
    """Read the stories of a file that says the answers.

    Questions without an answer are left out and noted where others have one, and so are those whose answer is not in
    the facts, if they are at most `MOST_WITHOUT` of all.

    Args:
        in_facts: whether every answer must be a part of the facts of its story.
        keeps_impossible: whether questions that the facts do not answer, as in SQuAD 2.0, are kept.

    Yields:
        The stories.

    Raises:
        DataError: no story has an answer, or too many have it not in their facts.
    """
    num_stories, counts, firsts = 0, Counter[str](), dict[str, str]()

    def count(kind: str, number: int, message: str) -> None:
        counts[kind] += 1
        firsts.setdefault(kind, f"{file.path}:{number}: {message}")

    for number, story in file:
        num_stories += 1
        if story.is_misplaced:
            count("misplaced", number, shortened(story.answer))
        if story.is_impossible and keeps_impossible:
            yield story
        elif not story.answer:
            count("unanswered", number, 'no answer; write {"facts": [...], "question": "...", "answer": "..."}')
        elif answer_place(story) is None:
            count("absent", number, f"the answer {shortened(story.answer)} is not in the facts; copy it from them")
            if not in_facts:
                yield story
        else:
            yield story
    if in_facts and counts["absent"] > MOST_WITHOUT * num_stories:
        raise DataError(firsts["absent"])
    if num_stories and counts["unanswered"] == num_stories:
        raise DataError(firsts["unanswered"])
    clauses = {
        "unanswered": "left out",
        "misplaced": "do not have their answer at its answer_start; the nearest counts",
    }
    if in_facts:
        clauses["absent"] = "left out"
    elif are_spans_missing(counts["absent"], num_stories):
        clauses["absent"] = "have an answer that is not in their facts, so that no model of spans can learn them"
    for kind, what in clauses.items():
        note = f"{counts[kind]:,} of {counted(num_stories, 'question')} {what}; the first: {firsts.get(kind)}"
        if counts[kind] and note not in file.notes:
            file.notes.append(note)


def are_spans_missing(num_absent: int, num_stories: int) -> bool:
    """Tell whether answers that are not in their facts are a fault, and not labels, as nearly all are otherwise."""
    return 0 < num_absent < _LABELS * num_stories


def distinct_stories(stories: Iterable[Story]) -> list[Story]:
    """Leave out repeated stories.

    Returns:
        The first of each group of stories with the same facts, question and answer.
    """
    return [*{(story.facts, story.question, story.answer): story for story in stories}.values()]


def story_pair(story: Story) -> Pair:
    """Make the pair by which a story is split off for validation or testing.

    Returns:
        Facts and question as source, the answer as target.
    """
    return Pair(story_line(story), story.answer, 0)


def encode_story(tokenizer: Tokenizer, story: Story, config: TextConfig) -> tuple[NDArray[np.int64], int, bool]:
    """Encode a story: the question, then the facts, the newest first, so that a limit of length cuts the oldest.

    Returns:
        [position] ids, in which the question and each fact end in EOS; the number of facts encoded; and whether a
        fact was left out, or a text cut to half of the limit.
    """
    most = config.max_tokens // 2
    texts = [
        tokenizer.encode(text[: 16 * most].replace("\0", "\ufffd")) if text.strip() else []
        for text in (story.question, *reversed(story.facts))
    ]
    was_cut = any(len(ids) >= most for ids in texts)
    ids: list[int] = []
    num_encoded = 0
    for own in texts:
        cut = [*own[: max(0, most - 1)], EOS]
        if num_encoded and len(ids) + len(cut) > config.max_tokens:
            break
        ids += cut
        num_encoded += 1
    return np.array(ids, dtype=np.int64), num_encoded - 1, was_cut or num_encoded < len(texts)
