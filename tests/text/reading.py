"""Readers of dates and numbers, by rules of their own: they know texts, and nothing of templates or slots.

What the generator says a text means must be what a reader makes of the text alone.
"""

import re
import unicodedata
from datetime import date
from decimal import Decimal

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
)
_ENGLISH = {word: value for value, word in enumerate([*_ONES.split(), "eighteen", "nineteen"])}
_ENGLISH |= {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80}
_ENGLISH |= {"ninety": 90, "oh": 0, "nought": 0}
_SCALES = {"hundred": 100, "thousand": 1000}
_RANKS = {"first": 1, "second": 2, "third": 3, "fifth": 5, "eighth": 8, "ninth": 9, "twelfth": 12}
_RANKS |= {
    word + "th": value for word, value in _ENGLISH.items() if word + "th" in "fourth sixth seventh tenth eleventh"
}
_RANKS |= {word + "th": _ENGLISH[word] for word in _ONES.split()[13:]} | {"eighteenth": 18, "nineteenth": 19}
_RANKS |= {word[:-1] + "ieth": value for word, value in _ENGLISH.items() if word.endswith("ty")}
_MONTHS = "january february march april may june july august september october november december".split()
_MONTH = re.compile(rf"(?<![a-z])({'|'.join(_MONTHS)}|sept|{'|'.join(name[:3] for name in _MONTHS)})(?![a-z])\.?")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_HAN_DIGITS = "零〇○,一壹,二两兩贰貳,三叁參,四肆,五伍,六陆陸,七柒,八捌,九玖".split(",")
_DIGITS = {character: value for value, characters in enumerate(_HAN_DIGITS) for character in characters}
_UNITS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000, "万": 10000, "萬": 10000}
_DIGIT = f"[0-9{''.join(_DIGITS)}]"
_NUMERAL = f"[0-9{''.join(_DIGITS)}{''.join(_UNITS)}廿卅]"


def read_english(text: str) -> int:
    """Add up English number words and ranks; "and" and everything unknown is skipped."""
    total = group = 0
    for word in re.findall("[a-z]+", text.lower()):
        base = word.removesuffix("th") if word in ("hundredth", "thousandth") else word
        if base in _SCALES:
            group = (group or 1) * _SCALES[base]
            if base == "thousand":
                total, group = total + group, 0
        else:
            group += _ENGLISH.get(word, _RANKS.get(word, 0))
    return total + group


