"""Probe of which block shapes an engine computes bit-identically; used by `heedful.engines.exact`."""

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, final

import numpy as np

from heedful.engines.blocks import MOST_ROWS, STEP, rows_of
from heedful.search.inputs import InputArrays, InputDraw
from heedful.search.interface import Engine, IntArray
from heedful.text.vocabulary import BOS, EOS

_REFERENCE_ROWS: Final = 16
"""Maximum number of rows of the reference blocks, with which blocks of other sizes are compared."""
_TRIED_STEPS: Final = 4
_FIRST_TOKEN: Final = EOS + 1


@final
@dataclass
class Trial:
    """Probe of one block shape: the numbers of rows that give bit-identical results, probed when first needed.

    Attributes:
        width: source positions of a block, padding included.
        num_hypotheses: number of hypotheses per source.
        has_weights: whether attention weights are compared too.
        draw: function that draws random sources of the kind that the model reads.
    """

    width: int
    num_hypotheses: int
    has_weights: bool
    draw: InputDraw
    _known: dict[int, bool] = field(default_factory=dict)
    _bits: list[bytes] = field(default_factory=list)

    def most(self, engine: Engine, num_rows: int) -> int:
        """Return the largest number of rows that a block may have.

        Args:
            num_rows: number of rows to decode; blocks of twice as many rows or more are not probed.

        Returns:
            The number of rows; 1 if a row's index in the block or its neighbours change its results.
        """
        sizes = [size for size in self._sizes() if size < 2 * num_rows]
        return next((size for size in reversed(sizes) if self._is_same(engine, size)), 1)

    def fitting(self, engine: Engine, rows: int) -> int:
        """Return the smallest block size that has room for some rows.

        Args:
            rows: number of rows, at most `most`.

        Returns:
            The number of rows of the block.
        """
        return next((size for size in self._sizes() if size >= rows and self._is_same(engine, size)), 1)

    def _sizes(self) -> list[int]:
        most = rows_of(self.width, self.num_hypotheses)
        return [2**power for power in range(1, most.bit_length())]

    def _is_same(self, engine: Engine, size: int) -> bool:
        if size not in self._known:
            self._known[size] = self._is_alone(engine) and self._is_like_reference(engine, size)
        return self._known[size]

    def _is_alone(self, engine: Engine) -> bool:
        """Whether a row gives the same bits at another index of the block and beside other rows."""
        half = self._half
        if 0 not in self._known:
            rows = np.arange(2 * half)
            self._bits = [*self._run(engine, rows[:half]), *self._run(engine, rows[half:])]
            moved = np.roll(rows.reshape(2, half), 1, axis=1)
            is_odd = np.arange(half) % 2 == 1
            mixed = (np.where(is_odd, *moved), np.where(is_odd, *moved[::-1]))
            self._known[0] = all(self._run(engine, order) == [self._bits[row] for row in order] for order in mixed)
        return self._known[0]

    def _is_like_reference(self, engine: Engine, size: int) -> bool:
        half, order = self._half, np.roll(np.arange(size), 1)
        while len(self._bits) < size:
            self._bits += self._run(engine, np.arange(half) + len(self._bits))
        return size == half or self._run(engine, order) == [self._bits[row] for row in order]

    @property
    def _half(self) -> int:
        return min(_REFERENCE_ROWS, rows_of(self.width, self.num_hypotheses))

    def _run(self, engine: Engine, order: IntArray) -> list[bytes]:
        """Digest, for each row, of the bits of all its log probabilities and, if compared, attention weights."""
        inputs, numbers, moves = self._drawn(np.random.default_rng(self.width))
        numbers, moves = numbers[order], moves[order]
        fed, parents, keep = (
            np.full((len(order), self.num_hypotheses), BOS, dtype=np.int64),
            None,
            np.arange(len(order)),
        )
        state = engine.start(inputs.take(order).widened(self.width), self.num_hypotheses)
        digests = [blake2b() for _ in order]
        for step in range(_TRIED_STEPS):
            scores, state = engine.step(state, fed, parents, keep)
            for values in [scores.full(), *([scores.weights] if self.has_weights else [])]:
                for digest, row in zip(digests, values, strict=True):
                    digest.update(row.tobytes())
            span = max(1, scores.vocab_size - _FIRST_TOKEN)
            fed = np.minimum(_FIRST_TOKEN + numbers[:, step] % span, scores.vocab_size - 1)
            parents, keep = (moves[:, step] if self.num_hypotheses > 1 else None), None
        return [digest.digest() for digest in digests]

    def _drawn(self, generator: np.random.Generator) -> tuple[InputArrays, IntArray, IntArray]:
        """Random sources, numbers that determine the tokens fed to their hypotheses, and parents of the hypotheses."""
        rows = max(MOST_ROWS, 2 * self._half)
        lengths = generator.integers(max(1, self.width - STEP + 1), self.width + 1, rows)
        # Every probed block, whatever its number of rows, has a row as long as the block is wide.
        lengths[::2] = self.width
        inputs = self.draw(lengths, generator)
        shape = (rows, _TRIED_STEPS, self.num_hypotheses)
        return inputs, generator.integers(0, 2**31, shape), generator.integers(0, self.num_hypotheses, shape)
