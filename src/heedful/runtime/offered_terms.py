"""Offered terms: terms of sources, written into them for a model that was trained to use and inflect such terms.

Where the best output has no form of a term, the source is searched again with the target form as a constraint.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol, final

import numpy as np

from heedful.runtime.text_constraints import SourceConstraints
from heedful.search.constraints import Constraints
from heedful.search.interface import Hypothesis, IntArray
from heedful.text.inline_terms import InlineTerm, insert_terms, token_place
from heedful.text.terms import Terms
from heedful.text.tokenizer import Tokenizer
from heedful.text.vocabulary import UNK


class Search(Protocol):
    """Search of the hypotheses of sources."""

    def __call__(
        self, sources: Sequence[IntArray], /, *, constraints: Sequence[Constraints]
    ) -> list[list[Hypothesis]]: ...


def with_terms(ids: IntArray, text: str, terms: Terms, tokenizer: Tokenizer, max_tokens: int) -> IntArray:
    """Write the terms of a source into it.

    Args:
        ids: [position] tokens of the source, EOS included.
        text: the source.
        terms: the term list.
        tokenizer: tokenizer of the source side, which can locate tokens.
        max_tokens: largest number of tokens of a source.

    Returns:
        [position] tokens of the source with its terms, in the order of their places as far as they fit. A term with
        unknown tokens is left out, and so are all where the source was cut or is not in NFC.
    """
    known = tokenizer.normalize(text.replace("\0", "\ufffd"))
    places = terms.find(known) if unicodedata.is_normalized("NFC", known) else []
    if not places or tokenizer.encode(known) != ids[:-1].tolist():
        return ids
    ranges = tokenizer.ranges(known)
    inline: dict[int, InlineTerm] = {}
    for place in places:
        token_ids = tuple(tokenizer.encode(place.term.target))
        one = InlineTerm(token_place(ranges, place.stop), token_ids)
        longer = insert_terms(ids.tolist(), [*inline.values(), one])
        if UNK not in token_ids and one.place not in inline and len(longer) <= max_tokens:
            inline[one.place] = one
    return np.array(insert_terms(ids.tolist(), inline.values()), dtype=np.int64)


@final
class TermSearch:
    """Search with offered terms, then with constraints for those that the best outputs do not have."""

    def __init__(self, demand: SourceConstraints, source: Tokenizer, target: Tokenizer, max_tokens: int) -> None:
        """Set the terms and the tokenizers.

        Args:
            demand: constraints, with a term list.
            source: tokenizer of the source side.
            target: tokenizer of the target side.
            max_tokens: largest number of tokens of a source.
        """
        self._demand: Final = demand
        self._source: Final = source
        self._target: Final = target
        self._max_tokens: Final = max_tokens

    def __call__(
        self, texts: Sequence[str], ids: Sequence[IntArray], constraints: Sequence[Constraints], search: Search
    ) -> tuple[list[IntArray], list[list[Hypothesis]]]:
        """Search the hypotheses of sources.

        Args:
            texts: the sources.
            ids: tokens of each, EOS included.
            constraints: constraints of each, without those of terms.
            search: the search.

        Returns:
            Tokens of the sources with their terms, and the hypotheses of each.
        """
        terms = self._demand.terms or Terms(())
        offered = [
            with_terms(one, text, terms, self._source, self._max_tokens) for one, text in zip(ids, texts, strict=True)
        ]
        found = search(offered, constraints=constraints)
        again: dict[int, Constraints] = {}
        for index, (text, hypotheses) in enumerate(zip(texts, found, strict=True)):
            output = self._target.decode(hypotheses[0].token_ids)
            missing = [term for term in terms.match(text) if not term.used(output)]
            if missing:
                phrases = dict.fromkeys(self._demand.phrases[term.target] for term in missing)
                required = [*constraints[index].required, *phrases]
                again[index] = replace(constraints[index], required=required)
        bound = search([offered[index] for index in again], constraints=[*again.values()]) if again else []
        for index, hypotheses in zip(again, bound, strict=True):
            found[index] = hypotheses
        return offered, found
