"""Numbers as people write them in English and Chinese, and in plain digits.

The canonical form has a minus sign for negative numbers, digits without leading zeros or separators, and a fraction
without trailing zeros: ``3,120.50`` is 3120.5. Units, ordinal suffixes and currency signs are dropped.
"""

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from heedful.synthetic.grammar import SPLITS, SlotTexts, Split, pick, split_of
from heedful.synthetic.numerals import (
    FORMAL,
    FULL_WIDTH,
    TRADITIONAL,
    chinese_cardinal,
    chinese_digits,
    chinese_formal,
    english_cardinal,
    english_ordinal,
    ordinal_suffix,
)


class Number(NamedTuple):
    """Number, split at its decimal point.

    Attributes:
        is_negative: whether it is below zero.
        whole: its absolute value, rounded down; 0 to 99,999.
        fraction: the digits after the point, without trailing zeros; empty for a whole number.
    """

    is_negative: bool
    whole: int
    fraction: str

    @property
    def canonical(self) -> str:
        """Number in plain digits, such as "-3.5"."""
        point = "." if self.fraction else ""
        return f"{'-' if self.is_negative else ''}{self.whole}{point}{self.fraction}"


def _cents(number: Number) -> str:
    return f"{number.fraction:0<2}"


def _hundreds(number: Number, joiner: str) -> str:
    hundreds, rest = divmod(number.whole, 100)
    return f"{english_cardinal(hundreds)} hundred" + (joiner + english_cardinal(rest) if rest else "")


def _read_out(digits: str, zero: str) -> str:
    return " ".join(zero if digit == "0" else english_cardinal(int(digit)) for digit in digits)


def _scaled(number: Number, digits: int) -> str:
    # Whole numbers only: 12500 in thousands is 12.5.
    text = f"{number.whole:0{digits + 1}}"
    return f"{text[:-digits]}.{text[-digits:]}".rstrip("0").rstrip(".")


def _ten_thousands_in_han(number: Number) -> str:
    whole, _, fraction = _scaled(number, 4).partition(".")
    return chinese_cardinal(int(whole), has_liang=not fraction) + (
        f"点{chinese_digits(fraction, zero='零')}" if fraction else ""
    )


def _without_last_unit(number: Number) -> str:
    return chinese_cardinal(number.whole, has_liang=True)[:-1]


def _digits_and_units(number: Number) -> str:
    return chinese_cardinal(number.whole).translate(str.maketrans("一二三四五六七八九", "123456789"))


def _short_tens(number: Number) -> str:
    return chinese_cardinal(number.whole).replace("二十", "廿").replace("三十", "卅")


SLOTS: Mapping[str, Callable[[Number], str]] = {
    "int": lambda number: str(number.whole),
    "grouped": lambda number: f"{number.whole:,}",
    "spaced": lambda number: f"{number.whole:,}".replace(",", " "),
    "fraction": lambda number: number.fraction,
    "cents": _cents,
    # English
    "suffix": lambda number: ordinal_suffix(number.whole),
    "thousands": lambda number: _scaled(number, 3),
    "words": lambda number: english_cardinal(number.whole, joiner=" "),
    "words_and": lambda number: english_cardinal(number.whole),
    "words_comma": lambda number: english_cardinal(number.whole, joiner=" ", comma=","),
    "words_and_comma": lambda number: english_cardinal(number.whole, comma=","),
    "Words": lambda number: english_cardinal(number.whole, joiner=" ").capitalize(),
    "Words_and": lambda number: english_cardinal(number.whole).capitalize(),
    "WORDS": lambda number: english_cardinal(number.whole).upper(),
    "a_words": lambda number: "a" + english_cardinal(number.whole).removeprefix("one"),
    "hundreds_words": lambda number: _hundreds(number, " "),
    "hundreds_words_and": lambda number: _hundreds(number, " and "),
    "ordinal_words": lambda number: english_ordinal(number.whole, joiner=" "),
    "ordinal_words_and": lambda number: english_ordinal(number.whole),
    "digits_zero": lambda number: _read_out(str(number.whole), "zero"),
    "digits_oh": lambda number: _read_out(str(number.whole), "oh"),
    "fraction_zero": lambda number: _read_out(number.fraction, "zero"),
    "fraction_oh": lambda number: _read_out(number.fraction, "oh"),
    "cents_words": lambda number: english_cardinal(int(_cents(number))),
    # Chinese
    "int_wide": lambda number: str(number.whole).translate(FULL_WIDTH),
    "fraction_wide": lambda number: number.fraction.translate(FULL_WIDTH),
    "grouped_wide": lambda number: f"{number.whole:,}".replace(",", "，").translate(FULL_WIDTH),
    "han": lambda number: chinese_cardinal(number.whole),
    "liang": lambda number: chinese_cardinal(number.whole, has_liang=True),
    "liang_traditional": lambda number: chinese_cardinal(number.whole, has_liang=True).translate(TRADITIONAL),
    "han_dropping_one": lambda number: chinese_cardinal(number.whole).replace("百一十", "百十"),
    "han_dropping_unit": _without_last_unit,
    "short_tens": _short_tens,
    "ten_thousands": lambda number: _scaled(number, 4),
    "ten_thousands_han": _ten_thousands_in_han,
    "digits_and_units": _digits_and_units,
    "digits_dropping_unit": lambda number: _digits_and_units(number)[:-1],
    "digits_han": lambda number: chinese_digits(str(number.whole)),
    "digits_ling": lambda number: chinese_digits(str(number.whole), zero="零"),
    "fraction_han": lambda number: chinese_digits(number.fraction, zero="零"),
    "formal": lambda number: chinese_formal(number.whole),
    "formal_traditional": lambda number: chinese_formal(number.whole).translate(TRADITIONAL),
    "jiao": lambda number: number.fraction[:1],
    "fen": lambda number: number.fraction[1:],
    "jiao_han": lambda number: chinese_digits(number.fraction[:1]),
    "fen_han": lambda number: chinese_digits(number.fraction[1:]),
    "jiao_formal": lambda number: chinese_digits(number.fraction[:1]).translate(FORMAL),
    "fen_formal": lambda number: chinese_digits(number.fraction[1:]).translate(FORMAL),
}

