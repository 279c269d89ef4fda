"""Numbers, dates, times, amounts and abbreviations of English texts, and how they are read out in American English."""

import random
from collections.abc import Mapping
from typing import Final

from heedful.errors import UsageError
from heedful.synthetic.dates import MONTHS
from heedful.synthetic.grammar import pick
from heedful.synthetic.numerals import english_cardinal, english_ordinal, ordinal_suffix
from heedful.synthetic.random_parts import (
    LARGEST,
    Draw,
    Form,
    half_the_time,
    number_between,
    random_digits,
    random_fraction,
    whole_number,
)

ABBREVIATIONS: Final[Mapping[str, str]] = {
    "Mr.": "mister",
    "Mrs.": "missus",
    "Ms.": "miz",
    "Dr.": "doctor",
    "Prof.": "professor",
    "St.": "saint",
    "Mt.": "mount",
    "Jr.": "junior",
    "Sr.": "senior",
    "Gen.": "general",
    "Capt.": "captain",
    "Lt.": "lieutenant",
    "Sgt.": "sergeant",
    "Rev.": "reverend",
    "Hon.": "honorable",
    "Ave.": "avenue",
    "Blvd.": "boulevard",
    "Inc.": "incorporated",
    "Ltd.": "limited",
    "Corp.": "corporation",
    "Dept.": "department",
    "vs.": "versus",
    "etc.": "et cetera",
    "e.g.": "for example",
    "i.e.": "that is",
    "approx.": "approximately",
    "&": "and",
}
"""English abbreviations and their readings."""
UNITS: Final[Mapping[str, tuple[str, str]]] = {
    "km": ("kilometer", "kilometers"),
    "m": ("meter", "meters"),
    "cm": ("centimeter", "centimeters"),
    "mm": ("millimeter", "millimeters"),
    "kg": ("kilogram", "kilograms"),
    "g": ("gram", "grams"),
    "mg": ("milligram", "milligrams"),
    "lb": ("pound", "pounds"),
    "oz": ("ounce", "ounces"),
    "ft": ("foot", "feet"),
    "mi": ("mile", "miles"),
    "mph": ("mile per hour", "miles per hour"),
    "km/h": ("kilometer per hour", "kilometers per hour"),
    "h": ("hour", "hours"),
    "min": ("minute", "minutes"),
    "MB": ("megabyte", "megabytes"),
    "GB": ("gigabyte", "gigabytes"),
    "kW": ("kilowatt", "kilowatts"),
    "Hz": ("hertz", "hertz"),
    "°C": ("degree celsius", "degrees celsius"),
    "°F": ("degree fahrenheit", "degrees fahrenheit"),
}
"""English units: singular and plural."""
_CURRENCIES: Final = {"$": ("dollar", "dollars"), "€": ("euro", "euros"), "£": ("pound", "pounds")}
_DENOMINATORS: Final = {2: "half", 4: "quarter"}


def _is_year(number: int) -> bool:
    return 1100 <= number <= 2099


def english_number(number: int) -> str:
    """Read out a whole number.

    Args:
        number: 0 to 999,999,999.

    Raises:
        UsageError: the number is larger.

    Example:
        >>> english_number(3_205_025)
        'three million two hundred five thousand twenty five'
    """
    if not 0 <= number <= LARGEST:
        raise UsageError(f"cannot read {number}: give a whole number from 0 to {LARGEST:,}")
    millions, rest = divmod(number, 1_000_000)
    thousands, below = divmod(rest, 1000)
    parts = [f"{_spoken(millions)} million" if millions else "", f"{_spoken(thousands)} thousand" if thousands else ""]
    parts.append(_spoken(below) if below or number == 0 else "")
    return " ".join(filter(None, parts))


def _spoken(number: int) -> str:
    return english_cardinal(number, joiner=" ").replace("-", " ")


def _ordinal(number: int) -> str:
    return english_ordinal(number, joiner=" ").replace("-", " ")


def english_year(year: int) -> str:
    """Read out a year.

    Args:
        year: 1100 to 2099.

    Example:
        >>> english_year(1998), english_year(1905), english_year(1900), english_year(2005), english_year(2021)
        ('nineteen ninety eight', 'nineteen oh five', 'nineteen hundred', 'two thousand five', 'twenty twenty one')
    """
    century, rest = divmod(year, 100)
    if 2000 <= year <= 2009:
        return _spoken(year)
    if rest == 0:
        return f"{_spoken(century)} hundred"
    return f"{_spoken(century)} {'oh ' if rest < 10 else ''}{_spoken(rest)}"


def _one_by_one(digits: str) -> str:
    return " ".join(_spoken(int(digit)) for digit in digits if digit.isdigit())


def _decimal(source: random.Random) -> Form:
    """Positive number with a point."""
    number, fraction = whole_number(source, 4), random_fraction(source)
    return f"{number}.{fraction}", f"{english_number(number)} point {_one_by_one(fraction)}"


def _counted(source: random.Random) -> Form:
    number = whole_number(source)
    if number >= 1000 and (_is_year(number) or source.random() < 0.7):
        return f"{number:,}", english_number(number)
    return str(number), english_number(number)


def _negative(source: random.Random) -> Form:
    written, reading = _decimal(source) if source.random() < 0.4 else _counted(source)
    return f"-{written}", f"minus {reading}"


def _year(source: random.Random) -> Form:
    year = number_between(source, 1100, 2099) if source.random() < 0.3 else number_between(source, 1850, 2060)
    return str(year), english_year(year)


def _decade(source: random.Random) -> Form:
    decade, century = 10 * number_between(source, 2, 9), number_between(source, 17, 20)
    plural = _spoken(decade).removesuffix("y") + "ies"
    if source.random() < 0.3:
        return f"{decade}s", plural
    return f"{century}{decade}s", f"{_spoken(century)} {plural}"


