"""Texts with labels, and their batches in an order determined by seed and epoch."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, final

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


class SourceArrays(Protocol):
    """Sources of a batch, such as `heedful.search.inputs.TokenArrays`."""

    def __len__(self) -> int:
        """Number of sources."""
        ...

    def take(self, rows: Iterable[int]) -> "SourceArrays":
        """Select sources.

        Args:
            rows: indices.

        Returns:
            These sources, padded no wider than they need.
        """
        ...

    def named_arrays(self) -> Mapping[str, NDArray[Any]]:
        """Pad the sources to arrays.

        Returns:
            Arrays by name; axis 0 = source.
        """
        ...


Collect = Callable[[Sequence[Any]], SourceArrays]
"""Function that makes the sources of a batch from the token ids of each; a class of them serves."""


@final
@dataclass(frozen=True)
class LabelBatch:
    """Texts and their labels."""

    texts: SourceArrays
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
            The arrays of the texts, such as ids and lengths, and the labels.
        """
        return *self.texts.named_arrays().values(), self.labels

    def rows(self, selection: slice) -> "LabelBatch":
        """Select some of the texts, trimming the padding.

        Args:
            selection: slice of rows; at least one row.

        Returns:
            A smaller batch.
        """
        return LabelBatch(self.texts.take(range(*selection.indices(len(self)))), self.labels[selection])


def make_label_batch(corpus: EncodedCorpus, indices: Ids, collect: Collect) -> LabelBatch:
    """Collect texts of a corpus into a batch.

    Args:
        corpus: token ids as sources, the number of a label as the only target id.
        indices: [batch] indices of the texts.
        collect: makes the sources.

    Returns:
        The padded batch.
    """
    labels, _ = pad([corpus.target[index] for index in indices])
    return LabelBatch(collect([corpus.source[index] for index in indices]), labels[:, 0])


@final
class LabelSampler:
    """Endless batches of texts of similar length; each epoch contains every text once."""

    unit: ClassVar[str] = "texts"

    def __init__(self, corpus: EncodedCorpus, batch_tokens: int, seed: int, collect: Collect) -> None:
        """Prepare to draw.

        Args:
            corpus: as for `make_label_batch`.
            batch_tokens: largest number of positions of a batch, padding included; a single text always fits.
            seed: seed of the order.
            collect: as for `make_label_batch`.
        """
        self._corpus = corpus
        self._collect = collect
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
            yield make_label_batch(self._corpus, batches[batch], self._collect)
