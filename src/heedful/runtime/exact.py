"""Results that are the same to the last bit, whatever is decoded beside a source, in which order and in which batches.

In floating point a product of matrices depends on their sizes: with another number of rows other loops run, and sums
are rounded otherwise. So what a source gives depends, in its last bits, on its batch; and where two tokens are nearly
equally probable, the output does. Here an engine is given nothing that depends on anything but the source itself:

- sources are decoded in blocks of a fixed number of rows, filled up with rows that stand for nothing. The number
  depends on the hypotheses a source carries and on the width of the block alone;
- the width of a block, padding included, is that of the source's length rounded up (`width_of`). Each block holds a
  row as long as it is wide, for some engines compute as far as the longest row;
- a row whose search is over stays in its block, and is fed a token that counts for nothing, until all are done;
- hypotheses are rearranged at each step, even where each continues itself.

What is left is a row's place in its block, and its neighbours' numbers. Whether they matter is tried: when a shape is
first met, blocks of drawn sources are decoded with their rows at other places and beside others (`is_row_alone`).
Where a bit differs, as where products in eight bits share a scale, blocks of this shape have one row: then the engine
is given nothing but the source.

Equal are results of one model, engine and kind of processor, with one number of threads. Samples depend on the number
of their line as well.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from typing import Final, final

import numpy as np

from heedful.runtime.engine import Backend, Stepwise
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.demands import Demand
from heedful.search.forced import Reading, read_outputs
from heedful.search.interface import Adjust, Engine, FloatArray, Hypothesis, IntArray, StepScores, WeightsArray
from heedful.text.vocabulary import BOS, EOS, PAD, UNK

MOST_ROWS: Final = 16
"""Sources of a block: beyond it a row costs no less, and a small request pays for rows that stand for nothing."""
_MOST_POSITIONS: Final = 4096
"""Of all hypotheses of a block, filling included: long sources stand in smaller blocks."""
_STEP: Final = 8
"""What the least lengths are rounded up to."""
_TRIED_STEPS: Final = 6
_FIRST_TOKEN: Final = EOS + 1


def width_of(length: int, most: int) -> int:
    """Round a length up to that of its block.

    Args:
        length: positions of a source, at least 1.
        most: positions of the longest source that the model takes.

    Returns:
        The next multiple of 8, from 129 on of an eighth of the power of two below; not above `most`, but for a source
        that is itself, which keeps its length.

    Example:
        >>> [width_of(length, 200) for length in (1, 8, 9, 70, 129, 195, 200, 300)]
        [8, 8, 16, 72, 144, 200, 200, 300]
    """
    step = max(_STEP, 2 ** (max(1, length - 1).bit_length() - 1) // 8)
    return max(length, min(-(-length // step) * step, most))


def rows_of(width: int, num_hypotheses: int) -> int:
    """Say how many sources a block has.

    Args:
        width: positions of each.
        num_hypotheses: carried for each.

    Returns:
        A power of two, at most `MOST_ROWS`.

    Example:
        >>> rows_of(32, 5), rows_of(256, 5), rows_of(4096, 5)
        (16, 2, 1)
    """
    rows = MOST_ROWS
    while rows > 1 and rows * width * num_hypotheses > _MOST_POSITIONS:
        rows //= 2
    return rows


@final
class BlockScores(StepScores):
    """Scores of the rows of a block that still count."""

    def __init__(self, scores: StepScores, rows: IntArray, width: int) -> None:
        """Look at some rows.

        Args:
            scores: of the whole block.
            rows: [source] their places.
            width: positions of the sources as the search knows them, without the filling of the block.
        """
        self._scores = scores
        self._rows = rows
        self._width = width

    def top(self, k: int, adjust: Adjust | None = None) -> tuple[FloatArray, IntArray]:
        if adjust is not None:
            places = self._rows[adjust.sources]
            adjust = Adjust(adjust.banned, places, adjust.hypotheses, adjust.ids, adjust.values)
        log_probs, ids = self._scores.top(k, adjust)
        return log_probs[self._rows], ids[self._rows]

    def full(self) -> np.ndarray[tuple[int, ...], np.dtype[np.floating]]:
        return self._scores.full()[self._rows]

    def of(self, sources: IntArray, hypotheses: IntArray, ids: IntArray) -> FloatArray:
        return self._scores.of(self._rows[sources], hypotheses, ids)

    @property
    def vocab_size(self) -> int:
        return self._scores.vocab_size

    @property
    def weights(self) -> WeightsArray:
        return self._scores.weights[self._rows][:, :, : self._width]


@dataclass(frozen=True)
class _Running:
    """The engine's state of a block, and which of its rows still count."""

    inner: object
    rows: IntArray
    width: int
    """Of the sources as the search knows them."""
    is_first: bool


