"""Random parts of written forms: numbers, digits and parts that may be missing."""

import random
from collections.abc import Callable
from typing import Final

from heedful.synthetic.grammar import pick

Form = tuple[str, str]
"""Written form and its reading."""
Draw = Callable[[random.Random], Form]
"""Function that draws a form of one kind."""
LARGEST: Final = 999_999_999
"""Largest number that is read as one."""
_LENGTHS: Final = (1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9)
"""Numbers of digits, short ones more often."""


def number_between(source: random.Random, first: int, last: int) -> int:
    """Draw a whole number, each as likely as the others."""
    return first + int(source.random() * (last - first + 1))


def whole_number(source: random.Random, most_digits: int = 9) -> int:
    """Draw a number of 0 to `most_digits` digits, short ones more often."""
    length = min(pick(source, _LENGTHS), most_digits)
    return number_between(source, 10 ** (length - 1) if length > 1 else 0, 10**length - 1)


def random_digits(source: random.Random, length: int) -> str:
    """Draw digits, which may begin with 0."""
    return "".join(str(number_between(source, 0, 9)) for _ in range(length))


def random_fraction(source: random.Random) -> str:
    """Draw the digits behind a point: one to six, few more often."""
    return random_digits(source, pick(source, (1, 1, 2, 2, 3, 3, 4, 5, 6)))


def half_the_time(source: random.Random, text: str) -> str:
    """Return a text or, half of the times, nothing."""
    return text if source.random() < 0.5 else ""
