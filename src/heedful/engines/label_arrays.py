"""Results of classifying one batch of texts."""

from collections.abc import Callable
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
