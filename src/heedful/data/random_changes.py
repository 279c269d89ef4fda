"""Random changes of training pairs: noise, other segmentations, and terms in sources."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from heedful.data.batch import Position
from heedful.data.encoded import Ids
from heedful.data.noise import Noise
from heedful.data.resegmentation import Resegmentation
from heedful.data.term_offers import TermOffers

Change = Callable[[list[Ids], list[Ids]], tuple[list[Ids], list[Ids]]]
"""Change of the sources and targets of a batch."""


@final
@dataclass(frozen=True)
class RandomChanges:
    """Random changes of training pairs; a resumed training draws the same, because the position of a batch seeds them.

    Attributes:
        resegmentations: random segmentations of sources and of targets; None = none.
        terms: terms that are written into sources without noise, before these are segmented again; None = none.
        noise: noise of texts, before all else; None = none.
    """

    resegmentations: tuple[Resegmentation, Resegmentation] | None = None
    terms: TermOffers | None = None
    noise: Noise | None = None

    def at(self, position: Position, seed: int, indices: Ids) -> Change | None:
        """Seed the changes of a batch.

        Args:
            indices: [batch] indices of the pairs.

        Returns:
            Change for `make_batch`; None = no change.
        """
        if self.resegmentations is None and self.terms is None and self.noise is None:
            return None

        def change(sources: list[Ids], targets: list[Ids]) -> tuple[list[Ids], list[Ids]]:
            if self.noise is not None:
                noisy = self.noise(sources, targets, np.random.default_rng((seed, *position, 2)))
            else:
                noisy = sources, targets
            if self.terms is not None and len(noisy[0]) == len(sources):
                offered = self.terms(indices, sources, np.random.default_rng((seed, *position, 1)))
                rows = zip(offered, sources, noisy[0], strict=True)
                noisy = [offer if same is one else one for offer, same, one in rows], noisy[1]
            if self.resegmentations is None:
                return noisy
            generator = np.random.default_rng((seed, *position))
            source, target = (one(side, generator) for one, side in zip(self.resegmentations, noisy, strict=True))
            return source, target

        return change


NO_CHANGES: Final = RandomChanges()
