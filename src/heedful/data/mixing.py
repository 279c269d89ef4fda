"""Older pairs that a training mixes in, so that a trained model forgets less."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final, final

import numpy as np

from heedful.data.batching import LengthSampler, PairBatch, make_batch
from heedful.data.corpus import Pair, PairFile
from heedful.data.corpus_filter import CorpusFilter
from heedful.data.encoded import ENCODED, EncodedCorpus, EncodedSide, Ids, write_encoded
from heedful.data.random_changes import NO_CHANGES, RandomChanges
from heedful.errors import DataError, FileRefused, NewerFormat
from heedful.text.encoding import encode_text
from heedful.text.tokenizer import TextConfig, Tokenizer
from heedful.text.vocabulary import EOS

MIX: Final = "run/data/mix"
"""Folder of the encoded older pairs, in the model folder."""
MOST_MIXED: Final = 200_000
"""Largest number of older pairs; of more, a fixed random sample."""


def store_mix(file: PairFile, tokenizers: tuple[Tokenizer, Tokenizer], config: TextConfig, folder: Path) -> int:
    """Encode older pairs, unless that is done already.

    Args:
        file: the older pairs.
        tokenizers: of source and target.
        config: text settings.
        folder: the model folder.

    Returns:
        Number of encoded pairs.

    Raises:
        DataError: no pair can be used.
        NewerFormat: a newer heedful encoded them.
    """
    try:
        if (folder / MIX / ENCODED).is_file():
            return len(EncodedCorpus.read(folder / MIX))
    except NewerFormat:
        raise
    except FileRefused:
        pass  # encoded again
    pairs = _sample(CorpusFilter(config.max_characters).apply(file))

    def encoded() -> Iterator[tuple[list[int], list[int]]]:
        for pair in pairs:
            source = [*encode_text(tokenizers[0], pair.source, config.split_sentences), EOS]
            target = [*tokenizers[1].encode(pair.target), EOS]
            if max(len(source), len(target)) <= config.longest:
                yield source, target

    (folder / MIX).mkdir(parents=True, exist_ok=True)
    write_encoded(folder / MIX, encoded(), max(map(len, tokenizers)))
    number = len(EncodedCorpus.read(folder / MIX))
    if not number:
        raise DataError(f"{file.paths[0]}: no pair can be mixed in")
    return number


def _sample(pairs: Iterator[Pair]) -> list[Pair]:
    every = list(pairs)
    return every if len(every) <= MOST_MIXED else random.Random(0).sample(every, MOST_MIXED)


@final
class MixedSampler(LengthSampler[PairBatch]):
    """Batches of new and older pairs: an epoch has each new pair once, and older pairs that change with the epoch."""

    unit: ClassVar[str] = "tokens"

    def __init__(
        self,
        new: EncodedCorpus,
        older: EncodedCorpus,
        share: float,
        batch_tokens: int,
        seed: int,
        changes: RandomChanges = NO_CHANGES,
    ) -> None:
        """Join the pairs in memory.

        Args:
            new: new pairs.
            older: older pairs.
            share: share of older pairs among the pairs of an epoch, below 1.
            batch_tokens: as for `PairSampler`.
            seed: as for `PairSampler`.
            changes: as for `PairSampler`; terms are of the new pairs.
        """
        super().__init__(EncodedCorpus(*_joined(new, older)), batch_tokens, seed)
        self._changes: Final = changes
        self._num_new: Final = len(new)
        self._num_older: Final = min(len(older), round(len(new) * share / (1.0 - share)))

    def collect(self, indices: Ids) -> PairBatch:
        return make_batch(self.corpus, indices, self._changes.at(self.position, self._seed, indices))

    def select(self, generator: np.random.Generator) -> Ids:
        older = generator.choice(len(self.corpus) - self._num_new, self._num_older, replace=False)
        return np.concatenate([np.arange(self._num_new), self._num_new + np.sort(older)])


def _joined(new: EncodedCorpus, older: EncodedCorpus) -> tuple[EncodedSide, EncodedSide]:
    sides = (new.source, older.source), (new.target, older.target)
    first, second = (EncodedSide.of([side[i].tolist() for side in both for i in range(len(side))]) for both in sides)
    return first, second
