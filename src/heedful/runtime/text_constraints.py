"""What outputs begin with, hold and do not hold, from text to the tokens that the search is asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from heedful.errors import UsageError
from heedful.search.constraints import Constraints, holds
from heedful.text.scripts import script_of
from heedful.text.tokenizer import SPACE_MARK, Tokenizer
from heedful.text.vocabulary import UNK

Tokens = tuple[int, ...]

_UNSPACED: Final = frozenset({"Han", "Kana", "Bopomofo", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan"})
"""Scripts whose words stand without spaces between them."""
_ANCHOR: Final = "\ue000"
"""For private use: no piece joins it with what follows."""


@final
@dataclass(frozen=True)
class TextConstraints:
    """What is asked of the wording of outputs; phrases are text.

    A phrase is looked for as the tokens that the model cuts it into by itself; a spelling that falls into other tokens,
    such as one with another capital or inside a longer word, is another phrase.

    Attributes:
        prefix: what each output begins with.
        required: phrases each output holds somewhere.
        banned: phrases no output holds.
    """

    prefix: str = ""
    required: Sequence[str] = ()
    banned: Sequence[str] = ()

    def demand(self, tokenizer: Tokenizer) -> Constraints:
        """Say it in tokens.

        Args:
            tokenizer: of the target side.

        Returns:
            What the search is asked for.

        Raises:
            UsageError: a phrase is blank, the vocabulary cannot write it, or one is both required and banned.
        """
        required = [_forms(tokenizer, phrase, "required phrase")[0] for phrase in self.required]
        banned = [_forms(tokenizer, phrase, "banned phrase") for phrase in self.banned]
        for phrase, tokens in zip(self.required, required, strict=True):
            for other, forms in zip(self.banned, banned, strict=True):
                if any(holds(tokens, form) for form in forms):
                    raise UsageError(f"required phrase {phrase!r} holds {other!r}, which is banned; leave one out")
        return Constraints(
            prefix=_written(tokenizer, self.prefix, "prefix") if self.prefix.strip() else (),
            required=required,
            banned=[form for forms in banned for form in forms],
        )


def _forms(tokenizer: Tokenizer, phrase: str, name: str) -> list[Tokens]:
    """The tokens of a phrase inside a sentence, then those at the beginning of a word where they are others.

    Raises:
        UsageError: it is blank, or cannot be written.
    """
    phrase = phrase.strip()
    at_start = _written(tokenizer, phrase, name)
    is_spaced = script_of(phrase[0]) not in _UNSPACED
    if is_spaced or not tokenizer.pieces(at_start[:1])[0].startswith(SPACE_MARK):
        return [at_start]
    inside = tuple(tokenizer.encode(_ANCHOR + phrase)[len(tokenizer.encode(_ANCHOR)) :])
    return [inside, at_start] if tokenizer.decode(inside) == tokenizer.decode(at_start) else [at_start]


def _written(tokenizer: Tokenizer, phrase: str, name: str) -> Tokens:
    if not phrase:
        raise UsageError(f"{name}: blank; give text, or leave it out")
    tokens = tuple(tokenizer.encode(phrase))
    if UNK in tokens:
        unknown = [piece for piece, token in zip(_cut(tokenizer, phrase), tokens, strict=False) if token == UNK]
        shown = f": {unknown[0]!r}" if unknown else ""
        raise UsageError(f"{name} {phrase!r}: the model's vocabulary has no token for part of it{shown}")
    return tokens


def _cut(tokenizer: Tokenizer, phrase: str) -> list[str]:
    text = tokenizer.normalize(phrase)
    words = [word for word in text.split(" ") if word]
    return words if len(words) == len(tokenizer.encode(phrase)) else list(text)
