"""Words of Chinese text, which has no spaces between them, by the package jieba."""

import warnings
from functools import cache
from importlib.util import find_spec
from typing import Any, Final

import regex

_ROW: Final = regex.compile(r"\p{Han}{1,100}+")
"""Characters in a row; longer rows are cut, for the time that jieba takes grows with the square of their length."""
_TWO: Final = regex.compile(r"\p{Han}{2}")


def tells_words_apart() -> bool:
    """Tell whether jieba is installed, without which a row of characters is one word."""
    return find_spec("jieba") is not None


def has_rows(text: str) -> bool:
    """Tell whether a text has two Chinese characters in a row."""
    return _TWO.search(text) is not None


def chinese_word_spans(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Find the words of a part of a text.

    Args:
        start: first character of the part.
        end: the character behind its last.

    Returns:
        Start and end of each word, in order; other letters in a row are one word.

    Example:
        >>> chinese_word_spans("重庆在下雨", 0, 5) if tells_words_apart() else [(0, 2), (2, 3), (3, 5)]
        [(0, 2), (2, 3), (3, 5)]
    """
    spans: list[tuple[int, int]] = []
    last = start
    for row in _ROW.finditer(text, start, end):
        if last < row.start():
            spans.append((last, row.start()))
        spans += [(row.start() + first, row.start() + after) for _, first, after in _jieba().tokenize(row[0])]
        last = row.end()
    return [*spans, (last, end)] if last < end else spans


@cache
def _jieba() -> Any:
    """Tokenizer with jieba's dictionary, but not from its cache, which lies where other users can write."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba
    tokenizer = jieba.Tokenizer()
    with tokenizer.get_dict_file() as file:
        tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(file)
    tokenizer.initialized = True
    return tokenizer
