"""Texts with labels, and their batches in an order determined by seed and epoch."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, final

from numpy.typing import NDArray

from heedful.data.batching import IntArray, LengthSampler, pad
from heedful.data.corpus import Pair, PairFile, find_pairs
from heedful.data.encoded import EncodedCorpus, Ids
from heedful.data.rows import Columns
from heedful.data.text_columns import has_label_first, is_label_header


def find_labelled(paths: Sequence[Path], columns: Columns = (1, 2)) -> PairFile:
    """Inspect files of texts with labels.

    Args:
        paths: as for `heedful.data.corpus.find_pairs`.
        columns: columns of text and label; (1, 2) is (2, 1) where headings or keys tell that the label is first. A
            first row of well-known headings of texts and labels is recognised.

    Raises:
        DataError: as `heedful.data.corpus.find_pairs`.
        MissingExtra: a file is Parquet or Arrow, and pyarrow is not installed.
    """
    file = find_pairs(paths, columns)
    if tuple(columns) == (1, 2) and len(paths) == 1 and not any(file.headings):
        first = next(iter(file), None)
        if first is not None and is_label_header(first.source, first.target):
            source, target = first.source.strip(), first.target.strip()
            return find_pairs(paths, (target, source) if has_label_first(source, target) else (source, target))
    is_swapped = tuple(columns) == (1, 2) and len(paths) == 1 and has_label_first(*file.headings)
    return find_pairs(paths, (2, 1)) if is_swapped else file


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

    @property
    def sources(self) -> list[str]:
        """The texts."""
        return self.texts

    @property
    def references(self) -> list[list[str]]:
        """The label of each text."""
        return [[label] for label in self.labels]

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


@final
class LabelSampler(LengthSampler[LabelBatch]):
    """Endless batches of texts of similar length; each epoch contains every text once."""

    unit: ClassVar[str] = "texts"

    def __init__(self, corpus: EncodedCorpus, batch_tokens: int, seed: int, collect: Collect) -> None:
        """Prepare the iteration.

        Args:
            corpus: as for `make_label_batch`.
            batch_tokens: largest number of positions of a batch, padding included; a single text always fits.
            seed: seed of the order.
            collect: as for `make_label_batch`.
        """
        super().__init__(corpus, batch_tokens, seed)
        self._collect: Final = collect

    def collect(self, indices: Ids) -> LabelBatch:
        return make_label_batch(self.corpus, indices, self._collect)
