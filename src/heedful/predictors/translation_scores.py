"""Scores of a model that translates: of its outputs, of the references, and of its confidence."""

from dataclasses import dataclass
from typing import Any, Self, final

from heedful.evaluation.bootstrap import Difference
from heedful.evaluation.confidence import ConfidenceReport
from heedful.evaluation.shown import Shown
from heedful.predictors.perplexity import Perplexity
from heedful.predictors.translation import MeasuredTranslations
from heedful.text.counts import counted


@final
@dataclass(frozen=True)
class TranslationScores(Shown):
    """Scores of a model that translates, as `heedful evaluate` prints them."""

    outputs: MeasuredTranslations
    perplexity: Perplexity
    """Perplexity of the references."""
    confidence: ConfidenceReport | None = None
    """Calibration of the model's confidence; None = it was not measured."""

    def summary(self) -> str:
        """Summarise the scores of the outputs in a few lines."""
        return self.outputs.summary()

    def to_text(self) -> str:
        """Write all scores as tables.

        Returns:
            Lines that end in a newline.
        """
        terms = f"{self.outputs.terms}\n" if self.outputs.terms else ""
        return (
            f"{self.outputs.report.to_text()}\n{self._without_replacing()}{terms}"
            f"perplexity {self.perplexity.per_token:.3f} a target token ({self.perplexity.num_tokens:,}), "
            f"{self.perplexity.bits_per_character:.3f} bits a character\n"
            f"{self.confidence.to_text() if self.confidence else ''}"
        )

    def _without_replacing(self) -> str:
        """Scores without replacement of unknown words."""
        if self.outputs.unreplaced is None:
            return ""
        pairs = zip(self.outputs.unreplaced.results, self.outputs.report.results, strict=True)
        scores = ", ".join(f"{before.metric.name} {before.score:.2f} -> {after.score:.2f}" for before, after in pairs)
        return f"unknown words replaced in {counted(self.outputs.num_replaced, 'output')}: {scores}\n"

    def to_dict(self) -> dict[str, Any]:
        """List all scores.

        Returns:
            Values that JSON can hold.
        """
        facts = {
            **self.outputs.report.to_dict(),
            "perplexity": vars(self.perplexity),
            "seconds": self.outputs.seconds,
        }
        if self.outputs.terms is not None:
            facts["terms"] = vars(self.outputs.terms)
        if self.confidence is not None:
            facts["confidence"] = self.confidence.to_dict()
        if self.outputs.unreplaced is not None:
            facts |= {"num_replaced": self.outputs.num_replaced, "unreplaced": self.outputs.unreplaced.to_dict()}
        return facts

    def differences(self, baseline: Self, seed: int = 12345) -> tuple[Difference, ...]:
        """Compare the outputs; see `heedful.predictors.interface.Measured.differences`."""
        return self.outputs.differences(baseline.outputs, seed)
