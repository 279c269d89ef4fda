"""Degenerate outputs: loops, outputs far longer than their sources, and nothing at all for a source with words."""

from collections.abc import Sequence
from typing import Final, Literal
from unicodedata import category

from heedful.text.scripts import UNSPACED, script_of

Fault = Literal["loop", "length", "empty", ""]
"""Fault of an output: a part comes again and again, it is far too long, or there is none."""
_LONGEST_PART: Final = 12
"""Number of words or letters of a part that comes again, at most."""
_PARTS: Final = range(1, _LONGEST_PART + 1)
_REPETITIONS: Final = 3
"""Number of times that a part of several words stands in a row in a loop."""
_REPETITIONS_OF_WORDS: Final = 4
"""Number of times that a single word does."""
_FEWEST_LETTERS: Final = 18
"""Number of letters in a row that repeat others in a loop within a word."""
_STEP: Final = 6
"""A third of these, so that a loop has six of them at a regular distance."""
_MOST_GROWTH: Final = 5
"""Number of letters of an output for each letter of its source."""
_WIDE: Final = "\u2e80"
"""First letter of scripts of which one stands for several of others."""


def fault_of(source: str, output: str) -> Fault:
    """Find the fault of an output.

    Returns:
        The fault; "" = none. What comes again in the source too is no fault.

    Cost: linear in the output.

    Example:
        >>> fault_of("Ein Hund schläft.", "A dog dog dog dog."), fault_of("Nein nein nein nein!", "No no no no!")
        ('loop', '')
    """
    if not any(map(str.isalnum, output)):
        return "empty" if any(map(str.isalpha, source)) else ""
    size = sum(3 if letter >= _WIDE else 1 for letter in source)
    if len(output) > _MOST_GROWTH * size + 40:
        return "length"
    return "loop" if _has_loop(output) and not (_has_repetitions(source) or _has_loop(source)) else ""


def _has_loop(text: str) -> bool:
    words = _words(text)
    if len(words) - len(set(words)) >= _REPETITIONS_OF_WORDS - 1:
        if _longest_run(words, 1) >= _REPETITIONS_OF_WORDS - 1 or _has_repeated_part(words, _PARTS[1:]):
            return True
    # A loop of letters repeats each six of its first letters within the length of a part.
    starts = range(0, len(text) - _STEP, _STEP)
    if all(text.find(text[one : one + _STEP], one + 1, one + _LONGEST_PART + _STEP) < 0 for one in starts):
        return False
    return any(_longest_run(text, part) >= max(_FEWEST_LETTERS, 3 * part) for part in _PARTS)


def _has_repetitions(text: str) -> bool:
    """Tell whether a source repeats itself: a word or a letter of a script without spaces three times, a part twice."""
    spaced = "".join(f" {letter} " if script_of(letter) in UNSPACED else letter for letter in text)
    plain = ("".join(filter(_is_plain, word)) for word in spaced.casefold().split())
    words = [word for word in plain if word]
    return _has_repeated_part(words, (1,)) or any(_longest_run(words, size) >= size for size in _PARTS[1:])


def _words(text: str) -> list[str]:
    return [word.strip(".,;:!?\"'()").casefold() for word in text.split()]


def _has_repeated_part(words: Sequence[str], sizes: Sequence[int]) -> bool:
    return any(_longest_run(words, size) >= (_REPETITIONS - 1) * size for size in sizes)


def _longest_run(items: Sequence[str], distance: int) -> int:
    """Largest number of consecutive words or letters that equal the one at a distance before them."""
    longest = run = 0
    for one, other in zip(items[distance:], items, strict=False):
        run = 0 if one != other else run + 1 if _is_plain(one) else run if one == " " else 0
        longest = max(longest, run)
    return longest


def _is_plain(text: str) -> bool:
    """Tell whether a text is of letters, digits and marks on them alone."""
    return text.isalnum() or (bool(text) and all(one.isalnum() or category(one).startswith("M") for one in text))
