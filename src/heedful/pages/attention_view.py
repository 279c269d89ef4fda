"""Interface of drawings of attention on a page."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class AttentionView(ABC):
    """Attention of one output, as a drawing.

    Example:
        >>> view = heedful.load("reviews.model").attention_views(["A quiet room"])[0]  # doctest: +SKIP
        >>> view.draw()[:4]  # doctest: +SKIP
        '<svg'
    """

    explanation: ClassVar[str]
    """Clause that says how to read the drawing."""
    title: str
    """Source and output, in plain text."""

    @abstractmethod
    def draw(self) -> str:
        """Draw the weights.

        Returns:
            HTML; empty where there is nothing to draw.
        """
