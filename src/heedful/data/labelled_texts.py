"""Texts in memory with the label of each."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
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
    num_without_text: int = 0
    """Number of rows of the file that were left out, because their text is blank."""
    num_without_label: int = 0
    """Number of rows that were left out, because they have a text, but no label."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """Lines about rows that were left out as unreadable."""

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, selection: slice) -> "LabelledTexts":
        return replace(self, texts=self.texts[selection], labels=self.labels[selection])

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
            pairs: text and label; rows where either is blank are left out and counted.

        Returns:
            The texts, in order.
        """
        texts, labels, num_without_text, num_without_label = list[str](), list[str](), 0, 0
        for pair in pairs:
            label = pair.target.strip()
            if not pair.source.strip():
                num_without_text += 1
            elif not label:
                num_without_label += 1
            else:
                texts.append(pair.source)
                labels.append(label)
        return cls(texts, labels, num_without_text, num_without_label)
