"""Links between characters of a source and of its translation, from the attention between their tokens."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heedful.text.lexicon import Lexicon
from heedful.text.tag_placement import CharacterLink, words

_WEIGHT_POWER: Final = 0.5
"""Exponent of the attention where a lexicon speaks too."""
_LEAST_WEIGHT: Final = 0.01
_LEAST_ASSOCIATION: Final = 0.02
"""Added to associations, so that words which the lexicon lacks are linked by attention alone."""
_SPACE_MARK: Final = "▁"
_LEAST: Final = 0.02
"""Smallest share of a word's attention that makes a link."""
_SAME: Final = 5.0
"""Factor of the weight between equal words, such as names and numbers."""
_UNLIKE: Final = 0.1
"""Factor of the weight between a word and a punctuation mark."""


def attention_links(
    source: str,
    target: str,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    weights: NDArray[np.floating],
    lexicon: Lexicon | None = None,
) -> list[CharacterLink]:
    """Link the words of a translation to those of its source.

    Weights are averaged over the tokens of a target word and summed over those of a source word, and each is multiplied
    by its share of what all target words give to that source word, so that words that all attend to a little count for
    little.

    Args:
        source_tokens: tokens of the source as the model read them; those that stand in no text, such as EOS, are left
            out.
        target_tokens: tokens of the translation.
        weights: [target token, source token] attention; further rows and columns are left out.
        lexicon: associations of words, which are multiplied by the square root of the attention; None = attention
            alone.

    Returns:
        Links with weights that sum to at most 1 for each target word.

    Example:
        >>> weights = np.array([[0.1, 0.9], [0.8, 0.2]])
        >>> links = attention_links("sehr rot", "red very", ["▁sehr", "▁rot"], ["▁red", "▁very"], weights)
        >>> [(link[:4], round(link.weight, 2)) for link in links if link.weight > 0.5]
        [((5, 8, 0, 3), 0.99), ((0, 4, 4, 8), 0.95)]
    """
    source_words, target_words = [*words(source, 0, len(source))], [*words(target, 0, len(target))]
    if not source_words or not target_words:
        return []
    rows = _words_of_tokens(target, target_tokens, target_words)[: len(weights)]
    columns = _words_of_tokens(source, source_tokens, source_words)[: weights.shape[1]]
    by_column = np.zeros((len(rows), len(source_words)))
    for token, word in enumerate(columns):
        if word >= 0:
            by_column[:, word] += weights[: len(rows), token]
    by_word = np.zeros((len(target_words), len(source_words)))
    counts = np.zeros((len(target_words), 1))
    for token, word in enumerate(rows):
        if word >= 0:
            by_word[word] += by_column[token]
            counts[word] += 1
    scores = by_word / np.maximum(counts, 1.0)
    if lexicon is not None:
        known = lexicon.associations(
            *(_in_lower_case(*side) for side in ((source, source_words), (target, target_words)))
        )
        scores = np.maximum(scores, _LEAST_WEIGHT) ** _WEIGHT_POWER * (known + _LEAST_ASSOCIATION)
    scores = scores * _likeness(source, target, source_words, target_words)
    scores = _shares(_shares(scores, axis=1) * _shares(scores, axis=0), axis=1)
    return [
        CharacterLink(*source_words[column], *target_words[row], float(scores[row, column]))
        for row, column in np.argwhere(scores >= _LEAST).tolist()
    ]


def lexical_links(source: str, target: str, lexicon: Lexicon) -> list[CharacterLink]:
    """Link the words of a translation to those of its source by a lexicon alone."""
    return attention_links(source, target, (), (), np.zeros((0, 0)), lexicon)


def moved_links(
    links: Iterable[CharacterLink], sources: Sequence[int], targets: Sequence[int]
) -> Iterator[CharacterLink]:
    """Move links to other forms of a source and of its translation.

    Args:
        links: links that enclose one character or more.
        sources: index in the other form of the source of each character.
        targets: index in the other form of the translation of each character.
    """
    for link in links:
        yield CharacterLink(
            sources[link.source_start],
            sources[link.source_end - 1] + 1,
            targets[link.target_start],
            targets[link.target_end - 1] + 1,
            link.weight,
        )


def _shares(weights: NDArray[np.floating], axis: int) -> NDArray[np.floating]:
    return weights / np.maximum(weights.sum(axis, keepdims=True), 1e-12)


def _likeness(
    source: str, target: str, source_words: Sequence[tuple[int, int]], target_words: Sequence[tuple[int, int]]
) -> NDArray[np.floating]:
    """[target word, source word] factors: words and punctuation marks rarely translate each other, equal words do."""
    left, right = _in_lower_case(source, source_words), _in_lower_case(target, target_words)
    unlike = np.array([[word.isalnum() for word in right]]).T != np.array([[word.isalnum() for word in left]])
    numbers = {word: number for number, word in enumerate(dict.fromkeys(left))}
    same = np.array([[numbers.get(word, -1) for word in right]]).T == np.array([[numbers[word] for word in left]])
    return np.where(unlike, _UNLIKE, 1.0) * np.where(same, _SAME, 1.0)


def _in_lower_case(text: str, text_words: Sequence[tuple[int, int]]) -> list[str]:
    return [text[start:end].lower() for start, end in text_words]


def _words_of_tokens(text: str, tokens: Sequence[str], text_words: Sequence[tuple[int, int]]) -> list[int]:
    """Index of the word in which each token begins; -1 for tokens that stand in no text."""
    match: list[int] = []
    offset = word = 0
    for token in tokens:
        surface = token.replace(_SPACE_MARK, " ").strip()
        start = text.find(surface, offset, offset + len(surface) + 16) if surface else -1
        if start < 0:
            match.append(-1)
            continue
        offset = start + len(surface)
        while word + 1 < len(text_words) and text_words[word][1] <= start:
            word += 1
        match.append(word)
    return match
