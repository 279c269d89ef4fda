"""Summary of a comparison: figures of every row over its seeds, against the baseline, and by source length."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final, cast, final

import numpy as np

from heedful.comparison.run_result import ComparedItems, RunResult, differing_tokenizers
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
        key: a field of `RunResult`, or a key of `RunResult.measures`.
        title: heading as printed; {unit} stands for the noun of the units that training is counted in.
        digits: number of digits after the decimal point.
    """

    key: str
    title: str
    digits: int


COLUMNS: Final = (
    Column("num_parameters", "parameters", 0),
    Column("macro_f1", "macro-F1 %", 2),
    Column("attended", "facts attended %", 2),
    Column("perplexity", "perplexity", 2),
    Column("bleu_before_unknown", "BLEU before unknown replacement", 2),
    Column("aer", "AER %", 1),
    Column("attention_entropy", "weights' entropy", 2),
    Column("tokens_per_second", "{unit}/s", 0),
    Column("num_target_tokens", "{unit}", 0),
    Column("seconds", "seconds", 0),
)
"""All columns; a column for which no run has a figure is left out of the table."""


@final
@dataclass(frozen=True)
class Spread:
    """Mean and deviation of a figure over seeds.

    Attributes:
        mean: mean over the runs.
        deviation: standard deviation with n - 1; 0 where there is one run, None where a run's figure is not finite.
        num_runs: number of runs, 1 or more.
    """

    mean: float
    deviation: float | None
    num_runs: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Compute the mean and the deviation.

        Args:
            values: the figure of each run, at least one.

        Example:
            >>> Spread.of([1.0, 3.0])
            Spread(mean=2.0, deviation=1.4142135623730951, num_runs=2)
        """
        if not all(map(math.isfinite, values)):
            return cls(sum(values) / len(values), None, len(values))
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        return cls(float(np.mean(values)), deviation, len(values))


@final
@dataclass(frozen=True)
class RowSummary:
    """Row of the table.

    Attributes:
        name: name of the row.
        seeds: seeds of its runs, in order.
        scores: scores over seeds, by metric key.
        figures: other figures over seeds, by column key.
        interval: 95 % interval of the primary metric, over the outputs of all seeds together.
        difference: difference from the baseline in the primary metric, over the seeds that both rows have; None for
            the baseline itself and where the rows share no seed.
        by_length: primary metric by source length.

    Example:
        >>> table = heedful.compare("grid.toml", "de-en.tsv", minutes_per_run=5)  # doctest: +SKIP
        >>> [(row.name, round(row.scores["bleu"].mean, 1)) for row in table.rows]  # doctest: +SKIP
        [('no attention', 9.8), ('global (general)', 21.7)]
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
        title: title of the grid.
        baseline: name of the row that the others are compared with.
        metrics: metrics by key, in order; the first is the primary one.
        signatures: signatures of the metrics, by key.
        length_unit: unit of lengths, ``words`` or ``characters``.
        measured_side: what has these lengths: ``source``, or ``reference`` where sources are images.
        trained_unit: noun for the units that training is counted in.
        num_items: number of sources evaluated.
        rows: rows with a run, in the grid's order.
        missing: for each row without a run, the reason by its name.
        notes: caveats for the reader, a sentence each.
    """

    title: str
    baseline: str
    metrics: Mapping[str, Metric]
    signatures: Mapping[str, str]
    length_unit: str
    measured_side: str
    trained_unit: str
    num_items: int
    rows: tuple[RowSummary, ...]
    missing: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def metric(self) -> Metric:
        """Primary metric: the first of `metrics`."""
        return next(iter(self.metrics.values()))

    def columns(self) -> list[Column]:
        """Return the columns with a figure of at least one row."""
        return [
            replace(column, title=column.title.format(unit=self.trained_unit))
            for column in COLUMNS
            if any(column.key in row.figures for row in self.rows)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold; a number that is not finite becomes None."""
        facts = {
            "title": self.title,
            "baseline": self.baseline,
            "metrics": {
                key: {"name": each.name, "signature": self.signatures[key]} for key, each in self.metrics.items()
            },
            "length_unit": self.length_unit,
            "measured_side": self.measured_side,
            "num_items": self.num_items,
            "rows": [_row_dict(row) for row in self.rows],
            "missing": dict(self.missing),
            "notes": list(self.notes),
        }
        return cast(dict[str, Any], _finite(facts))


def _finite(value: object) -> object:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict() as members:
            return {key: _finite(member) for key, member in cast(dict[str, object], members).items()}
        case list() as members:
            return [_finite(member) for member in cast(list[object], members)]
        case _:
            return value


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
    items: ComparedItems,
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

    Intervals and p-values treat the seeds of a row together: the statistics of an item are summed over seeds, and items
    are resampled. They measure the effect of the choice of test sentences; the deviation over seeds measures the effect
    of random numbers in training.

    Args:
        items: sources and references that all rows are evaluated on.
        metric_keys: keys of the table of metrics, the primary one first; at least one.
        results: run results by row name, in the grid's order; rows without results are left out.
        baseline: name of the row that the others are compared with.
        missing: for each row that could not be run, the reason by its name.
        length_edges: source lengths at which a new range begins; empty for ranges of about equally many sources.
        num_resamples: number of resamples behind each interval, 1 or more.
        remarks: further notes for the reader, a sentence each.

    Raises:
        UsageError: there is no such metric, or the edges do not increase.
        MissingExtra: a metric needs sacreBLEU, which is not installed.
    """
    references = [list(texts) for texts in items.references]
    choice = choose_tokenizer(items.target_language, (text for texts in references for text in texts))
    metrics = {key: build_metric(key, Setting(choice.tokenizer)) for key in metric_keys}
    length_unit, lengths = text_lengths([texts[0] for texts in references] if items.are_images else items.sources)
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
        measured_side="reference" if items.are_images else "source",
        trained_unit=items.trained_unit,
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


def _notes(items: ComparedItems, results: Sequence[RunResult], rows: Sequence[RowSummary], baseline: str) -> list[str]:
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
