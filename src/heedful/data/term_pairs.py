"""Term pairs: words of the training pairs that translate each other, from which a model learns to use given terms.

Words are aligned by IBM model 2 in both directions. A term is a source phrase and a target phrase of at most three
words whose alignment links lead to each other only (Koehn, Och and Marcu 2003, N03-1017), and which neither begins nor
ends with one of the commonest words. A target word with one source word is given in a form that is drawn from its
forms, each with the same probability: the target words that translate the same source word and have the same stem
(`are_forms`). So the form that is given says little about the one that the sentence needs. This replaces the lemma of
Bergmanis and Pinnis 2021, arXiv:2101.10035, without a lemmatizer of the language.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, final

import numpy as np

from heedful.data.encoded import ENCODED, EncodedCorpus, Ids, write_encoded
from heedful.errors import FileRefused, NewerFormat, UsageError
from heedful.text.inline_terms import token_place
from heedful.text.links import Links
from heedful.text.marian import MarianTokenizer
from heedful.text.terms import is_word, unit_ranges, without_marks
from heedful.text.tokenizer import Tokenizer
from heedful.text.vocabulary import UNK
from heedful.text.word_alignment import align_pairs

TERMS: Final = "run/data/terms"
"""Folder of the term pairs, in the model folder."""
LONGEST: Final = 3
"""Largest number of words of a term."""
COMMON: Final = 0.1
"""Share of the pairs from which on a word that stands in them is too common for a term."""
MOST_PLACES: Final = 8_000_000
"""Largest number of source words times target words aligned at once; takes half a gigabyte of memory."""
NUM_FIELDS: Final = 3
"""Number of numbers that describe a term."""
STEM: Final = 3
"""Number of letters that forms of one word share at least."""
ENDING: Final = 4
"""Number of letters after the stem at most."""
FREQUENT: Final = 2
"""Number of links from which on a target word is no error of the alignment."""
RARE: Final = 20
"""Number of pairs that no word is too common in."""


@final
class _Words(NamedTuple):
    """Words of a text."""

    text: str
    ranges: list[tuple[int, int]]

    @classmethod
    def of(cls, tokenizer: Tokenizer, ids: Ids) -> "_Words":
        text = tokenizer.decode(ids[:-1].tolist())
        return cls(text, unit_ranges(text))

    def written(self, index: int) -> str:
        start, stop = self.ranges[index]
        return self.text[start:stop]

    def folded(self) -> list[str]:
        return [self.text[start:stop].casefold() for start, stop in self.ranges]


@final
class Phrases(NamedTuple):
    """Source and target phrases that translate each other."""

    source: tuple[int, int]
    """Index of the first word, and after the last one."""
    target: tuple[int, int]
    words: tuple[tuple[int, int], ...]
    """Links (source, target) of words that are linked to one word each."""


def find_phrases(links: Links) -> list[Phrases]:
    """Find the phrases of a pair whose links lead to each other only.

    Args:
        links: alignment links between source and target words.

    Returns:
        Phrases of at most `LONGEST` words, which begin and end with linked words.

    Example:
        >>> [one[:2] for one in find_phrases([(0, 1), (1, 0), (3, 3)])]
        [((0, 1), (1, 2)), ((0, 2), (0, 2)), ((1, 2), (0, 1)), ((3, 4), (3, 4))]
    """
    targets, sources = defaultdict[int, set[int]](set), defaultdict[int, set[int]](set)
    for source, target in links:
        targets[source].add(target)
        sources[target].add(source)
    phrases: list[Phrases] = []
    for start in sorted(targets):
        for stop in range(start + 1, start + LONGEST + 1):
            if stop - 1 not in targets:
                continue
            linked = set[int]().union(*(targets.get(index, ()) for index in range(start, stop)))
            first, last = min(linked), max(linked)
            back = set[int]().union(*(sources.get(index, ()) for index in range(first, last + 1)))
            if last - first < LONGEST and start <= min(back) and max(back) < stop:
                words = tuple(
                    (index, min(targets[index]))
                    for index in range(start, stop)
                    if len(targets.get(index, ())) == 1 and sources[min(targets[index])] == {index}
                )
                phrases.append(Phrases((start, stop), (first, last + 1), words))
    return phrases


@final
class _Forms:
    """Forms of the target words, by the source words that they translate."""

    def __init__(self) -> None:
        self._counts = defaultdict[str, Counter[str]](Counter)
        self._spellings = defaultdict[str, Counter[str]](Counter)

    def add(self, source: str, target: str) -> None:
        self._counts[source][target.casefold()] += 1
        self._spellings[target.casefold()][target] += 1

    def draw(self, source: str, target: str, generator: random.Random) -> str:
        """Form of a target word, each with the same probability: what is given says little about the one wanted."""
        word, counts = target.casefold(), self._counts[source]
        known = [form for form, number in counts.items() if number >= FREQUENT and are_forms(form, word)]
        form = generator.choice(known or [word])
        return self._spellings[form].most_common(1)[0][0]


def are_forms(word: str, other: str) -> bool:
    """Tell whether two words that translate the same word are forms of one.

    Returns:
        Whether they share at least half of the letters of the longer one, from the first one on, three at least and all
        but four. Accents do not matter.

    Example:
        >>> are_forms("rot", "roten"), are_forms("mann", "männer"), are_forms("geldbeutel", "geldbörse")
        (True, True, False)
    """
    word, other = without_marks(word), without_marks(other)
    longest, size = max(len(word), len(other)), min(len(word), len(other))
    shared = next((index for index in range(size) if word[index] != other[index]), size)
    return word == other or (shared >= STEM and longest <= min(2 * shared, shared + ENDING))


def store_terms(corpus: EncodedCorpus, tokenizers: tuple[Tokenizer, Tokenizer], folder: Path) -> int:
    """Find the terms of all training pairs, unless that is done already.

    Raises:
        UsageError: the tokenizer cannot locate words.
        NewerFormat: a newer heedful wrote the terms.
    """
    if any(isinstance(tokenizer, MarianTokenizer) for tokenizer in tokenizers):
        raise UsageError("training.term_share: the tokenizer of an imported model cannot locate words; leave it at 0")
    try:
        if (folder / TERMS / ENCODED).is_file():
            return _count(read_terms(folder, corpus))
    except NewerFormat:
        raise
    except FileRefused:
        pass  # found again
    longest = int(corpus.source.lengths.max(initial=0))
    write_encoded(folder / TERMS, _terms(corpus, tokenizers), max(longest + 1, len(tokenizers[0])))
    return _count(read_terms(folder, corpus))


def read_terms(folder: Path, corpus: EncodedCorpus) -> EncodedCorpus:
    """Read the terms of all training pairs.

    Returns:
        As the source of each pair, three numbers for each of its terms: first source token, place behind the last one,
        and number of tokens of the target words; as its target, these tokens.

    Raises:
        FileRefused: the files are damaged.
    """
    terms = EncodedCorpus.read(folder / TERMS)
    if len(terms) != len(corpus) or (terms.source.lengths % NUM_FIELDS).any():
        raise FileRefused(f"{folder / TERMS}: damaged: the terms are not of these pairs; delete the folder")
    return terms


def _count(terms: EncodedCorpus) -> int:
    return int(terms.source.lengths.sum()) // NUM_FIELDS


def _terms(corpus: EncodedCorpus, tokenizers: tuple[Tokenizer, Tokenizer]) -> Iterator[tuple[list[int], list[int]]]:
    def words(index: int) -> tuple[_Words, _Words]:
        return _Words.of(tokenizers[0], corpus.source[index]), _Words.of(tokenizers[1], corpus.target[index])

    phrases, forms = list[list[Phrases]]([[] for _ in range(len(corpus))]), _Forms()
    common = _common_words(words(index) for index in range(len(corpus)))
    sizes = corpus.source.lengths.astype(np.int64) @ corpus.target.lengths
    num_parts = 1 + int(sizes) // MOST_PLACES
    for part in range(num_parts):  # each part takes every n-th pair, so that all parts are alike
        indices = range(part, len(corpus), num_parts)
        sides = [words(index) for index in indices]
        linked = align_pairs([(one.folded(), other.folded()) for one, other in sides], "grow-diag", model="ibm2")
        for index, (source, target), links in zip(indices, sides, linked, strict=True):
            folded = source.folded()
            phrases[index] = [
                one
                for one in find_phrases(links)
                if _is_term(folded[slice(*one.source)], common[0])
                and _is_term(target.folded()[slice(*one.target)], common[1])
            ]
            for start, first in {word for one in phrases[index] for word in one.words}:
                forms.add(folded[start], target.written(first))
    for index, phrases_of_pair in enumerate(phrases):
        source, target = words(index)
        generator = random.Random(index)
        yield _encoded(phrases_of_pair, source, target, corpus.source[index], tokenizers[0], forms, generator)


def _encoded(
    phrases_of_pair: Sequence[Phrases],
    source: _Words,
    target: _Words,
    ids: Ids,
    tokenizer: Tokenizer,
    forms: _Forms,
    generator: random.Random,
) -> tuple[list[int], list[int]]:
    """Terms of one pair, in the form of `read_terms`."""
    fields, tokens = list[int](), list[int]()
    if not phrases_of_pair or tokenizer.encode(source.text) != ids[:-1].tolist():
        return fields, tokens
    ranges, folded = tokenizer.ranges(source.text), source.folded()
    for (start, stop), (first, last), words in phrases_of_pair:
        drawn = {one: forms.draw(folded[word], target.written(one), generator) for word, one in words}
        token_ids = tokenizer.encode(_given(target, first, last, drawn))
        if UNK not in token_ids:
            places = (
                token_place(ranges, source.ranges[start][0] + 1) - 1,
                token_place(ranges, source.ranges[stop - 1][1]),
            )
            fields += [*places, len(token_ids)]
            tokens += token_ids
    return fields, tokens


def _given(target: _Words, first: int, last: int, drawn: Mapping[int, str]) -> str:
    """Phrase of a target, whose words have the drawn forms."""
    begin = target.ranges[first][0]
    text = ""
    for index in range(first, last):
        start, stop = target.ranges[index]
        text += target.text[begin:start] + drawn.get(index, target.text[start:stop])
        begin = stop
    return text


def _common_words(pairs: Iterator[tuple[_Words, _Words]]) -> tuple[frozenset[str], frozenset[str]]:
    """Words of either side that stand in many pairs."""
    counts, num_pairs = (Counter[str](), Counter[str]()), 0
    for sides in pairs:
        num_pairs += 1
        for count, side in zip(counts, sides, strict=True):
            count.update(set(side.folded()))
    first, second = (
        frozenset(word for word, number in one.items() if number > max(RARE, COMMON * num_pairs)) for one in counts
    )
    return first, second


def _is_term(words: Sequence[str], common: frozenset[str]) -> bool:
    return all(map(is_word, words)) and words[0] not in common and words[-1] not in common