def _digit_string(source: random.Random) -> Form:
    match int(source.random() * 3):
        case 0:
            written = "0" + random_digits(source, number_between(source, 1, 5))
        case 1:
            written = f"{random_digits(source, 3)}-{random_digits(source, 4)}"
            written = half_the_time(source, f"{random_digits(source, 3)}-") + written
        case _:
            written = str(number_between(source, 1, 9)) + random_digits(source, number_between(source, 9, 11))
    return written, _one_by_one(written)


def _ordinal_form(source: random.Random) -> Form:
    number = max(1, whole_number(source, 4))
    return f"{number}{ordinal_suffix(number)}", _ordinal(number)


def _percent(source: random.Random) -> Form:
    written, reading = (
        _decimal(source) if source.random() < 0.4 else (str(n := number_between(source, 0, 200)), _spoken(n))
    )
    return f"{written}{half_the_time(source, ' ')}%", f"{reading} percent"


def _money(source: random.Random) -> Form:
    sign = pick(source, tuple(_CURRENCIES))
    one, many = _CURRENCIES[sign]
    if source.random() < 0.2:
        number, scale = number_between(source, 1, 999), pick(source, ("thousand", "million", "billion"))
        return f"{sign}{number} {scale}", f"{_spoken(number)} {scale} {many}"
    number = whole_number(source, 6)
    unit = one if number == 1 else many
    if source.random() < 0.4:
        cents = number_between(source, 1, 99)
        few = f"oh {_spoken(cents)}" if cents < 10 else _spoken(cents)
        return f"{sign}{number:,}.{cents:02}", f"{english_number(number)} {unit} {few}"
    return f"{sign}{number:,}", f"{english_number(number)} {unit}"


def _fraction(source: random.Random) -> Form:
    below = number_between(source, 2, 20)
    above = number_between(source, 1, below - 1)
    name = _DENOMINATORS.get(below, _ordinal(below))
    plural = "halves" if below == 2 else f"{name}s"
    return f"{above}/{below}", f"{_spoken(above)} {name if above == 1 else plural}"


def _clock(source: random.Random) -> Form:
    minute = pick(source, (0, 0, 15, 30, 45, number_between(source, 1, 59)))
    few = "" if minute == 0 else f" oh {_spoken(minute)}" if minute < 10 else f" {_spoken(minute)}"
    if source.random() < 0.5:
        hour, half = number_between(source, 1, 12), pick(source, "ap")
        suffix = pick(source, (f" {half}m", f"{half}m", f" {half}.m.", f" {half.upper()}M"))
        minutes = "" if minute == 0 and source.random() < 0.5 else f":{minute:02}"
        return f"{hour}{minutes}{suffix}", f"{_spoken(hour)}{few} {half} m"
    hour = number_between(source, 0, 23)
    return f"{hour}:{minute:02}", f"{_spoken(hour)}{few or ' hundred' if hour > 12 or hour == 0 else few}"


def _day_of_year(source: random.Random) -> Form:
    month, day, year = number_between(source, 1, 12), number_between(source, 1, 28), number_between(source, 1850, 2060)
    reading = f"{MONTHS[month - 1].lower()} {_ordinal(day)}"
    name = MONTHS[month - 1]
    name = pick(source, (name, name[:3], name if len(name) < 5 else f"{name[:3]}."))
    suffix = half_the_time(source, ordinal_suffix(day))
    match int(source.random() * 6):
        case 0:
            return f"{year}-{month:02}-{day:02}", f"{reading} {english_year(year)}"
        case 1:
            numbers = (month, day) if day <= 12 or source.random() < 0.5 else (day, month)
            return f"{numbers[0]}/{numbers[1]}/{year}", f"{reading} {english_year(year)}"
        case 2:
            return f"{day}.{month}.{year}", f"{reading} {english_year(year)}"
        case 3:
            return f"{name} {day}{suffix}", reading
        case 4:
            return f"{name} {day}{suffix}{half_the_time(source, ',')} {year}", f"{reading} {english_year(year)}"
        case _:
            written = f"{day}{suffix} {name}"
            return (
                (written, reading)
                if source.random() < 0.3
                else (f"{written} {year}", f"{reading} {english_year(year)}")
            )


def _unit(source: random.Random) -> Form:
    name = pick(source, tuple(UNITS))
    written, reading = (
        _decimal(source) if source.random() < 0.3 else (str(n := number_between(source, 0, 999)), _spoken(n))
    )
    return f"{written}{half_the_time(source, ' ')}{name}", f"{reading} {UNITS[name][written != '1']}"


def _range(source: random.Random) -> Form:
    if source.random() < 0.3:
        first = number_between(source, 1850, 2040)
        last = number_between(source, first + 1, 2060)
        return f"{first}-{last}", f"{english_year(first)} to {english_year(last)}"
    first = number_between(source, 1, 98)
    last = number_between(source, first + 1, 99)
    return f"{first}{pick(source, '-–')}{last}", f"{_spoken(first)} to {_spoken(last)}"


def _numbered(source: random.Random) -> Form:
    number = number_between(source, 1, 999)
    return f"{pick(source, ('No. ', 'no. ', '#'))}{number}", f"number {_spoken(number)}"


def _abbreviation(source: random.Random) -> Form:
    return pick(source, tuple(ABBREVIATIONS.items()))


ENGLISH_FORMS: Final[tuple[Draw, ...]] = (
    *(_counted, _counted, _decimal, _negative, _year, _decade, _digit_string, _ordinal_form, _percent, _money, _money),
    *(_fraction, _clock, _clock, _day_of_year, _day_of_year, _unit, _range, _numbered, _abbreviation),
)
"""Draws of each kind of form, the commonest twice."""
