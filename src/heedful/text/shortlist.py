"""Vocabulary shortlist: the target tokens that a search considers for a source, of a whole vocabulary.

The output layer of a decoder multiplies with the embedding of every target token, although few of them can occur in a
translation of a given source. L'Hostis et al. 2016, arXiv:1610.00072, and Jean et al. 2015, arXiv:1412.2007, section
3.2, take the most frequent target tokens and the most probable translations of each source token.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Self, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError
from heedful.text.vocabulary import EOS, UNK
from heedful.text.word_alignment import translation_probabilities

NUM_COMMON: Final = 1000
"""Number of the most frequent target tokens, which every source has."""
NUM_TRANSLATIONS: Final = 100
"""Largest number of translations of a source token."""
LEAST_PROBABILITY: Final = 1e-4
"""Least probability of a translation."""

Ids = Sequence[int]


@final
class Shortlist:
    """Candidate target tokens of every source."""

    def __init__(self, common: Ids, translations: Mapping[int, Ids]) -> None:
        """Create a shortlist.

        Args:
            common: target token ids that every source has.
            translations: target token ids by source token id.
        """
        self.common: Final = tuple(common)
        self.translations: Final = {source: tuple(targets) for source, targets in translations.items()}

    @classmethod
    def learn(cls, pairs: Sequence[tuple[Ids, Ids]]) -> Self:
        """Learn a shortlist from sentence pairs.

        Args:
            pairs: source token ids and target token ids.

        Returns:
            The `NUM_COMMON` most frequent target tokens, and of each source token the `NUM_TRANSLATIONS` most probable
            translations by IBM model 1. Equally frequent or probable tokens come in the order of their ids.

        Raises:
            DataError: there are no pairs.

        Cost: that of `translation_probabilities`.
        """
        counts = Counter(token for _, target in pairs for token in target)
        if not counts:
            raise DataError("shortlist: there are no pairs to learn it from")
        common = sorted(counts, key=lambda token: (-counts[token], token))[:NUM_COMMON]
        translations: dict[int, list[int]] = {}
        for source, probabilities in translation_probabilities(pairs).items():
            ranked = sorted(probabilities, key=lambda token: (-probabilities[token], token))[:NUM_TRANSLATIONS]
            translations[source] = [token for token in ranked if probabilities[token] >= LEAST_PROBABILITY]
        return cls(common, translations)

    def candidates(self, source_ids: Ids) -> NDArray[np.int64]:
        """Return the candidates of a source, or of a batch of sources.

        Args:
            source_ids: source token ids.

        Returns:
            Target token ids, ascending, each once.

        Example:
            >>> Shortlist([4], {7: [5, 9], 8: [5]}).candidates([8, 7, 6]).tolist()
            [4, 5, 9]
        """
        tokens = set(self.common)
        for source in source_ids:
            tokens.update(self.translations.get(source, ()))
        return np.array(sorted(tokens), dtype=np.int64)

    def of_batch(self, sources: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the candidates of a batch of sources, with the tokens that a search needs.

        Args:
            sources: [position] token ids of each source.

        Returns:
            Target token ids, UNK and EOS among them, ascending, each once.
        """
        ids = self.candidates(np.unique(np.concatenate(sources)).tolist())
        return np.union1d(ids, [UNK, EOS])
