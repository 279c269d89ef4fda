"""Offered terms: terms of sources, written into them for a model that was trained to use and inflect such terms.

Where the best output has no form of a term, the source is searched again with the source words of the term hidden;
where that fails, with the stem of the target form as a constraint, so that the model can choose the ending, and at last
with the whole form.
"""

import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Protocol, final

import numpy as np

from heedful.engines.text_constraints import SourceConstraints
from heedful.search.constraints import Constraints
from heedful.search.interface import Hypothesis, IntArray
from heedful.text.inline_terms import InlineTerm, insert_terms, token_place
from heedful.text.terms import Term, Terms, split_units
from heedful.text.tokenizer import Tokenizer
from heedful.text.vocabulary import UNK

STEM: Final = 3
"""Number of letters of a stem at least."""
ENDING: Final = 4
"""Number of letters of an ending at most."""


class Search(Protocol):
    """Search of the hypotheses of sources."""

    def __call__(
        self, sources: Sequence[IntArray], /, *, constraints: Sequence[Constraints]
    ) -> list[list[Hypothesis]]: ...


def with_terms(
    ids: IntArray, text: str, terms: Terms, tokenizer: Tokenizer, max_tokens: int, hidden: Collection[Term] = ()
) -> IntArray:
    """Write the terms of a source into it.

    Args:
        ids: [position] tokens of the source, EOS included.
        tokenizer: tokenizer of the source side, which can locate tokens.
        max_tokens: largest number of tokens of a source.

    Returns:
        [position] tokens of the source with its terms, in the order of their places as far as they fit; as many for
        any hidden terms. A term with unknown tokens is left out, and so are all where the source was cut or is not in
    """
    known = tokenizer.normalize(text.replace("\0", "\ufffd"))
    matches = terms.find(known) if unicodedata.is_normalized("NFC", known) else []
    if not matches or tokenizer.encode(known) != ids[:-1].tolist():
        return ids
    ranges = tokenizer.ranges(known)
    inline: dict[int, InlineTerm] = {}
    for match in matches:
        token_ids = tuple(tokenizer.encode(match.term.target))
        stop = token_place(ranges, match.stop)
        # A token that two terms share is hidden once.
        start = max(token_place(ranges, match.start + 1) - 1, *inline, 0)
        one = InlineTerm(stop, token_ids, max(stop - start, 0) if match.term in hidden else 0)
        longer = insert_terms(ids.tolist(), [*inline.values(), one])
        if UNK not in token_ids and one.place not in inline and len(longer) <= max_tokens:
            inline[one.place] = one
    return np.array(insert_terms(ids.tolist(), inline.values()), dtype=np.int64)


