"""Texts with labels, and their batches in an order determined by seed and epoch."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, final

from numpy.typing import NDArray

from heedful.data.batch import Position
from heedful.data.batching import IntArray, PairSampler, pad
from heedful.data.corpus import Pair
from heedful.data.encoded import EncodedCorpus, Ids


@final
@dataclass(frozen=True)
class LabelledTexts:
    """Texts and the label of each."""

    texts: list[str]
    labels: list[str]

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, selection: slice) -> "LabelledTexts":
        return LabelledTexts(self.texts[selection], self.labels[selection])

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> "LabelledTexts":
        """Collect labelled texts from the rows of a file.

        Args:
            pairs: text and label; rows where either is blank are left out.

        Returns:
            The texts, in order.
        """
        stripped = [(pair.source, pair.target.strip()) for pair in pairs if pair.source.strip() and pair.target.strip()]
        return cls([text for text, _ in stripped], [label for _, label in stripped])


@final
@dataclass(frozen=True)
class LabelBatch:
    """Padded token ids and labels; the padding is 0."""

    ids: IntArray
    """[batch, position] token ids, each row ending in EOS."""
    lengths: IntArray
    """[batch] real ids in each row."""
    labels: IntArray
    """[batch] numbers of the labels."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def num_units(self) -> int:
        """Number of labels."""
        return len(self.labels)

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """List the arrays that `heedful.training.label_step.LabelStep` takes.

        Returns:
            Ids, lengths and labels.
        """
        return self.ids, self.lengths, self.labels

    def rows(self, selection: slice) -> "LabelBatch":
        """Select some of the texts, trimming the padding.

        Args:
            selection: slice of rows; at least one row.

        Returns:
            A smaller batch.
        """
        lengths = self.lengths[selection]
        return LabelBatch(self.ids[selection, : int(lengths.max())], lengths, self.labels[selection])


def make_label_batch(corpus: EncodedCorpus, indices: Ids) -> LabelBatch:
    """Collect texts of a corpus into a batch.

    Args:
        corpus: token ids as sources, the number of a label as the only target id.
        indices: [batch] indices of the texts.

    Returns:
        The padded batch.
    """
    ids, lengths = pad([corpus.source[index] for index in indices])
    labels, _ = pad([corpus.target[index] for index in indices])
    return LabelBatch(ids, lengths, labels[:, 0])


@final
class LabelSampler:
    """Endless batches of texts of similar length; each epoch contains every text once."""

    unit: ClassVar[str] = "texts"

    def __init__(self, corpus: EncodedCorpus, batch_tokens: int, seed: int) -> None:
        """Prepare to draw.

        Args:
            corpus: as for `make_label_batch`.
            batch_tokens: largest number of positions of a batch, padding included; a single text always fits.
            seed: seed of the order.
        """
        self._corpus = corpus
        self._order = PairSampler(corpus, batch_tokens, seed)
        self.position = Position(0, 0)
        """Position of the next batch; set it to continue from there."""

    def num_batches(self, epoch: int) -> int:
        """Count the batches of an epoch, which requires planning it.

        Args:
            epoch: 0-based.

        Returns:
            Their number.
        """
        return self._order.num_batches(epoch)

    def __iter__(self) -> Iterator[LabelBatch]:
        while True:
            epoch, batch = self.position
            batches = self._order.plan(epoch)
            if batch >= len(batches):
                self.position = Position(epoch + 1, 0)
                continue
            self.position = Position(epoch, batch + 1)
            yield make_label_batch(self._corpus, batches[batch])
