"""Files of summaries: pairs whose targets are much shorter than their sources, and mostly of the words of these."""

from itertools import islice
from typing import Final

from heedful.data.corpus import PairFile
from heedful.data.corpus_filter import CorpusFilter
from heedful.data.prepare import SAMPLED_PAIRS
from heedful.evaluation.lead import are_summaries

SUMMARISED_CHARACTERS: Final = 100_000
"""Longest text that is cut and summarised."""


def longest_summary(file: PairFile) -> int:
    """Measure the longest target of a file of summaries.

    Returns:
        Its characters; 0 where targets are no summaries of their sources.

    Raises:
        DataError: the file is malformed.
    """
    pairs = [*islice(CorpusFilter(SUMMARISED_CHARACTERS).apply(file), SAMPLED_PAIRS)]
    if not are_summaries([pair.source for pair in pairs], [[pair.target] for pair in pairs]):
        return 0
    return max((len(pair.target) for pair in pairs), default=0)
