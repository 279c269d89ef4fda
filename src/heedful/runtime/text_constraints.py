"""Text constraints: prefix, required and banned phrases as text, converted to token constraints for search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

from heedful.errors import UsageError
from heedful.search.constraints import Constraints, holds
from heedful.text.scripts import UNSPACED, script_of
from heedful.text.terms import Terms
from heedful.text.tokenizer import SPACE_MARK, Tokenizer
from heedful.text.vocabulary import UNK

Tokens = tuple[int, ...]

_ANCHOR: Final = "\ue000"
"""Private-use character put before a phrase; no subword piece contains both it and text after it."""


@final
@dataclass(frozen=True)
class TextConstraints:
    """Constraints on outputs, as text.

    A phrase is matched as the token sequence into which the tokenizer splits it. The same phrase with other tokens, for
    example with another capitalisation or inside a longer word, does not match.

    Attributes:
        prefix: beginning of each output.
        required: phrases that each output contains.
        banned: phrases that no output contains.
        terms: terms whose target forms the outputs of their sources contain.
        bind_terms: whether terms are constraints even for a model that was trained to inflect them.
    """

    prefix: str = ""
    required: Sequence[str] = ()
    banned: Sequence[str] = ()
    terms: Terms | None = None
    bind_terms: bool = False

    def encode(self, tokenizer: Tokenizer) -> Constraints:
        """Convert the constraints to tokens.

        Args:
            tokenizer: tokenizer of the target side.

        Returns:
            Token constraints for search.

        Raises:
            UsageError: a phrase is blank or has unknown tokens, or a required phrase contains a banned one.
        """
        required = [_forms(tokenizer, phrase, "required phrase")[0] for phrase in self.required]
        banned = [_forms(tokenizer, phrase, "banned phrase") for phrase in self.banned]
        for phrase, tokens in zip(self.required, required, strict=True):
            for other, forms in zip(self.banned, banned, strict=True):
                if any(holds(tokens, form) for form in forms):
                    raise UsageError(f"required phrase {phrase!r} contains {other!r}, which is banned; leave one out")
        return Constraints(
            prefix=_written(tokenizer, self.prefix, "prefix") if self.prefix.strip() else (),
            required=required,
            banned=[form for forms in banned for form in forms],
        )

    def of_sources(self, tokenizer: Tokenizer, inflects_terms: bool = False) -> "SourceConstraints":
        """Convert the constraints to tokens, with those of single sources.

        Args:
            tokenizer: tokenizer of the target side.
            inflects_terms: whether the model was trained to use terms that are written into sources.

        Returns:
            Token constraints by source.

        Raises:
            UsageError: as `encode`; or a target form of a term has unknown tokens, or contains a banned phrase.
        """
        terms = self.terms.terms if self.terms else ()
        phrases = {one.target: _forms(tokenizer, one.target, "target form of a term")[0] for one in terms}
        replace(self, required=[*self.required, *phrases], terms=None).encode(tokenizer)  # refuses banned ones
        offers = inflects_terms and self.terms is not None and not self.bind_terms
        return SourceConstraints(self.encode(tokenizer), self.terms, phrases, offers)


@final
@dataclass(frozen=True)
class SourceConstraints:
    """Token constraints of all sources, and of single ones by the terms in them.

    Attributes:
        general: constraints of all sources; its index is that of the first source.
        terms: terms to look for in the sources.
        phrases: tokens of each target form of a term.
        offers_terms: whether terms are written into sources before they are bound.
    """

    general: Constraints
    terms: Terms | None
    phrases: Mapping[str, Tokens]
    offers_terms: bool = False

    @property
    def strictest(self) -> Constraints:
        """Constraints of a source with all terms, which the engine must support."""
        return replace(self.general, required=[*self.general.required, *self.phrases.values()])

    def of(self, source: str, index: int) -> Constraints:
        """Return the constraints of one source.

        Args:
            source: text.
            index: index of the source from the first one.

        Returns:
            The constraints.
        """
        phrases = [self.phrases[term.target] for term in self.terms.match(source)] if self.terms else []
        required = [*self.general.required, *phrases]
        return replace(self.general, index=self.general.index + index, required=required)


def _forms(tokenizer: Tokenizer, phrase: str, name: str) -> list[Tokens]:
    """Token sequences of a phrase: inside unspaced text, if that differs, and at the beginning of a word.

    Raises:
        UsageError: the phrase is blank, or has unknown tokens.
    """
    phrase = phrase.strip()
    at_start = _written(tokenizer, phrase, name)
    is_spaced = script_of(phrase[0]) not in UNSPACED
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
