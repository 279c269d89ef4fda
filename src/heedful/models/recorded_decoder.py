"""Steps of a decoder, recorded once for each padded shape and replayed: for GPUs.

A step launches hundreds of small programs, which takes longer than running them; replayed, they cost one launch. All
that a search changes lies in tensors that stay where they are: tokens, the hypothesis that each one continues, memory
and state of the model. A search that ends early leaves its rows computing: narrower shapes would have to be recorded.
"""

import threading
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.attention.dispatch import observer
from heedful.attention.interface import Need
from heedful.attention.tensor_tree import is_open, map_leaves, tensors_of
from heedful.errors import UsageError
from heedful.models.inputs import inputs_on
from heedful.models.interface import Memory, Seq2Seq, State
from heedful.models.recording import Recorder, give_memory_back
from heedful.models.step_scores import TorchStepScores, compute_scores
from heedful.search.inputs import InputArrays
from heedful.search.interface import StepScores

IntArray = NDArray[np.int64]
Work = Callable[[], None]
Result = TypeVar("Result")

POSITION_MULTIPLE: Final = 16
"""Multiple that numbers of source positions are rounded up to; numbers of sources become powers of two."""
ROOM: Final = 32
"""Number of steps that a state has room for at first; doubled whenever it is full."""
SPARE: Final = 8
"""Number of best tokens beyond two for each hypothesis that a step gives: some may be forbidden."""
MOST_SHAPES: Final = 32
"""Number of recorded shapes; each keeps its memory and state."""
TOLERANCE: Final = 1e-2
"""Difference of log probabilities of a replayed and a launched step above which recordings are given up."""


@final
class DecoderShape:
    """Tensors of one search at a time, and the recorded step over them."""

    def __init__(self, model: Seq2Seq, memory: Memory, state: State, need: tuple[Need, ...]) -> None:
        """Make the tensors, with a first step.

        Args:
            model: in evaluation mode.
            memory: of any sources.
            state: fixed one of theirs.
            need: attention summaries of each step: weights, or nothing.

        Raises:
            RuntimeError: the state grows.
        """
        self._model: Final = model
        self._need: Final = need
        self.memory: Final = map_leaves(memory, _copied)
        self.state: Final = map_leaves(state, _copied)
        self.kept: Final = [*model.buffers(), *model.parameters()]
        """Tensors that the recording reads, also where the model has put others into their places."""
        first = tensors_of(self.state)[0]
        self.size: Final = first.shape[:2]
        # Each hypothesis has a token of its own at first, and goes on from another one.
        numbers = torch.arange(self.size[1], device=first.device).expand(self.size)
        self.ids: Final = torch.stack((numbers % len(model.output.weight), numbers.flip(-1)))
        """[2, source, hypothesis] tokens to feed, and hypotheses that are continued."""
        scores, weights, values, _ = self._advance()
        self.scores: Final = scores.clone()
        self.weights: Final = None if weights is None else weights.clone()
        self.best: Final = torch.zeros((2, *values.shape), dtype=torch.float64, device=first.device)
        """[2, source, hypothesis, best] log probabilities and ids of the most probable tokens."""
        self.replay: Work | None = None
        """Recorded step; None = it is launched."""
        self.search: Callable[[], RecordedSearch | None] = lambda: None
        """Search that the tensors belong to; None = they are free."""

    def take(self, memory: Memory, state: State) -> None:
        """Begin with the memory and the state of other sources.

        Args:
            memory: of the same shapes.
            state: of the same shapes.
        """
        for old, new in zip(tensors_of((self.memory, self.state)), tensors_of((memory, state)), strict=True):
            old.copy_(new)

    def work(self) -> None:
        """Reorder the state, make a step, and leave state and scores where they were."""
        scores, weights, values, ids = self._advance()
        self.scores.copy_(scores)
        if self.weights is not None and weights is not None:
            self.weights.copy_(weights)
        self.best[0].copy_(values)
        self.best[1].copy_(ids)

    def _advance(self) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
        """Scores, weights, and log probabilities and ids of the best tokens, after a step of the state."""
        tokens, parents = self.ids.unbind()
        own = tensors_of(self.state)
        if self.size[1] > 1:
            _put(own, tensors_of(self.state.reorder(parents)))
        decoded, after = self._model.step(tokens, self.state, self.memory, self._need)
        _put(own, tensors_of(after))
        scores, weights = compute_scores(self._model, decoded, self._need)
        values, ids = scores.topk(min(2 * self.size[1] + SPARE, scores.shape[-1]), dim=-1)
        return scores, weights, values, ids


