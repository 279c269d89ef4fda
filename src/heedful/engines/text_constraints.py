"""Text constraints: prefix, required and banned phrases as text, converted to token constraints for search."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, final
from unicodedata import category

from heedful.errors import UsageError
from heedful.search.constraints import Constraints, holds
from heedful.text.scripts import UNSPACED, script_of
from heedful.text.terms import Terms
from heedful.text.tokenizer import SPACE_MARK, Tokenizer, UnitTokenizer
from heedful.text.vocabulary import SPECIAL_TOKENS, UNK

Tokens = tuple[int, ...]

_ANCHOR: Final = "\ue000"
"""Private-use character put before a phrase; no subword piece contains both it and text after it."""


@final
@dataclass(frozen=True)
class TextConstraints:
    """Constraints on outputs, as text.

    A phrase is matched as the token sequence into which the tokenizer splits it. The same phrase with other tokens, for
    example with another capitalisation or inside a longer word, does not match. A required phrase that ends in a word
    which the vocabulary has in one piece may get an ending (house, houses). Where the last word has several pieces, the
    model hardly knows it and would not stop there, so a word has to end.

    Attributes:
        prefix: beginning of each output.
        required: phrases that each output contains.
        banned: phrases that no output contains.
        terms: terms whose target forms the outputs of their sources contain.
        bind_terms: whether terms are constraints even for a model that was trained to inflect them.
        keep: regular expressions of spans of sources that the outputs keep as they are, beside those of
            `heedful.text.kept`.
    """

    prefix: str = ""
    required: Sequence[str] = ()
    banned: Sequence[str] = ()
    terms: Terms | None = None
    bind_terms: bool = False
    keep: Sequence[str] = ()

    def encode(self, tokenizer: Tokenizer) -> Constraints:
        """Convert the constraints to tokens.

        Raises:
            UsageError: a phrase is blank or has unknown tokens, or a required phrase contains a banned one.
        """
        required = [_forms(tokenizer, phrase, "required phrase")[0] for phrase in self.required]
        banned = [_banned_forms(tokenizer, phrase) for phrase in self.banned]
        for phrase, tokens in zip(self.required, required, strict=True):
            for other, forms in zip(self.banned, banned, strict=True):
                if any(holds(tokens, form) for form in forms):
                    raise UsageError(f"required phrase {phrase!r} contains {other!r}, which is banned; leave one out")
        whole = [tokens for tokens in required if _ends_in_pieces(tokenizer, tokens)]
        return Constraints(
            prefix=_written(tokenizer, self.prefix, "prefix") if self.prefix.strip() else (),
            required=required,
            banned=[form for forms in banned for form in forms],
            whole=whole,
            continuing=_continuing(tokenizer) if whole else (),
        )

    def of_sources(self, tokenizer: Tokenizer, inflects_terms: bool = False) -> "SourceConstraints":
        """Convert the constraints to tokens, with those of single sources.

        Args:
            inflects_terms: whether the model was trained to use terms that are written into sources.

        Raises:
            UsageError: as `encode`; or a target form of a term has unknown tokens (the message
                names its file and line), or contains a banned phrase.
        """
        terms = self.terms.terms if self.terms else ()
        phrases = {
            one.target: _forms(tokenizer, one.target, f"{one.origin}: target form" if one.origin else "target form")[0]
            for one in terms
        }
        # Refuses banned ones.
        strictest = replace(self, required=[*self.required, *phrases], terms=None).encode(tokenizer)
        offers = inflects_terms and self.terms is not None and not self.bind_terms
        return SourceConstraints(self.encode(tokenizer), strictest, self.terms, phrases, offers)


@final
@dataclass(frozen=True)
class SourceConstraints:
    """Token constraints of all sources, and of single ones by the terms in them.

    Attributes:
        general: constraints of all sources; its index is that of the first source.
        strictest: constraints of a source with all terms, which the engine must support.
        terms: terms to look for in the sources.
        phrases: tokens of each target form of a term.
        offers_terms: whether terms are written into sources before they are bound.
    """

    general: Constraints
    strictest: Constraints
    terms: Terms | None
    phrases: Mapping[str, Tokens]
    offers_terms: bool = False

    @cached_property
    def _whole(self) -> frozenset[Tokens]:
        """Phrases that end a word; a term list may have thousands, and each source looks for its own."""
        return frozenset(tuple(tokens) for tokens in self.strictest.whole)

    def of(self, source: str, index: int) -> Constraints:
        """Return the constraints of one source.

        Args:
            index: index of the source from the first one.
        """
        phrases = [self.phrases[term.target] for term in self.terms.match(source)] if self.terms else []
        return self.requiring(phrases, replace(self.general, index=self.general.index + index))

    def requiring(self, phrases: Iterable[Tokens], constraints: Constraints) -> Constraints:
        """Add required phrases.

        Args:
            phrases: tokens of target forms of terms, or of parts of them.
        """
        required = [*map(tuple, constraints.required), *phrases]
        whole = [tokens for tokens in required if tokens in self._whole]
        return replace(
            constraints, required=required, whole=whole, continuing=self.strictest.continuing if whole else ()
        )


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


def _banned_forms(tokenizer: Tokenizer, phrase: str) -> list[Tokens]:
    """Token sequences of a phrase, and those of the phrase beside punctuation, which are other tokens."""
    forms = _forms(tokenizer, phrase, "banned phrase")
    if isinstance(tokenizer, UnitTokenizer):
        return _beside_punctuation(tokenizer, forms[0]) if tokenizer.units == "words" else forms
    if script_of(phrase.strip()[0]) in UNSPACED:
        return forms
    # After a quotation mark or a bracket, no piece begins with a space.
    inside = tuple(tokenizer.encode(_ANCHOR + phrase.strip())[len(tokenizer.encode(_ANCHOR)) :])
    pieces = tokenizer.pieces(range(len(SPECIAL_TOKENS), len(tokenizer)))
    bare = (piece.removeprefix(SPACE_MARK) for piece in pieces)
    marks = (index for index, piece in enumerate(bare, len(SPECIAL_TOKENS)) if piece and _is_punctuation(piece))
    return [*forms, *((mark, *inside) for mark in marks)] if UNK not in inside else forms


def _beside_punctuation(tokenizer: UnitTokenizer, phrase: Tokens) -> list[Tokens]:
    """Token sequences of a phrase of words as it is, and beside punctuation, which belongs to the word before it."""
    tokens = tokenizer.vocabulary.tokens

    def beside(word: str, before: bool, after: bool) -> list[int]:
        parts = ((index, *tokens[index].partition(word)) for index in range(len(SPECIAL_TOKENS), len(tokens)))
        return [
            index
            for index, head, known, tail in parts
            if known and _is_punctuation(head + tail) and (before or not head) and (after or not tail)
        ]

    first, last = tokens[phrase[0]], tokens[phrase[-1]]
    if len(phrase) == 1:
        return [(index,) for index in beside(first, True, True)]
    ends = beside(last, False, True)
    return [(start, *phrase[1:-1], end) for start in beside(first, True, False) for end in ends]


def _is_punctuation(text: str) -> bool:
    return all(category(character).startswith("P") for character in text)


def _ends_in_pieces(tokenizer: Tokenizer, tokens: Tokens) -> bool:
    """Tell whether the last word of a phrase is of several pieces, in a script with spaces."""
    pieces = tokenizer.pieces(tokens)
    last = pieces[-1][-1:]
    is_started = pieces[0].startswith(SPACE_MARK) and not pieces[-1].startswith(SPACE_MARK)
    return is_started and last.isalnum() and script_of(last) not in UNSPACED


def _continuing(tokenizer: Tokenizer) -> Tokens:
    """Tokens that continue a word: those that begin with a letter or a digit."""
    pieces = tokenizer.pieces(range(len(tokenizer)))
    return tuple(index for index, piece in enumerate(pieces) if piece[:1].isalnum())


def _written(tokenizer: Tokenizer, phrase: str, name: str) -> Tokens:
    if not phrase:
        raise UsageError(f"{name}: blank; give text, or leave it out")
    tokens = tuple(tokenizer.encode(phrase))
    if UNK in tokens:
        unknown = [piece for piece, token in zip(_cut(tokenizer, phrase), tokens, strict=False) if token == UNK]
        shown = f": {unknown[0]!r}" if unknown else ""
        raise UsageError(
            f"{name} {phrase!r}: the model's vocabulary has no token for part of it{shown}; "
            "write it in other words, or leave it out"
        )
    return tokens


def _cut(tokenizer: Tokenizer, phrase: str) -> list[str]:
    text = tokenizer.normalize(phrase)
    words = [word for word in text.split(" ") if word]
    return words if len(words) == len(tokenizer.encode(phrase)) else list(text)
