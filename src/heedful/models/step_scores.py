"""Step scores in PyTorch: log probabilities and top-k on the model's device."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.attention.interface import Need
from heedful.models.interface import Decoded, Seq2Seq
from heedful.search.interface import Adjust, StepScores


@final
class TorchStepScores(StepScores):
    """Scores of one step; log-softmax and top-k run on the model's device."""

    def __init__(
        self,
        log_probs: Float[Tensor, "source hypothesis vocabulary"],
        weights: Float[Tensor, "source hypothesis position"] | None,
        best: tuple[Float[Tensor, "source hypothesis best"], Int[Tensor, "source hypothesis best"]] | None = None,
    ) -> None:
        """Wrap the scores.

        Args:
            log_probs: [source, hypothesis, vocabulary].
            weights: [source, hypothesis, position]; None if not requested.
            best: [source, hypothesis, best] float64 log probabilities and int64 ids of the most probable tokens, if
                already computed.
        """
        self._log_probs = log_probs
        self._weights = weights
        self._best = best

    def top(self, k: int, adjust: Adjust | None = None) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        k = min(k, self._log_probs.shape[-1])
        if self._best is not None and (adjust is None or not adjust.ids.size):
            banned = np.empty(0, dtype=np.int64) if adjust is None else np.unique(adjust.banned)
            if k + len(banned) <= self._best[0].shape[-1]:
                return _without(banned, k, *self._best)
        with torch.inference_mode(), _changed(self._log_probs, adjust) as log_probs:
            values, ids = log_probs.max(dim=-1, keepdim=True) if k == 1 else log_probs.topk(k, dim=-1)
        return values.double().cpu().numpy(), ids.cpu().numpy()

    def full(self) -> NDArray[np.float64]:
        return self._log_probs.double().cpu().numpy()

    def of(
        self, sources: NDArray[np.int64], hypotheses: NDArray[np.int64], ids: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        indices = tuple(torch.from_numpy(axis).to(self._log_probs.device) for axis in (sources, hypotheses, ids))
        return self._log_probs[indices].double().cpu().numpy()

    @property
    def vocab_size(self) -> int:
        return self._log_probs.shape[-1]

    @property
    def weights(self) -> NDArray[np.float32]:
        if self._weights is None:
            raise ValueError("engine: made without weights; construct it with with_weights=True")
        return self._weights.float().cpu().numpy()


def compute_scores(
    model: Seq2Seq, decoded: Decoded, need: tuple[Need, ...]
) -> tuple[Float[Tensor, "source hypothesis vocabulary"], Float[Tensor, "source hypothesis position"] | None]:
    """Compute step scores from the decoder's output.

    Args:
        need: requested results: weights, or nothing.

    Returns:
        Log probabilities [source, hypothesis, vocabulary], in float32 at least, and, if requested, the alignment
        weights [source, hypothesis, position], averaged over heads.
    """
    return model.log_probs(decoded), step_weights(model, decoded, need)


def step_weights(
    model: Seq2Seq, decoded: Decoded, need: tuple[Need, ...]
) -> Float[Tensor, "source hypothesis position"] | None:
    """Return the alignment weights of a step.

    Args:
        need: requested results: weights, or nothing.

    Returns:
        [source, hypothesis, position] weights, averaged over heads; None unless requested.
    """
    weights = decoded.attended[model.alignment].weights if need else None
    return weights.mean(dim=1) if weights is not None and weights.dim() == 4 else weights


def _without(
    banned: NDArray[np.int64], k: int, values: Tensor, ids: Tensor
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """First k tokens that are not forbidden: k + b best tokens contain at least k besides b forbidden ones."""
    values_found, ids_found = values.cpu().numpy(), ids.cpu().numpy()
    order = np.argsort(np.isin(ids_found, banned), axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(values_found, order, axis=-1), np.take_along_axis(ids_found, order, axis=-1)


@contextmanager
def _changed(log_probs: Tensor, adjust: Adjust | None) -> Generator[Tensor]:
    """Apply a sparse adjustment in place within a context, because the vocabulary is large."""
    if adjust is None:
        yield log_probs
        return
    device = log_probs.device
    banned = torch.from_numpy(adjust.banned).to(device)
    indices = tuple(torch.from_numpy(part).to(device) for part in (adjust.sources, adjust.hypotheses, adjust.ids))
    columns, single = log_probs.index_select(-1, banned), log_probs[indices]
    log_probs.index_put_(indices, torch.from_numpy(adjust.values).to(log_probs), accumulate=True)
    log_probs.index_fill_(-1, banned, -torch.inf)
    try:
        yield log_probs
    finally:
        log_probs[indices] = single
        log_probs.index_copy_(-1, banned, columns)
