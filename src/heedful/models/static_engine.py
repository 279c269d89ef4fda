"""Decoding whose tensors stay where they are, so that a step can be recorded once and replayed: for GPUs.

A batch runs in a slot: tensors for the memory, for the state (twice, so that hypotheses change places from one to the
other) and for what is fed, of a size rounded up so that few slots serve all batches. Sources that are done make room
for those behind them; a batch that has shrunk to a quarter, or needs room for more tokens, moves to another slot. Rows
without a source compute something that nobody reads.
"""

import weakref
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.attention.attention_inputs import tensors_of, with_tensors
from heedful.attention.interface import Need
from heedful.models.inputs import inputs_on
from heedful.models.interface import Memory, Seq2Seq, State
from heedful.models.recording import Recorder
from heedful.models.step_scores import TorchStepScores, compute_scores
from heedful.search.inputs import InputArrays
from heedful.search.interface import Engine, StepScores

IntArray = NDArray[np.int64]

SOURCE_LENGTH: Final = 16
"""Least room for a source, in positions."""
CAPACITY: Final = 32
"""Least room for an output, in tokens."""
SPARE: Final = 4
"""Tokens found beside those that a search asks for, since it bans a few."""
FREE_BYTES: Final = 4 << 30
"""Most memory that slots without a batch may hold."""
UNBOUNDED: Final = 1 << 62
"""Capacity of a state that does not grow."""


class Size(NamedTuple):
    """Of a slot."""

    num_rows: int
    num_hypotheses: int
    source_length: int
    capacity: int
    need: tuple[Need, ...]


class Found(NamedTuple):
    """What a step gives, [row, hypothesis, *]."""

    log_probs: Tensor
    weights: Tensor | None
    values: Tensor
    """float64 log probabilities of the most probable tokens."""
    ids: Tensor
    """Those tokens."""


@final
class GraphBuffers:
    """Tensors for a batch, and a step over them that is recorded for each of the two places of the state."""

    def __init__(self, model: Seq2Seq, size: Size, memory: Memory, state: State, recorder: Recorder) -> None:
        """Make the tensors, and record.

        Args:
            model: in evaluation mode.
            size: of the slot.
            memory: of `num_rows` sources, as any batch of this size has.
            state: likewise, with room for `capacity` tokens.
            recorder: records the step.
        """
        self.size: Final = size
        self._model: Final = model
        self._memory: Final = with_tensors(memory, [part.new_zeros(part.shape) for part in tensors_of(memory)])
        self._states: Final = tuple(
            with_tensors(state, [part.new_zeros(part.shape) for part in tensors_of(state)]) for _ in range(2)
        )
        shape = (size.num_rows, size.num_hypotheses)
        self._tokens: Final = memory.lengths.new_zeros(shape, dtype=torch.int64)
        self._origins: Final = torch.zeros_like(self._tokens).flatten()
        self._found: dict[int, Found] = {}
        self._now = 0
        _fill(self._memory, memory)
        self._replays: Final[list[Callable[[], None]]] = []
        for place in range(2):
            # Numbers that may occur, and a place in an output that is not beyond its room.
            _fill(self._states[1 - place], state)
            self._replays.append(recorder.record(partial(self._work, place)))
        self.load(memory, state)

    @property
    def num_bytes(self) -> int:
        """What the tensors take."""
        parts = (self._memory, *self._states)
        return sum(tensor.numel() * tensor.element_size() for part in parts for tensor in tensors_of(part))

    @property
    def contents(self) -> tuple[Memory, State]:
        """Memory and state as they are now; to be read, not kept."""
        return self._memory, self._states[self._now]

    def load(self, memory: Memory, state: State) -> None:
        """Begin with a batch.

        Args:
            memory: of as many rows as the slot has.
            state: likewise.
        """
        _fill(self._memory, memory)
        _fill(self._states[self._now], state)

    def select(self, rows: Tensor) -> None:
        """Let the memories of some sources take the places of all; their states follow in the next step.

        Args:
            rows: [row] whose memory each row gets.
        """
        _fill(self._memory, self._memory.select(rows))

    def step(self, tokens: IntArray, origins: IntArray) -> Found:
        """Feed a token to each hypothesis.

        Args:
            tokens: [row, hypothesis] ids.
            origins: [row, hypothesis] whose state each continues, as row * hypotheses + hypothesis.

        Returns:
            The scores; valid until the next step of any slot.
        """
        self._tokens.copy_(torch.from_numpy(tokens))
        self._origins.copy_(torch.from_numpy(origins.reshape(-1)))
        self._now = 1 - self._now
        self._replays[self._now]()
        return self._found[self._now]

    def _work(self, place: int) -> None:
        own = self._states[place]
        for before, after in zip(tensors_of(self._states[1 - place]), tensors_of(own), strict=True):
            torch.index_select(before.flatten(0, 1), 0, self._origins, out=after.flatten(0, 1))
        decoded, stepped = self._model.step(self._tokens, own, self._memory, self.size.need)
        _fill(own, stepped)
        log_probs, weights = compute_scores(self._model, decoded, self.size.need)
        wanted = (self.size.num_hypotheses + 1 if self.size.num_hypotheses > 1 else 1) + SPARE
        values, ids = log_probs.topk(min(wanted, log_probs.shape[-1]), dim=-1)
        self._found[place] = Found(log_probs, weights, values.double(), ids)


