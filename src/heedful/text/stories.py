"""Stories: facts, a question about them, and its answer; one JSON object or one row of tab-separated cells each."""

import ast
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast, final

from heedful.errors import DataError, did_you_mean

SEPARATOR: Final = " | "
"""Separator of the facts in a row of tab-separated cells."""
_NUMBERED: Final = re.compile(r"(\d{1,9}) (.*)")
_SEPARATORS: Final = re.compile(r"(?:^|\s)\|(?:\s++|$)")
_EXPECTED: Final = '{"facts": ["...", "..."], "question": "...", "answer": "..."}'
# A search ends where the next array begins, so that it takes time in proportion to the text.
_ARRAY: Final = re.compile(r"array\((\[(?:[^a]|a(?!rray\())*?\])(?:, dtype=[^)\[\]]*+)?\)")
_BAD_IN_TEXT: Final = re.compile("[\0\ud800-\udfff]")
_KEYS: Final = ("facts", "question", "answer", "supporting")
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "facts": (
        *("facts", "passage", "context", "paragraph", "story", "text", "document", "article"),
        *("absatz", "kontext", "fakten", "contexte", "contexto", "段落", "文章", "上下文", "背景"),
    ),
    "question": ("question", "query", "frage", "pregunta", "domanda", "问题", "问句"),
    "answer": (
        *("answer", "answers", "answer_text", "label", "response", "span"),
        *("antwort", "réponse", "respuesta", "risposta", "答案", "回答"),
    ),
    "answer_start": ("answer_start", "start"),
}
"""Keys and headings of the parts of a story."""


@final
@dataclass(frozen=True)
class Story:
    """Facts in the order in which they happened, and a question about them."""

    facts: tuple[str, ...]
    question: str
    answer: str = ""
    """The right answer; empty = unknown."""
    supporting: tuple[int, ...] = ()
    """0-based indices of the facts that the answer follows from, in any order; none = unknown."""
    occurrence: int | None = None
    """Number of occurrences of the answer in the facts before the right one; None = unknown."""
    is_impossible: bool = False
    """Whether the facts do not answer the question, as SQuAD 2.0 says it; `answer` is empty then."""
    is_misplaced: bool = field(default=False, compare=False)
    """True for an answer in the facts that is not at the character which the data name; its nearest place is taken."""

    def to_json(self) -> str:
        """Write the story as one line of JSON.

        Returns:
            The line, without its end; unknown parts are left out.

        Example:
            >>> Story(("Ada went home.",), "Where is Ada?", "home", (0,)).to_json()
            '{"facts": ["Ada went home."], "question": "Where is Ada?", "answer": "home", "supporting": [0]}'
        """
        row: dict[str, Any] = {"facts": self.facts, "question": self.question}
        row |= {"answer": self.answer} if self.answer else {}
        row |= {"is_impossible": True} if self.is_impossible else {}
        row |= {"supporting": self.supporting} if self.supporting else {}
        row |= {} if self.occurrence is None else {"occurrence": self.occurrence}
        return json.dumps(row, ensure_ascii=False)


def numbered_line(line: str) -> tuple[int, str] | None:
    """Split a line of the bAbI tasks, which begins with its number in the story.

    Args:
        line: text without its line end.

    Returns:
        The number, and the rest of the line; None = it has none.

    Example:
        >>> numbered_line("2 Ada went home.")
        (2, 'Ada went home.')
    """
    numbered = _NUMBERED.fullmatch(line)
    return (int(numbered[1]), numbered[2]) if numbered else None


def parse_story(line: str, name: str, number: int) -> Story:
    r"""Read a story from a line.

    Args:
        line: a JSON object; or two or three cells separated by tabs: facts separated by " | ", question, answer.
        number: 1-based line number, for messages.

    Returns:
        The story; blank facts are left out.

    Raises:
        DataError: the line is no story; the message names file:line.

    Example:
        >>> parse_story("Ada went home. | Boris left.\tWhere is Ada?\thome", "x.tsv", 1).facts
        ('Ada went home.', 'Boris left.')
    """
    if not line.lstrip().startswith("{"):
        cells = line.split("\t")
        if len(cells) not in (2, 3):
            raise DataError(
                f"{name}:{number}: neither JSON nor facts, question and answer separated by tabs; write {_EXPECTED}"
            )
        return story_of({"facts": _SEPARATORS.split(cells[0]), **dict(zip(_KEYS[1:], cells[1:], strict=False))})
    try:
        row: object = json.loads(line)
    except RecursionError:
        raise DataError(f"{name}:{number}: JSON nested too deeply") from None
    except json.JSONDecodeError as error:
        raise DataError(f"{name}:{number}:{error.colno}: not JSON: {error.msg}") from None
    except ValueError as error:  # Python refuses integers of thousands of digits
        raise DataError(f"{name}:{number}: invalid JSON: {error}") from None
    try:
        return story_of(cast(Mapping[str, Any], row))
    except DataError as error:
        raise DataError(f"{name}:{number}: {error}") from None


