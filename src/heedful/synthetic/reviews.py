"""Generated reviews of hotels: several sentences, of which at most two say whether the guest was content.

Every review has sentences about the stay that say nothing about the guest's opinion. Of the telling words, such as
spotless or mouldy, a good or bad review has one or two of its label, and a neutral one none. All reviews are a function
of the seed, on every machine and in every version of Python.
"""

import hashlib
import random
from collections.abc import Iterator
from typing import Final

from heedful.errors import UsageError

LABELS: Final = ("good", "bad", "neutral")
GOOD: Final = ("spotless", "charming", "delicious", "comfortable", "peaceful", "generous", "lovely", "superb")
BAD: Final = ("mouldy", "filthy", "tasteless", "broken", "deafening", "stingy", "awful", "rude")
_THINGS: Final = ("room", "bed", "breakfast", "bathroom", "view", "service", "staff", "lobby")
_OPINIONS: Final = (
    "the {thing} was {word}",
    "we found the {thing} {word}",
    "honestly, the {thing} was {word}",
    "what a {word} {thing}",
)
_PLAIN: Final = (
    "we arrived on {day}",
    "our room was on the {floor} floor",
    "the hotel is near the {place}",
    "breakfast starts at {hour}",
    "we stayed for {number} nights",
    "there were {number} of us",
    "the {place} is {number} minutes away",
    "we had booked on {day}",
    "parking is behind the {place}",
    "the lift stops at the {floor} floor",
)
_SLOTS: Final = {
    "day": ("Monday", "Tuesday", "Wednesday", "Friday", "Sunday"),
    "floor": ("first", "second", "third", "fourth", "fifth"),
    "place": ("station", "river", "museum", "market", "park", "harbour"),
    "hour": ("six", "seven", "eight", "nine"),
    "number": ("two", "three", "four", "five", "ten"),
}
_MOST_PLAIN: Final = 7
"""Most sentences of a review that say nothing about the label."""


def generate(num_reviews: int, seed: int) -> Iterator[tuple[str, str]]:
    """Generate reviews, with the same seed the first ones of more reviews.

    Args:
        num_reviews: number of reviews, 0 or more.
        seed: any whole number.

    Returns:
        Text and label; a text has 2 to 9 sentences.

    Raises:
        UsageError: `num_reviews` is below 0.

    Example:
        >>> next(generate(1, seed=1))[1]
        'neutral'
    """
    if num_reviews < 0:
        raise UsageError(f"num_reviews is {num_reviews}: give 0 or more")
    source = random.Random(int.from_bytes(hashlib.blake2b(f"reviews/{seed}".encode(), digest_size=16).digest(), "big"))
    return (_review(source) for _ in range(num_reviews))


def _review(source: random.Random) -> tuple[str, str]:
    label = source.choice(LABELS)
    words = {"good": GOOD, "bad": BAD, "neutral": ()}[label]
    sentences = [
        source.choice(_PLAIN).format(**{slot: source.choice(values) for slot, values in _SLOTS.items()})
        for _ in range(source.randint(2, _MOST_PLAIN))
    ]
    for word in source.sample(words, source.randint(1, 2) if words else 0):
        opinion = source.choice(_OPINIONS).format(thing=source.choice(_THINGS), word=word)
        sentences.insert(source.randint(0, len(sentences)), opinion)
    return " ".join(f"{sentence[:1].upper()}{sentence[1:]}." for sentence in sentences), label
