"""Dates as people write them in English and Chinese, and in ISO 8601.

Each text has only one reading, by these rules:

- A year of two digits below 50 is in 2000 to 2049, and in 1950 to 1999 otherwise. Dates lie in these hundred years.
- Day and month written as bare numbers before the year (25/12/2021) occur only where the day is above 12.
- A bare year of two digits among numbers (25.12.98) occurs only where it cannot be a day: 00 or above 31.
- Weekdays are those of the date. A time of day, where one is written, is dropped.

There are no lunar dates and no regnal years, because their conversion needs tables that texts do not contain.
"""

import random
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from functools import cache

from heedful.synthetic.grammar import SlotTexts, Split, pick, split_of
from heedful.synthetic.numerals import (
    FORMAL,
    FULL_WIDTH,
    chinese_cardinal,
    chinese_digits,
    english_cardinal,
    english_ordinal,
    ordinal_suffix,
)

FIRST_DATE = date(1950, 1, 1)
LAST_DATE = date(2049, 12, 31)

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_MONTHS_DOTTED = ("Jan.", "Feb.", "Mar.", "Apr.", "May", "June", "July", "Aug.", "Sept.", "Oct.", "Nov.", "Dec.")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _month_name(moment: datetime) -> str:
    return MONTHS[moment.month - 1]


def _weekday(moment: datetime) -> str:
    return _WEEKDAYS[moment.weekday()]


def _two_digits(moment: datetime) -> str:
    return f"{moment.year % 100:02}"


def _day_ordinal(moment: datetime) -> str:
    return f"{moment.day}{ordinal_suffix(moment.day)}"


def _year_spoken(moment: datetime) -> str:
    century, rest = divmod(moment.year, 100)
    if moment.year in range(2000, 2010):
        return english_cardinal(moment.year)
    return f"{english_cardinal(century)} {english_cardinal(rest)}"


def _clock_12(moment: datetime) -> str:
    minutes = f":{moment.minute:02}" if moment.minute else ""
    return f"{(moment.hour - 1) % 12 + 1}{minutes} {'am' if moment.hour < 12 else 'pm'}"


def _clock_chinese(moment: datetime) -> str:
    part = "上午" if moment.hour < 12 else "中午" if moment.hour == 12 else "下午" if moment.hour < 18 else "晚上"
    return f"{part}{(moment.hour - 1) % 12 + 1}点{'半' if moment.minute >= 30 else ''}"


def _cheque_part(number: int, padded: tuple[int, ...]) -> str:
    # Banks require 零 before numbers that an added stroke could turn into others, and 壹拾 rather than 拾.
    words = chinese_cardinal(number).translate(FORMAL)
    words = "壹" + words if words.startswith("拾") else words
    return "零" + words if number in padded else words


