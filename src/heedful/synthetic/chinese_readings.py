"""Numbers, dates, times and amounts of Chinese texts, and how they are read out."""

import random
from collections.abc import Mapping
from typing import Final

from heedful.errors import UsageError
from heedful.synthetic.grammar import pick
from heedful.synthetic.numerals import chinese_cardinal, chinese_digits
from heedful.synthetic.random_parts import (
    LARGEST,
    Draw,
    Form,
    number_between,
    random_digits,
    random_fraction,
    whole_number,
)

MEASURES: Final = "个只条张本位次种天岁人家名件台辆块斤米层"
"""Chinese measure words before which 2 is 两."""
CHINESE_UNITS: Final[Mapping[str, str]] = {
    "km": "公里",
    "m": "米",
    "cm": "厘米",
    "mm": "毫米",
    "kg": "千克",
    "g": "克",
    "℃": "摄氏度",
    "°C": "摄氏度",
}
_CHINESE_CURRENCIES: Final = {"¥": "元", "￥": "元", "$": "美元", "€": "欧元", "£": "英镑"}


def chinese_number(number: int) -> str:
    """Read out a whole number.

    Args:
        number: 0 to 999,999,999.

    Raises:
        UsageError: the number is larger.

    Example:
        >>> chinese_number(120_003_040)
        '一亿二千万三千零四十'
    """
    if not 0 <= number <= LARGEST:
        raise UsageError(f"cannot read {number}: give a whole number from 0 to {LARGEST:,}")
    reading = ""
    rest = number
    for size, unit in ((100_000_000, "亿"), (10_000, "万"), (1, "")):
        part, rest = divmod(rest, size)
        if part:
            is_short = bool(reading) and part < 1000
            digits = chinese_cardinal(part)
            digits = "一" + digits if reading and digits.startswith("十") else digits
            reading += ("零" if is_short and not reading.endswith("零") else "") + digits + unit
    return reading or "零"


def _chinese_digits(digits: str) -> str:
    return "".join(chinese_digits(digit, zero="零") for digit in digits if digit.isdigit())


def _chinese_decimal(source: random.Random) -> Form:
    number, fraction = whole_number(source, 4), random_fraction(source)
    return f"{number}.{fraction}", f"{chinese_number(number)}点{_chinese_digits(fraction)}"


def _chinese_count(source: random.Random) -> Form:
    number = whole_number(source)
    return (f"{number:,}" if number >= 1000 and source.random() < 0.4 else str(number)), chinese_number(number)


def _chinese_negative(source: random.Random) -> Form:
    written, reading = _chinese_decimal(source) if source.random() < 0.4 else _chinese_count(source)
    return f"-{written}", f"负{reading}"


def _measured(source: random.Random) -> Form:
    number, word = whole_number(source, 5), pick(source, MEASURES)
    return f"{number}{word}", f"{'两' if number == 2 else chinese_number(number)}{word}"


def _chinese_ordinal(source: random.Random) -> Form:
    number = max(1, whole_number(source, 4))
    return f"第{number}", f"第{chinese_number(number)}"


def _chinese_percent(source: random.Random) -> Form:
    number = number_between(source, 0, 200)
    written, reading = _chinese_decimal(source) if source.random() < 0.4 else (str(number), chinese_number(number))
    return f"{written}{pick(source, '%％')}", f"百分之{reading}"


def _chinese_money(source: random.Random) -> Form:
    sign = pick(source, (*_CHINESE_CURRENCIES, "元"))
    written, reading = _chinese_decimal(source) if source.random() < 0.3 else _chinese_count(source)
    if sign == "元":
        return f"{written}元", f"{reading}元"
    return f"{sign}{written}", f"{reading}{_CHINESE_CURRENCIES[sign]}"


def _chinese_fraction(source: random.Random) -> Form:
    below = number_between(source, 2, 99)
    above = number_between(source, 1, below - 1)
    return f"{above}/{below}", f"{chinese_number(below)}分之{chinese_number(above)}"


def _chinese_clock(source: random.Random) -> Form:
    hour, minute = number_between(source, 0, 23), pick(source, (0, 15, 30, number_between(source, 1, 59)))
    few = f"零{chinese_number(minute)}" if 0 < minute < 10 else chinese_number(minute)
    reading = f"{'两' if hour == 2 else chinese_number(hour)}点" + (f"{few}分" if minute else "")
    if source.random() < 0.5:
        return f"{hour}:{minute:02}", reading
    return f"{hour}点" + (f"{minute:02}分" if minute else ""), reading


def _chinese_date(source: random.Random) -> Form:
    month, day, year = number_between(source, 1, 12), number_between(source, 1, 31), number_between(source, 1850, 2060)
    last = pick(source, "日号")
    years, months = f"{_chinese_digits(str(year))}年", f"{chinese_number(month)}月"
    days = f"{chinese_number(day)}{last}"
    match int(source.random() * 5):
        case 0:
            return f"{year}年", years
        case 1:
            return f"{year}年{month}月", f"{years}{months}"
        case 2:
            return f"{year}年{month}月{day}{last}", f"{years}{months}{days}"
        case 3:
            return f"{month}月{day}{last}", f"{months}{days}"
        case _:
            mark = pick(source, "-/.")
            return f"{year}{mark}{month:02}{mark}{day:02}", f"{years}{months}{chinese_number(day)}日"


def _chinese_digit_string(source: random.Random) -> Form:
    if source.random() < 0.5:
        written = str(number_between(source, 1, 9)) + random_digits(source, number_between(source, 9, 11))
    else:
        area = random_digits(source, number_between(source, 2, 3))
        written = f"0{area}-{random_digits(source, number_between(source, 7, 8))}"
    return written, _chinese_digits(written)


def _chinese_range(source: random.Random) -> Form:
    first = number_between(source, 1, 98)
    last = number_between(source, first + 1, 99)
    return f"{first}{pick(source, '-–~～')}{last}", f"{chinese_number(first)}到{chinese_number(last)}"


def _chinese_unit(source: random.Random) -> Form:
    name = pick(source, tuple(CHINESE_UNITS))
    number = number_between(source, 0, 999)
    written, reading = _chinese_decimal(source) if source.random() < 0.3 else (str(number), chinese_number(number))
    return f"{written}{name}", f"{reading}{CHINESE_UNITS[name]}"


CHINESE_FORMS: Final[tuple[Draw, ...]] = (
    *(_chinese_count, _chinese_count, _chinese_decimal, _chinese_negative, _measured, _chinese_ordinal),
    *(_chinese_percent, _chinese_money, _chinese_fraction, _chinese_clock, _chinese_date, _chinese_date),
    *(_chinese_digit_string, _chinese_range, _chinese_unit),
)
"""Draws of each kind of form, the commonest twice."""