_Stratum = tuple[Sequence[int], int]


def _stratum(*ranges: range, num_decimals: int = 0) -> _Stratum:
    return tuple(itertools.chain(*ranges)), num_decimals


def _is_any(number: Number) -> bool:
    return True


def _has_fraction(number: Number) -> bool:
    return bool(number.fraction)


def _can_drop_unit(number: Number) -> bool:
    """Whether the last unit may be omitted, as in 三百五 for 350, but not in 305, 300 or 3050."""
    digits = str(number.whole).rstrip("0")
    return len(digits) < len(str(number.whole)) and len(digits) >= 2 and digits[-2] != "0"


_SMALL, _MEDIUM, _LARGE = _stratum(range(100)), _stratum(range(100, 1000)), _stratum(range(1000, 10_000))
_HUGE = _stratum(range(10_000, 100_000, 7))  # a step prime to 10, so that every last digit occurs
_TWO_DIGITS_THEN_ZEROS = [n for n in (*range(1000, 10_000, 100), *range(10_000, 100_000, 1000)) if str(n)[1] != "0"]

# Strata of each domain, and a condition on its numbers; a stratum is integers and their number of decimal digits.
# All strata of a domain are equally likely, because people write small numbers more often than large ones.
DOMAINS: Mapping[str, tuple[tuple[_Stratum, ...], Callable[[Number], bool]]] = {
    "0 to 99999": ((_SMALL, _MEDIUM, _LARGE, _HUGE), _is_any),
    "2 to 99999": ((_stratum(range(2, 100)), _MEDIUM, _LARGE, _HUGE), _is_any),
    "100 to 99999": ((_MEDIUM, _LARGE, _HUGE), _is_any),
    "0 to 9999": ((_SMALL, _MEDIUM, _LARGE), _is_any),
    "1 to 9999": ((_stratum(range(1, 100)), _MEDIUM, _LARGE), _is_any),
    "2 to 9999": ((_stratum(range(2, 100)), _MEDIUM, _LARGE), _is_any),
    "1 to 999": ((_stratum(range(1, 100)), _MEDIUM), _is_any),
    "100 to 9999": ((_MEDIUM, _LARGE), _is_any),
    "1000 to 9999": ((_LARGE,), _is_any),
    "1000 to 99999": ((_LARGE, _HUGE), _is_any),
    "100 to 199 or 1000 to 1999": ((_stratum(range(100, 200)), _stratum(range(1000, 2000))), _is_any),
    "1100 to 9950, fifties, hundreds not 0": (
        (_stratum(range(1100, 10_000, 50)),),
        lambda number: number.whole // 100 % 10 > 0,
    ),
    "110 to 9999, hundreds not 0, tens 1": (
        (_MEDIUM, _LARGE),
        lambda number: number.whole // 10 % 10 == 1 and number.whole // 100 % 10 > 0,
    ),
    "20 to 999, tens 2 or 3": ((_stratum(range(20, 1000)),), lambda number: number.whole // 10 % 10 in (2, 3)),
    "110 to 99000, last unit not needed": (
        (_stratum(range(100, 1000, 10), range(10_000, 100_000, 1000)), _stratum(range(1000, 10_000, 10))),
        _can_drop_unit,
    ),
    "100 to 99000, one or two digits, then zeros": (
        (_stratum(range(100, 10_000, 100), range(10_000, 100_000, 1000)),),
        _is_any,
    ),
    "1100 to 99000, two digits, then zeros": (((_TWO_DIGITS_THEN_ZEROS, 0),), _is_any),
    "1000 to 99900, whole hundreds": (
        (_stratum(range(1000, 10_000, 100)), _stratum(range(10_000, 100_000, 100))),
        _is_any,
    ),
    "10000 to 99900, whole hundreds": (
        (_stratum(range(10_000, 100_000, 1000)), _stratum(range(10_000, 100_000, 100))),
        _is_any,
    ),
    "0.01 to 999.99": (
        (
            _stratum(range(1, 1000), num_decimals=1),
            _stratum(range(1000, 10_000), num_decimals=1),
            _stratum(range(1, 1000), num_decimals=2),
            _stratum(range(1000, 100_000, 7), num_decimals=2),
        ),
        _has_fraction,
    ),
    "0.001 to 0.999": ((_stratum(range(1, 100), num_decimals=2), _stratum(range(1, 1000), num_decimals=3)), _is_any),
    "1.5 to 99.5": ((_stratum(range(15, 1000, 10), num_decimals=1),), _is_any),
    "1.25 to 99.25": ((_stratum(range(125, 10_000, 100), num_decimals=2),), _is_any),
    "1.75 to 99.75": ((_stratum(range(175, 10_000, 100), num_decimals=2),), _is_any),
    "1.00 to 9999.50": (
        (
            _stratum(range(100, 10_000), num_decimals=2),
            _stratum(range(10_000, 100_000, 7), num_decimals=2),
            _stratum(range(100_000, 1_000_000, 50), num_decimals=2),
        ),
        _is_any,
    ),
    "2.02 to 99.99, cents from 2": (
        (_stratum(range(200, 10_000), num_decimals=2),),
        lambda number: int(_cents(number)) >= 2,
    ),
    "1.1 to 99.9": ((_stratum(range(11, 1000), num_decimals=1),), _has_fraction),
    "1.11 to 99.99, no 0 after the point": (
        (_stratum(range(111, 10_000), num_decimals=2),),
        lambda number: len(number.fraction) == 2 and "0" not in number.fraction,
    ),
    "-9999 to -1": (
        (_stratum(range(-99, 0)), _stratum(range(-999, -99)), _stratum(range(-9999, -999))),
        _is_any,
    ),
    "-99 to -2": ((_stratum(range(-99, -1)),), _is_any),
    "-999.9 to -0.01": (
        (
            _stratum(range(-999, 0), num_decimals=1),
            _stratum(range(-9999, -999), num_decimals=1),
            _stratum(range(-9999, 0), num_decimals=2),
        ),
        _has_fraction,
    ),
    "-99.9 to -1.1": ((_stratum(range(-999, -10), num_decimals=1),), _has_fraction),
}


def draw_number(template: str, domain: str, split: Split, source: random.Random) -> tuple[str, str]:
    """Fill the slots of a template with a number of one split.

    Args:
        template: a text with slots of `SLOTS`.
        domain: a name in `DOMAINS`.
        split: split of the number.
        source: random number generator; two numbers are drawn.

    Returns:
        The text, and the number in plain digits.
    """
    number = pick(source, pick(source, _strata(domain)[split]))
    return template.format_map(SlotTexts(SLOTS, number)), number.canonical


@cache
def _strata(domain: str) -> Mapping[Split, Sequence[Sequence[Number]]]:
    strata, is_meant = DOMAINS[domain]
    by_split: dict[Split, list[list[Number]]] = {split: [[] for _ in strata] for split in SPLITS}
    for index, (numbers, num_decimals) in enumerate(strata):
        for number in filter(is_meant, (_cut(digits, num_decimals) for digits in numbers)):
            by_split[split_of(number.canonical)][index].append(number)
    return by_split


def _cut(digits: int, num_decimals: int) -> Number:
    whole, fraction = divmod(abs(digits), 10**num_decimals)
    return Number(digits < 0, whole, f"{fraction:0{num_decimals}}".rstrip("0") if num_decimals else "")
