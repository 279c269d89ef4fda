"""Random changes of training pairs: other segmentations, and terms in sources."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, final

import numpy as np

from heedful.data.batch import Position
from heedful.data.encoded import Ids
from heedful.data.resegmentation import Resegmentation
from heedful.data.term_offers import TermOffers

Change = Callable[[list[Ids]], list[Ids]]
"""Change of the sequences of one side of a batch."""


@final
@dataclass(frozen=True)
class RandomChanges:
    """Random changes of training pairs; a resumed training draws the same, because the position of a batch seeds them.

    Attributes:
        resegmentations: random segmentations of sources and of targets; None = none.
        terms: terms that are written into sources, before these are segmented again; None = none.
    """

    resegmentations: tuple[Resegmentation, Resegmentation] | None = None
    terms: TermOffers | None = None

    def at(self, position: Position, seed: int, indices: Ids) -> tuple[Change, Change] | None:
        """Seed the changes of a batch.

        Args:
            position: position of the batch in the training.
            seed: seed of the training.
            indices: [batch] indices of the pairs.

        Returns:
            Changes of the sources and of the targets for `make_batch`; None = no change.
        """
        if self.resegmentations is None and self.terms is None:
            return None
        source, target = _unchanged, _unchanged
        if self.resegmentations is not None:
            generator = np.random.default_rng((seed, *position))
            source, target = (partial(one, generator=generator) for one in self.resegmentations)
        if self.terms is None:
            return source, target
        offer = partial(self.terms, indices, generator=np.random.default_rng((seed, *position, 1)))
        return (lambda sequences: source(offer(sequences))), target


NO_CHANGES: Final = RandomChanges()


def _unchanged(sequences: list[Ids]) -> list[Ids]:
    return sequences