def story_of(row: Mapping[str, Any]) -> Story:
    """Check the parts of a story.

    Args:
        row: "facts", or "passage" for a single text, and "question", and optionally "answer" and "supporting"; or with
            other `NAMES`. Answers may be as in SQuAD, of which the first is taken; an empty list of them, or
            "is_impossible", says that the facts do not answer the question. Other keys are ignored, and so is case.

    Returns:
        The story, without blank facts.

    Raises:
        DataError: a part is missing, or is of a wrong type.
    """
    if not {"facts", "question"} <= known_parts(row):
        row = {str(key).strip().casefold(): value for key, value in row.items()} | dict(row)
    keys = {part: next((name for name in names if name in row), names[0]) for part, names in NAMES.items()}
    facts_key, question_key = keys["facts"], keys["question"]
    for key in (facts_key, question_key):
        if key not in row:
            alternative = ", nor 'passage'" if key == "facts" else ""
            raise DataError(f"no key {key!r}{alternative}{did_you_mean(key, row)}; write {_EXPECTED}")
    question, supporting = row[question_key], row.get("supporting")
    answers = _parsed(row.get(keys["answer"]))
    is_impossible = _is_true(row.get("is_impossible")) or _is_empty(answers)
    answer, start = ("", None) if is_impossible else _answer(answers, row.get(keys["answer_start"]))
    texts = _facts(row[facts_key], facts_key)
    if not isinstance(question, str):
        raise DataError(f"{question_key!r} is {type(question).__name__}; expected a string")
    if not isinstance(answer, str):
        raise DataError(f"{keys['answer']!r} is {type(answer).__name__}; expected a string")
    for key, text in (*((facts_key, fact) for fact in texts), ("question", question), ("answer", answer)):
        if bad := _BAD_IN_TEXT.search(text):
            kind = "NUL character" if bad[0] == "\0" else f"half a character ({bad[0]!a}, a lone surrogate)"
            raise DataError(f"{kind} in {key!r}; remove it")
    indices = _indices(supporting, len(texts))
    real = [index for index, fact in enumerate(texts) if fact.strip()]
    return Story(
        tuple(texts[index].strip() for index in real),
        question.strip(),
        answer.strip(),
        tuple(real.index(index) for index in indices if index in real),
        row.get("occurrence") if start is None else _occurrence(texts, answer, start),
        is_impossible,
        start is not None and _is_misplaced(" ".join(texts), answer.strip(), start),
    )


def known_parts(names: Iterable[str]) -> set[str]:
    """List the parts of a story that keys or headings name.

    Args:
        names: the keys, in lower case.

    Returns:
        Keys of `NAMES`.
    """
    own = {*names}
    return {part for part, known in NAMES.items() if not own.isdisjoint(known)}


def _parsed(value: object) -> object:
    """Answers of a cell of a table, which has them as Python writes them; other values as they are."""
    if isinstance(value, str) and value.lstrip().startswith("{") and "text" in value:
        plain = _ARRAY.sub(r"\1", value)
        try:
            return ast.literal_eval(plain)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            pass
    return value


def _is_empty(answers: object) -> bool:
    """Whether answers are a list of none, as in SQuAD; an empty text may be an answer that is not known."""
    texts = cast(Mapping[str, Any], answers).get("text") if isinstance(answers, Mapping) else answers
    return isinstance(texts, list | tuple) and not texts


def _is_true(value: object) -> bool:
    return value is True or (isinstance(value, str) and value.strip().casefold() == "true")


def _answer(value: object, start: object) -> tuple[object, int | None]:
    """The first answer, and its first character in the facts, as SQuAD and tables of it have them."""
    if isinstance(value, list | tuple):
        answers = cast(list[Any], value)
        if answers and isinstance(answers[0], Mapping):
            first = cast(Mapping[str, Any], answers[0])
            return first.get("text", ""), _whole(first.get("answer_start"))
        return (answers[0] if answers else ""), _whole(start)
    if isinstance(value, Mapping):
        parts = cast(Mapping[str, Any], value)
        texts, starts = parts.get("text", ""), parts.get("answer_start")
        return _answer(texts, starts) if not isinstance(texts, Mapping) else ("", None)
    return ("" if value is None or value != value else value), _whole(start)


def _whole(value: object) -> int | None:
    if isinstance(value, list | tuple):
        return _whole(cast(list[Any], value)[0]) if value else None
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    return value if type(value) is int and value >= 0 else None


def _occurrence(facts: list[str], answer: object, start: int) -> int | None:
    """Number of occurrences before the one nearest to a place; None if the facts do not have the answer."""
    text, answer = " ".join(facts), str(answer).strip()
    places = [match.start() for match in re.finditer(re.escape(answer), text)] if answer else []
    return min(range(len(places)), key=lambda index: abs(places[index] - start)) if places else None


def _is_misplaced(text: str, answer: str, start: int) -> bool:
    """True for a text that has the answer, but not at the given character, white space before it aside."""
    return answer in text and not text[start : start + 2 * len(answer) + 8].lstrip().startswith(answer)


def _facts(value: object, key: str) -> list[str]:
    """Facts under a key.

    Raises:
        DataError: the value is neither a string nor a list of strings.
    """
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple):
        raise DataError(f"{key!r} is {type(value).__name__}; expected a list of strings")
    texts = cast(list[Any], texts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(f"{key!r} holds {type(text).__name__} at index {index}; expected a list of strings")
    return [*texts]


def _indices(value: object, num_facts: int) -> list[int]:
    """Indices of the supporting facts.

    Raises:
        DataError: the value is no list of indices of facts.
    """
    if value is None:
        return []
    numbers = cast(list[Any], value) if isinstance(value, list | tuple) else [value]
    indices = [number for number in numbers if type(number) is int and 0 <= number < num_facts]
    if len(indices) < len(numbers):
        expected = f"a list of numbers from 0 to {num_facts - 1}" if num_facts else "none, because there are no facts"
        raise DataError(f"'supporting' is {value!r:.60}; expected {expected}")
    return [*dict.fromkeys(indices)]
