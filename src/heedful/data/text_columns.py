"""Choice of the columns of source and target in a file that also has columns of identifiers."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

from heedful.data import first_rows, label_kinds
from heedful.data.headings import HEADINGS

HEADER_WORDS: Final = frozenset(HEADINGS)
"""Known headings; a first row with one in both cells is a header, unless they translate each other."""
ID_WORDS: Final = frozenset(
    ("", *"id ids idx index no nr num number row line key uid guid sent_id sentence_id pair_id 编号 序号".split())
)
"""Known headings of identifiers; pandas writes an empty one."""

LABEL_WORDS: Final = frozenset(
    (
        "label labels class classes category categories cats sentiment sentiments v1 y stars star rating ratings score "
        "scores polarity intent intents topic topics tag tags emotion emotions genre genres department section target "
        "airline_sentiment label_text coarse_label fine_label type kind group subject language lang priority is_spam "
        "标签 标注 类别 分类 类型 情感 情绪 评分 星级 意图 主题 打分 种类"
    ).split()
)
"""Known headings of labels."""
TEXT_WORDS: Final = frozenset(
    (
        "text texts sentence sentences review reviews message messages sms document documents content contents body "
        "comment comments tweet tweets headline headlines title description question questions utterance utterances "
        "query queries article articles phrase post posts news v2 x sentence1 abstract summary input source email "
        "mail ticket feedback statement 文本 内容 评论 标题 正文 句子 问题 新闻 短信 评价 留言 微博 邮件 描述 原文"
    ).split()
)
"""Known headings of texts that have a label."""
_NUMBERED: Final = re.compile("(v|text|string|col|column|field|segment|sentence|lang)_?[0-9]")
_FEATURES: Final = re.compile(r"[A-Z][A-Z0-9.+/:_-]*(\(?[;,(][A-Z0-9.+/:_-]+\)*)*")
"""Features of a word in the schema of UniMorph, such as V;IND;PRS;NOM(1,SG)."""
_MOST_HEADING: Final = 40
"""Longest heading, in characters."""
_FEW_ROWS: Final = 20
"""Number of rows from which on columns are told by their content."""
_LEAST_MEAN: Final = 20
"""Least mean length of the texts of a column that is told by its content, in characters."""


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
        Whether both are well-known headings that do not translate each other, as words of a dictionary do, or are
        numbered alike.

    Example:
        >>> is_header("English", "German"), is_header("v1", "v2"), is_header("Deutsch", "German")
        (True, True, False)
    """
    numbered = [_NUMBERED.fullmatch(_folded(cell)) for cell in (source, target)]
    if all(numbered):
        return _folded(source) != _folded(target) and len({match[1] for match in numbered if match}) == 1
    return is_heading(source) and is_heading(target) and _groups(source) != _groups(target)


class LabelColumns(NamedTuple):
    """Columns of texts and of their labels."""

    texts: tuple[int, ...]
    """0-based columns that are joined to one text."""
    labels: tuple[int, ...]
    """0-based column of labels, or those that have a 1 for each text with their label."""
    is_one_hot: bool = False
    """Whether each label has a column of its own."""
    has_several: bool = False
    """Whether a text may have any number of labels."""
    separator: str = ""
    """Separator of labels in a cell; empty = a cell is one label."""
    unread: tuple[int, ...] = ()
    """Further columns with values, which are not read."""


def choose_label_columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[LabelColumns, tuple[str, ...]]:
    """Choose the columns of texts and labels, by known names and by what the rows hold.

    Args:
        names: headings or keys; none = the first row may be one of headings.
        rows: cells of the first rows, at least one.

    Returns:
        The columns, and the headings; none if the first row is no row of headings.

    Example:
        >>> choose_label_columns((), [["Category", "Message"], ["ham", "See you"], ["spam", "Win now"]])[0][:2]
        ((1,), (0,))
    """
    width = len(rows[0])
    body = [row for row in rows if len(row) == width]
    if not names and _are_label_headings(body):
        names, body = tuple(str(cell).strip() for cell in rows[0]), body[1:] or body
    columns = [[row[index] for row in body] for index in range(width)]
    used = [index for index in range(width) if any(map(_is_filled, columns[index]))] or [*range(width)]
    if names:
        return _by_names(names, columns, used), tuple(names)
    if len(body) >= _FEW_ROWS and len(used) > 1 and (by_content := _by_content(columns, used)):
        return by_content, ()
    if width < 2:
        return LabelColumns((0,), (0,)), ()
    source, target = choose_columns([[str(cell) for cell in row] for row in body], (1, 2)).columns
    return LabelColumns((source - 1,), (target - 1,)), ()