@final
class TermSearch:
    """Search with offered terms; where the best outputs lack them, with hidden source words, then with constraints."""

    def __init__(self, constraints: SourceConstraints, source: Tokenizer, target: Tokenizer, max_tokens: int) -> None:
        """Set the terms and the tokenizers.

        Args:
            max_tokens: largest number of tokens of a source.
        """
        self._demand: Final = constraints
        self._source: Final = source
        self._target: Final = target
        self._max_tokens: Final = max_tokens
        self._stems: Final = {form: stem_tokens(target, form, ids) for form, ids in constraints.phrases.items()}

    def __call__(
        self, texts: Sequence[str], ids: Sequence[IntArray], constraints: Sequence[Constraints], search: Search
    ) -> tuple[list[IntArray], list[list[Hypothesis]]]:
        """Search the hypotheses of sources.

        Args:
            ids: tokens of each, EOS included.
            constraints: constraints of each, without those of terms.

        Returns:
            Tokens of the sources with their terms, and the hypotheses of each.
        """
        terms = self._demand.terms or Terms(())
        write = partial(with_terms, terms=terms, tokenizer=self._source, max_tokens=self._max_tokens)
        offered = [write(one, text) for one, text in zip(ids, texts, strict=True)]
        results = search(offered, constraints=constraints)
        places = [dict.fromkeys(terms.match(text)) for text in texts]
        # Hidden words show in no result: alignments are those of the source as it was given.
        sources = {
            index: write(ids[index], texts[index], hidden=lacking)
            for index, hypotheses in enumerate(results)
            if (lacking := self._lacking(places[index], hypotheses[0]))
        }
        searched = search([*sources.values()], constraints=[constraints[index] for index in sources]) if sources else []
        for index, hypotheses in zip(sources, searched, strict=True):
            results[index] = hypotheses
        for phrases in (self._stems, self._demand.phrases):
            again = {
                index: self._demand.requiring(required, constraints[index])
                for index in sources
                if (required := self._required(places[index], results[index][0], phrases))
            }
            searched = search([sources[index] for index in again], constraints=[*again.values()]) if again else []
            for index, hypotheses in zip(again, searched, strict=True):
                results[index] = hypotheses
        return offered, results

    def _lacking(self, terms: Iterable[Term], hypothesis: Hypothesis) -> list[Term]:
        """Terms that an output has in no form."""
        output = self._target.decode(hypothesis.token_ids)
        return [term for term in terms if not term.form_in(output)]

    def _required(
        self, terms: Iterable[Term], hypothesis: Hypothesis, phrases: Mapping[str, tuple[int, ...]]
    ) -> list[tuple[int, ...]]:
        """Phrases of the terms that an output lacks, and the tokens that it has for others; none if it has all."""
        output = self._target.decode(hypothesis.token_ids)
        forms = {term: term.form_in(output) for term in terms}
        if all(forms.values()):
            return []
        required = (
            tokens_of(self._target, form, hypothesis.token_ids) if form else phrases[term.target]
            for term, form in forms.items()
        )
        return [*dict.fromkeys(filter(None, required))]


def tokens_of(tokenizer: Tokenizer, words: str, token_ids: Sequence[int]) -> tuple[int, ...]:
    """Find the tokens of an output that are some of its words.

    Args:
        token_ids: tokens of the output.

    Returns:
        The first tokens that are these words and nothing else, as they stand in the output, where a word behind a quote
        or in a script without spaces may have other tokens than by itself; empty if a token goes on behind them.
    """
    for start in range(len(token_ids)):
        for stop in range(start + 1, len(token_ids) + 1):
            text = tokenizer.decode(token_ids[start:stop]).strip(" ")
            if text == words:
                return tuple(token_ids[start:stop])
            if not words.startswith(text):
                break
    return ()


def search_sources(
    constraints: SourceConstraints,
    tokenizers: tuple[Tokenizer, Tokenizer],
    max_tokens: int,
    texts: Sequence[str],
    ids: Sequence[IntArray],
    indices: Sequence[int],
    search: Search,
) -> tuple[list[IntArray], list[list[Hypothesis]]]:
    """Search the hypotheses of sources under constraints, with terms offered or bound.

    Args:
        max_tokens: largest number of tokens of a source.
        ids: tokens of each, EOS included.
        indices: index of each from the first source on.

    Returns:
        Tokens of the sources, with the terms that were offered, and the hypotheses of each.
    """
    if not constraints.offers_terms:
        bound = [constraints.of(text, index) for text, index in zip(texts, indices, strict=True)]
        return [*ids], search(ids, constraints=bound)
    general = replace(constraints, terms=None)
    free = [general.of(text, index) for text, index in zip(texts, indices, strict=True)]
    return TermSearch(constraints, *tokenizers, max_tokens)(texts, ids, free, search)


def stem_tokens(tokenizer: Tokenizer, target: str, token_ids: Sequence[int]) -> tuple[int, ...]:
    """Find the tokens of the stem of a word, to which other endings can be added.

    Args:
        token_ids: its tokens.

    Returns:
        The fewest first tokens that have `STEM` letters and half of the word at least, and leave out `ENDING` at most;
        all tokens of several words.
    """
    if len(split_units(target)) == 1:
        for number in range(1, len(token_ids)):
            size = len(tokenizer.decode(token_ids[:number]))
            if size >= max(STEM, len(target) / 2, len(target) - ENDING):
                return tuple(token_ids[:number])
    return tuple(token_ids)
