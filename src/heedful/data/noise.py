"""Noise of training texts, as people write them: other case, typing errors, missing marks, several sentences on a line.

The kinds follow OpusTrainer and the recipe of Firefox Translations. A share of the pairs changes, in each epoch other
ones in another way, so that a model learns to read such texts.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, final

import numpy as np

from heedful.data.encoded import Ids
from heedful.text.tokenizer import Tokenizer
from heedful.text.vocabulary import EOS, UNK

JOINED: Final = 0.2
"""Share of the noise that joins pairs, by whole batches, so that a batch stays of pairs of similar length."""
_FOLDED: Final = str.maketrans(
    {
        "ä": "ae",
        "ö": "oe",
        "ü": "ue",
        "ß": "ss",
        "Ä": "Ae",
        "Ö": "Oe",
        "Ü": "Ue",
        "æ": "ae",
        "œ": "oe",
        "ø": "o",
        "ł": "l",
    }
    | dict(zip("áàâãåéèêëíìîïóòôõúùûñçčšžýřěůńøł", "aaaaaeeeeiiiioooouuunccszyreunol", strict=True))
)
_PLAIN: Final = str.maketrans("“”„«»‘’‚「」", '"' * 5 + "'" * 3 + '""')
_QUOTED: Final = str.maketrans({'"': "“", "'": "’"})
_FINAL: Final = ".!?…。！？"

Sides = tuple[str, str]
"""Source and target texts of a pair."""
Change = Callable[[str, str, np.random.Generator], Sides]


def _lower(source: str, target: str, generator: np.random.Generator) -> Sides:
    return source.lower(), target


def _title(source: str, target: str, generator: np.random.Generator) -> Sides:
    return " ".join(word[:1].upper() + word[1:] for word in source.split(" ")), target


def _shouted(source: str, target: str, generator: np.random.Generator) -> Sides:
    words = source.split(" ")
    for index in generator.integers(0, len(words), int(generator.integers(1, 4))).tolist():
        words[index] = words[index].upper()
    return " ".join(words), target


def _unended(source: str, target: str, generator: np.random.Generator) -> Sides:
    return source.rstrip(_FINAL) or source, target.rstrip(_FINAL) or target


def _mistyped(source: str, target: str, generator: np.random.Generator) -> Sides:
    """Two letters swapped, one left out, doubled or replaced by one of the same text, inside a word."""
    places = [
        index
        for index in range(1, len(source) - 1)
        if source[index - 1 : index + 2].isalpha() and source[index] < "\u2e80"
    ]
    if not places:
        return source, target
    position = places[int(generator.integers(len(places)))]
    one, other = source[position], source[position + 1]
    kind = int(generator.integers(5))
    another = source[places[int(generator.integers(len(places)))]].lower()
    written = (other + one, other + one, other, one + one + other, another + other)[kind]
    return source[:position] + written + source[position + 2 :], target


def _spaced(source: str, target: str, generator: np.random.Generator) -> Sides:
    spaces = [index for index, letter in enumerate(source) if letter == " "]
    if not spaces:
        return source, target
    position = spaces[int(generator.integers(len(spaces)))]
    return f"{source[:position]} {source[position:]}", target


def _requoted(source: str, target: str, generator: np.random.Generator) -> Sides:
    plain = source.translate(_PLAIN)
    return (plain if plain != source else source.translate(_QUOTED)), target


def _folded(source: str, target: str, generator: np.random.Generator) -> Sides:
    return source.translate(_FOLDED), target


CHANGES: Final[Mapping[str, tuple[Change, int]]] = {
    "lower case": (_lower, 4),
    "title case": (_title, 3),
    "words in upper case": (_shouted, 1),
    "no final mark": (_unended, 2),
    "typing error": (_mistyped, 4),
    "doubled space": (_spaced, 1),
    "other quotes": (_requoted, 1),
    "folded letters": (_folded, 4),
}
"""Changes of a source, and of its target where that has to follow, each with its weight in the draw."""


@final
class Noise:
    """Random changes of training pairs of subwords."""

    def __init__(self, tokenizers: tuple[Tokenizer, Tokenizer], share: float, longest: int) -> None:
        """Set how many pairs change.

        Args:
            tokenizers: of source and target, whose texts can be restored from tokens.
            share: share of the pairs that change, in [0, 1].
            longest: number of tokens up to which a text may grow; a pair that would grow beyond it stays as it is.
        """
        self._tokenizers: Final = tokenizers
        self._share: Final = share
        self._longest: Final = longest
        self._changes: Final = [change for change, weight in CHANGES.values() for _ in range(weight)]

    def __call__(
        self, sources: Sequence[Ids], targets: Sequence[Ids], generator: np.random.Generator
    ) -> tuple[list[Ids], list[Ids]]:
        """Change some pairs of a batch.

        Args:
            sources: tokens of each source, EOS included.
            targets: tokens of each target, EOS included.
            generator: random numbers.

        Returns:
            Sources and targets, fewer where pairs were joined; a text that did not change is the same array.
        """
        if generator.random() < JOINED * self._share:
            return self._joined(sources, targets, generator)
        pairs = list(zip(sources, targets, strict=True))
        is_changed = generator.random(len(pairs)) < (1.0 - JOINED) * self._share
        for row in np.flatnonzero(is_changed).tolist():
            pairs[row] = self._changed(pairs[row], generator)
        return [source for source, _ in pairs], [target for _, target in pairs]

    def _changed(self, pair: tuple[Ids, Ids], generator: np.random.Generator) -> tuple[Ids, Ids]:
        change = self._changes[int(generator.integers(len(self._changes)))]
        return self._encoded(change(*self._texts(pair), generator), pair)

    def _joined(
        self, sources: Sequence[Ids], targets: Sequence[Ids], generator: np.random.Generator
    ) -> tuple[list[Ids], list[Ids]]:
        """Pairs of a batch joined by twos and threes."""
        order = generator.permutation(len(sources)).tolist()
        joined: list[tuple[Ids, Ids]] = []
        while order:
            size = int(generator.integers(2, 4))
            rows, order = order[:size], order[size:]
            pairs = [(sources[row], targets[row]) for row in rows]
            texts = [self._texts(pair) for pair in pairs]
            sides = _sentences([source for source, _ in texts]), _sentences([target for _, target in texts])
            together = self._encoded(sides, pairs[0])
            joined += pairs if together is pairs[0] else [together]
        return [source for source, _ in joined], [target for _, target in joined]

    def _texts(self, pair: tuple[Ids, Ids]) -> Sides:
        source, target = (
            tokenizer.decode(ids[:-1].tolist()) for tokenizer, ids in zip(self._tokenizers, pair, strict=True)
        )
        return source, target

    def _encoded(self, sides: Sides, pair: tuple[Ids, Ids]) -> tuple[Ids, Ids]:
        """Tokens of changed texts; those of the pair where the texts are too long."""
        ids = [[*tokenizer.encode(text), EOS] for tokenizer, text in zip(self._tokenizers, sides, strict=True)]
        if any(len(one) > self._longest or len(one) == 1 or UNK in one for one in ids):
            return pair
        source, target = (np.array(one, dtype=pair[0].dtype) for one in ids)
        return source, target


def _sentences(texts: Sequence[str]) -> str:
    """Sentences on one line, with a space between them where the script has spaces."""
    written = texts[0]
    for text in texts[1:]:
        is_unspaced = bool(written and text) and written[-1] >= "\u2e80" and text[0] >= "\u2e80"
        written += text if is_unspaced else f" {text}"
    return written
