"""Random segmentations of encoded texts: in each epoch, other pieces of the same text.

A model that sees a word in several segmentations learns what its parts mean, and learns less by heart. Kudo 2018,
arXiv:1804.10959, draws from the unigram model; Provilkov et al. 2020, arXiv:1910.13267, leave merges out. Here pieces
are split again, which needs encoded texts only.
"""

from collections.abc import Sequence
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.data.encoded import Ids


@final
class Resegmentation:
    """Random splits of pieces; the parts of a split piece are split again with the same probability."""

    def __init__(self, splits: Ids, probability: float, longest: int) -> None:
        """Set the splits and their probability.

        Args:
            splits: [token, part] ids of the parts of each token, padded with 0; all 0 = not split.
            probability: probability that a piece is split, in [0, 1].
            longest: number of ids up to which a sequence may grow; one that would grow beyond it stays as it is.
        """
        self._splits: Final = splits
        self._num_parts: Final = np.count_nonzero(splits, axis=1)
        self._probability: Final = probability
        self._longest: Final = longest

    def __call__(self, sequences: Sequence[Ids], generator: np.random.Generator) -> list[Ids]:
        """Draw a segmentation of each sequence.

        Args:
            sequences: ids of each.
            generator: random numbers.

        Returns:
            Ids of the same texts.

        Cost: proportional to the number of ids, for each of the few rounds of splits.
        """
        lengths = [len(sequence) for sequence in sequences]
        ids = np.concatenate(sequences) if sequences else np.zeros(0, dtype=np.int32)
        rows = np.repeat(np.arange(len(sequences)), lengths)
        is_new = np.ones(len(ids), dtype=bool)
        while (split := self._drawn(ids, is_new, generator)).any():
            counts = np.where(split, self._num_parts[ids], 1)
            parts = self._splits[ids[split]]
            ids, rows, is_new = np.repeat(ids, counts), np.repeat(rows, counts), np.repeat(split, counts)
            ids[is_new] = parts[parts > 0]
        drawn = np.split(ids, np.searchsorted(rows, np.arange(1, len(sequences)))) if sequences else []
        return [new if len(new) <= self._longest else old for old, new in zip(sequences, drawn, strict=True)]

    def _drawn(self, ids: Ids, is_new: NDArray[np.bool_], generator: np.random.Generator) -> NDArray[np.bool_]:
        """[id] whether each id is split now."""
        open_to_split = is_new & (self._num_parts[ids] > 0)
        split = np.zeros(len(ids), dtype=bool)
        split[open_to_split] = generator.random(int(open_to_split.sum())) < self._probability
        return split
