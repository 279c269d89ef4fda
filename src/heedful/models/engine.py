"""Engine of a PyTorch model, behind the interface of search."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from heedful.attention.interface import Need
from heedful.cpu.threads import adapt_threads, single_threaded
from heedful.data.batching import teacher_forced
from heedful.engines.engine import Stepwise
from heedful.models.inputs import inputs_on
from heedful.models.interface import Memory, Seq2Seq, State
from heedful.models.recorded_decoder import RecordedDecoder, RecordedSearch
from heedful.models.recording import make_recorder
from heedful.models.step_scores import TorchStepScores, compute_scores, step_weights
from heedful.search.inputs import InputArrays, TokenArrays
from heedful.search.interface import Engine, IntArray, PosteriorEngine, StepScores, WeightsArray
from heedful.search.listed_scores import ListedScores
from heedful.text.shortlist import Shortlist


@dataclass(frozen=True)
class _Running:
    """Engine state: the encoder's memory and the decoder state of each hypothesis."""

    memory: Memory
    state: State
    listed: "_Listed | None" = None


@dataclass(frozen=True)
class _Listed:
    """Tokens of a vocabulary shortlist, and their rows of the output layer."""

    ids: IntArray
    weight: Tensor
    bias: Tensor | None


@final
class TorchEngine(Engine, PosteriorEngine):
    """Engine that runs a model step by step, in inference mode.

    Example:
        >>> from heedful.models.luong import LuongConfig
        >>> from heedful.search.beam import search
        >>> from heedful.search.config import SearchConfig
        >>> model = LuongConfig(num_layers=1, hidden_size=8).build(20, 30, is_shared=False).eval()
        >>> (found,) = search(TorchEngine(model), [np.array([5, 6, 3])], SearchConfig(nbest=2), max_length=4)
        >>> len(found)
        2
    """

    def __init__(
        self,
        model: Seq2Seq,
        with_weights: bool = False,
        shortlist: Shortlist | None = None,
        recorded: RecordedDecoder | None = None,
    ) -> None:
        """Wrap a model.

        Args:
            model: put into evaluation mode by the caller.
            with_weights: whether steps report attention, at the cost of slower kernels.
            shortlist: vocabulary shortlist that scores are restricted to, for a model that does not copy; None = the
                whole vocabulary.
            recorded: recorded steps of the same model, with the same results; None = steps are launched one by one.
        """
        self._recorded = recorded
        self._model = model
        self._shortlist = shortlist
        self._need: tuple[Need, ...] = ("weights",) if with_weights else ()
        self._device = next(model.parameters()).device

    def start(self, inputs: InputArrays, num_hypotheses: int) -> object:
        adapt_threads()
        if self._recorded is not None and (search := self._recorded.begin(inputs, num_hypotheses)) is not None:
            return search
        with torch.inference_mode():
            memory = self._model.encode(inputs_on(self._device, inputs))
            state = self._model.start(memory, num_hypotheses)
            return _Running(self._model.prepare_steps(memory), state, self._listed(inputs))

    def step(
        self,
        state: object,
        tokens: NDArray[np.int64],
        parents: NDArray[np.int64] | None,
        keep: NDArray[np.int64] | None,
    ) -> tuple[StepScores, object]:
        if isinstance(state, RecordedSearch):
            return state.step(tokens, parents, keep), state
        if not isinstance(state, _Running):
            raise TypeError(f"engine: got a state of type {type(state).__name__}")
        with torch.inference_mode():
            memory, inner = state.memory, state.state
            if keep is not None:
                rows = self._tensor(keep)
                memory, inner = memory.select(rows), inner.select(rows)
            if parents is not None:
                inner = inner.reorder(self._tensor(parents))
            decoded, inner = self._model.step(self._tensor(tokens), inner, memory, self._need)
            listed = state.listed
            scores: StepScores
            if listed is None:
                scores = TorchStepScores(*compute_scores(self._model, decoded, self._need))
            else:
                logits = functional.linear(decoded.features, listed.weight, listed.bias)
                log_probs = torch.log_softmax(logits if logits.dtype == torch.float64 else logits.float(), dim=-1)
                own = TorchStepScores(log_probs, step_weights(self._model, decoded, self._need))
                scores = ListedScores(own, listed.ids, self._model.output.weight.shape[0])
            return scores, _Running(memory, inner, listed)

    def posteriors(self, inputs: InputArrays, outputs: Sequence[Sequence[int]]) -> list[WeightsArray] | None:
        if not self._model.has_posteriors:
            return None
        targets = [np.array(output, dtype=np.int64) for output in outputs]
        target_in, target_out, _ = (self._tensor(array) for array in teacher_forced(targets))
        with torch.inference_mode():
            weights = self._model.posteriors(inputs_on(self._device, inputs), target_in, target_out)
        return [
            row[: len(output), :width]
            for row, output, width in zip(weights.float().cpu().numpy(), outputs, inputs.num_positions, strict=True)
        ]

    def _listed(self, inputs: InputArrays) -> _Listed | None:
        """Candidates of all sources of a batch; None = the whole vocabulary."""
        if self._shortlist is None or not isinstance(inputs, TokenArrays):
            return None
        ids, layer = self._shortlist.of_batch(inputs.sequences), self._model.output
        rows = self._tensor(ids)
        return _Listed(ids, layer.weight[rows], None if layer.bias is None else layer.bias[rows])

    def _tensor(self, array: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device)


def torch_backend(model: Seq2Seq, max_length: int, read_shortlist: Callable[[], Shortlist] | None = None) -> Stepwise:
    """Make a backend of a model.

    Args:
        model: in evaluation mode; stays on its device.
        max_length: largest number of tokens of an output, EOS included.
        read_shortlist: reader of a vocabulary shortlist, called when one is first used; None = there is none.
    """

    @cache
    def recorded(with_weights: bool) -> RecordedDecoder | None:
        recorder = make_recorder(next(model.parameters()).device)
        return None if recorder is None else RecordedDecoder(model, ("weights",) if with_weights else (), recorder)

    def make_engine(with_weights: bool) -> Engine:
        return TorchEngine(model, with_weights, recorded=recorded(with_weights))

    def make_listed(with_weights: bool) -> Engine:
        return TorchEngine(model, with_weights, read_once() if read_once else None)

    read_once = cache(read_shortlist) if read_shortlist and model.has_linear_output else None
    listed = make_listed if read_once else None
    return Stepwise("torch", make_engine, max_length, bool(model.alignment), single_threaded, listed)
