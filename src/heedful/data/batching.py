"""Batches of pairs of similar length under a token budget, in an order determined by seed and epoch."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from heedful.data.batch import Batch, Position
from heedful.data.encoded import EncodedCorpus, Ids
from heedful.data.length_grid import ROWS, on_grid
from heedful.data.random_changes import NO_CHANGES, Change, RandomChanges
from heedful.text.vocabulary import BOS, PAD

BatchT = TypeVar("BatchT", bound=Batch)

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class PairBatch:
    """Padded pairs of token ids; the padding is 0.

    Example:
        >>> ids = np.array([[7, 8, 3], [9, 3, 0]])
        >>> batch = PairBatch(ids, np.array([3, 2]), *teacher_forced([np.array([7, 3]), np.array([3])]))
        >>> len(batch), batch.num_units, batch.rows(slice(1, 2)).source.tolist()
        (2, 3, [[9, 3]])
    """

    source: IntArray
    """[batch, source] ids, each row ending in eos."""
    source_lengths: IntArray
    """[batch] number of ids in each row, without padding."""
    target_in: IntArray
    """[batch, target] decoder input: bos and the gold target without eos (teacher forcing)."""
    target_out: IntArray
    """[batch, target] decoder output: the gold target and eos."""
    target_lengths: IntArray
    """[batch] number of ids in each row, without padding."""
    links: IntArray | None = None
    """[link, 3] row, target position and source position of aligned tokens; None without alignment links."""

    def __len__(self) -> int:
        return len(self.source)

    @property
    def num_units(self) -> int:
        """Number of real target tokens, EOS included."""
        return int(self.target_lengths.sum())

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """List the arrays that `heedful.training.pair_step.PairStep` takes.

        Returns:
            Source, source lengths, target in, target out, and links if there are any.
        """
        arrays = (self.source, self.source_lengths, self.target_in, self.target_out)
        return arrays if self.links is None else (*arrays, self.links)

    def rows(self, selection: slice) -> "PairBatch":
        """Select some of the pairs, trimming the padding.

        Args:
            selection: slice of rows; at least one row.

        Returns:
            A smaller batch.
        """
        source_lengths, target_lengths = self.source_lengths[selection], self.target_lengths[selection]
        source, target = slice(int(source_lengths.max())), slice(int(target_lengths.max()))
        return PairBatch(
            self.source[selection, source],
            source_lengths,
            self.target_in[selection, target],
            self.target_out[selection, target],
            target_lengths,
            select_links(self.links, selection, len(self.source)),
        )


def pad(sequences: Sequence[Ids]) -> tuple[IntArray, IntArray]:
    """Stack sequences into a rectangle, padded with 0.

    Args:
        sequences: ids of each row.

    Returns:
        [batch, length] ids padded with 0, and [batch] lengths.

    Example:
        >>> pad([np.array([5]), np.array([6, 7])])[0].tolist()
        [[5, 0], [6, 7]]
    """
    lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
    rows = np.full((len(sequences), int(lengths.max(initial=0))), PAD, dtype=np.int64)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return rows, lengths


def make_batch(corpus: EncodedCorpus, indices: Ids, change: Change | None = None) -> PairBatch:
    """Make a batch of some pairs of a corpus.

    Args:
        indices: [batch] indices of the pairs.
        change: change of the pairs, for a corpus without links; None = no change.
    """
    sides = [corpus.source[i] for i in indices], [corpus.target[i] for i in indices]
    if change is not None:
        sides = change(*sides)
    source, source_lengths = pad(sides[0])
    targets = teacher_forced(sides[1])
    if corpus.links is None:
        return PairBatch(source, source_lengths, *targets)
    return PairBatch(source, source_lengths, *targets, collect_links(corpus.links, indices))


def teacher_forced(targets: Sequence[Ids]) -> tuple[IntArray, IntArray, IntArray]:
    """Arrange gold targets as input and output of a decoder.

    Args:
        targets: ids of each target, ending in EOS.

    Returns:
        [batch, target] decoder input, BOS and the target without its last id; [batch, target] decoder output, the
        target; [batch] lengths. The padding is 0.

    Example:
        >>> [part.tolist() for part in teacher_forced([np.array([7, 8, 3]), np.array([3])])]
        [[[2, 7, 8], [2, 0, 0]], [[7, 8, 3], [3, 0, 0]], [3, 1]]
    """
    target_out, target_lengths = pad(targets)
    target_in = np.zeros_like(target_out)
    target_in[:, 1:] = target_out[:, :-1]
    target_in[:, 0] = BOS
    real = np.arange(target_out.shape[1]) < target_lengths[:, None]
    return np.where(real, target_in, PAD), target_out, target_lengths


def collect_links(links: EncodedCorpus, indices: Ids) -> IntArray:
    """Collect the alignment links of a batch.

    Args:
        indices: [batch] indices of the pairs.

    Returns:
        [link, 3] row, target position and source position.
    """
    rows = np.repeat(np.arange(len(indices)), links.source.lengths[indices])
    sides = (np.concatenate([side[i] for i in indices]).astype(np.int64) for side in (links.target, links.source))
    return np.stack([rows, *sides], axis=1)


def select_links(links: IntArray | None, selection: slice, num_rows: int) -> IntArray | None:
    """Select the links of some rows of a batch.

    Args:
        links: [link, 3] row, target position and source position; None = the batch has none.

    Returns:
        [link, 3] the links of those rows, which are numbered anew.
    """
    if links is None:
        return None
    new_rows = np.full(num_rows, -1)
    new_rows[selection] = np.arange(len(range(*selection.indices(num_rows))))
    links = links[new_rows[links[:, 0]] >= 0]
    return np.column_stack((new_rows[links[:, 0]], links[:, 1:]))


class LengthSampler(ABC, Generic[BatchT]):
    """Endless batches of examples of similar length; each epoch contains every example once.

    `cut_batches` groups pairs of similar length on both sides; pairs of equal lengths are shuffled, and so are the
    batches. Both orders are functions of (seed, epoch), so a position is two integers.
    """

    unit: ClassVar[str]
    """Name of what a batch counts, in the plural."""

    def __init__(self, corpus: EncodedCorpus, batch_tokens: int, seed: int, has_few_shapes: bool = False) -> None:
        """Prepare the iteration.

        Args:
            batch_tokens: largest number of positions of a batch, padding included, on its longer side; a single
                example always fits.
            seed: seed of the order.
            has_few_shapes: whether batches have few shapes, the same in every epoch; see `cut_batches`.
        """
        self.corpus: Final = corpus
        self._batch_tokens = batch_tokens
        self._seed = seed
        self._has_few_shapes: Final = has_few_shapes
        self._epoch: list[Ids] = []
        self._planned = -1
        self.position = Position(0, 0)
        """Current position; set it to continue from there."""

    def plan(self, epoch: int) -> list[Ids]:
        """Divide an epoch into batches.

        Args:
            epoch: 0-based.

        Returns:
            Indices of the examples of each batch, in training order.
        """
        if self._planned != epoch:
            self._epoch = []  # before the next is made
            generator = np.random.default_rng((self._seed, epoch))
            source, target = self.corpus.source.lengths, self.corpus.target.lengths
            if (selected := self.select(generator)) is None:
                batches = cut_batches(source, target, self._batch_tokens, generator, self._has_few_shapes)
            else:
                lengths = source[selected], target[selected]
                cut = cut_batches(*lengths, self._batch_tokens, generator, self._has_few_shapes)
                batches = [selected[indices] for indices in cut]
            self._epoch = [batches[i] for i in generator.permutation(len(batches))]
            self._planned = epoch
        return self._epoch

    def select(self, generator: np.random.Generator) -> Ids | None:
        """Select the examples of an epoch.

        Args:
            generator: random numbers of the epoch.

        Returns:
            Indices of the examples; None = all, which is the default.
        """
        return None

    def num_batches(self, epoch: int) -> int:
        """Count the batches of an epoch, which requires planning it.

        Args:
            epoch: 0-based.

        Returns:
            Their number.
        """
        return len(self.plan(epoch))

    @abstractmethod
    def collect(self, indices: Ids) -> BatchT:
        """Collect examples into a batch.

        Args:
            indices: [batch] indices of the examples.
        """

    def __iter__(self) -> Iterator[BatchT]:
        while True:
            batches = self.plan(self.position.epoch)
            if self.position.batch >= len(batches):
                self.position = Position(self.position.epoch + 1, 0)
                continue
            indices = batches[self.position.batch]
            self.position = Position(self.position.epoch, self.position.batch + 1)
            yield self.collect(indices)


@final
class PairSampler(LengthSampler[PairBatch]):
    """Endless batches of pairs of similar length on both sides.

    Example:
        >>> from heedful.data.encoded import EncodedSide
        >>> side = EncodedSide(np.array([7, 8, 3, 9, 3]), np.array([0, 3, 5]))
        >>> batch = next(iter(PairSampler(EncodedCorpus(side, side), batch_tokens=100, seed=1)))
        >>> [array.shape for array in batch.arrays()]
        [(2, 3), (2,), (2, 3), (2, 3)]
    """

    unit: ClassVar[str] = "tokens"

    def __init__(
        self,
        corpus: EncodedCorpus,
        batch_tokens: int,
        seed: int,
        changes: RandomChanges = NO_CHANGES,
        has_few_shapes: bool = False,
    ) -> None:
        """Prepare the iteration.

        Args:
            corpus: encoded pairs; without links if they are changed.
            batch_tokens: as for `LengthSampler`, before pairs are changed.
            seed: seed of the order, and of the changes.
            changes: random changes of the pairs of each batch; none by default.
            has_few_shapes: as for `LengthSampler`, before pairs are changed.
        """
        super().__init__(corpus, batch_tokens, seed, has_few_shapes)
        self._changes: Final = changes

    def collect(self, indices: Ids) -> PairBatch:
        return make_batch(self.corpus, indices, self._changes.at(self.position, self._seed, indices))


def pairs_by_length(corpus: EncodedCorpus, batch_pairs: int = 128) -> Iterator[PairBatch]:
    """Iterate over a corpus once, in batches of pairs of similar target length.

    Args:
        batch_pairs: largest number of pairs in a batch.

    Yields:
        Padded batches, the shortest targets first.
    """
    order = np.argsort(corpus.target.lengths, kind="stable")
    for start in range(0, len(order), batch_pairs):
        yield make_batch(corpus, order[start : start + batch_pairs])


def cut_batches(
    source_lengths: Ids,
    target_lengths: Ids,
    batch_tokens: int,
    generator: np.random.Generator,
    has_few_shapes: bool = False,
) -> list[Ids]:
    """Order pairs so that neighbours are of similar length on both sides, and cut the order into batches.

    The order follows a Hilbert curve through the plane of source and target lengths: each piece of the curve covers a
    roughly square patch, so a batch needs little padding on either side. Sorting by one side and then the other needs
    far more on the second.

    Args:
        source_lengths: [pair] ids on the source side.
        target_lengths: [pair] ids on the target side.
        batch_tokens: largest number of positions on the longer side of a batch.
        generator: random numbers that shuffle pairs of equal lengths and shift the curve.
        has_few_shapes: whether lengths are rounded up to those of `on_grid` and the curve is not shifted, so that the
            same shapes come again in every epoch, for steps that are recorded once for each shape. Within a batch of a
            small corpus, many pairs meet again then; that of a large one is drawn from many of equal rounded lengths.

    Returns:
        The indices of each batch, in the order of the curve; views of one array.

    Cost: one sort, then a loop over batches rather than pairs. Memory: at most about 30 bytes per pair, 4 in the
    result.
    """
    shuffled = np.arange(len(source_lengths), dtype=np.int32 if len(source_lengths) < 1 << 31 else np.int64)
    generator.shuffle(shuffled)
    source, target = source_lengths[shuffled], target_lengths[shuffled]
    if has_few_shapes:
        source, target = on_grid(source), on_grid(target)
    # A random shift of the curve moves the cuts, so that pairs have other neighbours in every epoch.
    longest = 0 if has_few_shapes else max(source.max(initial=0), target.max(initial=0))
    shift = generator.integers(0, 1 + longest, size=2)
    order = np.argsort(_keys_on_curve(source, target, shift), kind="stable")
    walk = shuffled[order]
    del shuffled
    width = np.maximum(source, target)[order]
    del source, target, order
    batches: list[Ids] = []
    start = 0
    while start < len(walk):
        most = max(1, batch_tokens // int(width[start]))
        widest = np.maximum.accumulate(width[start : start + most])
        fits = int(np.count_nonzero(widest * np.arange(1, len(widest) + 1) <= batch_tokens))
        if has_few_shapes and fits > ROWS:
            fits -= fits % ROWS
        stop = start + max(1, fits)
        batches.append(walk[start:stop])
        start = stop
    return batches


def _keys_on_curve(source: Ids, target: Ids, shift: IntArray) -> Ids:
    """Position of each pair of lengths on the curve; looked up in a table if there are more pairs than cells.

    Args:
        source: [pair] lengths.
        target: [pair] lengths.
        shift: [2] position of the lengths (0, 0) in the plane.

    Returns:
        [pair] keys; equal for pairs of equal lengths.
    """
    num_rows, num_columns = 1 + int(source.max(initial=0)), 1 + int(target.max(initial=0))
    num_cells = num_rows * num_columns
    if num_cells > max(len(source), 1 << 16):
        return _places_on_curve(source + shift[0], target + shift[1])
    rows, columns = np.divmod(np.arange(num_cells), num_columns)
    positions = _places_on_curve(rows + shift[0], columns + shift[1])
    # Ranks of at most 16 bits are sorted in linear time.
    ranks = np.empty(num_cells, dtype=np.uint16 if num_cells <= 1 << 16 else np.uint32)
    ranks[np.argsort(positions)] = np.arange(num_cells)
    return ranks[source * np.int64(num_columns) + target]


def _places_on_curve(x: IntArray, y: IntArray) -> IntArray:
    """Position of points (x, y), 0 or larger, on a Hilbert curve; Hilbert 1891."""
    positions = np.zeros_like(x)
    side = 1 << int(max(x.max(initial=0), y.max(initial=0))).bit_length()
    half = side >> 1
    while half:
        right, upper = (x & half) > 0, (y & half) > 0
        positions += half * half * ((3 * right) ^ upper)
        # The lower quarters are turned, so that the curve leaves each where it enters the next.
        turned, mirrored = ~upper, ~upper & right
        x, y = np.where(mirrored, side - 1 - x, x), np.where(mirrored, side - 1 - y, y)
        x, y = np.where(turned, y, x), np.where(turned, x, y)
        half >>= 1
    return positions