@final
class BlockEngine(Engine):
    """An engine that is given blocks of one shape, whatever it is asked for."""

    def __init__(self, engine: Engine, rows: int, width: int) -> None:
        """Hold an engine.

        Args:
            engine: what computes.
            rows: sources of a block.
            width: positions of each.
        """
        self._engine = engine
        self._num_rows: Final = rows
        self._width: Final = width

    def start(self, source: IntArray, source_lengths: IntArray, num_hypotheses: int) -> object:
        number, width = source.shape
        filled = np.full((self._num_rows, self._width), PAD, dtype=np.int64)
        filled[number:, 0] = EOS
        filled[:number, :width] = source
        lengths = np.ones(self._num_rows, dtype=np.int64)
        lengths[:number] = source_lengths
        if number < self._num_rows:
            filled[-1] = [UNK] * (self._width - 1) + [EOS]
            lengths[-1] = self._width
        inner = self._engine.start(filled, lengths, num_hypotheses)
        return _Running(inner, np.arange(number), width, is_first=True)

    def step(
        self, state: object, tokens: IntArray, parents: IntArray | None, keep: IntArray | None
    ) -> tuple[StepScores, object]:
        if not isinstance(state, _Running):
            raise TypeError(f"engine: got a state of type {type(state).__name__}")
        rows = state.rows if keep is None else state.rows[keep]
        num_hypotheses = tokens.shape[1]
        fed = np.full((self._num_rows, num_hypotheses), BOS if state.is_first else EOS, dtype=np.int64)
        fed[rows] = tokens
        moved = None
        if num_hypotheses > 1 and not state.is_first:
            moved = np.tile(np.arange(num_hypotheses), (self._num_rows, 1))
            if parents is not None:
                moved[rows] = parents
        scores, inner = self._engine.step(state.inner, fed, moved, None)
        return BlockScores(scores, rows, state.width), _Running(inner, rows, state.width, is_first=False)


@final
class Exact(Backend):
    """An engine's search whose results depend on nothing but the source; the module's docstring says how."""

    has_own_batches = True

    def __init__(self, backend: Stepwise, num_source_tokens: int) -> None:
        """Hold a backend.

        Args:
            backend: what searches.
            num_source_tokens: size of the source vocabulary, from which sources are drawn to try places.
        """
        self.name = backend.name
        self._backend: Final = backend
        self._num_source_tokens: Final = num_source_tokens
        self._rows: Final[dict[tuple[int, int, bool], int]] = {}

    def supports(self, config: SearchConfig, need_alignment: bool) -> str | None:
        return self._backend.supports(config, need_alignment)

    def supports_demand(self, demand: Demand) -> str | None:
        return self._backend.supports_demand(demand)

    def supports_reading(self, need_alignment: bool) -> str | None:
        return self._backend.supports_reading(need_alignment)

    def decode(
        self,
        source_ids: Sequence[IntArray],
        config: SearchConfig,
        need_alignment: bool = False,
        cancelled: Callable[[], bool] | None = None,
        demands: Sequence[Demand] | None = None,
    ) -> list[list[Hypothesis]]:
        engine = self._backend.make_engine(need_alignment or config.beta > 0.0)
        has_weights = need_alignment or config.beta > 0.0
        # How many of the best tokens an engine is asked for depends on how many the phrases of a source have.
        kinds = [0] * len(source_ids) if demands is None else [_num_phrase_ids(demand) for demand in demands]
        results: list[list[Hypothesis]] = [[] for _ in source_ids]
        for places, width in self._blocks(engine, source_ids, kinds, config.width, has_weights):
            found = search(
                BlockEngine(engine, self._num_rows(engine, width, config.width, has_weights), width),
                [source_ids[place] for place in places],
                config,
                max_length=self._backend.max_length,
                need_alignment=need_alignment,
                demands=None if demands is None else [demands[place] for place in places],
                cancelled=cancelled,
            )
            for place, hypotheses in zip(places, found, strict=True):
                results[place] = hypotheses
        return results

    def read(
        self, source_ids: Sequence[IntArray], outputs: Sequence[Sequence[int]], need_alignment: bool = False
    ) -> list[Reading]:
        engine = self._backend.make_engine(need_alignment)
        readings: dict[int, Reading] = {}
        for places, width in self._blocks(engine, source_ids, [0] * len(source_ids), 1, need_alignment):
            found = read_outputs(
                BlockEngine(engine, self._num_rows(engine, width, 1, need_alignment), width),
                [source_ids[place] for place in places],
                [outputs[place] for place in places],
                need_alignment,
            )
            readings.update(zip(places, found, strict=True))
        return [readings[place] for place in range(len(source_ids))]

    def _blocks(
        self,
        engine: Engine,
        source_ids: Sequence[IntArray],
        kinds: Sequence[int],
        num_hypotheses: int,
        has_weights: bool,
    ) -> list[tuple[list[int], int]]:
        """Which sources to decode together, and how wide their block is; the longest first."""
        lengths = [max(1, len(ids)) for ids in source_ids]
        widths = [width_of(length, self._backend.max_length) for length in lengths]
        order = sorted(range(len(lengths)), key=lambda place: (-widths[place], kinds[place], -lengths[place]))
        blocks: list[tuple[list[int], int]] = []
        start = 0
        while start < len(order):
            first = order[start]
            width, kind = widths[first], kinds[first]
            rows = self._num_rows(engine, width, num_hypotheses, has_weights)
            if rows > 1 and lengths[first] < width:
                rows -= 1  # the place of the row that is as long as the block is wide
            end = start + 1
            while end < len(order) and end < start + rows and (widths[order[end]], kinds[order[end]]) == (width, kind):
                end += 1
            blocks.append((order[start:end], width))
            start = end
        return blocks

    def _num_rows(self, engine: Engine, width: int, num_hypotheses: int, has_weights: bool) -> int:
        """How many sources a block of this shape has: one where places or neighbours matter."""
        shape = width, num_hypotheses, has_weights
        if shape not in self._rows:
            rows = rows_of(width, num_hypotheses)
            is_well = rows == 1 or is_row_alone(engine, rows, *shape, self._num_source_tokens)
            self._rows[shape] = rows if is_well else 1
        return self._rows[shape]


