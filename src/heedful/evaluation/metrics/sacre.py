"""Shared parts of the sacreBLEU metrics: import, statistics per item, scores of sums, signatures.

sacreBLEU's own functions count and score, so a score here is the one its command line prints, to the last digit.
Its interface for whole corpora is not used: it zips hypotheses with references and so scores transposed or cut-off
references without an error. None stands in for the missing references of an item that has fewer than others; an empty
string would count as a reference of length zero.
"""

from collections.abc import Sequence
from itertools import zip_longest
from types import ModuleType
from typing import Any

import numpy as np

from heedful.errors import MissingExtra
from heedful.evaluation.interface import Matrix, References, reference_count


def load_sacrebleu(purpose: str) -> ModuleType:
    """Import sacreBLEU's metrics.

    Args:
        purpose: name of the metric, for the error message.

    Returns:
        The module ``sacrebleu.metrics``.

    Raises:
        MissingExtra: sacreBLEU is not installed.
    """
    try:
        import sacrebleu.metrics
    except ImportError:
        raise MissingExtra("sacrebleu", "train", purpose) from None
    return sacrebleu.metrics


def sacre_statistics(scorer: Any, hypotheses: Sequence[str], references: References) -> Matrix:
    """Compute the statistics of each item with one of sacreBLEU's metrics.

    Args:
        scorer: a ``sacrebleu.metrics`` object.
        hypotheses: one text per item, at least one.
        references: at least one text per item.

    Returns:
        [item, statistic].
    """
    streams = list(zip_longest(*references))
    return np.array(scorer._extract_corpus_statistics(hypotheses, streams), dtype=np.float64)


def sacre_scores(scorer: Any, totals: Matrix) -> Matrix:
    """Compute scores from summed statistics with one of sacreBLEU's metrics.

    Args:
        scorer: a ``sacrebleu.metrics`` object.
        totals: [*batch, statistic].

    Returns:
        [*batch] scores.
    """
    # A loop, at about 10 microseconds a row: NumPy's exp and log may differ from math's in the last digit.
    rows = totals.reshape(-1, totals.shape[-1]).tolist()
    scores = [scorer._compute_score_from_stats(row).score for row in rows]
    return np.array(scores, dtype=np.float64).reshape(totals.shape[:-1])


def sacre_signature(scorer: Any, references: References) -> str:
    """Return sacreBLEU's signature.

    Args:
        scorer: a ``sacrebleu.metrics`` object.
        references: references of each item.

    Returns:
        Text such as ``nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0``.
    """
    count = reference_count(references)
    scorer.num_refs = -1 if count == "var" else int(count)
    return str(scorer.get_signature())
