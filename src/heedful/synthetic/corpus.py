"""Generated pairs of a date or number as people write it and its canonical form, for training without a download.

    Mar 5th, 2021                 2021-03-05          two thousand and twelve      2012
    截止日期：二〇二一年三月五日     2021-03-05          三千二百五                    3250

All pairs are a function of the seed, on every machine and in every version of Python. Each value belongs to one split:
a date of the test split occurs in no training pair, however it is written (`heedful.synthetic.grammar.split_of`). Each
text has only one reading, by the rules in `heedful.synthetic.dates` and `heedful.synthetic.numbers`.
"""

import hashlib
import itertools
import random
from bisect import bisect
from collections.abc import Iterator
from functools import cache

from heedful.errors import UsageError, did_you_mean
from heedful.synthetic import chinese as synthetic_chinese
from heedful.synthetic import english as synthetic_english
from heedful.synthetic.dates import draw_date
from heedful.synthetic.grammar import (
    KINDS,
    LANGUAGES,
    SPLITS,
    Family,
    Kind,
    Language,
    Split,
    Template,
)
from heedful.synthetic.numbers import draw_number

MAX_SOURCE_LENGTH = 48
DATE_SHARE = 0.7
ENGLISH_SHARE = 0.5

_FAMILIES = (*synthetic_english.FAMILIES, *synthetic_chinese.FAMILIES)


def templates() -> Iterator[Template]:
    """Enumerate every template that `generate` draws from.

    Yields:
        Templates, each once; no two have the same text.
    """
    for family in _FAMILIES:
        yield from family.templates()


def generate(
    num_pairs: int,
    seed: int,
    split: Split = "train",
    kind: Kind | None = None,
    language: Language | None = None,
) -> Iterator[tuple[str, str]]:
    """Generate pairs of an expression and its canonical form.

    About 70 % are dates and 30 % numbers, half English and half Chinese, unless `kind` or `language` say otherwise.
    With equal other arguments, fewer pairs are a prefix of more pairs.

    Args:
        num_pairs: number of pairs, 0 or more.
        seed: any whole number.
        split: split of the values, "train", "dev" or "test".
        kind: only "date" or only "number"; None = both.
        language: only "en" or only "zh"; None = both.

    Returns:
        Pairs (source, target). A source has at most `MAX_SOURCE_LENGTH` characters, no tab and no line end; a target
        is a date as 2021-03-05 or a number as -3.5.

    Raises:
        UsageError: `num_pairs` is below 0, or the split, kind or language is unknown.

    Example:
        >>> list(generate(2, seed=1, split="test", kind="date", language="zh"))
        [('一九六二年二月五日', '1962-02-05'), ('贰零贰柒年捌月贰拾陆日', '2027-08-26')]
    """
    if num_pairs < 0:
        raise UsageError(f"num_pairs is {num_pairs}: give 0 or more")
    _check_name("split", split, SPLITS)
    _check_name("kind", kind, (*KINDS, None))
    _check_name("language", language, (*LANGUAGES, None))
    # Each combination has its own random stream, so that one seed draws different templates for train and test.
    name = f"{seed}/{split}/{kind}/{language}".encode()
    source = random.Random(int.from_bytes(hashlib.blake2b(name, digest_size=16).digest(), "big"))
    return (render(draw_template(source, kind, language), source, split) for _ in range(num_pairs))


def draw_template(source: random.Random, kind: Kind | None = None, language: Language | None = None) -> Template:
    """Draw one template as `generate` does.

    Args:
        source: random number generator.
        kind: "date" or "number"; None = drawn at random.
        language: "en" or "zh"; None = drawn at random.

    Returns:
        One of `templates`.
    """
    kind = kind or ("date" if source.random() < DATE_SHARE else "number")
    language = language or ("en" if source.random() < ENGLISH_SHARE else "zh")
    families, cumulative_weights = _families(kind, language)
    index = bisect(cumulative_weights, source.random() * cumulative_weights[-1])
    return families[index].draw(source)


def render(template: Template, source: random.Random, split: Split = "train") -> tuple[str, str]:
    """Fill a template with a value of one split, drawing again while the text is too long.

    Args:
        template: one of `templates`.
        source: random number generator.

    Returns:
        The text, of at most `MAX_SOURCE_LENGTH` characters, and the canonical form of its value.
    """
    draw = draw_date if template.kind == "date" else draw_number
    while True:
        text, target = draw(template.text, template.domain, split, source)
        if len(text) <= MAX_SOURCE_LENGTH:
            return text, target


@cache
def _families(kind: Kind, language: Language) -> tuple[tuple[Family, ...], tuple[float, ...]]:
    families = tuple(family for family in _FAMILIES if (family.kind, family.language) == (kind, language))
    return families, tuple(itertools.accumulate(family.weight for family in families))


def _check_name(argument: str, value: str | None, known: tuple[str | None, ...]) -> None:
    if value not in known:
        names = [name for name in known if name is not None]
        raise UsageError(f"{argument} {value!r} is unknown{did_you_mean(str(value), names)}")
