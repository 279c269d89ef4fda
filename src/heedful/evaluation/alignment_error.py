"""Alignment error rate, precision and recall of word alignments against manual ones.

A is the set of predicted links, S and P are the sure and the possible links of the manual alignment, S a subset of P;
all are counted over the whole corpus. Och and Ney 2003, J03-1002, section 2.3:
precision = |A and P| / |A|, recall = |A and S| / |S|, AER = 1 - (|A and S| + |A and P|) / (|A| + |S|).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from heedful.errors import DataError
from heedful.evaluation.bootstrap import Interval, score_interval
from heedful.evaluation.interface import Matrix, References, reference_count
from heedful.text.lines import read_lines
from heedful.text.links import GoldLinks, Links, parse_gold, parse_pharaoh, read_gold, read_numbered_gold

_LINK_A_LINE: Final = re.compile(r"SENT:.*|[0-9]+ [0-9]+ [0-9]+( .*)?")
_NUMBERED_LINE: Final = re.compile(r"([0-9]{1,9})\t(.*)")
_SAMPLED_LINES: Final = 20


@final
@dataclass(frozen=True)
class AlignmentErrorRate:
    """AER = 1 - (|A and S| + |A and P|) / (|A| + |S|), in per cent; 0 where both sets are empty.

    It has the interface of `Metric`, so `paired_bootstrap` and `by_length` accept it. Alignments are texts in Pharaoh
    notation, with possible links written ``0p0`` or ``0?0``. Statistics: |A and S|, |A and P|, |A|, |S|.

    Example:
        >>> counts = AlignmentErrorRate().statistics(["0-0 1-1"], [["0-0 1-2"]])
        >>> AlignmentErrorRate().scores(counts).tolist()
        [50.0]
    """

    name = "AER"
    unit = "%"
    higher_is_better = False

    def statistics(self, hypotheses: Sequence[str], references: References) -> Matrix:
        """Count links; see `Metric.statistics`.

        Args:
            hypotheses: an alignment per sentence, such as ``0-0 1-2``.
            references: one manual alignment per sentence, such as ``0-0 1p2``.

        Returns:
            [sentence, 4] counts.

        Raises:
            DataError: a text is not an alignment, or a sentence does not have exactly one manual alignment.
        """
        for number, texts in enumerate(references, 1):
            if len(texts) != 1:
                raise DataError(f"sentence {number}: {len(texts)} manual alignments; expected one")
        return count_links(
            [parse_pharaoh(text, where=f"alignment {number}") for number, text in enumerate(hypotheses, 1)],
            [parse_gold(texts[0], where=f"manual alignment {number}") for number, texts in enumerate(references, 1)],
        )

    def scores(self, totals: Matrix) -> Matrix:
        """Return the rate in per cent, 0 to 100; see `Metric.scores`."""
        right = totals[..., 0] + totals[..., 1]
        return 100 - _percent(right, totals[..., 2] + totals[..., 3])

    def signature(self, references: References) -> str:
        """Return the definition in sacreBLEU's style; see `Metric.signature`."""
        return f"nrefs:{reference_count(references)}|sure:among-possible|average:corpus|heedful:1"


def _percent(part: Matrix, whole: Matrix) -> Matrix:
    """Percentage 100 part / whole; 100 where the whole is empty, since no link is then wrong or missing."""
    return 100 * np.divide(part, whole, out=np.ones_like(whole), where=whole > 0)


_RATE: Final = AlignmentErrorRate()


