"""A PyTorch model behind the interface that search knows."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.attention.interface import Need
from heedful.models.interface import Memory, Seq2Seq, State
from heedful.runtime.engine import Stepwise
from heedful.search.interface import Adjust, Engine, StepScores


@dataclass(frozen=True)
class _Running:
    """The engine's state: what the encoder gave, and where each hypothesis is."""

    memory: Memory
    state: State


@final
class TorchStepScores(StepScores):
    """Scores of one step; log-softmax and top-k run on the model's device."""

    def __init__(self, log_probs: Tensor, weights: Tensor | None) -> None:
        self._log_probs = log_probs
        self._weights = weights

    def top(self, k: int, adjust: Adjust | None = None) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        k = min(k, self._log_probs.shape[-1])
        with torch.inference_mode(), _changed(self._log_probs, adjust) as log_probs:
            values, ids = log_probs.max(dim=-1, keepdim=True) if k == 1 else log_probs.topk(k, dim=-1)
        return values.double().cpu().numpy(), ids.cpu().numpy()

    def full(self) -> NDArray[np.float64]:
        return self._log_probs.double().cpu().numpy()

    def of(
        self, sources: NDArray[np.int64], hypotheses: NDArray[np.int64], ids: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        places = tuple(torch.from_numpy(axis).to(self._log_probs.device) for axis in (sources, hypotheses, ids))
        return self._log_probs[places].double().cpu().numpy()

    @property
    def vocab_size(self) -> int:
        return self._log_probs.shape[-1]

    @property
    def weights(self) -> NDArray[np.float32]:
        if self._weights is None:
            raise ValueError("engine: made without weights; construct it with with_weights=True")
        return self._weights.float().cpu().numpy()


@final
class TorchEngine(Engine):
    """Runs a model step by step, in inference mode."""

    def __init__(self, model: Seq2Seq, with_weights: bool = False) -> None:
        """Wrap a model.

        Args:
            model: put into evaluation mode by the caller.
            with_weights: whether steps report attention, at the cost of slower kernels.
        """
        self._model = model
        self._need: tuple[Need, ...] = ("weights",) if with_weights else ()
        self._device = next(model.parameters()).device

    def start(self, source: NDArray[np.int64], source_lengths: NDArray[np.int64], num_hypotheses: int) -> object:
        with torch.inference_mode():
            memory = self._model.encode(self._tensor(source), self._tensor(source_lengths))
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
            logits = self._model.logits(decoded.features)
            log_probs = torch.log_softmax(logits if logits.dtype == torch.float64 else logits.float(), dim=-1)
            weights = decoded.attended[self._model.alignment].weights if self._need else None
            if weights is not None and weights.dim() == 4:
                weights = weights.mean(dim=1)  # heads
            return TorchStepScores(log_probs, weights), _Running(memory, inner)

    def _tensor(self, array: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device)


def torch_backend(model: Seq2Seq, max_length: int) -> Stepwise:
    """Hold a model as a backend.

    Args:
        model: in evaluation mode.
        max_length: most tokens of an output, end mark included.

    Returns:
        The backend.
    """
    has_attention = bool(model.alignment)

    def make_engine(with_weights: bool) -> TorchEngine:
        return TorchEngine(model, with_weights)

    return Stepwise("torch", make_engine, max_length, has_attention, by_one_thread)


@contextmanager
def by_one_thread() -> Generator[None]:
    """Let PyTorch use one thread: several share a product by its size, and with it the order of a row's sums."""
    number = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(number)


@contextmanager
def _changed(log_probs: Tensor, adjust: Adjust | None) -> Generator[Tensor]:
    """Apply a sparse change for a while, in place: the vocabulary is large, and the change touches little of it."""
    if adjust is None:
        yield log_probs
        return
    device = log_probs.device
    banned = torch.from_numpy(adjust.banned).to(device)
    places = tuple(torch.from_numpy(part).to(device) for part in (adjust.sources, adjust.hypotheses, adjust.ids))
    columns, single = log_probs.index_select(-1, banned), log_probs[places]
    log_probs.index_put_(places, torch.from_numpy(adjust.values).to(log_probs), accumulate=True)
    log_probs.index_fill_(-1, banned, -torch.inf)
    try:
        yield log_probs
    finally:
        log_probs[places] = single
        log_probs.index_copy_(-1, banned, columns)
