"""Summary of a comparison: figures of every row over its seeds, against the baseline, and by source length."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, final

import numpy as np

from heedful.comparison.run_result import Items, RunResult, differing_tokenizers
from heedful.evaluation.bootstrap import Difference, Interval, paired_bootstrap, score_interval
from heedful.evaluation.by_length import Bucket, by_length, even_edges
from heedful.evaluation.interface import Matrix, Metric, Setting, corpus_score
from heedful.evaluation.language import choose_tokenizer, text_lengths
from heedful.evaluation.metrics.table import build_metric


@final
@dataclass(frozen=True)
class Column:
    """Column of the table beside the scores.

    Attributes:
        key: in findings: a field, or one of `RunResult.measures`.
        title: as printed.
        digits: after the decimal point.
    """

    key: str
    title: str
    digits: int


COLUMNS: Final = (
    Column("num_parameters", "parameters", 0),
    Column("perplexity", "perplexity", 2),
    Column("bleu_before_unknown", "BLEU before unknown replacement", 2),
    Column("aer", "AER %", 1),
    Column("attention_entropy", "weights' entropy", 2),
    Column("tokens_per_second", "target tokens/s", 0),
    Column("num_target_tokens", "target tokens", 0),
    Column("seconds", "seconds", 0),
)
"""All columns; one without a figure of any run is left out of the table."""


@final
@dataclass(frozen=True)
class Spread:
    """Mean and deviation of a figure over seeds.

    Attributes:
        mean: of the runs.
        deviation: standard deviation with n - 1; 0 where there is one run.
        num_runs: 1 or more.
    """

    mean: float
    deviation: float
    num_runs: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Compute the mean and the deviation.

        Args:
            values: at least one.

        Returns:
            The spread.

        Example:
            >>> Spread.of([1.0, 3.0])
            Spread(mean=2.0, deviation=1.4142135623730951, num_runs=2)
        """
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        return cls(float(np.mean(values)), deviation, len(values))


@final
@dataclass(frozen=True)
class RowSummary:
    """Row of the table.

    Attributes:
        name: of the row.
        seeds: of its runs, in order.
        scores: by metric key, over seeds.
        figures: by column key, over seeds.
        interval: 95 % interval of the first metric, of all seeds' outputs together.
        difference: from the baseline in the first metric, on the seeds both have; None for the baseline itself and
            where they share no seed.
        by_length: the first metric by source length.
    """

    name: str
    seeds: tuple[int, ...]
    scores: Mapping[str, Spread]
    figures: Mapping[str, Spread]
    interval: Interval
    difference: Difference | None
    by_length: tuple[Bucket, ...]


