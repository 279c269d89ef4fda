"""Results that are the same to the last bit, whatever is decoded beside a source, in which order and in which batches.

In floating point a product of matrices depends on their sizes: with another number of rows other loops run, and sums
are rounded otherwise. So what a source gives depends, in its last bits, on its batch; and where two tokens are nearly
equally probable, the output does. Here an engine is given nothing that depends on anything but the source itself:

- sources are decoded in blocks, filled up with rows that stand for nothing to one of a few numbers of rows, which are
  known to give the same bits;
- the width of a block, padding included, is that of the source's length rounded up. Each block holds a
  row as long as it is wide, for some engines compute as far as the longest row;
- arrays lie in memory alike: the rows of a block are picked out of it before its first step, and hypotheses are
  rearranged at each step, even where each continues itself;
- rows whose search is over stay, and are fed a token that counts for nothing, until a smaller block holds the others.

What is left is the number of rows, a row's place among them, and its neighbours' numbers. Whether they matter is tried
(`heedful.runtime.block_probe`): when a shape is first met, blocks of drawn sources are decoded with their rows at other
places and beside others, and in blocks of other numbers of rows. A number that gives other bits is not used. Where
places or neighbours matter, as where products in eight bits share a scale, blocks of this shape have one row: then the
engine is given nothing but the source.

PyTorch computes by one thread here, for with several the order of sums depends on how rows are shared. Equal are
results of one model, engine and kind of processor, for ONNX Runtime with one number of threads. Samples depend on the
number of their line as well.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final, final

from heedful.runtime.block_probe import Trial
from heedful.runtime.blocks import BlockEngine, width_of
from heedful.runtime.engine import Backend, Stepwise
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.forced import ForcedDecoding, score_outputs
from heedful.search.inputs import InputArrays, InputDraw, Sources, as_inputs
from heedful.search.interface import Engine, Hypothesis


@final
class Exact(Backend):
    """An engine's search whose results depend on nothing but the source; the module's docstring says how."""

    has_own_batches = True

    def __init__(self, backend: Stepwise, draw: InputDraw) -> None:
        """Hold a backend.

        Args:
            backend: what searches.
            draw: draws sources of the kind that the model reads, to try places with.
        """
        self.name = backend.name
        self._backend: Final = backend
        self._draw: Final = draw
        self._trials: Final[dict[tuple[int, int, bool], Trial]] = {}

    def supports(self, config: SearchConfig, need_alignment: bool) -> str | None:
        return self._backend.supports(config, need_alignment)

    def supports_demand(self, demand: Constraints) -> str | None:
        return self._backend.supports_demand(demand)

    def supports_reading(self, need_alignment: bool) -> str | None:
        return self._backend.supports_reading(need_alignment)

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
        # How many of the best tokens an engine is asked for depends on how many the phrases of a source have.
        kinds = [0] * len(inputs) if constraints is None else [_num_phrase_ids(demand) for demand in constraints]
        results: list[list[Hypothesis]] = [[] for _ in kinds]
        with self._backend.single_threaded():
            for places, width in self._blocks(engine, inputs, kinds, config.width, has_weights):
                found = search(
                    self._block_engine(engine, width, config.width, has_weights),
                    inputs.take(places),
                    config,
                    max_length=self._backend.max_length,
                    need_alignment=need_alignment,
                    constraints=None if constraints is None else [constraints[place] for place in places],
                    cancelled=cancelled,
                )
                for place, hypotheses in zip(places, found, strict=True):
                    results[place] = hypotheses
        return results

    def read(
        self, sources: Sources, outputs: Sequence[Sequence[int]], need_alignment: bool = False
    ) -> list[ForcedDecoding]:
        inputs = as_inputs(sources)
        engine = self._backend.make_engine(need_alignment)
        readings: dict[int, ForcedDecoding] = {}
        with self._backend.single_threaded():
            for places, width in self._blocks(engine, inputs, [0] * len(inputs), 1, need_alignment):
                found = score_outputs(
                    self._block_engine(engine, width, 1, need_alignment),
                    inputs.take(places),
                    [outputs[place] for place in places],
                    need_alignment,
                )
                readings.update(zip(places, found, strict=True))
        return [readings[place] for place in range(len(inputs))]

    def _blocks(
        self,
        engine: Engine,
        inputs: InputArrays,
        kinds: Sequence[int],
        num_hypotheses: int,
        has_weights: bool,
    ) -> list[tuple[list[int], int]]:
        """Which sources to decode together, and how wide their block is; the longest first."""
        lengths: list[int] = inputs.num_positions.tolist()
        widths = [width_of(length, self._backend.max_length) for length in lengths]
        groups = list(zip(widths, kinds, strict=True))
        numbers = Counter(groups)
        order = sorted(range(len(lengths)), key=lambda place: (-widths[place], kinds[place], -lengths[place]))
        blocks: list[tuple[list[int], int]] = []
        start = 0
        while start < len(order):
            first = order[start]
            width, group = widths[first], groups[first]
            # A row as long as the block is wide needs a place where no source is.
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


def _num_phrase_ids(demand: Constraints) -> int:
    tokens = set(map(int, chain.from_iterable([*demand.required, *demand.banned])))
    return len(tokens) * bool(len(demand.required))
