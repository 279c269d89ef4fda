"""Files of stories with questions, as training data: reading, checking, and token ids."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.data.corpus import Pair
from heedful.data.passages import answer_place
from heedful.data.tables import check_data_file, data_lines, fingerprint_table, table_identity
from heedful.errors import DataError, UsageError
from heedful.text.counts import counted
from heedful.text.quoting import shortened
from heedful.text.stories import SEPARATOR, Story, numbered_line, parse_story, story_of
from heedful.text.text_files import stem
from heedful.text.tokenizer import TextConfig, Tokenizer
from heedful.text.vocabulary import EOS


@final
@dataclass(frozen=True)
class Stories:
    """Stories with their answers."""

    stories: tuple[Story, ...]

    def __len__(self) -> int:
        return len(self.stories)

    def __getitem__(self, selection: slice) -> "Stories":
        return Stories(self.stories[selection])

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
    return replace(story, answer="", supporting=()).to_json()


@final
class StoryFile:
    """Stories in a file; construct with `find_stories`."""

    def __init__(self, path: Path) -> None:
        """Store the path."""
        self.path: Final = path
        self.name: Final = stem(path)
        """Name from which the model folder's default name is derived."""

    def __iter__(self) -> Iterator[tuple[int, Story]]:
        """Read the stories from the start.

        Yields:
            The 1-based line and its story; empty lines are left out.

        Raises:
            DataError: a line is no story, or its story has no question.
        """
        lines = data_lines(self.path, nul="refuse")
        facts: dict[int, str] = {}
        is_numbered: bool | None = None
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            numbered = numbered_line(line)
            if is_numbered is None:
                is_numbered = numbered is not None and numbered[0] == 1 and "\t" not in line
            if numbered is None or not is_numbered:
                story = parse_story(line, lines.name, number)
            else:
                story = _numbered_story(facts, *numbered, f"{lines.name}:{number}")
            if story is None:
                continue
            if not story.question:
                raise DataError(f"{lines.name}:{number}: the question is blank; write one")
            yield number, story

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


def find_stories(paths: Sequence[Path]) -> StoryFile:
    """Check a file of stories.

    Args:
        paths: one file of JSON lines, of rows separated by tabs, or a table; see `heedful.text.stories.parse_story`. Or
            one in the format of the bAbI tasks: every line begins with its number in the story, and a question has its
            answer and the numbers of its supporting facts in columns after tabs.

    Raises:
        UsageError: there is more than one file.
        DataError: the file is missing, empty, or neither text nor a table.
    """
    if len(paths) != 1:
        raise UsageError(f"expected one file of stories, got {len(paths)}")
    check_data_file(paths[0])
    return StoryFile(paths[0])


def answered_stories(file: StoryFile, in_facts: bool = False) -> Iterator[Story]:
    """Read the stories of a file that says the answers.

    Args:
        in_facts: whether every answer must be a part of the facts of its story.

    Yields:
        The stories.

    Raises:
        DataError: a story has no answer, or not in its facts.
    """
    for number, story in file:
        if not story.answer:
            raise DataError(
                f'{file.path}:{number}: no answer; write {{"facts": [...], "question": "...", "answer": "..."}}'
            )
        if in_facts and answer_place(story) is None:
            raise DataError(
                f"{file.path}:{number}: the answer {shortened(story.answer)} is not in the facts; copy it from them"
            )
        yield story


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
