"""Translations of texts, and the scores of many of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.corpus import PairFile
from heedful.data.prepare import EvaluationSet
from heedful.errors import DataError
from heedful.evaluation.report import Report
from heedful.text.links import format_pharaoh


@dataclass(frozen=True)
class Alternative:
    """One output for a source."""

    text: str
    log_prob: float
    """Of the whole output, in nats."""
    score: float
    """What outputs are ranked by: log_prob after the length penalty."""


@dataclass(frozen=True)
class Translation:
    """The best output for a source, and what is known of it."""

    source: str
    text: str
    log_prob: float
    score: float
    alternatives: tuple[Alternative, ...]
    """All outputs asked for, best first; the first is this one."""
    source_pieces: tuple[str, ...] = ()
    """Tokens of the source as the model saw them, eos included; where attention was asked for."""
    target_pieces: tuple[str, ...] = ()
    """Tokens of the output, eos included where the model ended it."""
    attention: NDArray[np.float32] | None = None
    """[target piece, source piece] weights."""
    alignment: tuple[tuple[int, int], ...] | None = None
    """Links (source word, target word), 0-based."""
    was_cut: bool = False
    """Whether the source was longer than the model takes, and its end left out."""
    unreplaced: str = ""
    """What `text` was before its unknown words were replaced; empty where none was."""

    def pharaoh(self) -> str:
        """Write the alignment as ``0-0 1-2``.

        Returns:
            Source-target links; empty where there are none.
        """
        return format_pharaoh(self.alignment or ())


@dataclass(frozen=True)
class MeasuredTranslations:
    """A model's outputs on an evaluation set, and their scores."""

    outputs: list[str]
    report: Report
    seconds: float
    """Seconds spent translating, the loading of the model left out."""
    beam: int
    num_replaced: int = 0
    """Number of outputs whose unknown words were replaced."""
    unreplaced: Report | None = None
    """The scores without that; None where nothing was replaced."""

    def summary(self) -> str:
        """Sum the scores up in a few lines.

        Returns:
            Lines that end in a newline.
        """
        lines = [f"test:  {self.report.num_items:,} sources, beam {self.beam}; 95 % intervals"]
        for result in self.report.results:
            unit = " %" if result.metric.unit == "%" else ""
            interval = f"[{result.interval.low:.2f}, {result.interval.high:.2f}]"
            lines.append(f"       {result.metric.name} {result.score:.2f}{unit} {interval} {result.signature}")
        return "".join(line + "\n" for line in lines)

    def to_text(self) -> str:
        """Write the report as tables.

        Returns:
            Lines that end in a newline.
        """
        return self.report.to_text()

    def to_dict(self) -> dict[str, Any]:
        """List all scores.

        Returns:
            Values that JSON can hold.
        """
        return self.report.to_dict()


def read_items(pairs: PairFile, limit: int = 0) -> EvaluationSet:
    """Read sources with their references.

    Args:
        pairs: rows of an evaluation file; rows of one source are its references.
        limit: most sources; 0 = all.

    Returns:
        The items, at least one.

    Raises:
        DataError: no row has a source, or a file cannot be read.
    """
    items = EvaluationSet.of(pairs)
    if not len(items):
        raise DataError(f"{pairs.paths[0]}: no row has a source; give pairs to score")
    return EvaluationSet(items.sources[:limit], items.references[:limit]) if limit else items