@final
class RecordedDecoder:
    """Recorded steps of one model's decoder, for any number of searches."""

    def __init__(self, model: Seq2Seq, need: tuple[Need, ...], recorder: Recorder) -> None:
        """Start with nothing recorded.

        Args:
            model: in evaluation mode, on its device.
            need: attention summaries of each step: weights, or nothing.
            recorder: recorder of the device.
        """
        self._model: Final = model
        self._need: Final = need
        self._recorder: Final = recorder
        self._device: Final = next(model.parameters()).device
        self._shapes: Final[dict[Any, list[DecoderShape]]] = {}
        self._lock: Final = threading.Lock()
        self._places: Final = list[int]()
        self.is_given_up = False
        """True where steps are launched operation by operation: the state grows, or a recording failed."""

    def begin(self, inputs: InputArrays, num_hypotheses: int) -> "RecordedSearch | None":
        """Encode sources, and make the state before the first step.

        Args:
            inputs: the sources.
            num_hypotheses: number of hypotheses per source.

        Returns:
            The search; None if its steps are not recorded.

        Raises:
            OutOfMemoryError: the device's memory does not hold the sources.
        """
        if self.is_given_up or observer.get() is not None:  # a replayed step calls nobody
            return None
        self._follow_weights()
        try:
            return self._with_memory(partial(self._begin, inputs, _padded(inputs), num_hypotheses))
        except UsageError:  # padded sources may be longer than the model reads
            return None

    def _follow_weights(self) -> None:
        """Forget all recordings if the weights have moved; new numbers in the old places are read."""
        places = [parameter.data_ptr() for parameter in self._model.parameters()]
        with self._lock:
            if places != self._places:
                self._shapes.clear()
                self._places[:] = places

    def _with_memory(self, work: Callable[[], Result]) -> Result:
        """Do work again without the recorded shapes, if memory does not hold it beside them.

        Raises:
            OutOfMemoryError: it does not hold the work alone either.
        """
        try:
            return work()
        except torch.OutOfMemoryError:
            if not self._shapes:
                raise
        # Outside the handler, whose traceback holds tensors.
        with self._lock:
            self._shapes.clear()
        give_memory_back()
        return work()

    def _begin(self, inputs: InputArrays, padded: InputArrays, num_hypotheses: int) -> "RecordedSearch | None":
        with torch.inference_mode():
            encoded = self._model.encode(inputs_on(self._device, padded))
            fixed = self._model.fixed_state(self._model.start(encoded, num_hypotheses), ROOM)
            if fixed is None:
                self.is_given_up = True
                return None
            state, room = fixed
            search = RecordedSearch(self, len(inputs), inputs.width, room)
            return search if self.place(search, self._model.prepare_steps(encoded), state) else None

    def grow(self, search: "RecordedSearch", room: int) -> int:
        """Give a search room for more steps.

        Args:
            search: search that has no room left.
            room: wanted number of steps, those that were made included.

        Returns:
            Number of steps that it has room for.

        Raises:
            OutOfMemoryError: the device's memory does not hold them.
        """
        shape = search.shape
        with torch.inference_mode():
            fixed = self._model.fixed_state(shape.state, room)
            state, room = fixed if fixed is not None else (shape.state, room)
            if not self._with_memory(partial(self.place, search, shape.memory, state)):
                search.shape = DecoderShape(self._model, shape.memory, state, self._need)  # launched from here on
            return room

    def place(self, search: "RecordedSearch", memory: Memory, state: State) -> bool:
        """Give a search the recorded step for its shape.

        Args:
            search: search that takes it until it ends.
            memory: of its sources.
            state: state from which it goes on.

        Returns:
            Whether there is one.
        """
        tensors = tensors_of((memory, state))
        key = tuple((tensor.shape, tensor.dtype) for tensor in tensors)
        with self._lock:
            free = (each for each in self._shapes.get(key, ()) if each.search() in (None, search))
            shape = next(free, None)
            if shape is None:
                shape = self._recorded(memory, state)
                if shape is None:
                    return False
                if sum(map(len, self._shapes.values())) >= MOST_SHAPES:
                    self._shapes.clear()  # searches under way keep theirs
                self._shapes.setdefault(key, []).append(shape)
            shape.search = weakref.ref(search)
            shape.take(memory, state)
            search.shape = shape
        return True

    def _recorded(self, memory: Memory, state: State) -> DecoderShape | None:
        """Record the step of a shape; None if this is impossible, or does not give what launched steps give.

        Raises:
            OutOfMemoryError: the device's memory does not hold it.
        """
        problem, shape = "" if is_open((memory, state)) else "memory or state of the model holds a function", None
        try:
            if not problem:
                shape = DecoderShape(self._model, memory, state, self._need)
                shape.take(memory, state)
                shape.replay = self._recorder.record(shape.work)
                problem = "" if self._shapes else _difference(shape, memory, state)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            problem = str(error).partition("\n")[0]
        if not problem:
            return shape
        self.is_given_up = True
        self._shapes.clear()
        text = f"steps of decoding are not recorded as CUDA graphs, and take longer: {problem}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
        return None


