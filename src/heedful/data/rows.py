"""One line of a file with both sides in it: tab-separated columns, or a JSON object."""

import json
import re
from abc import ABC, abstractmethod
from typing import Any, Final, cast, final

from heedful.errors import DataError, did_you_mean

Columns = tuple[int, int]

HEADER_WORDS: Final = frozenset(
    (
        "source target src tgt trg input output text translation reference sentence sentence1 sentence2 original "
        "translated question answer article summary document headline prompt completion word words phonemes phones "
        "pronunciation pinyin transliteration name normalized lang1 lang2 "
        "english german french spanish portuguese italian dutch polish czech russian ukrainian turkish arabic hebrew "
        "hindi vietnamese indonesian chinese mandarin cantonese japanese korean swedish danish finnish greek "
        "en de fr pt nl pl cs ru uk tr ar he hi vi zh ja ko sv da fi el "
        "en-us en-gb pt-br zh-cn zh-tw zh-hans zh-hant eng deu fra spa por rus ara zho jpn kor cmn "
        "原文 译文 譯文 源 目标 目標 源语言 目标语言 英文 中文 英语 汉语 德语 日语 拼音 输入 输出 文本 翻译 摘要 标题"
    ).split()
)
"""Words that, in both cells of a first row, make it a heading. Codes that are words (es, it, is, no) are left out."""

# JSON can spell both as \u escapes in a file without NUL that is valid UTF-8.
_BAD_IN_TEXT: Final = re.compile("[\0\ud800-\udfff]")


def is_header(source: str, target: str) -> bool:
    """Say whether a first row names the columns.

    Args:
        source: its source cell.
        target: its target cell.

    Returns:
        Whether both are well-known headings, and not the same one.

    Example:
        >>> is_header("English", "German"), is_header("word", "Wort")
        (True, False)
    """
    cells = {source.strip().casefold(), target.strip().casefold()}
    return len(cells) == 2 and cells <= HEADER_WORDS


class RowFormat(ABC):
    """Format of a line: how it becomes a source and a target."""

    @abstractmethod
    def cells(self, line: str, name: str, number: int) -> tuple[str, str]:
        """Split a line into its cells.

        Args:
            line: text without its line end.
            name: the file, for messages.
            number: 1-based line number, for messages.

        Returns:
            The source and the target.

        Raises:
            DataError: the line is not of this format; the message names file:line.
        """


@final
class TabRows(RowFormat):
    """Tab-separated columns, as many on every line; quotes are ordinary characters."""

    def __init__(self, num_columns: int, columns: Columns) -> None:
        self.num_columns: Final = num_columns
        self._source, self._target = columns[0] - 1, columns[1] - 1

    @classmethod
    def of(cls, first: str, columns: Columns, name: str, number: int) -> "TabRows":
        """Take the number of columns from the first line.

        Args:
            first: the first line that is not empty.
            columns: 1-based columns of source and target.
            name: the file, for messages.
            number: the line's 1-based number.

        Returns:
            The format.

        Raises:
            DataError: there are fewer columns than asked for.
        """
        num_columns = first.count("\t") + 1
        if num_columns >= max(columns):
            return cls(num_columns, columns)
        columns_found = (
            f"{num_columns} column{'s' if num_columns > 1 else ''}, but {columns[0]},{columns[1]} are wanted"
        )
        marks = [mark for mark in ("|||", ",", ";", "|") if num_columns == 1 and mark in first]
        advice = f"columns are separated by a tab, not by {marks[0]!r}" if marks else "columns are separated by a tab"
        raise DataError(f"{name}:{number}: {columns_found}; {advice}; for two aligned files, give both")

    def cells(self, line: str, name: str, number: int) -> tuple[str, str]:
        cells = line.split("\t")
        if len(cells) != self.num_columns:
            found = f"{len(cells)} column{'s' if len(cells) > 1 else ''}, the lines before have {self.num_columns}"
            raise DataError(f"{name}:{number}: {found}; put the same number of tabs in every line")
        return cells[self._source], cells[self._target]


@final
class JsonRows(RowFormat):
    """One JSON object a line, the same two keys in each."""

    def __init__(self, source_key: str, target_key: str) -> None:
        self.source_key: Final = source_key
        self.target_key: Final = target_key

    @classmethod
    def of(cls, first: str, columns: Columns, name: str, number: int) -> "JsonRows":
        """Choose the keys from the first object.

        "source" and "target" where there are both, else the only two keys that hold strings; `columns` (2, 1) swaps
        them. Failing that, keys are numbered in the order in which they stand.

        Args:
            first: the first line that is not empty.
            columns: 1-based numbers of the keys of source and target.
            name: the file, for messages.
            number: the line's 1-based number.

        Returns:
            The format.

        Raises:
            DataError: the line is no object, or has fewer keys than asked for.
        """
        row = _parse(first, name, number)
        keys = list(row)
        texts = [key for key in keys if isinstance(row[key], str)]
        if max(columns) == 2 and {"source", "target"} <= row.keys():
            keys = ["source", "target"]
        elif max(columns) == 2 and len(texts) == 2:
            keys = texts
        if len(keys) < max(columns):
            found = f"{len(keys)} key{'' if len(keys) == 1 else 's'}, but {columns[0]},{columns[1]} are wanted"
            raise DataError(f'{name}:{number}: {found}; write {{"source": "...", "target": "..."}} on each line')
        return cls(keys[columns[0] - 1], keys[columns[1] - 1])

    def cells(self, line: str, name: str, number: int) -> tuple[str, str]:
        row = _parse(line, name, number)
        return _text(row, self.source_key, name, number), _text(row, self.target_key, name, number)


def _parse(line: str, name: str, number: int) -> dict[str, Any]:
    try:
        row: object = json.loads(line)
    except RecursionError:
        raise DataError(f"{name}:{number}: JSON nested too deeply") from None
    except json.JSONDecodeError as error:
        raise DataError(f"{name}:{number}:{error.colno}: not JSON: {error.msg}") from None
    except ValueError as error:  # an integer of thousands of digits
        raise DataError(f"{name}:{number}: not JSON that can be read: {error}") from None
    if not isinstance(row, dict):
        advice = f"; write one object a line: jq -c '.[]' {name}" if isinstance(row, list) else ""
        raise DataError(f"{name}:{number}: expected a JSON object, got {type(row).__name__}{advice}")
    pairs = cast(dict[str, Any], row)
    nested = pairs.get("translation")
    # Data sets of translations are often published as {"translation": {"de": ..., "en": ...}}.
    return cast(dict[str, Any], nested) if isinstance(nested, dict) else pairs


def _text(row: dict[str, Any], key: str, name: str, number: int) -> str:
    if key not in row:
        raise DataError(f"{name}:{number}: no key {key!r}{did_you_mean(key, row)}")
    text = row[key]
    if not isinstance(text, str):
        advice = "; choose two keys by their place with --columns, such as 2,3"
        raise DataError(f"{name}:{number}: key {key!r} holds {type(text).__name__}, expected a string{advice}")
    if bad := _BAD_IN_TEXT.search(text):
        kind = "NUL character" if bad[0] == "\0" else f"half a character ({bad[0]!a}, a lone surrogate)"
        raise DataError(f"{name}:{number}: {kind} in {key!r}; remove it")
    return text
