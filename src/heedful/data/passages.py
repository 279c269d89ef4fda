"""Passages: the facts of a story as one text, in which answers are spans; token ids, and texts of spans."""

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, final
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from heedful.text.scripts import UNSPACED, script_of
from heedful.text.stories import Story
from heedful.text.tokenizer import TextConfig, Tokenizer
from heedful.text.vocabulary import EOS

_WITHIN_NUMBERS: Final = ".,:'’"
"""Marks that do not end a number if a digit follows."""
_NO_EDGES: Final = UNSPACED | {"Hangul"}
Floats = NDArray[np.float32]
Ranges = tuple[tuple[int, int], ...]


@final
@dataclass(frozen=True)
class Passage:
    """Question and passage of a story as token ids."""

    ids: NDArray[np.int64]
    """[position] ids of the question, EOS, the passage, EOS."""
    text: str
    """The facts of the story, normalized, with a space between them."""
    ranges: Ranges
    """First character and the one after the last of each encoded token of the passage."""
    facts: Ranges
    """First character and the one after the last of each fact."""
    was_cut: bool
    """Whether question or passage exceeded the limit, so that their ends were left out."""

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Locate a span of tokens in the text.

        Args:
            first: index of its first token.
            last: index of its last token, not below `first`.

        Returns:
            Its first character and the one after its last, without white space around it. A word of which the span has
            a part belongs to it whole: tokens may be parts of words, and no answer is half a word.
        """
        start, end = self.ranges[first][0], self.ranges[last][1]
        span = self.text[start:end]
        if not span.strip():
            return end, end
        return _whole_words(self.text, start + len(span) - len(span.lstrip()), start + len(span.rstrip()))

    def locate(self, story: Story, tokenizer: Tokenizer) -> tuple[int, int] | None:
        """Find the answer of a story in the passage: as whole words, first in the supporting facts.

        Returns:
            Indices of the first and the last token, both that of EOS if the facts do not answer the question; None if
            the encoded passage does not have the answer.
        """
        if story.is_impossible:
            return len(self.ranges), len(self.ranges)
        answer = tokenizer.normalize(_spaced(story.answer))
        characters = _find(self.text, self.facts, answer, story.supporting, story.occurrence)
        if characters is None:
            return None
        start, end = characters
        inside = [index for index, (first, after) in enumerate(self.ranges) if first < end and after > start]
        return (inside[0], inside[-1]) if inside and self.ranges[-1][1] >= end else None

    def by_fact(self, weights: Floats) -> Floats:
        """Add up the weights of the tokens of each fact.

        Args:
            weights: [*, position] weights of tokens.

        Returns:
            [*, fact]; 0 for a fact that was left out.
        """
        # The space before a fact belongs to it.
        starts = np.array([max(0, first - 1) for first, _ in self.facts])
        owners = np.searchsorted(starts, [first for first, _ in self.ranges], side="right") - 1
        totals = np.zeros((*weights.shape[:-1], len(self.facts)), dtype=np.float32)
        for index, owner in enumerate(owners):
            totals[..., owner] += weights[..., index]
        return totals


def _whole_words(text: str, start: int, end: int) -> tuple[int, int]:
    """The span with the rest of the words and numbers at its edges."""
    while start > 0 and _is_within(text, start):
        start -= 1
    while end < len(text) and _is_within(text, end):
        end += 1
    return start, end


def _is_within(text: str, index: int) -> bool:
    """Tell whether a place between two characters is within a word, or within a number such as "1,947.5"."""
    kinds = [_kind(character) for character in text[max(0, index - 2) : index + 2]]
    before, after = kinds[min(2, index) - 1], kinds[min(2, index)]
    if before == after != "":
        return True
    precedes, follows = text[index - 1] in _WITHIN_NUMBERS, text[index] in _WITHIN_NUMBERS
    return (follows and kinds[-1] == before == "digit") or (precedes and kinds[0] == after == "digit")


def _kind(character: str) -> str:
    """Kind of characters that make words: letters with their marks, or digits; empty for others.

    Words of scripts without spaces have no edges that can be seen, and those of Korean end in particles.
    """
    general = category(character)[0]
    return "" if general not in "LMN" or script_of(character) in _NO_EDGES else "digit" if general == "N" else "letter"


def _spaced(text: str) -> str:
    """The text with single spaces for all white space."""
    return " ".join(text.split())


def _joined(facts: tuple[str, ...]) -> tuple[str, Ranges]:
    """The facts with a space between them, and the characters of each."""
    texts = [_spaced(fact) for fact in facts]
    ends = [*accumulate(len(text) + 1 for text in texts)]
    return " ".join(texts), tuple((end - 1 - len(text), end - 1) for text, end in zip(texts, ends, strict=True))


def _find(
    text: str, facts: Ranges, answer: str, supporting: tuple[int, ...], occurrence: int | None
) -> tuple[int, int] | None:
    """Characters of the answer in a text."""
    if answer and occurrence is not None:
        places = [match.span() for match in re.finditer(re.escape(answer), text)]
        if occurrence < len(places):
            return places[occurrence]
    regions = [*(facts[index] for index in supporting), (0, len(text))]
    for pattern in (rf"(?<!\w){re.escape(answer)}(?!\w)", re.escape(answer)):
        for start, end in regions:
            if answer and (match := re.compile(pattern).search(text, start, end)):
                return match.span()
    return None


def answer_place(story: Story) -> tuple[int, int] | None:
    """Find the answer of a story in its facts.

    Returns:
        The first character and the one after the last in the facts with a space between them; None if they do not have

    Example:
        >>> answer_place(Story(("Ada went home.",), "Where is Ada?", "home")), answer_place(Story((), "Where?", "home"))
        ((9, 13), None)
    """
    text, facts = _joined(story.facts)
    return _find(text, facts, _spaced(story.answer), story.supporting, story.occurrence)


def encode_passage(tokenizer: Tokenizer, story: Story, config: TextConfig) -> Passage:
    """Encode question and passage; a long question is cut to half of the limit, a long passage to the rest."""
    most = 16 * config.max_tokens
    texts = [tokenizer.normalize(_spaced(text).replace("\0", "\ufffd")) for text in (story.question, *story.facts)]
    question = tokenizer.encode(texts[0][:most]) if texts[0] else []
    text, facts = _joined(tuple(texts[1:]))
    passage = tokenizer.encode(text[:most]) if text else []
    ranges = tokenizer.ranges(text[:most]) if text else []
    question_ids = question[: max(0, config.max_tokens // 2 - 1)]
    room = max(0, config.max_tokens - len(question_ids) - 2)
    was_cut = len(question_ids) < len(question) or room < len(passage) or max(len(text), len(texts[0])) > most
    ids = np.array([*question_ids, EOS, *passage[:room], EOS], dtype=np.int64)
    return Passage(ids, text, tuple(ranges[:room]), facts, was_cut)