def _by_names(names: Sequence[str], columns: Sequence[Sequence[Any]], used: Sequence[int]) -> LabelColumns:
    labels = [index for index in used if _is_named(names[index], LABEL_WORDS)]
    others = [index for index in used if index not in labels]
    are_texts = [index for index in others if any(isinstance(value, str) for value in columns[index])]
    named = [index for index in are_texts if _is_named(names[index], TEXT_WORDS)]
    usable = named or [index for index in are_texts if not is_id(names[index])] or others or list(used)
    if not named and not labels:
        by_content = _by_content(columns, used) if len(used) > 1 and len(columns[0]) >= _FEW_ROWS else None
        usable = list(by_content.texts) if by_content else usable[:1]  # without any, the first column has the texts
    text = max(usable, key=lambda index: _mean_length(columns[index]))
    rest = [index for index in others if index != text and not is_id(names[index])]
    if len(rest) > 1 and all(_is_binary(columns[index]) for index in rest):  # each is a label, whatever its name
        rest = [index for index in others if index in rest or (index != text and _is_flag(columns[index]))]
    if not labels:
        is_one_hot = len(rest) > 1 and all(_is_binary(columns[index]) for index in rest)
        return LabelColumns((text,), tuple(rest) if is_one_hot else tuple(rest[:1]) or (text,), is_one_hot)
    binary = [index for index in labels if _is_binary(columns[index])]
    flags = tuple(sorted((*labels, *rest)))
    are_binary = len(binary) + sum(_is_binary(columns[index]) for index in rest) == len(flags)
    if are_binary and (len(labels) > 1 or (len(flags) > 2 and _are_exclusive([columns[index] for index in flags]))):
        return LabelColumns((text,), flags, True)
    return LabelColumns((text,), (labels[0],), unread=tuple(labels[1:]))


