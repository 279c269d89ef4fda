"""Evaluation reports as values, as plain text and as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

from heedful.errors import UsageError, did_you_mean
from heedful.evaluation.bootstrap import Difference, Interval
from heedful.evaluation.by_length import Bucket
from heedful.evaluation.interface import Matrix, Metric
from heedful.evaluation.lead import Lead
from heedful.evaluation.shown import Shown


@final
@dataclass(frozen=True)
class Result:
    """Result of one metric.

    Attributes:
        key: key in the table of metrics.
        metric: the metric.
        score: score of all items together, in the metric's unit.
        interval: 95 % interval of the score.
        signature: definition of the score; equal signatures mean comparable scores.
        by_length: the score by source length.
        statistics: [item, statistic] matrix behind the scores; not part of the JSON.

    Example:
        >>> from heedful.evaluation.evaluate import evaluate
        >>> result = evaluate(["a quiet room"], [["a quiet room"]], ["ein ruhiger Raum"], ["chrf"])["chrf"]
        >>> result.score, result.interval.low
        (100.0, 100.0)
    """

    key: str
    metric: Metric
    score: float
    interval: Interval
    signature: str
    by_length: tuple[Bucket, ...]
    statistics: Matrix = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values that JSON can hold."""
        return {
            "metric": self.key,
            "name": self.metric.name,
            "score": self.score,
            "low": self.interval.low,
            "high": self.interval.high,
            "unit": self.metric.unit,
            "higher_is_better": self.metric.higher_is_better,
            "signature": self.signature,
            "by_length": [bucket.to_dict() for bucket in self.by_length],
        }


@final
@dataclass(frozen=True)
class Report(Shown):
    """Results of all metrics on one set of items.

    Attributes:
        num_items: number of hypotheses.
        num_references: number of references of all items together.
        length_unit: unit of the source lengths, ``words`` or ``characters``.
        results: one result per metric, in the order of the metrics given.
        notes: caveats about the data, a sentence each.
        num_resamples: number of resamples behind each interval.
        seed: seed of the resampling.
        items: fingerprint of sources and references; equal fingerprints mean equal items.
        lead: scores of the first words of each source, a baseline of summaries; None of other texts.

    Example:
        >>> from heedful.evaluation.evaluate import evaluate
        >>> evaluate(["a cat", "a hat"], [["a cat"], ["the hat"]], ["eine Katze", "der Hut"], ["exact_match"])
        <Report of 2 items: exact match 50.00>
    """

    num_items: int
    num_references: int
    length_unit: str
    results: tuple[Result, ...]
    notes: tuple[str, ...]
    num_resamples: int
    seed: int
    items: str
    lead: Lead | None = None

    def __repr__(self) -> str:
        scores = ", ".join(f"{result.metric.name} {result.score:.2f}" for result in self.results)
        return f"<Report of {_count(self.num_items, 'item')}: {scores}>"

    def __getitem__(self, key: str) -> Result:
        """Return the result of one metric.

        Args:
            key: key in the table of metrics, such as ``exact_match``, or the metric's name, such as ``exact match``.

        Raises:
            UsageError: the report has no result of that key.
        """
        for result in self.results:
            if key in (result.key, result.metric.name):
                return result
        raise UsageError(f"no {key!r} in this report{did_you_mean(key, [result.key for result in self.results])}")

    def scores(self) -> dict[str, float]:
        """Return the score of each metric by its key."""
        return {result.key: result.score for result in self.results}

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values that JSON can hold."""
        return {
            "num_items": self.num_items,
            "num_references": self.num_references,
            "num_resamples": self.num_resamples,
            "seed": self.seed,
            "items": self.items,
            "notes": list(self.notes),
            "length_unit": self.length_unit,
            "results": [result.to_dict() for result in self.results],
            "lead": None if self.lead is None else self.lead.to_dict(),
        }

    def to_text(self) -> str:
        """Return tables of the scores and of the scores by length, with notes; lines end in a newline."""
        head = f"{_count(self.num_items, 'item')}, {_count(self.num_references, 'reference')}\n\n"
        scores = [("metric", "score", "95 % interval", "best", "signature")]
        for result in self.results:
            best = "high" if result.metric.higher_is_better else "low"
            score = f"{result.score:.2f}{' %' if result.metric.unit == '%' else ''}"
            scores.append((result.metric.name, score, _interval(result.interval), best, result.signature))
        text = head + table(scores) + (f"\n{self.lead}\n" if self.lead else "")
        if self.results and len(self.results[0].by_length) > 1:
            text += f"\nby source length in {self.length_unit}\n" + table(self._length_rows())
        if self.notes:
            text += "\n" + "".join(f"note: {note}\n" for note in self.notes)
        return text

    def _length_rows(self) -> list[tuple[str, ...]]:
        rows = [("length", "items", *(result.metric.name for result in self.results))]
        for buckets in zip(*(result.by_length for result in self.results), strict=True):
            cells = [f"{bucket.score:.2f} {_interval(bucket.interval)}" for bucket in buckets]
            rows.append((buckets[0].label, str(buckets[0].num_items), *cells))
        return rows


def differences_to_text(differences: Sequence[Difference]) -> str:
    """Write the differences of a system from a baseline as a table.

    Args:
        differences: one per metric.

    Returns:
        Lines that end in a newline.
    """
    rows = [("metric", "score", "baseline", "difference", "95 % interval", "p", "verdict")]
    for difference in differences:
        scores = (f"{difference.score:.2f}", f"{difference.baseline_score:.2f}", f"{difference.difference:+.2f}")
        rows.append(
            (
                difference.metric,
                *scores,
                _interval(difference.interval),
                f"{difference.p_value:.3f}",
                difference.verdict(),
            )
        )
    return table(rows)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Align cells in columns two spaces apart: numbers and intervals right, texts and the first column left.

    Args:
        rows: rows of equal numbers of cells; the first row is the heading.

    Returns:
        Lines that end in a newline, without trailing blanks.

    Example:
        >>> print(table([("metric", "score"), ("BLEU", "9.10"), ("TER", "71.00")]), end="")
        metric  score
        BLEU     9.10
        TER     71.00
    """
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    numeric = [
        len(column) > 1 and all(cell[:1].isdigit() or cell[:1] in "+-[" for cell in column[1:]) for column in columns
    ]
    numeric[0] = False
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        for row in rows
    ]
    return "".join(line.rstrip() + "\n" for line in lines)


def _interval(interval: Interval) -> str:
    return f"[{interval.low:.2f}, {interval.high:.2f}]"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
