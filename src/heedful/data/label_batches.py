"""Batches of texts with labels for training."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, final

import numpy as np
from numpy.typing import NDArray

from heedful.data.batching import IntArray, LengthSampler, pad
from heedful.data.encoded import EncodedCorpus, Ids


class SourceArrays(Protocol):
    """Sources of a batch, such as `heedful.search.inputs.TokenArrays`."""

    def __len__(self) -> int:
        """Number of sources."""
        ...

    def take(self, rows: Iterable[int]) -> "SourceArrays":
        """Select sources.

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
    """[batch] numbers of the labels, or [batch, end] positions of the first and the last token of the answer."""

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
        corpus: token ids as sources; the number of a label as the only target id, or the first and last position of an
            answer.
        indices: [batch] indices of the texts.
    """
    labels, _ = pad([corpus.target[index] for index in indices])
    sources = collect([corpus.source[index] for index in indices])
    return LabelBatch(sources, labels[:, 0] if labels.shape[1] == 1 else labels)


def label_batches(corpus: EncodedCorpus, collect: Collect, batch_texts: int) -> Iterator[LabelBatch]:
    """Iterate over a corpus once, in its order.

    Args:
        corpus: as for `make_label_batch`.
        collect: as for `make_label_batch`.
        batch_texts: largest number of texts in a batch.

    Yields:
        Padded batches.
    """
    for start in range(0, len(corpus), batch_texts):
        yield make_label_batch(corpus, np.arange(start, min(start + batch_texts, len(corpus))), collect)


@final
class LabelSampler(LengthSampler[LabelBatch]):
    """Endless batches of texts of similar length; each epoch contains every text once."""

    unit: ClassVar[str] = "texts"

    def __init__(
        self, corpus: EncodedCorpus, batch_tokens: int, seed: int, collect: Collect, has_few_shapes: bool = False
    ) -> None:
        """Prepare the iteration.

        Args:
            corpus: as for `make_label_batch`.
            batch_tokens: largest number of positions of a batch, padding included; a single text always fits.
            seed: seed of the order.
            collect: as for `make_label_batch`.
            has_few_shapes: as for `LengthSampler`.
        """
        super().__init__(corpus, batch_tokens, seed, has_few_shapes)
        self._collect: Final = collect

    def collect(self, indices: Ids) -> LabelBatch:
        return make_label_batch(self.corpus, indices, self._collect)
