"""Choice of the columns of source and target in a file that also has columns of identifiers."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

HEADER_WORDS: Final = frozenset(
    (
        "source target src tgt trg input output text translation reference sentence sentence1 sentence2 "
        "original translated label labels class category sentiment review question answer article summary "
        "document headline prompt completion word words phonemes phones pronunciation pinyin transliteration "
        "name normalized lang1 lang2 english german french spanish portuguese italian dutch polish czech "
        "russian ukrainian turkish arabic hebrew hindi vietnamese indonesian chinese mandarin cantonese "
        "japanese korean swedish danish finnish greek en de fr pt nl pl cs ru uk tr ar he hi vi zh ja ko sv "
        "da fi el en-us en-gb pt-br zh-cn zh-tw zh-hans zh-hant eng deu fra spa por rus ara zho jpn kor cmn "
        "原文 译文 譯文 源 目标 目標 源语言 目标语言 英文 中文 英语 "
        "汉语 德语 日语 拼音 输入 输出 文本 翻译 摘要 标题 标签 类别"
    ).split()
)
"""Known column headings; a first row with one in both cells is a header. Codes that are words (es, it, is, no) are left
out."""
ID_WORDS: Final = frozenset(
    ("", *"id ids idx index no nr num number row line key uid guid sent_id sentence_id pair_id 编号 序号".split())
)
"""Known headings of identifiers; pandas writes an empty one."""

LABEL_WORDS: Final = frozenset(
    (
        "label labels class classes category categories sentiment v1 y stars star rating ratings score scores polarity "
        "intent intents topic topics tag tags emotion genre department section airline_sentiment label_text "
        "coarse_label fine_label 标签 类别 分类 类型 情感 评分 意图 主题"
    ).split()
)
"""Known headings of labels."""
TEXT_WORDS: Final = frozenset(
    (
        "text texts sentence sentences review reviews message messages sms document documents content contents body "
        "comment comments tweet tweets headline headlines title description question questions utterance query "
        "article phrase post news v2 x review_text full_text 文本 内容 评论 标题 正文 句子 问题 新闻 短信"
    ).split()
)
"""Known headings of texts that have a label."""


class ChosenColumns(NamedTuple):
    """Columns of source and target, and why they are not the first two."""

    columns: tuple[int, int]
    """1-based."""
    has_header: bool = False
    """Whether the first row was recognised as headings."""
    reason: str = ""
    """Clause for a description; empty = nothing to say."""


def is_header(source: str, target: str) -> bool:
    """Tell whether a first row names the columns.

    Returns:
        Whether both are well-known headings and differ.

    Example:
        >>> is_header("English", "German"), is_header("word", "Wort")
        (True, False)
    """
    return len({_folded(source), _folded(target)}) == 2 and _is_heading(source) and _is_heading(target)


def is_label_header(source: str, target: str) -> bool:
    """Tell whether a first row names the columns of a text and its label, in either order.

    Args:
        source: its first cell.
        target: its second cell.

    Returns:
        Whether one is a known heading of labels, and the other one of texts.

    Example:
        >>> is_label_header("Category", "Message"), is_label_header("内容", "类别"), is_label_header("text", "word")
        (True, True, False)
    """
    cells = _folded(source), _folded(target)
    return any(one in LABEL_WORDS and other in TEXT_WORDS for one, other in (cells, cells[::-1]))


def has_label_first(source: str, target: str) -> bool:
    """Tell whether of two headings the first names labels, and the second does not.

    Args:
        source: the first.
        target: the second.

    Example:
        >>> has_label_first("Label", "text"), has_label_first("text", "label"), has_label_first("", "")
        (True, False, False)
    """
    return _folded(source) in LABEL_WORDS and _folded(target) not in LABEL_WORDS


def _folded(cell: str) -> str:
    return cell.strip().casefold()


def _is_heading(cell: str) -> bool:
    """Whether a cell is a known heading, or joins some by underscores, such as "source_text"."""
    name = _folded(cell)
    return name in HEADER_WORDS or ("_" in name and HEADER_WORDS.issuperset(name.split("_")))


def is_id(heading: str) -> bool:
    """Tell whether a heading or key names identifiers.

    Returns:
        Whether it is one of `ID_WORDS`, in any case.
    """
    return _folded(heading) in ID_WORDS


def choose_columns(rows: Sequence[Sequence[str]], columns: tuple[int, int]) -> ChosenColumns:
    """Replace the default columns if one of them holds identifiers and exactly two other columns can be meant.

    Headings decide, such as `id source target`; else columns of whole numbers are identifiers. If fewer than two others
    are left, a column of numbers with few different values, such as labels, is none.

    Args:
        rows: cells of the first lines.
        columns: requested columns, 1-based; other than (1, 2) and (2, 1) they are never replaced.

    Returns:
        The columns, with a reason if they were replaced or look wrong.

    Example:
        >>> choose_columns([["7", "yes", "8", "ja"], ["9", "no", "10", "nein"]], (1, 2))
        ChosenColumns(columns=(2, 4), has_header=False, reason='columns 1 and 3 hold numbers')
    """
    rows = [row for row in rows if len(row) == len(rows[0])]
    if set(columns) != {1, 2} or len(rows[0]) < 3:
        return ChosenColumns(columns)
    named = _named(rows[0])
    if named:
        return ChosenColumns(_ordered(named, columns), True)
    body = rows[1:] or rows
    numeric = [column for column, cells in enumerate(zip(*body, strict=True)) if all(map(_is_number, cells))]
    distinct = [column for column in numeric if len({row[column] for row in body}) > len(body) / 2]
    has_header = any(not _is_number(rows[0][column]) for column in numeric)
    for ids in (numeric, distinct):
        texts = [column for column in range(len(rows[0])) if column not in ids]
        if len(texts) == 2 and texts != [0, 1]:
            return ChosenColumns(_ordered(texts, columns), has_header, f"{_listed(ids)} numbers")
    ids = [column for column in distinct if column < 2]
    reason = f"{_listed(ids)} numbers; for other columns, --columns N,M" if ids else ""
    return ChosenColumns(columns, False, reason)


def _named(first: Sequence[str]) -> list[int]:
    """Columns of the first two known headings of a row of headings, unless they are the first two columns."""
    named = [column for column, cell in enumerate(first) if _is_heading(cell)][:2]
    rest = (cell for column, cell in enumerate(first) if column not in named)
    is_row_of_headings = all(is_id(cell) or _folded(cell).replace("-", "_").isidentifier() for cell in rest)
    is_usable = len(named) == 2 and named != [0, 1] and _folded(first[named[0]]) != _folded(first[named[1]])
    return named if is_usable and is_row_of_headings else []


def _ordered(texts: Sequence[int], columns: tuple[int, int]) -> tuple[int, int]:
    """The columns of texts, 1-based, in the order in which the first two were requested."""
    return texts[columns[0] - 1] + 1, texts[columns[1] - 1] + 1


def _is_number(cell: str) -> bool:
    return cell.strip().isdecimal()


def _listed(columns: Iterable[int]) -> str:
    numbers = [str(column + 1) for column in columns]
    if len(numbers) == 1:
        return f"column {numbers[0]} holds"
    return f"columns {', '.join(numbers[:-1])} and {numbers[-1]} hold"
