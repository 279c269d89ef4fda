"""Written forms: parts of a text that are read out in other words, such as numbers, dates, amounts and abbreviations.

They are found by one pattern for English, Chinese and whatever else has digits. Its time is linear in the text.
"""

import re
from typing import Final

from heedful.text.kept import find_kept

_MONTH: Final = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
_DAY: Final = r"\d{1,2}(?:st|nd|rd|th)?"
_ABBREVIATION: Final = (
    r"(?:Mrs?|Ms|Dr|Prof|St|Mt|[JS]r|Gen|Capt|Lt|Sgt|Rev|Hon|Ave|Blvd|Inc|Ltd|Corp|Dept|vs|etc|e\.g|i\.e|approx)\."
)
_DIGITS: Final = r"\d{1,40}(?:[.,:/–~～-]\d{1,40}){0,20}"
_CHINESE_DATE: Final = r"(?:年(?:\d{1,2}月(?:\d{1,2}[日号])?)?|月(?:\d{1,2}[日号])?|点(?:\d{1,2}分)?)"
_UNIT: Final = r"(?:km/h|km|cm|mm|mph|mg|kg|min|mi|lb|oz|ft|MB|GB|kW|Hz|[mgh]|[ap]\.m\.|[ap]m|[AP]M|°[CF]|℃|[%％])"
_ENDING: Final = (
    rf"(?:{_CHINESE_DATE}|元|[个只条张本位次种天岁人家名件台辆块斤米层]|(?:st|nd|rd|th|s)(?![^\W_])"
    rf"|\ ?(?:thousand|million|billion)(?!\w)|\ ?{_UNIT}(?![A-Za-z0-9_/]))"
)
_FORM: Final = re.compile(
    rf"(?<![A-Za-z0-9_.,:/-]){_MONTH}\ {_DAY}(?:,?\ \d{{4}})?(?![A-Za-z0-9_])"
    rf"|(?<![A-Za-z0-9_.,:/-]){_DAY}\ {_MONTH}(?:\ \d{{4}})?(?![A-Za-z0-9_])"
    rf"|(?<![A-Za-z0-9_.]){_ABBREVIATION}(?!\w)"
    r"|(?<!\S)&(?!\S)"
    rf"|(?<![A-Za-z0-9_.,:/])(?<![A-Za-z]-)(?:[Nn]o\.\ |\#|第)?[-−]?[$€£¥￥]?{_DIGITS}(?:{_ENDING}|(?![A-Za-z0-9_]))"
)
_READ_OUT: Final = frozenset({"number", "date", "identifier"})
"""Kinds of kept spans that are read out in other words; of names with digits those that are a unit, such as 8MB."""


def written_form_spans(text: str) -> list[tuple[int, int]]:
    """Find the written forms of a text.

    Returns:
        Start and end of each, in characters; none in addresses, code, tags, placeholders and names with digits.

    Example:
        >>> text = "Dr. Li came at 3:45 pm on 5 May 2021 and paid $2.50; see https://example.org/12."
        >>> [text[start:end] for start, end in written_form_spans(text)]
        ['Dr.', '3:45 pm', '5 May 2021', '$2.50']
        >>> text = "2021年3月5日，他买了2本书，共45.5元。"
        >>> [text[start:end] for start, end in written_form_spans(text)]
        ['2021年3月5日', '2本', '45.5元']
    """
    spans = [match.span() for match in _FORM.finditer(text)]
    fixed = [one for one in find_kept(text) if one.kind not in _READ_OUT]
    if not fixed:
        return spans
    is_fixed = bytearray(len(text))
    for one in fixed:
        is_fixed[one.start : one.end] = b"\1" * (one.end - one.start)
    return [(start, end) for start, end in spans if not any(is_fixed[start:end])]
