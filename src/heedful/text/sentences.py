"""Sentence splitting by rules, for the punctuation and the commonest abbreviations of nine languages."""

import re
from collections.abc import Iterator
from typing import Final

_ABBREVIATIONS: Final = frozenset(
    "mr mrs ms dr prof rev gen sen rep gov capt lt col sgt st jr sr vs inc ltd co corp no vol fig eq sec ed eds "
    "jan feb mar apr jun jul aug sep sept oct nov dec ph.d "
    "abb bd bzw ca evtl fa fr hr inkl nr str tel tab vgl zzgl mme mlle mm env art av chap sra srta ud uds vd ee pág pp "
    "aprox núm tel depto dra проф акад ул пл пр см рис стр табл им гг тыс млн руб डॉ श्री पं सुश्री".split()
)
"""Words whose final period ends no sentence, in lower case."""
_STREETS: Final = "str"
"""End of abbreviations of German streets, such as Bahnhofstr."""
_INITIALS: Final = re.compile(r"[^\W\d_](\.[^\W\d_])*|\d{1,2}")
"""Single letters joined by periods, such as J, U.S or z.B, and ordinals of two digits, such as 3. Mai."""
_MOST_OF_WORD: Final = 40
"""Characters before a period that are looked at: more than any abbreviation has."""

_HTML_BREAK: Final = re.compile(r"<br ?/?>", re.IGNORECASE)
_ENDS: Final = re.compile(
    r"""(?: (?: [。！？]++ …*+ | …{2,}+ ) [。！？!?…]*+ [”’」』）)"']*+  # Chinese marks, after which no space follows
          | (?<![.!?…]) [!?]++ [。！？!?…]*+ [”’」』）)"']*+ (?=[\u3400-\u9fff])  # half-width marks in Chinese
          | (?<![.!?…]) (?P<mark> [.!?…؟۔।॥]++ ) (?:[\ \u00a0\u202f]?+»)? [”’"')\]»“]*+ (?=\s)  # others before a space
          | \n+
        )""",
    re.VERBOSE,
)


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences.

    A period after an abbreviation, an initial or a number of one or two digits, or before a lower-case word, ends no
    sentence; a line break, also one of HTML, always does.

    Returns:
        The sentences without surrounding space, in order; none for blank text.

    Example:
        >>> split_sentences('Dr. Who sat down. "Why?" he asked. 房间很好。服务不错！')
        ['Dr. Who sat down.', '"Why?" he asked.', '房间很好。', '服务不错！']
    """
    text = _HTML_BREAK.sub("\n", text)
    parts = (text[start:end].strip() for start, end in sentence_spans(text))
    return [part for part in parts if part]


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Find the sentences of a text by the rules of :func:`split_sentences`, except that HTML is not interpreted.

    Yields:
        Start and end of each sentence with the space before it and the line breaks after it; the spans cover the text.
    """
    start = 0
    for end in _ENDS.finditer(text):
        if end["mark"] is None or _ends_sentence(text, end, start):
            yield start, end.end()
            start = end.end()
    yield start, len(text)


def _ends_sentence(text: str, end: re.Match[str], start: int) -> bool:
    following = text[end.end() : end.end() + 40].lstrip(" \t\"'“‘([")
    if following[:1].islower():
        return False
    if end["mark"] != ".":
        return True
    word = text[max(start, end.start() - _MOST_OF_WORD) : end.start()].rpartition(" ")[2].lstrip("\"'“‘([«„").lower()
    return word not in _ABBREVIATIONS and not word.endswith(_STREETS) and (word == "i" or not _INITIALS.fullmatch(word))
