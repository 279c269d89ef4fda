"""Texts with labels, and their batches in an order determined by seed and epoch."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, final

from numpy.typing import NDArray

from heedful.data.batching import IntArray, LengthSampler, pad
from heedful.data.cells import CellStyle, cell_style, whole_records
from heedful.data.corpus import Pair, PairFile, check_columns, find_pairs, first_line, found_pairs, is_json_lines
from heedful.data.encoded import EncodedCorpus, Ids
from heedful.data.label_rows import (
    FASTTEXT,
    FastTextRows,
    LabelColumnRows,
    LabelJsonRows,
    Sample,
    json_sample,
    label_format,
)
from heedful.data.rows import ColumnRows, Columns, RowFormat, are_open
from heedful.data.tables import check_data_file, first_lines

_SAMPLE_LINES: Final = 1000
"""Number of first lines by which columns, headings and kinds of labels are recognised."""


def find_labelled(
    paths: Sequence[Path], columns: Columns = (1, 2), separator: str = "", leaves_out_faults: bool = False
) -> PairFile:
    """Inspect files of texts with labels.

    Args:
        paths: a file of any format that `heedful.data.corpus.find_pairs` reads, of fastText's lines, or a folder with
            a folder of texts for each label; or two aligned files.
        columns: columns of text and label, by number or name; "title+body" joins columns to one text, and "a+b" as
            labels are columns with 1 for the texts that have the label. (1, 2) are found by headings, keys and content.
        separator: separator of several labels in a cell; empty = a cell is one label.
        leaves_out_faults: as for `heedful.data.corpus.find_pairs`.

    Returns:
        Text and label of each row; where texts may have several labels, these are joined as by
        `heedful.text.label_sets.joined_labels`.

    Raises:
        DataError: as `heedful.data.corpus.find_pairs`.
        MissingExtra: a file is Parquet or Arrow, and pyarrow is not installed.
    """
    check_columns(paths, columns)
    if len(paths) != 1:
        return find_pairs(paths, columns, leaves_out_faults)
    (path,) = paths
    check_data_file(path)
    number, line = first_line(path)
    where = f"{path}:{number}"
    rows: RowFormat
    if is_json_lines(path, line):
        sample = json_sample(path, _SAMPLE_LINES)
        rows = LabelJsonRows(*label_format(sample, columns, separator, where))
    elif any(word.startswith(FASTTEXT) for word in line.split()) and are_open(columns):
        rows = FastTextRows(any(text.count(FASTTEXT) > 1 for text in first_lines(path, _SAMPLE_LINES)))
    else:
        sample_lines = first_lines(path, _SAMPLE_LINES)
        style = cell_style(path, sample_lines)
        lenient = CellStyle(style.separator, "lenient" if style.quotes == "strict" else style.quotes)
        records = whole_records(sample_lines, style)
        cells = [style.split(records[0], str(path), number), *map(lenient.split, records[1:])]
        width = len(cells[0])
        if width < 2:  # says what is wrong
            ColumnRows.of(records[0], columns, str(path), number, style, records)
        chosen, names = label_format(Sample((), [row for row in cells if len(row) == width]), columns, separator, where)
        rows = LabelColumnRows(style, width, chosen, names)
    return found_pairs(path, rows, number, leaves_out_faults)


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