@final
@dataclass(frozen=True)
class AlignmentScores:
    """Alignment scores of a corpus.

    Attributes:
        error_rate: AER in per cent.
        interval: 95 % interval of the error rate, from resampled sentences.
        precision: share of the predicted links that are possible links, in per cent; 100 where none was predicted.
        recall: share of the sure links that were predicted, in per cent; 100 where there are no sure links.
        num_sentences: number of sentences with manual alignments.
        num_links: number of predicted links.
        num_sure: number of sure links.
        num_resamples: number of resamples behind the interval.
        seed: seed of the resamples.
    """

    error_rate: float
    interval: Interval
    precision: float
    recall: float
    num_sentences: int
    num_links: int
    num_sure: int
    num_resamples: int
    seed: int

    def __str__(self) -> str:
        """Return the scores on one line."""
        sentences = f"{self.num_sentences:,} sentence{'' if self.num_sentences == 1 else 's'}"
        return (
            f"AER {self.error_rate:.1f} % ({self.interval.low:.1f} to {self.interval.high:.1f}), "
            f"precision {self.precision:.1f} %, recall {self.recall:.1f} %, {sentences}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values that JSON can hold."""
        plain = {key: value for key, value in vars(self).items() if key != "interval"}
        return {**plain, "low": self.interval.low, "high": self.interval.high}


def count_links(alignments: Sequence[Links], gold: Sequence[GoldLinks]) -> Matrix:
    """Count the links that alignments share with manual ones.

    Args:
        alignments: predicted links of each sentence; a link that is listed twice counts once.
        gold: the manual alignment of each sentence, in the same order.

    Returns:
        [sentence, 4] counts |A and S|, |A and P|, |A|, |S|.

    Raises:
        DataError: the numbers of alignments and manual alignments differ, or there are none.

    Example:
        >>> count_links([[(0, 0), (1, 1), (2, 1)]], [GoldLinks(sure=[(0, 0)], possible=[(0, 0), (1, 1)])]).tolist()
        [[1.0, 2.0, 3.0, 1.0]]
    """
    if len(alignments) != len(gold):
        raise DataError(f"{len(alignments)} alignments and {len(gold)} manual ones; they must be of the same sentences")
    if not gold:
        raise DataError("there is no manual alignment to compare with")
    rows: list[tuple[int, int, int, int]] = []
    for links, (sure_links, possible_links) in zip(alignments, gold, strict=True):
        predicted, sure = set(links), set(sure_links)
        possible = sure | set(possible_links)
        rows.append((len(predicted & sure), len(predicted & possible), len(predicted), len(sure)))
    return np.array(rows, dtype=np.float64)


def score_alignments(
    alignments: Sequence[Links], gold: Sequence[GoldLinks], num_resamples: int = 1000, seed: int = 12345
) -> AlignmentScores:
    """Score the word alignments of a corpus against manual ones.

    Args:
        alignments: predicted links of each sentence.
        gold: the manual alignment of each sentence, in the same order.
        num_resamples: number of resamples behind the 95 % interval, 1 or more.

    Returns:
        Error rate with its interval, precision and recall.

    Raises:
        DataError: the numbers of alignments and manual alignments differ, or there are none.
        UsageError: num_resamples is below 1.

    Example:
        >>> gold = [GoldLinks(sure=[(0, 0)], possible=[(0, 0), (1, 1)])]
        >>> print(score_alignments([[(0, 0), (1, 1), (2, 1)]], gold))
        AER 25.0 % (25.0 to 25.0), precision 66.7 %, recall 100.0 %, 1 sentence
    """
    statistics = count_links(alignments, gold)
    totals = statistics.sum(axis=0)
    return AlignmentScores(
        error_rate=float(_RATE.scores(totals)),
        interval=score_interval(_RATE, statistics, num_resamples, seed),
        precision=float(_percent(totals[1], totals[2])),
        recall=float(_percent(totals[0], totals[3])),
        num_sentences=len(gold),
        num_links=int(totals[2]),
        num_sure=int(totals[3]),
        num_resamples=num_resamples,
        seed=seed,
    )


def find_gold(path: Path, num_sentences: int, one_based: bool = False) -> dict[int, GoldLinks]:
    """Read manual alignments in whichever notation a file has.

    Three notations are recognised: a line for each sentence, such as ``0-0 1p2``; such lines after the 0-based number
    of the sentence and a tab, where only some sentences are aligned; or one link a line, as in `read_numbered_gold`,
    with sentences counted from 1, or from 0 in a file of ``SENT:`` lines that has a sentence 0.

    Args:
        path: the file, gzip or not.
        num_sentences: number of sentences of the corpus.
        one_based: whether words are counted from 1 in a file with a sentence a line.

    Returns:
        The sure and possible links between 0-based words, by 0-based sentence.

    Raises:
        DataError: the file has none of these notations, or belongs to another corpus.
    """
    first = next((line for line in islice(read_lines(path), _SAMPLED_LINES) if line.strip()), "")
    if _LINK_A_LINE.fullmatch(" ".join(first.split())):
        by_number = read_numbered_gold(path)
        base = 0 if first.lstrip().startswith("SENT") and 0 in by_number else 1
        gold = {number - base: links for number, links in by_number.items()}
    elif _NUMBERED_LINE.fullmatch(first):
        gold = _numbered_lines(path, one_based)
    else:
        gold = dict(enumerate(read_gold(path, one_based=one_based)))
        if len(gold) != num_sentences:
            raise DataError(f"{path}: {len(gold):,} lines for {num_sentences:,} pairs; it must have one for each")
    if not gold:
        raise DataError(f"{path}: holds no alignment")
    if (last := max(gold)) >= num_sentences or min(gold) < 0:
        raise DataError(f"{path}: aligns sentence {last + 1:,} of a corpus of {num_sentences:,} pairs")
    return gold


def gold_links(
    path: Path, pairs: Iterable[tuple[str, str]], one_based: bool = False, turned: bool = False
) -> dict[int, GoldLinks]:
    """Read the manual alignments of a corpus and check them against its words.

    Args:
        path: a file as for `find_gold`.
        pairs: source and target of each pair, with words separated by spaces.
        one_based: whether words are counted from 1 in a file with a sentence a line.
        turned: whether the links in the file are target-source.

    Returns:
        The sure and possible links between 0-based words, by 0-based pair.

    Raises:
        DataError: the file has no notation of `find_gold`, belongs to another corpus, or links words a pair lacks.
    """
    num_words = [(_count_words(source), _count_words(target)) for source, target in pairs]
    gold = find_gold(path, len(num_words), one_based)
    if turned:
        gold = {
            sentence: GoldLinks(*([(target, source) for source, target in side] for side in links))
            for sentence, links in gold.items()
        }
    check_gold(gold, {sentence: num_words[sentence] for sentence in gold}, str(path))
    return gold


def _count_words(text: str) -> int:
    return sum(word != "" for word in text.split(" "))


def _numbered_lines(path: Path, one_based: bool) -> dict[int, GoldLinks]:
    gold: dict[int, GoldLinks] = {}
    for number, line in enumerate(read_lines(path), 1):
        match = _NUMBERED_LINE.fullmatch(line)
        if match is None:
            raise DataError(f"{path}:{number}: {line[:40]!r}: expected the number of a sentence, a tab and its links")
        if int(match[1]) in gold:
            raise DataError(f"{path}:{number}: sentence {match[1]} is aligned once more; keep one")
        gold[int(match[1])] = parse_gold(match[2], one_based=one_based, where=f"{path}:{number}")
    return gold


def check_gold(gold: Mapping[int, GoldLinks], num_words: Mapping[int, tuple[int, int]], where: str) -> None:
    """Refuse manual alignments with word indices that a pair does not have.

    Args:
        num_words: numbers of source and target words by sentence.
        where: name of the file, for error messages.

    Raises:
        DataError: a link has such an index.
    """
    for sentence, links in gold.items():
        lengths = num_words[sentence]
        for source, target in links.possible:
            if source >= lengths[0] or target >= lengths[1]:
                raise DataError(
                    f"{where}: link {source}-{target} (from 0) leads out of the {lengths[0]} source and {lengths[1]} "
                    f"target words of pair {sentence + 1:,}; is it the other way round, or counted from 1?"
                )
