"""Texts in memory with the label of each."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from heedful.data.corpus import Pair


@final
@dataclass(frozen=True)
class LabelledTexts:
    """Texts and the label of each.

    Example:
        >>> texts = LabelledTexts(["A quiet room", "Too loud"], ["good", "bad"])
        >>> len(texts), texts[:1].references
        (2, [['good']])
    """

    texts: list[str]
    """The texts."""
    labels: list[str]
    """Label of each."""

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, selection: slice) -> "LabelledTexts":
        return LabelledTexts(self.texts[selection], self.labels[selection])

    @property
    def sources(self) -> list[str]:
        """The texts."""
        return self.texts

    @property
    def references(self) -> list[list[str]]:
        """The label of each text."""
        return [[label] for label in self.labels]

    @classmethod
    def of(cls, pairs: Iterable["Pair"]) -> "LabelledTexts":
        """Collect labelled texts from the rows of a file.

        Args:
            pairs: text and label; rows where either is blank are left out.

        Returns:
            The texts, in order.
        """
        stripped = [(pair.source, pair.target.strip()) for pair in pairs if pair.source.strip() and pair.target.strip()]
        return cls([text for text, _ in stripped], [label for _, label in stripped])
