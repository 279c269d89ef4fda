"""Alignment of the symbols of two words, such as phones or letters: which stands in the place of which."""

import unicodedata
from collections.abc import Callable, Sequence
from typing import Final

import regex

_EDIT: Final = 1 << 20
"""Cost of an edit, beside which the cost of a replacement by another letter, 1, counts only among equals."""
_LETTER: Final = regex.compile(r"(?:\X(?<=[\u035c\u0361]))*\X")
"""Letter with its marks, or several that ties join, as in t͡ʃ."""
_FEW_WITH_SPACES: Final = 0.05
"""Share of references that may have a space where words are meant, as a few in any list of words do."""
_MOST_SYMBOLS: Final = 2000
"""Largest number of different symbols between spaces; English has 70 phones with stress, Chinese 1,300 syllables."""
_MOST_LETTERS: Final = 6
"""Largest length of a symbol between spaces, as of the syllable zhuang; any few sentences have a longer word."""


_MOST_LETTERS_OF_WORD: Final = 40
"""Length, in characters, of references that are sentences of a script without spaces."""


def symbol_division(references: Sequence[str]) -> Callable[[str], list[str]] | None:
    """Find how single words are divided into symbols.

    Returns:
        A function that lists the symbols of a word: what stands between spaces, if these are few and short, as phones;
        else the letters, each with its marks. None where the references are several words.

    Example:
        >>> phones, letters = symbol_division(["HH AY1", "S IY1"]), symbol_division(["haɪ", "siː"])
        >>> phones("S AY1"), letters("saɪ"), symbol_division(["a quiet apartment"])
        (['S', 'AY1'], ['s', 'a', 'ɪ'], None)
    """
    if sum(" " in one.strip() for one in references) <= _FEW_WITH_SPACES * len(references):
        are_long = sum(len(one) > _MOST_LETTERS_OF_WORD for one in references) > _FEW_WITH_SPACES * len(references)
        return None if are_long else _letters
    symbols = {symbol for one in references for symbol in one.split()}
    # Neither stress, as in AH0, nor tone, as in zhong1, makes a symbol long.
    longest = max(len(symbol.rstrip("0123456789")) for symbol in symbols)
    if len(symbols) > _MOST_SYMBOLS or longest > _MOST_LETTERS:
        return None
    return str.split


def align_symbols(one: Sequence[str], other: Sequence[str]) -> list[tuple[str, str]]:
    """Align two sequences with the fewest edits (Wagner and Fischer 1974).

    Of alignments with equally few edits it is one that replaces symbols least by those of other letters: `ĕ` stands
    beside `e`, and `AH0` beside `AH1`.

    Returns:
        Pairs from the first to the last; an empty string stands for no symbol.

    Example:
        >>> align_symbols("kasə", ["k", "a", "t", "s", "ə̃"])
        [('k', 'k'), ('a', 'a'), ('', 't'), ('s', 's'), ('ə', 'ə̃')]
    """
    letters = [_base(symbol) for symbol in one], [_base(symbol) for symbol in other]
    costs = [
        [0 if said == written else _EDIT + (left != right) for written, right in zip(other, letters[1], strict=True)]
        for said, left in zip(one, letters[0], strict=True)
    ]
    rows = [[_EDIT * number for number in range(len(other) + 1)]]
    for own in costs:
        above, row = rows[-1], [rows[-1][0] + _EDIT]
        for number, cost in enumerate(own):
            row.append(min(above[number] + cost, above[number + 1] + _EDIT, row[-1] + _EDIT))
        rows.append(row)
    pairs: list[tuple[str, str]] = []
    i, j = len(one), len(other)
    while i or j:
        if i and j and rows[i][j] == rows[i - 1][j - 1] + costs[i - 1][j - 1]:
            i, j = i - 1, j - 1
            pairs.append((one[i], other[j]))
        elif i and rows[i][j] == rows[i - 1][j] + _EDIT:
            i -= 1
            pairs.append((one[i], ""))
        else:
            j -= 1
            pairs.append(("", other[j]))
    return pairs[::-1]


def _base(symbol: str) -> str:
    """Letter of a symbol, without marks, stress and tone."""
    return unicodedata.normalize("NFD", symbol)[:1].casefold()


def _letters(word: str) -> list[str]:
    return _LETTER.findall("".join(word.split()))
