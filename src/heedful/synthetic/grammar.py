"""Templates with slots, families of templates, and reproducible draws.

A *template* is a text with slots, such as ``due: {weekday}, {month_name} {day}, {year}``. It consists of a *core*,
which expresses the value, and a *carrier*, the words around the core (``due: {}``). A *family* is a set of cores and
carriers that fit each other, so that people would write each of their combinations.
"""

import hashlib
import itertools
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar, final, get_args

Kind = Literal["date", "number"]
Language = Literal["en", "zh"]
Split = Literal["train", "dev", "test"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LANGUAGES: tuple[Language, ...] = get_args(Language)
SPLITS: tuple[Split, ...] = get_args(Split)

Value = TypeVar("Value")
Item = TypeVar("Item")

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_PLACE_OF_CORE = "{}"
_NUM_BUCKETS = 20
_HELD_OUT_BUCKETS: Mapping[int, Split] = {0: "dev", 1: "test"}


@final
@dataclass(frozen=True, slots=True)
class Template:
    """Text with slots, and the kind of value that fills them.

    Attributes:
        text: the text, with slots in braces.
        kind: "date" or "number".
        language: "en" or "zh"; a purely numeric date has the language in which it is most common.
        domain: the name of the set of values that may fill the slots; with other values the text would be
            ambiguous (a day-first 5/3/2021) or not what people write (廿 for a day below 20).
    """

    text: str
    kind: Kind
    language: Language
    domain: str


@final
@dataclass(frozen=True, slots=True)
class Family:
    """Family of templates: all combinations of its cores and carriers.

    Attributes:
        kind: "date" or "number".
        language: "en" or "zh".
        domain: the name of the set of values, as in `Template`.
        weight: frequency of the family, relative to the others of its kind and language; above 0.
        cores: texts that express the value, with slots.
        carriers: the words around a core; ``{}`` marks the place of the core.
        bare_share: probability that a core stands alone, without a carrier, in [0, 1].
    """

    kind: Kind
    language: Language
    domain: str
    weight: float
    cores: tuple[str, ...]
    carriers: tuple[str, ...] = ()
    bare_share: float = 0.5

    def templates(self) -> Iterator[Template]:
        """Yield every template of the family, each once.

        Yields:
            The bare cores first, unless `bare_share` is 0; then each carrier with each core.
        """
        frames = (*([_PLACE_OF_CORE] if self.bare_share > 0 else []), *self.carriers)
        for frame, core in itertools.product(frames, self.cores):
            yield self._template(frame, core)

    def draw(self, source: random.Random) -> Template:
        """Draw one template.

        Args:
            source: random number generator; two or three numbers are drawn.

        Returns:
            One of `templates`.
        """
        core = pick(source, self.cores)
        is_bare = source.random() < self.bare_share
        return self._template(_PLACE_OF_CORE if is_bare else pick(source, self.carriers), core)

    def _template(self, frame: str, core: str) -> Template:
        return Template(frame.replace(_PLACE_OF_CORE, core), self.kind, self.language, self.domain)


@final
class SlotTexts(dict[str, str], Generic[Value]):
    """Texts of the slots for one value, computed when a template needs them (``str.format_map``)."""

    def __init__(self, slots: Mapping[str, Callable[[Value], str]], value: Value) -> None:
        super().__init__()
        self._slots = slots
        self._value = value

    def __missing__(self, name: str) -> str:
        return self._slots[name](self._value)


def expand(*patterns: str) -> tuple[str, ...]:
    """Expand patterns with choices into all their texts.

    Args:
        patterns: texts in which ``[a|b|]`` stands for a, b or nothing; choices do not nest.

    Returns:
        Every text the patterns stand for, in order.

    Example:
        >>> expand("[on|by] {month_name} {day}[,|] {year}", "{year}")[:2]
        ('on {month_name} {day}, {year}', 'on {month_name} {day} {year}')
    """
    texts: list[str] = []
    for pattern in patterns:
        pieces = _CHOICE.split(pattern)  # plain text at even indices, choices at odd ones
        choices = [piece.split("|") if index % 2 else [piece] for index, piece in enumerate(pieces)]
        texts += map("".join, itertools.product(*choices))
    return tuple(texts)


def pick(source: random.Random, items: Sequence[Item]) -> Item:
    """Draw one item, each as likely as the others.

    Only `Random.random` is used, here and in all callers: it is the one method for which Python guarantees that a seed
    gives the same sequence in every version; `choice`, `randrange` and `shuffle` have changed.

    Args:
        source: random number generator; one number is drawn.
        items: the items, at least one.
    """
    return items[int(source.random() * len(items))]


def split_of(target: str) -> Split:
    """Return the split of a value, which depends on its canonical form alone.

    The canonical form is hashed with BLAKE2b into 20 buckets, of which one is "dev" and one "test". So no date and no
    number of dev or test occurs in training, whatever the seed.

    Args:
        target: the canonical form, such as "2021-03-05" or "-3.5".

    Example:
        >>> split_of("2021-03-05"), split_of("312")
        ('train', 'train')
    """
    digest = hashlib.blake2b(target.encode("utf-8"), digest_size=8).digest()
    return _HELD_OUT_BUCKETS.get(int.from_bytes(digest, "big") % _NUM_BUCKETS, "train")
