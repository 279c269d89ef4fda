"""Batches padded to few shapes for steps that are recorded, and the models that rule out a recording."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from torch import nn

from heedful.data.length_grid import ROWS, on_grid
from heedful.layers.normalizing import NormalizerLayer
from heedful.models.attentive import AttentiveSeq2Seq
from heedful.models.hard_attention import HardAttention
from heedful.models.hierarchical import HierarchicalClassifier
from heedful.models.interface import Seq2Seq
from heedful.models.label_model import LabelModel
from heedful.models.memory_network import MemoryNetwork
from heedful.models.show_attend_tell import ShowAttendTell

_BATCH_NORMS: Final = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


def model_problem(model: nn.Module) -> str:
    """Find the reason why no step of a model can be recorded.

    Returns:
        The reason; empty = there is none.
    """
    if isinstance(model, HardAttention):
        return "the sum over alignments depends on the lengths"
    if isinstance(model, HierarchicalClassifier) or (
        isinstance(model, AttentiveSeq2Seq) and model.sentences is not None
    ):
        return "the sentences of a source depend on its tokens"
    if isinstance(model, ShowAttendTell) and model.transcription is not None:
        return "the sum over transcriptions depends on the lengths"
    if isinstance(model, MemoryNetwork) and model.num_batches is not None:
        return "the first batches are others, which the host counts"
    if isinstance(model, MemoryNetwork) and model.config.empty_share:
        return "the number of drawn empty facts differs from batch to batch"
    if isinstance(model, LabelModel) and _has_own_losses(type(model)):
        return "losses of the model's own would count padding"
    if any(isinstance(part, _BATCH_NORMS) for part in model.modules()):
        return "means over a batch would count padding"
    if isinstance(model, Seq2Seq) and model.copy_need:
        return "the shares of copied tokens are packed"
    if any(part.normalizer.is_random for part in model.modules() if isinstance(part, NormalizerLayer)):
        return "the seeds of drawn keys come from Python"
    return ""


def _has_own_losses(kind: type[LabelModel]) -> bool:
    """True for classifiers with losses beside the likelihood; those of memory networks are for drawn keys."""
    return kind.extra_losses not in (LabelModel.extra_losses, MemoryNetwork.extra_losses)


def padded_sources(arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Pad the arrays of sources, of any kind; added rows repeat the last source.

    Args:
        arrays: those of `heedful.models.inputs.Inputs`: token ids, which get wider along all axes, features, which get
            more regions, pictures, which stay as they are, and lengths.

    Example:
        >>> [list(part.shape) for part in padded_sources((np.zeros((5, 9, 3), dtype=np.int64), np.ones(5)))]
        [[8, 10, 3], [8]]
    """
    padded = list[NDArray[Any]]()
    for array in arrays:
        last = {"i": array.ndim, "f": min(2, array.ndim)}.get(array.dtype.kind, 1)
        widths = [(0, _missing(size)) for size in array.shape[1:last]]
        wide = np.pad(array, [(0, 0), *widths, *[(0, 0)] * (array.ndim - max(1, last))])
        padded.append(np.pad(wide, [(0, -len(array) % ROWS), *[(0, 0)] * (array.ndim - 1)], mode="edge"))
    return padded


def padded_targets(ids: NDArray[Any]) -> NDArray[Any]:
    """Pad [batch, target] token ids by 0; added rows have no target."""
    return np.pad(ids, ((0, -len(ids) % ROWS), (0, _missing(ids.shape[1]))))


def _missing(length: int) -> int:
    """Number of positions up to the next length of few."""
    return int(on_grid(np.array(length))) - length
