"""Older pairs that a training mixes in, so that a trained model forgets less."""

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, Final, NamedTuple, final

import numpy as np

from heedful.data.batching import LengthSampler, PairBatch, make_batch
from heedful.data.corpus import Pair, PairFile
from heedful.data.corpus_filter import CorpusFilter
from heedful.data.encoded import ENCODED, EncodedCorpus, EncodedSide, Ids, write_encoded
from heedful.data.prepare import PREPARED, EvaluationSet
from heedful.data.prepared_files import read_prepared
from heedful.data.random_changes import NO_CHANGES, RandomChanges
from heedful.errors import DataError, FileRefused, HeedfulError, NewerFormat
from heedful.files.formats import PREPARED_FORMAT
from heedful.files.records import write_facts
from heedful.text.counts import counted
from heedful.text.encoding import encode_text
from heedful.text.tokenizer import TextConfig, Tokenizer
from heedful.text.vocabulary import EOS

MIX: Final = "run/data/mix"
"""Folder of the encoded older pairs, in the model folder."""
MOST_MIXED: Final = 200_000
"""Largest number of older pairs; of more, a fixed random sample."""
_LEFT_OUT: Final = "left_out.json"
"""File of the number of pairs that were left out, beside the encoded ones."""


class Mix(NamedTuple):
    """Numbers of older pairs."""

    num_pairs: int
    """Encoded pairs."""
    num_left_out: int
    """Pairs that were left out because their sources are held out or corrected."""

    def lines(self, file: PairFile, share: float, num_new: int) -> list[str]:
        """Describe the pairs.

        Args:
            share: their wanted share of an epoch.
            num_new: number of new pairs.

        Returns:
            A line, and another if pairs were left out.
        """
        number = _num_mixed(num_new, self.num_pairs, share)
        percent = 100 * number / max(1, num_new + number)
        mixed = f"{file.describe()}: {self.num_pairs:,} older pairs, mixed in as {percent:.0f} % of an epoch"
        if number == self.num_pairs and percent < 100 * share - 0.5:
            mixed += f"; {100 * share:.0f} % would need more of them"
        left_out = f"{counted(self.num_left_out, 'older pair')} of held-out or corrected sources left out of training"
        return [mixed, left_out] if self.num_left_out else [mixed]


def store_mix(
    file: PairFile,
    tokenizers: tuple[Tokenizer, Tokenizer],
    config: TextConfig,
    folder: Path,
    left_out: Iterable[str] = (),
) -> Mix:
    """Encode older pairs, unless that is done already.

    Args:
        left_out: sources that a model is scored on or that are corrected, whose pairs are left out.

    Raises:
        DataError: no pair can be used.
        NewerFormat: a newer heedful encoded them.
    """
    counts = folder / MIX / _LEFT_OUT
    try:
        if (folder / MIX / ENCODED).is_file():
            # A training begun by an older heedful has no count.
            number = read_prepared(counts).get("num_pairs") if counts.is_file() else 0
            return Mix(len(EncodedCorpus.read(folder / MIX)), number if isinstance(number, int) else 0)
    except NewerFormat:
        raise
    except FileRefused:
        pass  # encoded again
    keys = {_key(source, tokenizers[0]) for source in left_out}
    every = [*CorpusFilter(config.max_characters).apply(file)]
    usable = [pair for pair in every if _key(pair.source, tokenizers[0]) not in keys]

    def encoded() -> Iterator[tuple[list[int], list[int]]]:
        for pair in _sample(usable):
            source = [*encode_text(tokenizers[0], pair.source, config.split_sentences), EOS]
            target = [*tokenizers[1].encode(pair.target), EOS]
            if max(len(source), len(target)) <= config.longest:
                yield source, target

    (folder / MIX).mkdir(parents=True, exist_ok=True)
    num_left_out = len(every) - len(usable)
    write_facts(counts, PREPARED_FORMAT, {"num_pairs": num_left_out})
    write_encoded(folder / MIX, encoded(), max(map(len, tokenizers)))
    number = len(EncodedCorpus.read(folder / MIX))
    if not number:
        number_of = f"{num_left_out:,} of {len(every):,}"
        reason = f"{number_of} have sources that are held out or corrected; " if num_left_out else ""
        raise DataError(f"{file.paths[0]}: no pair can be mixed in; {reason}give older pairs by --mix, or leave it out")
    return Mix(number, num_left_out)


def held_out_sources(folder: Path) -> list[str]:
    """List the sources that a model was validated and tested on.

    Returns:
        The sources; empty if the folder has none, as that of a packed or imported model.
    """
    try:
        facts = read_prepared(folder / "run/data" / PREPARED)
        return [source for name in ("dev", "test") for source in EvaluationSet.read(facts[name]).sources]
    except (HeedfulError, OSError, ValueError, KeyError, TypeError):
        return []


def _num_mixed(num_new: int, num_older: int, share: float) -> int:
    """Number of older pairs in an epoch."""
    return min(num_older, round(num_new * share / (1.0 - share)))


def _key(source: str, tokenizer: Tokenizer) -> str:
    return tokenizer.normalize(source).strip()


def _sample(pairs: list[Pair]) -> list[Pair]:
    return pairs if len(pairs) <= MOST_MIXED else random.Random(0).sample(pairs, MOST_MIXED)


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
        has_few_shapes: bool = False,
    ) -> None:
        """Join the pairs in memory.

        Args:
            share: share of older pairs among the pairs of an epoch, below 1.
            batch_tokens: as for `PairSampler`.
            seed: as for `PairSampler`.
            changes: as for `PairSampler`; terms are of the new pairs.
            has_few_shapes: as for `PairSampler`.
        """
        super().__init__(EncodedCorpus(*_joined(new, older)), batch_tokens, seed, has_few_shapes)
        self._changes: Final = changes
        self._num_new: Final = len(new)
        self._num_older: Final = _num_mixed(len(new), len(older), share)

    def collect(self, indices: Ids) -> PairBatch:
        return make_batch(self.corpus, indices, self._changes.at(self.position, self._seed, indices))

    def select(self, generator: np.random.Generator) -> Ids:
        older = generator.choice(len(self.corpus) - self._num_new, self._num_older, replace=False)
        return np.concatenate([np.arange(self._num_new), self._num_new + np.sort(older)])


def _joined(new: EncodedCorpus, older: EncodedCorpus) -> tuple[EncodedSide, EncodedSide]:
    sides = (new.source, older.source), (new.target, older.target)
    first, second = (EncodedSide.of([side[i].tolist() for side in both for i in range(len(side))]) for both in sides)
    return first, second