@final
class RecordedSearch:
    """State of a search whose steps are replayed."""

    shape: DecoderShape
    """Tensors of the search; others when it has made many steps."""

    def __init__(self, decoder: RecordedDecoder, num_sources: int, width: int, room: int) -> None:
        """Begin with all sources.

        Args:
            decoder: gives the recorded steps.
            num_sources: number of sources, padding excluded.
            width: number of positions that weights have.
            room: number of steps that the state has room for.
        """
        self._decoder: Final = decoder
        self._width: Final = width
        self._rows = np.arange(num_sources)
        self._num_steps = 0
        self._room = room

    def step(self, tokens: IntArray, parents: IntArray | None, keep: IntArray | None) -> StepScores:
        """Make a step, as `Engine.step` does.

        Args:
            tokens: [source, hypothesis] ids to feed.
            parents: [source, hypothesis] hypotheses that are continued; None = each itself.
            keep: [kept] rows that stay; None = all.

        Returns:
            The scores, valid until the next step.
        """
        if keep is not None:
            self._rows = self._rows[keep]
        if self._num_steps == self._room:
            self._room = self._decoder.grow(self, 2 * self._room)
        shape = self.shape
        self._num_steps += 1
        ids = np.zeros((2, *shape.size), dtype=np.int64)
        ids[1] = np.arange(shape.size[1])
        ids[0, self._rows] = tokens
        if parents is not None:
            ids[1, self._rows] = parents
        with torch.inference_mode():
            shape.ids.copy_(torch.from_numpy(ids))
            (shape.replay or shape.work)()
            return self._scores(shape)

    def _scores(self, shape: DecoderShape) -> StepScores:
        best = shape.best.cpu()[:, torch.from_numpy(self._rows)]  # the only moment at which the host waits
        weights = None if shape.weights is None else self._of_rows(shape.weights)[..., : self._width]
        return TorchStepScores(self._of_rows(shape.scores), weights, (best[0], best[1].long()))

    def _of_rows(self, tensor: Tensor) -> Tensor:
        num_rows = len(self._rows)
        if num_rows and self._rows[-1] == num_rows - 1:
            return tensor[:num_rows]
        return tensor.index_select(0, torch.from_numpy(self._rows).to(tensor.device))


def _padded(inputs: InputArrays) -> InputArrays:
    """Sources with dummies up to a power of two, and positions up to a multiple."""
    size = 1 << max(0, len(inputs) - 1).bit_length()
    padded = inputs.with_fillers([1] * (size - len(inputs)))
    return padded.widened(inputs.width + -inputs.width % POSITION_MULTIPLE)


def _copied(tensor: Tensor) -> Tensor:
    return tensor.clone(memory_format=torch.contiguous_format)


def _put(places: list[Tensor], tensors: list[Tensor]) -> None:
    """Copy tensors to where others are, unless they are these.

    Raises:
        RuntimeError: their shapes differ.
    """
    if any(old.shape != new.shape for old, new in zip(places, tensors, strict=True)):
        raise RuntimeError("the state of the decoder grows from step to step")
    # One of the others may lie in a place that is written before it is read.
    moved = [new if new is old else new.clone() for old, new in zip(places, tensors, strict=True)]
    for old, new in zip(places, moved, strict=True):
        if new is not old:
            old.copy_(new)


def _difference(shape: DecoderShape, memory: Memory, state: State) -> str:
    """Difference between the second steps of a launched and a replayed search; empty = none."""
    results = list[Tensor]()
    for work in (shape.work, shape.replay or shape.work):
        shape.take(memory, state)
        shape.best.fill_(1.0)  # no log probability
        for _ in range(2):
            work()
        results.append(shape.best[0].clone())
    launched, again = results
    # Infinities of the same sign differ by NaN.
    is_same = (launched == again) | (launched.isnan() & again.isnan())
    difference = float((launched - again).abs().masked_fill(is_same, 0.0).max())
    return "" if difference <= TOLERANCE else f"log probabilities of a replayed step differ by {difference:.3g}"
