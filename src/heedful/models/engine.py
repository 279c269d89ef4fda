"""Engine of a PyTorch model, behind the interface of search."""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.attention.interface import Need
from heedful.compiled.threads import follow_company, single_threaded
from heedful.models.inputs import inputs_on
from heedful.models.interface import Memory, Seq2Seq, State
from heedful.models.step_scores import TorchStepScores, compute_scores
from heedful.runtime.engine import Stepwise
from heedful.search.inputs import InputArrays
from heedful.search.interface import Engine, StepScores


@dataclass(frozen=True)
class _Running:
    """Engine state: the encoder's memory and the decoder state of each hypothesis."""

    memory: Memory
    state: State


@final
class TorchEngine(Engine):
    """Engine that runs a model step by step, in inference mode."""

    def __init__(self, model: Seq2Seq, with_weights: bool = False) -> None:
        """Wrap a model.

        Args:
            model: put into evaluation mode by the caller.
            with_weights: whether steps report attention, at the cost of slower kernels.
        """
        self._model = model
        self._need: tuple[Need, ...] = ("weights",) if with_weights else ()
        self._device = next(model.parameters()).device

    def start(self, inputs: InputArrays, num_hypotheses: int) -> object:
        follow_company()
        with torch.inference_mode():
            memory = self._model.encode(inputs_on(self._device, inputs))
            state = self._model.start(memory, num_hypotheses)
            return _Running(self._model.prepare_steps(memory), state)

    def step(
        self,
        state: object,
        tokens: NDArray[np.int64],
        parents: NDArray[np.int64] | None,
        keep: NDArray[np.int64] | None,
    ) -> tuple[StepScores, object]:
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
            return TorchStepScores(*compute_scores(self._model, decoded, self._need)), _Running(memory, inner)

    def _tensor(self, array: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device)


def torch_backend(model: Seq2Seq, max_length: int) -> Stepwise:
    """Make a backend of a model.

    Args:
        model: in evaluation mode; stays on its device.
        max_length: largest number of tokens of an output, EOS included.

    Returns:
        The backend.
    """

    def make_engine(with_weights: bool) -> Engine:
        return TorchEngine(model, with_weights)

    return Stepwise("torch", make_engine, max_length, bool(model.alignment), single_threaded)
