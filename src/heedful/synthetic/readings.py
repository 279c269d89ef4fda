"""Numbers, dates and abbreviations as texts have them, and as they are read out, in English and Chinese.

    3:45 pm       three forty five p m            2021年3月5日     二零二一年三月五日
    $2.50         two dollars fifty               45%             百分之四十五

Each written form has one reading, by these rules:

- Four digits from 1100 to 2099 without a comma are a year; other whole numbers below a billion are counted.
- Digits that begin with 0, of ten digits and more, or in groups with hyphens are read one by one.
- A date of bare numbers has the month first (3/5/2021), but the day where dots divide it (5.3.2021) or it is above 12.
- A 2 before a Chinese measure word is 两.

All pairs are a function of the seed, on every machine and in every version of Python.
"""

import hashlib
import random
from collections.abc import Iterator

from heedful.errors import UsageError, did_you_mean
from heedful.synthetic.chinese_readings import CHINESE_FORMS
from heedful.synthetic.english_readings import ABBREVIATIONS, ENGLISH_FORMS
from heedful.synthetic.grammar import LANGUAGES, Language, Split, pick, split_of


def written_forms(
    num_pairs: int, seed: int, language: Language = "en", split: Split | None = None
) -> Iterator[tuple[str, str]]:
    """Draw written forms and their readings.

    Args:
        num_pairs: number of pairs, 0 or more.
        seed: any whole number.
        language: "en" or "zh".
        split: only forms of this split, which their hash decides; None = of all. Abbreviations are in "train" alone,
            where forms recur as they do in texts; those of "dev" and "test" are distinct.

    Yields:
        Pairs (written form, reading). English readings are words in lower case with spaces between them, Chinese ones
        characters without spaces.

    Raises:
        UsageError: the language is unknown.

    Example:
        >>> list(written_forms(2, seed=3))
        [('1897', 'eighteen ninety seven'), ('No. 387', 'number three hundred eighty seven')]
    """
    if language not in LANGUAGES:
        raise UsageError(f"language {language!r} is unknown{did_you_mean(language, LANGUAGES)}")
    source = random.Random(int.from_bytes(hashlib.blake2b(f"{seed}/{split}/{language}".encode()).digest()[:16], "big"))
    kinds = ENGLISH_FORMS if language == "en" else CHINESE_FORMS
    held_out: set[str] = set()
    num_drawn = 0
    while num_drawn < num_pairs:
        written, reading = pick(source, kinds)(source)
        own = "train" if written in ABBREVIATIONS else split_of(written.lower())
        if split is not None and (own != split or written in held_out):
            continue
        if split in {"dev", "test"}:
            held_out.add(written)
        num_drawn += 1
        yield written, reading