def choose_text_column(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Choose the column of texts in a table without labels.

    Args:
        names: headings or keys.
        rows: the first rows.

    Returns:
        The name: the longest texts under known names, or else the longest texts.
    """
    body = [row for row in rows if len(row) == len(names)]
    columns = [[row[index] for row in body] for index in range(len(names))]
    texts = [index for index, cells in enumerate(columns) if any(isinstance(cell, str) for cell in cells)]
    known = [index for index in texts if _is_named(names[index], TEXT_WORDS)]
    usable = known or [index for index in texts if not is_id(names[index])] or [*range(len(names))]
    return names[max(usable, key=lambda index: _mean_length(columns[index]))]


def choose_source_column(names: Sequence[str], rows: Sequence[Sequence[Any]], headings: Collection[str]) -> str:
    """Choose the column of sources in a table.

    Args:
        names: headings or keys.
        rows: the first rows.
        headings: headings of sources, in lower case.

    Returns:
        The name: the first with one of the headings, or else the first column with texts that are no numbers.

    Example:
        >>> choose_source_column(["nr", "English", "German"], [["7", "yes", "ja"]], {"german", "de"})
        'German'
        >>> choose_source_column(["nr", "one", "two"], [["7", "yes", "ja"]], {"german", "de"})
        'one'
    """
    if named := [name for name in names if _folded(name) in headings]:
        return named[0]
    cells = {name: [row[index] for row in rows if len(row) == len(names)] for index, name in enumerate(names)}
    texts = [name for name in names if any(isinstance(each, str) and _is_filled(each) for each in cells[name])]
    usable = [name for name in texts if not is_id(name) and not all(is_number(str(each)) for each in cells[name])]
    return (usable or texts or [*names])[0]


def _by_content(columns: Sequence[Sequence[Any]], used: Sequence[int]) -> LabelColumns | None:
    """Columns of rows without headings: the longest texts, and few different values beside them."""
    number = len(columns[0])
    means = {index: _mean_length(columns[index]) for index in used}
    text = max(used, key=lambda index: means[index])
    distinct = {index: len({*map(str, columns[index])}) for index in used if index != text}
    label = min(distinct, key=lambda index: distinct[index])
    others = [mean for index, mean in means.items() if index != text]
    is_clear = means[text] >= _LEAST_MEAN and means[text] > 3 * max(others) and 2 <= distinct[label] <= number / 5
    return LabelColumns((text,), (label,)) if is_clear and len({*map(str, columns[text])}) > number / 2 else None


def _are_label_headings(rows: Sequence[Sequence[Any]]) -> bool:
    """Whether a first row has headings: known names, of which that of the labels is no label of the others."""
    first, body = [str(cell) for cell in rows[0]], rows[1:]
    folded = [_folded(cell) for cell in first]
    filled = [cell for cell in folded if cell]
    repeated = [name for name, number in Counter(filled).items() if number > 1]
    are_known = all(_is_named(name, LABEL_WORDS | TEXT_WORDS) for name in repeated)
    if len({*filled}) < 2 or not are_known or max(map(len, filled)) > _MOST_HEADING:
        return False
    if any(map(is_number, filled)):
        return False
    labels = [index for index, cell in enumerate(first) if _is_named(cell, LABEL_WORDS)]
    texts = [index for index, cell in enumerate(first) if _is_named(cell, TEXT_WORDS) and index not in labels]
    recurring = {index: {_folded(str(row[index])) for row in body} for index in labels}
    if texts and any(folded[index] not in recurring[index] for index in labels):
        return True
    if len(first) == 2 and is_header(*first):
        return True
    used = [index for index in range(len(first)) if folded[index]]
    numeric = [index for index in used if all(is_number(str(row[index])) for row in body)]
    if (len(body) > 1 and len(numeric) > 1) or (numeric and len(body) >= _FEW_ROWS):
        return True
    others = [index for index in used if index not in texts]
    is_new = others and all(folded[index] not in {_folded(str(row[index])) for row in body} for index in others)
    is_known = not {*texts}.isdisjoint(first_rows.text_columns(rows))
    return bool(is_new and is_known) or first_rows.are_names(rows)


def looks_like_headings(rows: Sequence[Sequence[str]]) -> bool:
    """Tell whether a first row has headings, in a table of which nothing else is known.

    Args:
        rows: the first rows, all of the same width.

    Returns:
        Whether it is one as in texts with labels; or has a known name of texts or images that no other row repeats.
    """
    first = [_folded(cell) for cell in rows[0]]
    known = [index for index, cell in enumerate(first) if cell in HEADER_WORDS or cell in TEXT_WORDS]
    is_unlike = all(first[index] != _folded(row[index]) for row in rows[1:] for index in known)
    has_short = all(len(cell) <= _MOST_HEADING for cell in first)
    return _are_label_headings(rows) or (bool(known) and is_unlike and has_short and not any(map(is_number, first)))


def _is_named(name: str, words: frozenset[str]) -> bool:
    """Whether a heading is a known one, or ends in one, such as "review_text" or "Review Text"."""
    folded = _folded(name).replace("-", "_")
    folded = folded.replace(" ", "_") if name.strip().istitle() else folded
    return folded in words or ("_" in folded and folded.rpartition("_")[2] in words and folded.isidentifier())


def _is_filled(value: Any) -> bool:
    return value is not None and value == value and str(value).strip() != ""


def _is_binary(values: Sequence[Any]) -> bool:
    return all(str(value).strip() in ("0", "1", "0.0", "1.0", "True", "False") for value in values)


def _are_exclusive(columns: Sequence[Sequence[Any]]) -> bool:
    """True for one-hot columns: each row has a single 1."""
    return all(
        sum(str(cell).strip() in ("1", "1.0", "True") for cell in row) == 1 for row in zip(*columns, strict=True)
    )


def _is_flag(values: Sequence[Any]) -> bool:
    """True for a column of 0 and 1 that does not number the rows."""
    return _is_binary(values) and len({*map(str, values)}) < len(values)


def _mean_length(values: Sequence[Any]) -> float:
    return sum(len(value) for value in values if isinstance(value, str)) / max(1, len(values))


def _folded(cell: str) -> str:
    return cell.strip().casefold()


def is_heading(cell: str) -> bool:
    """Tell whether a cell is a known heading, or joins some, such as "source_text" and "Article Body"."""
    name = _name(cell)
    return name in HEADER_WORDS or ("_" in name and HEADER_WORDS.issuperset(name.split("_")))


def _groups(heading: str) -> list[str]:
    """Groups of the words of a known heading."""
    name = _name(heading)
    return [HEADINGS[word] for word in ([name] if name in HEADINGS else name.split("_"))]


def _name(cell: str) -> str:
    name = _folded(cell)
    return name.replace(" ", "_") if cell.strip().istitle() else name


def is_text_heading(heading: str) -> bool:
    """Tell whether a heading is a known one of texts that have a label, or ends in one.

    Example:
        >>> is_text_heading("review_text"), is_text_heading("Category")
        (True, False)
    """
    return _is_named(heading, TEXT_WORDS)


def is_label_heading(heading: str) -> bool:
    """Tell whether a heading is a known one of labels, or ends in one.

    Example:
        >>> is_label_heading("status_label"), is_label_heading("review_text")
        (True, False)
    """
    return _is_named(heading, LABEL_WORDS)


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
    numeric = [column for column, cells in enumerate(zip(*body, strict=True)) if all(map(_is_whole, cells))]
    distinct = [column for column in numeric if len({row[column] for row in body}) > len(body) / 2]
    has_header = any(not _is_whole(rows[0][column]) for column in numeric)
    for ids in (numeric, distinct):
        texts = [column for column in range(len(rows[0])) if column not in ids]
        if len(texts) == 2 and texts != [0, 1]:
            return ChosenColumns(_ordered(texts, columns), has_header, f"{_listed(ids)} numbers")
    ids = [column for column in distinct if column < 2]
    reason = f"{_listed(ids)} numbers; for other columns, --columns N,M" if ids else ""
    return ChosenColumns(columns, False, reason)


class InflectionColumns(NamedTuple):
    """Columns of a file of inflected forms."""

    source: tuple[int, int]
    """1-based columns of the word and of its features."""
    target: int
    """1-based column of the form."""
    has_header: bool
    """Whether the first row has headings."""


def inflection_columns(rows: Sequence[Sequence[str]]) -> InflectionColumns | None:
    """Recognise the files of UniMorph and of SIGMORPHON's tasks: a word, and its form before or behind its features.

    Args:
        rows: cells of the first lines.

    Returns:
        The columns; None if there are not three, or not one of the last two has features.

    Example:
        >>> inflection_columns([["go", "went", "V;PST"], ["cat", "cats", "N;PL"]])
        InflectionColumns(source=(1, 3), target=2, has_header=False)
    """
    rows = [row for row in rows if len(row) == 3]
    body = rows[1:] or rows
    with_features = [column for column in (1, 2) if body and _have_features([row[column] for row in body])]
    if len(with_features) != 1:
        return None
    features = with_features[0]
    return InflectionColumns((1, features + 1), 4 - features, not _FEATURES.fullmatch(rows[0][features]))


def _have_features(cells: Sequence[str]) -> bool:
    """Whether nearly all cells have features as UniMorph writes them, and most have several."""
    filled = [cell.strip() for cell in cells if cell.strip()]
    num_matching = sum(_FEATURES.fullmatch(cell) is not None for cell in filled)
    return 0 < len(filled) <= 1.05 * num_matching and 2 * sum(";" in cell for cell in filled) >= len(filled)


def _named(first: Sequence[str]) -> list[int]:
    """Columns of the first two known headings of a row of headings, unless they are the first two columns."""
    named = [column for column, cell in enumerate(first) if is_heading(cell)][:2]
    rest = (cell for column, cell in enumerate(first) if column not in named)
    is_row_of_headings = all(is_id(cell) or _folded(cell).replace("-", "_").isidentifier() for cell in rest)
    is_usable = len(named) == 2 and named != [0, 1] and _folded(first[named[0]]) != _folded(first[named[1]])
    return named if is_usable and is_row_of_headings else []


def _ordered(texts: Sequence[int], columns: tuple[int, int]) -> tuple[int, int]:
    """The columns of texts, 1-based, in the order in which the first two were requested."""
    return texts[columns[0] - 1] + 1, texts[columns[1] - 1] + 1


def is_number(cell: str) -> bool:
    """Tell whether a cell holds a number, which may have a sign, decimals, groups of thousands and a currency.

    Example:
        >>> is_number("7"), is_number("-32.88"), is_number("$1,240.50"), is_number("price")
        (True, True, True, False)
    """
    return _is_whole(cell) or label_kinds.is_number(cell)


def _is_whole(cell: str) -> bool:
    return cell.strip().isdecimal()


def _listed(columns: Iterable[int]) -> str:
    numbers = [str(column + 1) for column in columns]
    if len(numbers) == 1:
        return f"column {numbers[0]} holds"
    return f"columns {', '.join(numbers[:-1])} and {numbers[-1]} hold"
