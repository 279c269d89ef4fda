"""Pictures of an evaluation: the score by source length, and risk by coverage."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.evaluation.confidence import ConfidenceReport
    from heedful.evaluation.report import Report


def draw_lengths(png: Path | None, reports: "Mapping[str, Report]") -> None:
    """Draw the first metric by source length.

    Args:
        png: the file; None = nothing is drawn.
        reports: by the name of the model; the second is the baseline, and dashed.

    Raises:
        UsageError: all sources are in one range of lengths.
    """
    if png is None:
        return
    from heedful.inspection.length_plot import Curve, save_length_plot

    results = {name: report.results[0] for name, report in reports.items()}
    first = next(iter(results.values()))
    if len(first.by_length) < 2:
        raise UsageError("evaluate: --png: too few sources, or of one length, to draw a score by length")
    curves = [
        Curve(
            name,
            tuple(bucket.score for bucket in result.by_length),
            tuple(bucket.interval.low for bucket in result.by_length),
            tuple(bucket.interval.high for bucket in result.by_length),
        )
        for name, result in results.items()
    ]
    ranges = [bucket.label for bucket in first.by_length]
    unit = next(iter(reports.values())).length_unit
    save_length_plot(png, curves, ranges, curves[-1].name if len(curves) > 1 else "", first.metric.name, unit)


def draw_risks(png: Path | None, confidence: "ConfidenceReport | None", title: str) -> None:
    """Draw how many outputs are wrong if only the most confident ones are given.

    Args:
        png: the file; None = nothing is drawn.
        confidence: of the outputs; None = it was not measured.
    """
    if png is None or confidence is None:
        return
    from heedful.inspection.risk_plot import save_risk_plot

    save_risk_plot(png, confidence.risks, title)