def is_row_alone(
    engine: Engine, rows: int, width: int, num_hypotheses: int, has_weights: bool, num_source_tokens: int
) -> bool:
    """Try whether a row of a block gives the same bits at any place and beside any others.

    Three blocks of drawn sources take some steps: one as drawn; one with all rows moved by a place, so that each place
    is compared with its neighbour and thereby all with each other; one with every second row another source.

    Args:
        engine: what computes.
        rows: sources of a block, at least 2.
        width: positions of each.
        num_hypotheses: carried for each.
        has_weights: whether attention is compared as well.
        num_source_tokens: size of the source vocabulary.

    Returns:
        Whether no bit differed.

    Cost: that of encoding 3 blocks, and of 18 steps.
    """
    drawn = _Drawn.of(np.random.default_rng(rows * width), rows, width, num_hypotheses, num_source_tokens)
    bits = drawn.run(engine, has_weights)
    moved = np.roll(np.arange(rows), 1)
    if drawn.take(moved).run(engine, has_weights) != [bits[row] for row in moved]:
        return False
    others = _Drawn.of(np.random.default_rng(rows * width + 1), rows, width, num_hypotheses, num_source_tokens)
    is_other = np.arange(rows) % 2 == 1
    beside = drawn.replaced(is_other, others).run(engine, has_weights)
    return all(one == other for one, other, is_new in zip(bits, beside, is_other, strict=True) if not is_new)


@final
@dataclass(frozen=True)
class _Drawn:
    """Sources of a block, and what their hypotheses are fed; numbers in [0, 1) until the vocabulary is known."""

    source: IntArray
    lengths: IntArray
    tokens: FloatArray
    parents: IntArray

    @staticmethod
    def of(generator: np.random.Generator, rows: int, width: int, num_hypotheses: int, num_tokens: int) -> "_Drawn":
        lengths = generator.integers(max(1, width - _STEP + 1), width + 1, rows)
        lengths[0] = width
        source = generator.integers(_FIRST_TOKEN, max(num_tokens, _FIRST_TOKEN + 1), (rows, width))
        source[np.arange(width) >= lengths[:, None]] = PAD
        source[np.arange(rows), lengths - 1] = EOS
        shape = (rows, _TRIED_STEPS, num_hypotheses)
        return _Drawn(source, lengths, generator.random(shape), generator.integers(0, num_hypotheses, shape))

    def take(self, order: IntArray) -> "_Drawn":
        return _Drawn(self.source[order], self.lengths[order], self.tokens[order], self.parents[order])

    def replaced(self, is_other: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], others: "_Drawn") -> "_Drawn":
        order = np.where(is_other, len(is_other), 0) + np.arange(len(is_other))
        both = (
            np.concatenate((getattr(self, name), getattr(others, name)))
            for name in ("source", "lengths", "tokens", "parents")
        )
        return _Drawn(*both).take(order)

    def run(self, engine: Engine, has_weights: bool) -> list[bytes]:
        """For each row a digest of the bits of all log probabilities, and of the weights."""
        num_rows, _, num_hypotheses = self.tokens.shape
        state = engine.start(self.source, self.lengths, num_hypotheses)
        fed, parents = np.full((num_rows, num_hypotheses), BOS, dtype=np.int64), None
        found = [blake2b() for _ in range(num_rows)]
        for step in range(_TRIED_STEPS):
            scores, state = engine.step(state, fed, parents, None)
            for values in [scores.full(), *([scores.weights] if has_weights else [])]:
                for digest, row in zip(found, values, strict=True):
                    digest.update(row.tobytes())
            span = max(1, scores.vocab_size - _FIRST_TOKEN)
            fed = np.minimum(_FIRST_TOKEN + (self.tokens[:, step] * span).astype(np.int64), scores.vocab_size - 1)
            parents = self.parents[:, step] if num_hypotheses > 1 else None
        return [digest.digest() for digest in found]


def _num_phrase_ids(demand: Demand) -> int:
    tokens = set(map(int, chain.from_iterable([*demand.required, *demand.banned])))
    return len(tokens) * bool(len(demand.required))