def read_chinese(text: str) -> int:
    """Evaluate Chinese numerals, digits among units (3千2百) and a dropped last unit (三百五) included."""
    text = text.replace("廿", "二十").replace("卅", "三十")
    if not any(character in _UNITS for character in text):
        return int("".join(str(_DIGITS.get(character, character)) for character in text))
    total, digits, unit, is_after_zero = 0, "", 1, False
    for character in text:
        if character in _UNITS:
            unit = _UNITS[character]
            total = (total + int(digits or 0)) * unit if unit == 10000 else total + int(digits or 1) * unit
            digits, is_after_zero = "", False
        else:
            digits += str(_DIGITS.get(character, character))
            is_after_zero = is_after_zero or int(digits) == 0
    if not digits:
        return total
    return total + int(digits) * (unit // 10 if unit > 10 and not is_after_zero else 1)


def read_number(text: str) -> str:
    """Read the one number that a text holds, as plain digits."""
    for sign, quarters in {"½": "2/4", "¼": "1/4", "¾": "3/4"}.items():
        text = text.replace(sign, " " + quarters)
    text = unicodedata.normalize("NFKC", text).lower().replace(" 1/2", " 2/4")
    is_negative = re.search(r"minus|negative|below zero|负|負|零下|(?<![a-z])[-−][0-9]", text)
    magnitude = _magnitude(re.sub("零下|一共|below zero", "", text))
    return format((-magnitude if is_negative else magnitude).normalize(), "f")


def _magnitude(text: str) -> Decimal:
    if found := re.search(f"({_NUMERAL}+)(个半|[年天斤米块岁]半|小时半)", text):
        return read_chinese(found[1]) + Decimal("0.5")
    if found := re.search(f"({_NUMERAL}+)[块元]({_DIGIT})(?:[毛角]({_DIGIT})?)?", text):
        return Decimal(f"{read_chinese(found[1])}.{read_chinese(found[2])}{read_chinese(found[3] or '0')}")
    if found := re.search(f"({_NUMERAL}+)点({_DIGIT}+)(万?)", text):
        fraction = "".join(str(read_chinese(digit)) for digit in found[2])
        return Decimal(f"{read_chinese(found[1])}.{fraction}") * (10000 if found[3] else 1)
    if found := re.search(f"[0-9][百千]{_NUMERAL}*|[0-9]万[0-9]{_NUMERAL}*", text):
        return Decimal(read_chinese(found[0]))
    if re.search("[0-9]", text):
        return _magnitude_of_digits(text)
    if found := re.search(f"{_NUMERAL}+", text):
        return Decimal(read_chinese(found[0]))
    return _magnitude_of_words(text)


def _magnitude_of_digits(text: str) -> Decimal:
    quarters = Decimal(0)
    if found := re.search(r" ([1-3])/4", text):
        quarters, text = Decimal(found[1]) / 4, text.replace(found[0], "")
    found = re.search(r"[0-9]{1,3}([ ,][0-9]{3})+(\.[0-9]+)?|[0-9]*\.[0-9]+|[0-9]+", text)
    assert found, text
    value = Decimal(re.sub("[ ,]", "", found[0])) + quarters + _part_in_words(text)
    scale = re.match("万|萬|k| thousand", text[found.end() :])
    return value * ({"万": 10000, "萬": 10000}.get(scale[0], 1000) if scale else 1)


def _part_in_words(text: str) -> Decimal:
    if "and a half" in text:
        return Decimal("0.5")
    return (
        Decimal("0.75") if "and three quarters" in text else Decimal("0.25") if "and a quarter" in text else Decimal(0)
    )


def _magnitude_of_words(text: str) -> Decimal:
    part = _part_in_words(text)
    text = re.sub("and (a half|a quarter|three quarters)", "", text)
    if found := re.search("(.*) dollars and (.*) cents", text):
        return read_english(found[1]) + Decimal(read_english(found[2])) / 100
    whole, point, fraction = text.partition("point ")
    words = [word for word in re.findall("[a-z]+", fraction if point else whole) if word in _ENGLISH]
    if point:
        return read_english(whole) + Decimal("0." + "".join(str(_ENGLISH[word]) for word in words))
    if len(words) > 1 and all(_ENGLISH[word] < 10 for word in words) and not any(scale in whole for scale in _SCALES):
        return Decimal("".join(str(_ENGLISH[word]) for word in words))
    return read_english(whole) + part


_CLOCK = re.compile(
    r"\d{1,2}(:\d\d)? [ap]m(?![a-z])|[上中下]午\d{1,2}点半?|晚上\d{1,2}点半?|t?(?<!\d)\d\d:\d\d(:00)?z?( utc)?"
)


def read_date(text: str) -> str:
    """Read the one date that a text holds, as YYYY-MM-DD; its weekday, if any, is checked by `read_weekday`."""
    text = unicodedata.normalize("NFKC", text).lower().replace("’", "'").replace("。", ".")
    text = _CLOCK.sub(" ", text)
    if found := re.search(f"({_NUMERAL}+) ?年 ?({_NUMERAL}+) ?月 ?({_NUMERAL}+) ?[日号號]", text):
        year, month, day = (read_chinese(part) for part in found.groups())
    elif found := _MONTH.search(text):
        month = [name[:3] for name in _MONTHS].index(found[1][:3]) + 1
        rest = f"{text[: found.start()]} | {text[found.end() :]}"
        year, day = _year_and_day(rest) if re.search(r"\d", rest) else _spoken_year_and_day(rest)
    else:
        year, month, day = _numeric_date(text)
    return date(_full_year(year), month, day).isoformat()


def read_weekday(text: str) -> int | None:
    """Find the weekday that a text names: 0 is Monday; None if there is none."""
    if found := re.search(rf"(?<![a-z])({'|'.join(_WEEKDAYS)})(s|nes|rs|ur)?(day)?(?![a-z])", text.lower()):
        return _WEEKDAYS.index(found[1])
    if found := re.search("(?:星期|[周週]|礼拜|禮拜)([一二三四五六日天])|[(（]([一二三四五六日])[)）]", text):
        return min("一二三四五六日天".index(found[1] or found[2]), 6)
    return None


def _full_year(year: int) -> int:
    return year if year >= 100 else 2000 + year if year < 50 else 1900 + year


def _year_and_day(rest: str) -> tuple[int, int]:
    if found := re.search(r"'(\d\d)|(?<!\d)(\d{4})(?!\d)", rest):
        year = int(found[1] or found[2])
        rest = rest[: found.start()] + rest[found.end() :]
        numbers = re.findall(r"\d+", rest)
        return year, int(numbers[0]) if numbers else _rank_of_day(rest)
    numbers = re.findall(r"\d+", rest)
    if len(numbers) == 1:  # 5th of March, twenty twenty-one
        return _spoken_year(rest), int(numbers[0])
    (year,) = (number for number in numbers if number == "00" or int(number) > 31)
    (day,) = (number for number in numbers if number != year)
    return int(year), int(day)


def _rank_of_day(rest: str) -> int:
    words = re.findall("[a-z]+", rest)
    return sum(_RANKS.get(word, 0) for word in words) + (_ENGLISH[tens[1]] if (tens := _tens_of_day(rest)) else 0)


def _tens_of_day(rest: str) -> re.Match[str] | None:
    return re.search(rf"(twenty|thirty)-({'|'.join(_RANKS)})(?![a-z])", rest)


def _spoken_year_and_day(rest: str) -> tuple[int, int]:
    day = _rank_of_day(rest)
    tens = _tens_of_day(rest)
    return _spoken_year(rest.replace(tens[0], "") if tens else rest), day


def _spoken_year(rest: str) -> int:
    if "thousand" in rest:
        return read_english(re.sub("|".join(sorted(_RANKS, key=len, reverse=True)), "", rest))
    century, *others = (word for word in re.findall("[a-z]+", rest) if word in _ENGLISH)
    return 100 * _ENGLISH[century] + sum(_ENGLISH[word] for word in others)


def _numeric_date(text: str) -> tuple[int, int, int]:
    if found := re.search(r"(?<!\d)(\d{4})(\d\d)(\d\d)(?!\d)", text):
        return int(found[1]), int(found[2]), int(found[3])
    numbers = re.findall(r"\d+", text)
    assert len(numbers) == 3, text
    readings: set[tuple[int, int, int]] = set()
    for year, month, day in ((0, 1, 2), (2, 0, 1), (2, 1, 0)):
        candidate = int(numbers[year]), int(numbers[month]), int(numbers[day])
        is_year = len(numbers[year]) == 4 or numbers[year] == "00" or int(numbers[year]) > 31
        if is_year and 1 <= candidate[1] <= 12 and 1 <= candidate[2] <= 31:
            readings.add(candidate)
    assert len(readings) == 1, f"{text}: {readings}"
    return readings.pop()
