"""Words of a text made of pieces, for pages: letters join letters, digits join digits, and all else stands alone.

Scripts that put no space between words, such as Chinese, keep their pieces. A space belongs to the word after it.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from heedful.text.token_labels import WORD_MARK
from heedful.text.vocabulary import EOS, SPECIAL_TOKENS

_INSIDE: Final = "'\u2019\u200c\u200d"
"""Characters that join letters: apostrophes, and the zero-width joiner and non-joiner."""
END_SIGN: Final = "\u23ce"  # ⏎
"""Label of EOS."""
START_SIGN: Final = "\u25b7"  # ▷
"""Label of the beginning of an output."""
ROOT_SIGN: Final = "\u27e8root\u27e9"  # ⟨root⟩
"""Label of the root of a tree."""


@final
@dataclass(frozen=True)
class Words:
    """Pieces of one text, and the words that they make."""

    pieces: tuple[str, ...]
    """Label of each piece, without the mark of a space; EOS as `END_SIGN`."""
    word_of: tuple[int, ...]
    """Index of the word of each piece, in non-decreasing order; EOS is a word of its own."""
    words: tuple[str, ...]

    @staticmethod
    def of(ids: Sequence[int], pieces: Sequence[str], are_words: bool = False) -> "Words":
        """Merge pieces into words.

        Args:
            ids: tokens, to recognise EOS.
            pieces: their texts; a leading ``▁`` or space stands for the space before a word. Where no space is marked
                and some are longer than a character, each is a word.
            are_words: whether each is a word in any case.

        Example:
            >>> Words.of([5, 6, 7, 8, 3], ["▁Haus", "tür", "▁20", "45", "</s>"]).words
            ('Haustür', '2045', '⏎')
            >>> Words.of([5, 6, 3], ["das", "Haus", "</s>"]).words
            ('das', 'Haus', '⏎')
        """
        plain = [
            piece for token, piece in zip(ids, pieces, strict=True) if token != EOS and piece not in SPECIAL_TOKENS
        ]
        has_spaces = any(WORD_MARK in piece or " " in piece for piece in plain)
        are_words = are_words or (not has_spaces and any(len(piece) > 1 for piece in plain))
        labels = [
            END_SIGN if token == EOS else piece.replace(WORD_MARK, " ")
            for token, piece in zip(ids, pieces, strict=True)
        ]
        word_of: list[int] = []
        texts: list[str] = []
        for index, label in enumerate(labels):
            before = labels[index - 1] if index else ""
            is_joined = bool(texts) and not are_words and (_joins(before, label) or not texts[-1].strip())
            if is_joined and label != END_SIGN:
                texts[-1] += label
            else:
                texts.append(label)
            word_of.append(len(texts) - 1)
        return Words(tuple(label.strip() or "\u2423" for label in labels), tuple(word_of), tuple(map(_shown, texts)))

    def after(self, label: str) -> "Words":
        """Put a word of one piece before the text, such as the root of a tree.

        Returns:
            The words, with it as the first.
        """
        word_of = (0, *(word + 1 for word in self.word_of))
        return Words((label, *self.pieces), word_of, (label, *self.words))

    def opened(self) -> "Words":
        """Open a text of one word: its pieces, such as letters, become the words.

        Returns:
            The pieces as words; a text of several words, or of none, as it is.

        Example:
            >>> Words.of([5, 6, 7, 3], ["c", "a", "t", "</s>"]).opened().words
            ('c', 'a', 't', '⏎')
        """
        if sum(word not in (END_SIGN, START_SIGN, ROOT_SIGN) for word in self.words) != 1:
            return self
        return Words(self.pieces, tuple(range(len(self.pieces))), self.pieces)

    def to_dict(self) -> dict[str, list[str] | list[int]]:
        """List the fields for JSON.

        Returns:
            Values that JSON can hold.
        """
        return {"pieces": list(self.pieces), "wordOf": list(self.word_of), "words": list(self.words)}


def _shown(text: str) -> str:
    return text.strip() or "\u2423"


def _joins(before: str, after: str) -> bool:
    """Whether two neighbouring pieces belong to one word."""
    if not before or not after:
        return False
    last, first = _kind(before[-1]), _kind(after[0])
    return last == first != "" or {last, first} in ({"letter", "inside"}, {"letter", "mark"})


def _kind(character: str) -> str:
    """Class of a character; empty for one that joins nothing."""
    if character in _INSIDE:
        return "inside"
    category = unicodedata.category(character)
    if category.startswith("M"):
        return "mark"
    if character.isalpha() and unicodedata.east_asian_width(character) not in "WF":
        return "letter"
    if category == "Nd":
        return "digit"
    return "space" if character.isspace() else ""
