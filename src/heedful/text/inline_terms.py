"""Inline terms: target words of terms, written into a source behind the words that they translate.

The tokens of the target words stand between two marks, so that a model trained on such sources can tell them from the
source itself. The mark is BOS, which no text has: nothing that a user writes is taken for a term, and every tokenizer
and engine knows it. Dinu et al. 2019, arXiv:1906.01105, write the form that the reference has; Bergmanis and Pinnis
2021, arXiv:2101.10035, its lemma, so that the model learns to inflect it.

The source words of a term can be hidden: unknown tokens stand for them. Then only the term says what to write, and a
model cannot pass over it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, final

from heedful.text.tokenizer import Tokenizer
from heedful.text.vocabulary import BOS, UNK

MARK: Final = BOS
"""Token before and after the target words of a term."""


@final
class InlineTerm(NamedTuple):
    """Target words of one term, and their place in a source."""

    place: int
    """Number of source tokens before it."""
    token_ids: tuple[int, ...]
    """Target words, in tokens of the source side."""
    num_hidden: int = 0
    """Number of source tokens before its place that are hidden."""


def insert_terms(ids: Sequence[int], terms: Iterable[InlineTerm]) -> list[int]:
    """Write terms into a source.

    Args:
        ids: source tokens.
        terms: terms, whose places are all different.

    Returns:
        The source tokens, with each term between two marks.

    Example:
        >>> insert_terms([7, 8, 3], [InlineTerm(1, (9,))])
        [7, 2, 9, 2, 8, 3]
        >>> insert_terms([7, 8, 3], [InlineTerm(1, (9,), num_hidden=1)])
        [1, 2, 9, 2, 8, 3]
    """
    written: list[int] = []
    start = 0
    for stop, token_ids, num_hidden in sorted(terms):
        written += [*ids[start : stop - num_hidden], *[UNK] * num_hidden, MARK, *token_ids, MARK]
        start = stop
    return [*written, *ids[start:]]


def token_place(ranges: Sequence[tuple[int, int]], stop: int) -> int:
    """Find the place behind some characters among the tokens of a text.

    Args:
        ranges: characters of each token, as `Tokenizer.ranges` gives them.
        stop: index after the last of the characters.

    Returns:
        Number of tokens that begin before `stop`.

    Example:
        >>> token_place([(0, 2), (2, 4), (4, 9)], 3)
        2
    """
    return bisect_left([start for start, _ in ranges], stop)


def source_words(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int]:
    """Find the word of each token of a source with terms; a term belongs to the word before it.

    Args:
        ids: source tokens without EOS.

    Returns:
        0-based word indices, as `Tokenizer.word_indices` gives them for a source without terms.
    """
    plain: list[int] = []
    owners: list[int] = []
    is_term = False
    for token in ids:
        is_mark = token == MARK
        if not (is_mark or is_term):
            plain.append(token)
        is_term ^= is_mark
        owners.append(len(plain) - 1)
    words = tokenizer.word_indices(plain)
    return [words[owner] for owner in owners]