SLOTS: Mapping[str, Callable[[datetime], str]] = {
    "year": lambda moment: str(moment.year),
    "month": lambda moment: str(moment.month),
    "day": lambda moment: str(moment.day),
    "yy": _two_digits,
    "mm": lambda moment: f"{moment.month:02}",
    "dd": lambda moment: f"{moment.day:02}",
    "clock_24": lambda moment: f"{moment.hour:02}:{moment.minute:02}",
    # English
    "month_name": _month_name,
    "month_abbr": lambda moment: _month_name(moment)[:3],
    "month_dotted": lambda moment: _MONTHS_DOTTED[moment.month - 1],
    "month_short": lambda moment: _MONTHS_DOTTED[moment.month - 1].rstrip("."),
    "month_lower": lambda moment: _month_name(moment).lower(),
    "month_abbr_lower": lambda moment: _month_name(moment)[:3].lower(),
    "MONTH": lambda moment: _month_name(moment).upper(),
    "MONTH_ABBR": lambda moment: _month_name(moment)[:3].upper(),
    "weekday": _weekday,
    "weekday_abbr": lambda moment: _weekday(moment)[:3],
    "weekday_lower": lambda moment: _weekday(moment).lower(),
    "WEEKDAY": lambda moment: _weekday(moment).upper(),
    "WEEKDAY_ABBR": lambda moment: _weekday(moment)[:3].upper(),
    "day_ordinal": _day_ordinal,
    "DAY_ORDINAL": lambda moment: _day_ordinal(moment).upper(),
    "day_words": lambda moment: english_ordinal(moment.day),
    "Day_words": lambda moment: english_ordinal(moment.day).capitalize(),
    "year_spoken": _year_spoken,
    "year_thousand_and": lambda moment: english_cardinal(moment.year),
    "year_thousand": lambda moment: english_cardinal(moment.year, joiner=" "),
    "year_oh": lambda moment: f"twenty oh {english_cardinal(moment.year % 100)}",
    "clock_12": _clock_12,
    # Chinese
    "year_han": lambda moment: chinese_digits(str(moment.year)),
    "year_han_ling": lambda moment: chinese_digits(str(moment.year), zero="零"),
    "year_han_circle": lambda moment: chinese_digits(str(moment.year), zero="○"),
    "year_han_spoken": lambda moment: chinese_cardinal(moment.year, has_liang=True),
    "year_formal": lambda moment: chinese_digits(str(moment.year), zero="零").translate(FORMAL),
    "year_wide": lambda moment: str(moment.year).translate(FULL_WIDTH),
    "yy_han": lambda moment: chinese_digits(_two_digits(moment)),
    "yy_han_ling": lambda moment: chinese_digits(_two_digits(moment), zero="零"),
    "month_han": lambda moment: chinese_cardinal(moment.month),
    "month_cheque": lambda moment: _cheque_part(moment.month, (1, 2, 10)),
    "month_wide": lambda moment: str(moment.month).translate(FULL_WIDTH),
    "mm_wide": lambda moment: f"{moment.month:02}".translate(FULL_WIDTH),
    "day_han": lambda moment: chinese_cardinal(moment.day),
    "day_nian": lambda moment: chinese_cardinal(moment.day).replace("二十", "廿").replace("三十", "卅"),
    "day_cheque": lambda moment: _cheque_part(moment.day, (*range(1, 11), 20, 30)),
    "day_wide": lambda moment: str(moment.day).translate(FULL_WIDTH),
    "dd_wide": lambda moment: f"{moment.day:02}".translate(FULL_WIDTH),
    "ri": lambda moment: "一二三四五六日"[moment.weekday()],
    "tian": lambda moment: "一二三四五六天"[moment.weekday()],
    "clock_han": _clock_chinese,
}


def _is_clear_year(day: date) -> bool:
    return day.year % 100 == 0 or day.year % 100 > 31


DOMAINS: Mapping[str, Callable[[date], bool]] = {
    "any date": lambda day: True,
    "day above 12": lambda day: day.day > 12,
    "day from 20": lambda day: day.day >= 20,
    "year 00 or above 31": _is_clear_year,
    "day above 12, year 00 or above 31": lambda day: day.day > 12 and _is_clear_year(day),
    "since 2000": lambda day: day.year >= 2000,
    "2001 to 2009": lambda day: 2001 <= day.year <= 2009,
}


def draw_date(template: str, domain: str, split: Split, source: random.Random) -> tuple[str, str]:
    """Fill the slots of a template with a date of one split.

    Args:
        template: a text with slots of `SLOTS`.
        domain: a name in `DOMAINS`.
        source: random number generator; three numbers are drawn.

    Returns:
        The text, and the date as YYYY-MM-DD.
    """
    day = pick(source, _dates(domain, split))
    hour, minute = (
        7 + int(source.random() * 15),
        5 * int(source.random() * 12),
    )  # from 07:00 to 21:55, every 5 minutes
    moment = datetime(day.year, day.month, day.day, hour, minute)
    return template.format_map(SlotTexts(SLOTS, moment)), day.isoformat()


@cache
def _dates(domain: str, split: Split) -> tuple[date, ...]:
    return tuple(filter(DOMAINS[domain], _all_dates(split)))


@cache
def _all_dates(split: Split) -> tuple[date, ...]:
    days = (FIRST_DATE + timedelta(days=offset) for offset in range((LAST_DATE - FIRST_DATE).days + 1))
    return tuple(day for day in days if split_of(day.isoformat()) == split)
