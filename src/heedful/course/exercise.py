"""Exercise: its right answer, a hint, and what usual mistakes give."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Words = tuple[str, str]
"""A sentence in English and in Chinese."""


class Mistake(NamedTuple):
    """Usual mistake."""

    answer: Any
    """Wrong answer that it gives."""
    remark: Words
    """Sentence that helps."""


@dataclass(frozen=True)
class Exercise:
    """Exercise of a lesson."""

    answer: Any
    """Right answer: a number, a list, an array, or a function."""
    hint: Words
    mistakes: Sequence[Mistake] = ()
    inputs: Callable[[], Sequence[Any]] | None = None
    """Arguments that an answer which is a function is tried with; None = the answer is no function."""
    tolerance: float = 1e-6
    """Largest difference that is right, relative to numbers above 1."""
