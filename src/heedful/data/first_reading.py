"""First reading of a training file: its size, the pairs that it holds out, and a sample of the others, in one pass."""

from collections.abc import Iterator
from typing import Final, final

from heedful.data.corpus import Pair, PairFile
from heedful.data.corpus_filter import CorpusFilter
from heedful.data.prepared_tokenizers import TOKENIZER_LINES, sampled
from heedful.data.split import HELD_OUT_PAIRS, LEAST_TO_SPLIT, MIN_PAIRS, SourceSpread, Split
from heedful.data.split_positions import Part
from heedful.errors import DataError

_MOST_KEPT: Final = 8 * HELD_OUT_PAIRS
"""Number of pairs that may be held out from which on those that no longer are leave the memory."""


@final
class FirstReading:
    """Size and split of a training file, its held-out pairs, and a sample of its pairs."""

    def __init__(self, file: PairFile, max_characters: int, has_dev: bool, has_test: bool) -> None:
        """Read the file.

        Args:
            max_characters: longer texts are left out.
            has_dev: whether there is a file for validation.
            has_test: whether there is a file for testing.

        Raises:
            DataError: fewer than 10 usable pairs, too few different sources to split, or a malformed file.

        Cost: one pass; memory for `TOKENIZER_LINES` pairs, and 8 bytes for each further one.
        """
        self._max_characters: Final = max_characters
        self._has_files: Final = has_dev, has_test
        self._filter: Final = CorpusFilter(max_characters, keeps_repeats=True)
        self._outer: list[Pair] = []
        """Pairs that are held out if the rest of the file is short."""
        spread = SourceSpread()
        sample = sampled(spread.watch(self._watched(file)), TOKENIZER_LINES)
        self.report: Final = self._filter.report(file.notes)
        if self.report.num_different < MIN_PAIRS:
            raise DataError(
                f"{file.paths[0]}: {self.report.summary()}; training needs at least {MIN_PAIRS}: give more rows"
            )
        self.split: Final = self._split()
        spread.check(self.split, file.paths[0])
        self.sample: Final = [pair for pair in sample if self.split(pair) == "train"]
        """Training pairs from which tokenizers learn: all, or a fixed random sample of about `TOKENIZER_LINES`."""

    def held_out(self, part: Part) -> Iterator[Pair]:
        """Select the pairs of a part that is held out, each once; those of "train" if they are all in the sample.

        Yields:
            The pairs in the order of the file.
        """
        pairs = self.sample if part == "train" else self._outer
        # An item is scored once, however often it occurs.
        return CorpusFilter(self._max_characters).apply(pair for pair in pairs if self.split(pair) == part)

    def _split(self, least: int = 0) -> Split:
        return Split(max(least, self._filter.report().num_different), *self._has_files)

    def _watched(self, file: PairFile) -> Iterator[Pair]:
        # The share that is held out only falls as pairs are counted, so that a pair outside it is never held out.
        split, most = self._split(LEAST_TO_SPLIT), _MOST_KEPT
        for pair in self._filter.apply(file):
            if split(pair) != "train":
                self._outer.append(pair)
                if len(self._outer) > most:
                    split = self._split(LEAST_TO_SPLIT)
                    self._outer = [one for one in self._outer if split(one) != "train"]
                    most = max(_MOST_KEPT, 2 * len(self._outer))
            yield pair