@final
class GraphBufferPool:
    """The slots of a model: taken for a batch, given back after it."""

    def __init__(self, model: Seq2Seq, recorder: Recorder) -> None:
        """Begin without any.

        Args:
            model: in evaluation mode, on its device for good.
            recorder: records steps.
        """
        self._model: Final = model
        self._recorder: Final = recorder
        self._free: Final[OrderedDict[int, GraphBuffers]] = OrderedDict()

    def take(self, size: Size, memory: Memory, state: State) -> GraphBuffers:
        """Find a slot, or make one, and load a batch.

        Args:
            size: of the slot.
            memory: of as many rows.
            state: likewise, with room.

        Returns:
            The slot, used by nobody else.
        """
        fitting = [key for key, slot in list(self._free.items()) if slot.size == size]
        slot = self._free.pop(fitting[-1], None) if fitting else None
        if slot is None:
            return GraphBuffers(self._model, size, memory, state, self._recorder)
        slot.load(memory, state)
        return slot

    def give(self, slot: GraphBuffers) -> None:
        """Take a slot back; those that were not used for longest go where they hold too much memory.

        Args:
            slot: that nobody uses any more.
        """
        self._free[id(slot)] = slot
        while sum(each.num_bytes for each in list(self._free.values())) > FREE_BYTES:
            self._free.popitem(last=False)


@final
class _Run:
    """One batch on its way: the engine's state."""

    def __init__(self, slots: GraphBufferPool, source_width: int) -> None:
        self._slots: Final = slots
        self._held: Final[list[GraphBuffers]] = []
        self.source_width: Final = source_width
        self.num_read = 0
        # A search may end anywhere: whatever becomes of it, its slot is free after.
        weakref.finalize(self, _give_back, slots, self._held).atexit = False

    @property
    def slot(self) -> GraphBuffers:
        return self._held[0]

    def enter(self, size: Size, memory: Memory, state: State) -> None:
        """Move to a slot, and leave the one before."""
        taken = self._slots.take(size, memory, state)
        _give_back(self._slots, self._held)
        self._held.append(taken)


@final
class StaticEngine(Engine):
    """Runs a model step by step in slots; gives what `TorchEngine` gives."""

    def __init__(self, model: Seq2Seq, slots: GraphBufferPool, max_length: int, with_weights: bool = False) -> None:
        """Wrap a model.

        Args:
            model: in evaluation mode.
            slots: of that model, shared by its engines.
            max_length: most tokens of an output, end mark included: room beyond it is never made.
            with_weights: whether steps report attention.
        """
        self._model: Final = model
        self._slots: Final = slots
        self._max_length: Final = max_length
        self._need: Final[tuple[Need, ...]] = ("weights",) if with_weights else ()
        self._device: Final = next(model.parameters()).device

    def start(self, inputs: InputArrays, num_hypotheses: int) -> object:
        num_sources, width = len(inputs), inputs.width
        # Positions of a table may end where sources do.
        room = min(_rounded(width, SOURCE_LENGTH), max(width, self._max_length))
        num_rows = _rounded(num_sources, 1)
        with torch.inference_mode():
            memory = self._model.encode(inputs_on(self._device, inputs.widened(room)))
            memory = memory.select(self._tensor(_filled(np.arange(num_sources), num_rows)))
            run = _Run(self._slots, width)
            self._enter(run, memory, self._model.start(memory, num_hypotheses), room)
        return run

    def step(
        self, state: object, tokens: IntArray, parents: IntArray | None, keep: IntArray | None
    ) -> tuple[StepScores, object]:
        if not isinstance(state, _Run):
            raise TypeError(f"engine: got a state of type {type(state).__name__}")
        num_sources, num_hypotheses = tokens.shape
        rows = np.arange(num_sources) if keep is None else keep
        with torch.inference_mode():
            size = state.slot.size
            if 4 * num_sources <= size.num_rows or state.num_read >= size.capacity:
                chosen = self._tensor(_filled(rows, _rounded(num_sources, 1)))
                memory, inner = state.slot.contents
                self._enter(state, memory.select(chosen), inner.select(chosen), size.source_length)
                rows = np.arange(num_sources)
            elif keep is not None:
                state.slot.select(self._tensor(_filled(rows, size.num_rows)))
            slot = state.slot
            origins = np.zeros((slot.size.num_rows, num_hypotheses), dtype=np.int64)
            within = np.arange(num_hypotheses) if parents is None else parents
            origins[:num_sources] = rows[:, None] * num_hypotheses + within
            fed = np.zeros_like(origins)
            fed[:num_sources] = tokens
            found = slot.step(fed, origins)
        state.num_read += 1
        real = slice(num_sources)
        weights = None if found.weights is None else found.weights[real, ..., : state.source_width]
        return TorchStepScores(found.log_probs[real], weights, (found.values[real], found.ids[real])), state

    def _enter(self, run: _Run, memory: Memory, state: State, source_length: int) -> None:
        """Move a batch, of a number of rows that slots have, to a slot with room for the next tokens."""
        capacity = min(_rounded(run.num_read + 1, CAPACITY), max(self._max_length, run.num_read + 1))
        reserved = self._model.reserve(state, capacity)
        num_rows, num_hypotheses = tensors_of(state)[0].shape[:2]
        grows = reserved is not state
        size = Size(num_rows, num_hypotheses, source_length, capacity if grows else UNBOUNDED, self._need)
        run.enter(size, memory, reserved)

    def _tensor(self, array: IntArray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device)


def _rounded(number: int, least: int) -> int:
    """The next power of two."""
    return max(least, 1 << max(0, number - 1).bit_length())


def _filled(rows: IntArray, number: int) -> IntArray:
    """As many as asked, the first one again where there are fewer."""
    return np.concatenate((rows, np.full(number - len(rows), rows[0])))


def _fill(places: Memory | State, given: Memory | State) -> None:
    for place, part in zip(tensors_of(places), tensors_of(given), strict=True):
        if place is not part:
            place.copy_(part)


def _give_back(slots: GraphBufferPool, held: list[GraphBuffers]) -> None:
    while held:
        slots.give(held.pop())
