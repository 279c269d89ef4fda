"""Term offers: random terms of training sources, other ones in each epoch."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, final

import numpy as np

from heedful.data.encoded import EncodedCorpus, Ids
from heedful.data.term_pairs import NUM_FIELDS
from heedful.text.inline_terms import InlineTerm, insert_terms

MOST_TERMS: Final = 4
"""Largest number of terms that a source is given at once."""
HIDDEN: Final = 0.5
"""Share of the terms whose source words are hidden, so that the model learns to read the term in their place."""


@final
class TermOffers:
    """Random terms, written into training sources."""

    def __init__(self, terms: EncodedCorpus, share: float, longest: int) -> None:
        """Set the terms and how many sources get some.

        Args:
            terms: result of `read_terms`.
            share: share of the sources that get terms, in [0, 1].
            longest: number of tokens up to which a source may grow; one that would grow beyond it gets no terms.
        """
        self._terms: Final = terms
        self._share: Final = share
        self._longest: Final = longest

    def __call__(self, indices: Ids, sources: Sequence[Ids], generator: np.random.Generator) -> list[Ids]:
        """Write random terms into sources, and hide the source words of some.

        Args:
            indices: index of the pair of each source; pairs beyond the last one with terms stay as they are.
            sources: tokens of each source.
            generator: random numbers.

        Returns:
            The sources, some of them with one to `MOST_TERMS` terms that do not overlap.
        """
        changed: list[Ids] = []
        for index, source in zip(indices.tolist(), sources, strict=True):
            is_given = generator.random() < self._share and index < len(self._terms)
            terms = self._drawn(index, generator) if is_given else []
            longer = np.array(insert_terms(source.tolist(), terms), dtype=np.int64) if terms else source
            changed.append(longer if len(longer) <= self._longest else source)
        return changed

    def _drawn(self, index: int, generator: np.random.Generator) -> list[InlineTerm]:
        fields, tokens = self._terms.source[index].reshape(-1, NUM_FIELDS), self._terms.target[index].tolist()
        parts = [*pairwise([0, *np.cumsum(fields[:, 2]).tolist()])]
        number = generator.integers(1, MOST_TERMS + 1)
        drawn: list[InlineTerm] = []
        occupied = set[int]()
        for row in generator.permutation(len(fields)).tolist():
            start, stop, _ = fields[row].tolist()
            if len(drawn) < number and occupied.isdisjoint(range(start, stop)):
                occupied.update(range(start, stop))
                num_hidden = stop - start if generator.random() < HIDDEN else 0
                drawn.append(InlineTerm(stop, tuple(tokens[slice(*parts[row])]), num_hidden))
        return drawn
