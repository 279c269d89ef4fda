"""Throughput of a training: the time that it may take, and its speed on this machine."""

from dataclasses import dataclass
from math import sqrt
from typing import Final, final

TRAINED_SHARE: Final = 0.8
"""Share of a limited time that goes into updates; the rest is for validations and the test."""
VALIDATED_SHARE: Final = 0.02
"""Share of a limited time that one of the first validations may take; there are four to ten in all."""
USUAL_ITEMS: Final = 1000
LEAST_ITEMS: Final = 50


@final
@dataclass(frozen=True)
class Throughput:
    """Time that a training may take, and measured speeds."""

    seconds: float
    """Limit of time for training, validation and test together."""
    tokens_per_second: float
    """Speed of updates: units of the loss, such as target tokens, per second."""
    items_per_second: float
    """Speed of the first validations, whose outputs are the longest."""

    @property
    def num_units(self) -> float:
        """Number of units of the loss that can be trained on in the time."""
        return TRAINED_SHARE * self.seconds * self.tokens_per_second

    @property
    def num_validations(self) -> int:
        """Number of validations, the last one included: few in a short time, since they take time from the updates."""
        return min(10, max(4, round(2.0 * sqrt(self.seconds / 60.0))))

    @property
    def validation_items(self) -> int:
        """Number of items whose validation is quick enough; 0 = the usual number."""
        number = int(VALIDATED_SHARE * self.seconds * self.items_per_second)
        return 0 if number >= USUAL_ITEMS else max(LEAST_ITEMS, number)
