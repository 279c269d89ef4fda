"""Bit-exact decoding: the same result for a source in every batch, in any order, beside any other sources.

In floating point, the rounding of a matrix product depends on the sizes of the matrices: another number of rows may
select other loops, which sum in another order. So the last bits of a source's scores depend on its batch, and if two
tokens are nearly equally probable, so does the output. Here an engine computes only with shapes that depend on the
source itself:

- sources are decoded in blocks, padded with dummy rows to one of a few numbers of rows that are known to give the same
  bits;
- the width of a block, padding included, is the source's length rounded up. Each block has a row of that length,
  because some engines compute only up to the longest row;
- arrays always have the same memory layout: the rows of a block are selected before its first step, and hypotheses are
  reordered at each step, even if each continues itself;
- rows whose search has finished stay in the block, with a token as dummy input, until the other rows fit into a smaller
  block.

Three influences remain: the number of rows, the index of a row, and the values of its neighbours. When a shape first
occurs, a probe (`heedful.engines.block_probe`) decodes random sources at other row indices, beside other rows, and in
blocks with other numbers of rows. A number of rows that gives other bits is not used. If the index or the neighbours
change the bits, as in int8 products whose rows share a scale, blocks of this shape have one row: the source alone.

PyTorch uses one thread here, because with several the order of sums depends on how rows are divided among them. Results
are identical for the same model, engine and type of processor, and for ONNX Runtime also the same number of threads.
Samples also depend on the index of their line.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final, final

from heedful.engines.block_probe import Trial
from heedful.engines.blocks import BlockEngine, width_of
from heedful.engines.engine import Backend, Stepwise
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.forced import ForcedDecoding, score_outputs
from heedful.search.inputs import InputArrays, InputDraw, Sources, as_inputs
from heedful.search.interface import Engine, Hypothesis


@final
class Exact(Backend):
    """Backend whose results depend only on the source; the module docstring explains how."""

    has_own_batches = True

    def __init__(self, backend: Stepwise, draw: InputDraw) -> None:
        """Wrap a backend.

        Args:
            backend: backend that decodes token by token.
            draw: function that draws random sources of the kind that the model reads, for the probe.
        """
        self.name = backend.name
        self._backend: Final = backend
        self._draw: Final = draw
        self._trials: Final[dict[tuple[int, int, bool], Trial]] = {}

    def supports(self, config: SearchConfig, need_alignment: bool) -> str | None:
        return self._backend.supports(config, need_alignment)

    def supports_constraints(self, constraints: Constraints) -> str | None:
        return self._backend.supports_constraints(constraints)

    def supports_scoring(self, need_alignment: bool) -> str | None:
        return self._backend.supports_scoring(need_alignment)

    def decode(
        self,
        sources: Sources,
        config: SearchConfig,
        need_alignment: bool = False,
        cancelled: Callable[[], bool] | None = None,
        constraints: Sequence[Constraints] | None = None,
    ) -> list[list[Hypothesis]]:
        inputs = as_inputs(sources)
        engine = self._backend.make_engine(need_alignment or config.beta > 0.0)
        has_weights = need_alignment or config.beta > 0.0
        # The k of an engine's top-k depends on the number of different tokens in the phrases of a source.
        kinds = [0] * len(inputs) if constraints is None else [_num_phrase_ids(one) for one in constraints]
        results: list[list[Hypothesis]] = [[] for _ in kinds]
        with self._backend.single_threaded():
            for positions, width in self._blocks(engine, inputs, kinds, config.width, has_weights):
                outputs = search(
                    self._block_engine(engine, width, config.width, has_weights),
                    inputs.take(positions),
                    config,
                    max_length=self._backend.max_length,
                    need_alignment=need_alignment,
                    constraints=None if constraints is None else [constraints[position] for position in positions],
                    cancelled=cancelled,
                )
                for position, hypotheses in zip(positions, outputs, strict=True):
                    results[position] = hypotheses
        return results

    def score(
        self, sources: Sources, outputs: Sequence[Sequence[int]], need_alignment: bool = False
    ) -> list[ForcedDecoding]:
        inputs = as_inputs(sources)
        engine = self._backend.make_engine(need_alignment)
        results: dict[int, ForcedDecoding] = {}
        with self._backend.single_threaded():
            for positions, width in self._blocks(engine, inputs, [0] * len(inputs), 1, need_alignment):
                decodings = score_outputs(
                    self._block_engine(engine, width, 1, need_alignment),
                    inputs.take(positions),
                    [outputs[position] for position in positions],
                    need_alignment,
                )
                results.update(zip(positions, decodings, strict=True))
        return [results[index] for index in range(len(inputs))]

    def _blocks(
        self,
        engine: Engine,
        inputs: InputArrays,
        kinds: Sequence[int],
        num_hypotheses: int,
        has_weights: bool,
    ) -> list[tuple[list[int], int]]:
        """Blocks, the longest first: the indices of the sources in each, and its width."""
        lengths: list[int] = inputs.num_positions.tolist()
        widths = [width_of(length, self._backend.max_length) for length in lengths]
        groups = list(zip(widths, kinds, strict=True))
        numbers = Counter(groups)
        order = sorted(
            range(len(lengths)), key=lambda position: (-widths[position], kinds[position], -lengths[position])
        )
        blocks: list[tuple[list[int], int]] = []
        start = 0
        while start < len(order):
            first = order[start]
            width, group = widths[first], groups[first]
            # If no source is as long as the block is wide, one dummy row has that length.
            more = int(lengths[first] < width)
            rows = self._trial(width, num_hypotheses, has_weights).most(engine, numbers[group] + more)
            rows = min(max(1, rows - more), numbers[group])
            blocks.append((order[start : start + rows], width))
            numbers[group] -= rows
            start += rows
        return blocks

    def _trial(self, width: int, num_hypotheses: int, has_weights: bool) -> Trial:
        shape = width, num_hypotheses, has_weights
        return self._trials.setdefault(shape, Trial(*shape, self._draw))

    def _block_engine(self, engine: Engine, width: int, num_hypotheses: int, has_weights: bool) -> BlockEngine:
        trial = self._trial(width, num_hypotheses, has_weights)
        return BlockEngine(engine, width, lambda rows: trial.fitting(engine, rows))


def _num_phrase_ids(constraints: Constraints) -> int:
    tokens = set(map(int, chain.from_iterable([*constraints.required, *constraints.banned])))
    return len(tokens) * bool(len(constraints.required))