@final
@dataclass(frozen=True)
class Comparison:
    """Summary of all results of a grid so far.

    Attributes:
        title: of the grid.
        baseline: name of the row compared with.
        metrics: by key, in order; the first decides.
        signatures: of the metrics.
        length_unit: of source lengths, ``words`` or ``characters``.
        num_items: sources measured on.
        rows: those with a run, in the grid's order.
        missing: reasons by name of the rows without any.
        notes: what the reader should know, a sentence each.
    """

    title: str
    baseline: str
    metrics: Mapping[str, Metric]
    signatures: Mapping[str, str]
    length_unit: str
    num_items: int
    rows: tuple[RowSummary, ...]
    missing: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def metric(self) -> Metric:
        """Metric that decides."""
        return next(iter(self.metrics.values()))

    def columns(self) -> list[Column]:
        """Return the columns with a figure of at least one row."""
        return [column for column in COLUMNS if any(column.key in row.figures for row in self.rows)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold."""
        return {
            "title": self.title,
            "baseline": self.baseline,
            "metrics": {
                key: {"name": each.name, "signature": self.signatures[key]} for key, each in self.metrics.items()
            },
            "length_unit": self.length_unit,
            "num_items": self.num_items,
            "rows": [_row_dict(row) for row in self.rows],
            "missing": dict(self.missing),
            "notes": list(self.notes),
        }


def _row_dict(row: RowSummary) -> dict[str, Any]:
    return {
        "name": row.name,
        "seeds": list(row.seeds),
        "scores": {key: vars(spread) for key, spread in row.scores.items()},
        "figures": {key: vars(spread) for key, spread in row.figures.items()},
        "low": row.interval.low,
        "high": row.interval.high,
        "difference": row.difference.to_dict() if row.difference else None,
        "by_length": [bucket.to_dict() for bucket in row.by_length],
    }


def summarise(
    title: str,
    items: Items,
    metric_keys: Sequence[str],
    results: Mapping[str, Sequence[RunResult]],
    baseline: str,
    missing: Mapping[str, str],
    length_edges: Sequence[int] = (),
    num_resamples: int = 1000,
    seed: int = 12345,
    remarks: Sequence[str] = (),
) -> Comparison:
    """Summarise the results so far.

    The outputs of all seeds of a row are scored together where an interval or a p-value is wanted: item by item their
    statistics are added up, and items are resampled. That says how far the choice of test sentences matters; the
    deviation over seeds says how far the choice of random numbers does.

    Args:
        title: of the grid.
        items: what all rows were measured on.
        metric_keys: of the table of metrics, the first of which decides; at least one.
        results: by name of the row, in the grid's order; those without any are left out.
        baseline: name of the row that the others are compared with.
        missing: reasons by name of rows that could not be run.
        length_edges: source lengths at which a new range begins; empty for ranges of about equally many sources.
        num_resamples: behind each interval, 1 or more.
        seed: of the resamples.
        remarks: what else the reader should know, a sentence each.

    Returns:
        The table.

    Raises:
        UsageError: no such metric, or edges that do not increase.
        MissingExtra: a metric needs sacreBLEU, which is not installed.
    """
    references = [list(texts) for texts in items.references]
    choice = choose_tokenizer(items.target_language, (text for texts in references for text in texts))
    metrics = {key: build_metric(key, Setting(choice.tokenizer)) for key in metric_keys}
    length_unit, lengths = text_lengths(items.sources)
    edges = tuple(length_edges) or even_edges(lengths)
    metric = next(iter(metrics.values()))
    statistics = {
        name: {result.seed: metric.statistics(result.outputs, references) for result in runs}
        for name, runs in results.items()
        if runs
    }

    def line(name: str, runs: Sequence[RunResult]) -> RowSummary:
        own, first = statistics[name], next(iter(metrics))
        scores = {first: Spread.of([corpus_score(metric, matrix) for matrix in own.values()])}
        for key, other in metrics.items():
            if key != first:
                matrices = [other.statistics(result.outputs, references) for result in runs]
                scores[key] = Spread.of([corpus_score(other, matrix) for matrix in matrices])
        together = _together(own, own)
        return RowSummary(
            name=name,
            seeds=tuple(result.seed for result in runs),
            scores=scores,
            figures=_figures(runs),
            interval=score_interval(metric, together, num_resamples, seed),
            difference=None
            if name == baseline
            else _difference(metric, own, statistics.get(baseline, {}), num_resamples, seed),
            by_length=by_length(metric, together, lengths, edges, num_resamples, seed),
        )

    rows = tuple(line(name, results[name]) for name in statistics)
    signatures = {key: each.signature(references) for key, each in metrics.items()}
    return Comparison(
        title=title,
        baseline=baseline,
        metrics=metrics,
        signatures=signatures,
        length_unit=length_unit,
        num_items=len(items.sources),
        rows=rows,
        missing=missing,
        notes=(*remarks, *_notes(items, [result for runs in results.values() for result in runs], rows, baseline)),
    )


def _together(statistics: Mapping[int, Matrix], seeds: Mapping[int, Any]) -> Matrix:
    return reduce(np.add, [matrix for seed, matrix in statistics.items() if seed in seeds])


def _difference(
    metric: Metric, own: Mapping[int, Matrix], baseline: Mapping[int, Matrix], num_resamples: int, seed: int
) -> Difference | None:
    if not own.keys() & baseline.keys():
        return None
    return paired_bootstrap(metric, _together(own, baseline), _together(baseline, own), num_resamples, seed)


def _figures(runs: Sequence[RunResult]) -> dict[str, Spread]:
    figures: dict[str, Spread] = {}
    for column in COLUMNS:
        values = [getattr(result, column.key, result.measures.get(column.key)) for result in runs]
        known = [float(value) for value in values if value is not None]
        if known:
            figures[column.key] = Spread.of(known)
    return figures


def _notes(items: Items, results: Sequence[RunResult], rows: Sequence[RowSummary], baseline: str) -> list[str]:
    notes: list[str] = []
    if items.is_validation:
        notes.append("scores are on the validation set, on which models were chosen: give --test for a fair measure")
    if differing_tokenizers(results):
        notes.append("rows have different tokenizers, so their perplexities are of different tokens")
    if rows and baseline not in [row.name for row in rows]:
        notes.append(f"the baseline {baseline} has no run yet, so there are no differences")
    most = max((len(row.seeds) for row in rows), default=0)
    if most == 1:
        notes.append("one seed: what another choice of random numbers would change is not known")
    elif few := [row.name for row in rows if len(row.seeds) < most]:
        notes.append(f"fewer seeds than others so far: {', '.join(few)}")
    endings = sorted({result.ended for result in results})
    if len(endings) > 1:
        notes.append(f"training ended for different reasons: {'; '.join(endings)}")
    elif endings:
        notes.append(f"every training ended after {endings[0]}")
    devices = sorted({f"{result.device}, {result.versions}" for result in results})
    if len(devices) > 1:
        notes.append(f"runs were made in different places: {'; '.join(devices)}")
    return notes
