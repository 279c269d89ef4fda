"""Results of classifying one batch of texts."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.search.inputs import InputArrays

Floats = NDArray[np.float32]


class LabelArrays(NamedTuple):
    """Classified texts."""

    log_probs: Floats
    """[text, label] log probabilities in nats; [text, end, position] where answers are spans."""
    vectors: Floats
    """[text, size] input of the label layer."""
    weights: Floats | None = None
    """[text, position] or [text, step, position] attention weights; None without attention."""


LabelRun = Callable[[InputArrays], LabelArrays]
"""Function that classifies one batch."""


def mean_run(runs: Sequence[LabelRun]) -> LabelRun:
    """Make the function of an ensemble, whose probabilities and attention weights are the means of its members'.

    Args:
        runs: function of each member, one or more; vectors are those of the first.
    """
    if len(runs) == 1:
        return runs[0]

    def run(texts: InputArrays) -> LabelArrays:
        results = [member(texts) for member in runs]
        with np.errstate(invalid="ignore"):  # where no member gives a position any probability
            log_probs = np.logaddexp.reduce([one.log_probs for one in results]) - np.float32(np.log(len(results)))
        weights = [one.weights for one in results if one.weights is not None]
        return LabelArrays(log_probs, results[0].vectors, np.mean(weights, axis=0) if weights else None)

    return run
