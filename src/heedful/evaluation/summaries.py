"""Files of summaries: pairs whose targets are much shorter than their sources, as words, headings or lengths tell.

Targets are mostly of the words of their sources, or have headings of summaries, or the sources are too long for other
trainings and many times as long as their targets.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final

from heedful.data.corpus import Pair, PairFile
from heedful.data.corpus_filter import CorpusFilter
from heedful.data.headings import HEADINGS
from heedful.data.prepare import SAMPLED_PAIRS
from heedful.evaluation.lead import are_summaries
from heedful.text.tokenizer import TextConfig

SUMMARISED_CHARACTERS: Final = 100_000
"""Longest text that is cut and summarised."""
_SUMMARISED: Final = frozenset("article document text paragraph body content story dialogue".split())
_SUMMARIES: Final = frozenset("summary highlights abstract".split())
"""Headings of summaries, of which the first of each group of translations stands for all, as for `_SUMMARISED`."""
_MANY: Final = 5
"""Ratio of the lengths of sources and targets from which on long sources are cut, whatever their targets say."""


def longest_summary(file: PairFile) -> int:
    """Measure the longest target of a file of summaries.

    Returns:
        Its characters; 0 where targets are no summaries of their sources.

    Raises:
        DataError: the file is malformed.
    """
    pairs = [*islice(CorpusFilter(SUMMARISED_CHARACTERS).apply(file), SAMPLED_PAIRS)]
    is_told = _are_named(file, pairs) or _are_cut(pairs)
    if not is_told and not are_summaries([pair.source for pair in pairs], [[pair.target] for pair in pairs]):
        return 0
    return max((len(pair.target) for pair in pairs), default=0)


def _are_named(file: PairFile, pairs: Sequence[Pair]) -> bool:
    """True for headings of texts and their summaries, where the texts are longer."""
    source, target = (HEADINGS.get(name, name) for name in (one.strip().casefold() for one in file.headings))
    return source in _SUMMARISED and target in _SUMMARIES and _ratio(pairs) > 1


def _are_cut(pairs: Sequence[Pair]) -> bool:
    """True where most sources are too long for other trainings, and many times as long as their targets."""
    most = TextConfig().max_characters
    return 2 * sum(len(pair.source) > most for pair in pairs) > len(pairs) and _ratio(pairs) >= _MANY


def _ratio(pairs: Sequence[Pair]) -> float:
    """Ratio of the lengths of sources and targets, in characters."""
    return sum(len(pair.source) for pair in pairs) / max(1, sum(len(pair.target) for pair in pairs))
