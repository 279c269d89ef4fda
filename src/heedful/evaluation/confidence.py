"""Confidence report: how far probabilities that outputs are right can be trusted."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, final

import numpy as np

from heedful.evaluation.calibration import (
    Flags,
    area_gain,
    area_under_curve,
    expected_calibration_error,
    perfect_calibration_errors,
    risk_by_coverage,
)
from heedful.evaluation.interface import Matrix, References, Setting
from heedful.evaluation.metrics.table import build_metric
from heedful.evaluation.shown import Shown
from heedful.text.counts import counted

Criterion = Literal["exact_match", "chrf"]
LEAST_CHRF: Final = 60.0
"""chrF of a sentence against a reference, from 0 to 100, from which it counts as right."""
NUM_SAMPLES: Final = 1000
"""Number of resamples behind a p-value or an interval."""
COVERAGES: Final = (0.1, 0.25, 0.5, 0.75, 1.0)
"""Shares of answered sources whose risk is printed."""


@final
@dataclass(frozen=True)
class ConfidenceReport(Shown):
    """Report on the confidence of a model, on sources with references: how far it can be trusted."""

    criterion: Criterion
    num_items: int
    num_right: int
    calibration_error: float
    """Expected calibration error, in [0, 1]."""
    perfect_error: tuple[float, float]
    """95 % interval of the error that perfectly calibrated probabilities would have on as many outputs."""
    area: float
    """Area under the ROC curve of the confidence."""
    log_prob_area: float
    """The same of the log probability alone."""
    p_value: float
    """Two-sided p-value of their difference, by paired bootstrap resampling."""
    risks: tuple[float, ...]
    """Share of wrong outputs among the most confident 1, 2, 3 ... ones."""

    @staticmethod
    def of(
        probabilities: Matrix, log_probs: Matrix, right: Flags, criterion: Criterion, seed: int = 12345
    ) -> "ConfidenceReport":
        """Measure a confidence.

        Args:
            probabilities: [item] confidence of each output.
            log_probs: [item] log probability of each output.
            right: [item] whether each output is right.
            criterion: when an output is right.
        """
        gain, p_value = area_gain(probabilities, log_probs, right, NUM_SAMPLES, seed)
        area = area_under_curve(probabilities, right)
        low, high = np.quantile(perfect_calibration_errors(probabilities, NUM_SAMPLES, seed), (0.025, 0.975))
        return ConfidenceReport(
            criterion,
            len(right),
            int(right.sum()),
            expected_calibration_error(probabilities, right),
            (float(low), float(high)),
            area,
            area - gain,
            p_value,
            tuple(risk_by_coverage(probabilities, right).tolist()),
        )

    def risk(self, coverage: float) -> float:
        """Look up the risk of answering a share of the sources.

        Args:
            coverage: share of the sources, the most confident ones, in (0, 1].

        Returns:
            The share of wrong outputs among them.
        """
        return self.risks[max(1, round(coverage * self.num_items)) - 1]

    def to_text(self) -> str:
        """Write the report for a person.

        Returns:
            Lines that end in a newline.
        """
        wanted = "equal to a reference" if self.criterion == "exact_match" else f"chrF of {LEAST_CHRF:g} or more"
        share = 100 * self.num_right / self.num_items
        risks = ", ".join(f"{100 * coverage:g} %: {100 * self.risk(coverage):.1f} %" for coverage in COVERAGES)
        low, high = self.perfect_error
        return (
            f"confidence in {counted(self.num_items, 'output')}, {share:.1f} % right ({wanted})\n"
            f"  calibration error (ECE) {self.calibration_error:.3f}; on so many outputs, perfect calibration has "
            f"{low:.3f} to {high:.3f}\n"
            f"  area under the ROC curve {self.area:.3f}, of the log probability alone {self.log_prob_area:.3f} "
            f"(p = {self.p_value:.3f})\n"
            f"  wrong among the most confident {risks}\n"
        )

    def to_dict(self) -> dict[str, Any]:
        """List the figures.

        Returns:
            Values that JSON can hold; risks at `COVERAGES`.
        """
        chosen = {f"{coverage:g}": self.risk(coverage) for coverage in COVERAGES}
        return {**asdict(self), "risks": chosen}


def right_outputs(outputs: Sequence[str], references: References, criterion: Criterion) -> Flags:
    """Tell which outputs are right.

    Args:
        outputs: one for each source.
        references: at least one for each.
        criterion: when an output is right.

    Returns:
        [item] flags.
    """
    metric = build_metric(criterion, Setting())
    scores = metric.scores(metric.statistics(outputs, references))
    return scores >= (LEAST_CHRF if criterion == "chrf" else 50.0)
