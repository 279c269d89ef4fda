"""Fit of a linear model of n-grams: logistic regression by L-BFGS, with log-count ratios as scales of the weights.

Wang and Manning 2012, ACL, pages 90-94, scale features by r, the logarithm of the ratio of their shares in the texts of
a label and in the others. Scales of features are scales of the prior of weights, so that each label has its own here.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from heedful.engines.ngram_model import NgramModel, NgramRows, NgramTable, text_slices
from heedful.text.ngrams import Hashes, Ngrams, NgramSizes, text_ngrams

MOST_WEIGHTS: Final = 12_000_000
"""Largest number of weights; the n-grams of the fewest texts are left out."""
SMOOTHING: Final = 1.0
"""Addend of the counts of log-count ratios, Wang and Manning's alpha."""
HISTORY: Final = 10
"""Number of earlier steps that L-BFGS remembers."""
TOLERANCE: Final = 1e-3
"""Norm of the gradient, relative to that at the start, at which the fit ends."""


def build_table(texts: Sequence[str], num_labels: int, sizes: NgramSizes) -> tuple[NgramTable, NgramRows]:
    """Choose the n-grams of a model: those of words, and those of characters that occur in two texts.

    Args:
        num_labels: number of labels.

    Cost: two sorts of all n-grams.
    """
    kinds: tuple[list[Ngrams], list[Ngrams]] = ([], [])
    for owners, parts in text_slices(texts):
        for ngrams, kind in zip(text_ngrams(parts, sizes), kinds, strict=True):
            kind.append(Ngrams(ngrams.hashes, owners[ngrams.texts]))
    counted = [_count(kind, least) for kind, least in zip(kinds, (1, 2), strict=True)]
    hashes, counts = (np.concatenate(part) for part in zip(*((one.hashes, one.counts) for one in counted), strict=True))
    chosen = np.argsort(-counts, kind="stable")[: max(1, MOST_WEIGHTS // num_labels)]
    chosen = chosen[np.argsort(hashes[chosen])]
    rarity = 1.0 + np.log((1.0 + len(texts)) / (1.0 + counts[chosen]))
    table = NgramTable(sizes, hashes[chosen], rarity.astype(np.float32))
    columns = np.full(len(hashes), -1, dtype=np.int64)
    columns[chosen] = np.arange(len(chosen))
    keys: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    first = 0
    for one in counted:
        column = columns[first : first + len(one.hashes)][one.columns]
        keys.append((one.texts[column >= 0] * len(chosen) + column[column >= 0], one.occurrences[column >= 0]))
        first += len(one.hashes)
    return table, table.weighted(keys, len(texts))


class _Counted(NamedTuple):
    """Distinct n-grams of one kind, and in which texts each occurs."""

    hashes: Hashes
    """[n-gram] in ascending order."""
    counts: NDArray[np.int64]
    """[n-gram] number of texts."""
    texts: NDArray[np.int64]
    """[entry]"""
    columns: NDArray[np.int64]
    """[entry] index of the n-gram."""
    occurrences: NDArray[np.int64]
    """[entry] number of occurrences in the text."""


def _count(ngrams: list[Ngrams], least: int) -> _Counted:
    """Count the n-grams that occur in at least some number of texts."""
    hashes, places = np.unique(np.concatenate([each.hashes for each in ngrams]), return_inverse=True)
    owners = np.concatenate([each.texts for each in ngrams])
    distinct, occurrences = np.unique(owners * max(1, len(hashes)) + places, return_counts=True)
    texts, columns = np.divmod(distinct, max(1, len(hashes)))
    counts = np.bincount(columns, minlength=len(hashes))
    is_kept = counts >= least
    renumbered = np.cumsum(is_kept) - 1
    is_entry = is_kept[columns]
    return _Counted(
        hashes[is_kept], counts[is_kept], texts[is_entry], renumbered[columns[is_entry]], occurrences[is_entry]
    )


@final
class _Products:
    """Products with a sparse matrix and its transpose."""

    def __init__(self, rows: NgramRows, num_columns: int) -> None:
        self.forward: Final = [
            torch.from_numpy(part) for part in (rows.columns, rows.starts[:-1].astype(np.int32), rows.values)
        ]
        order = np.argsort(rows.columns, kind="stable")
        owners = np.repeat(np.arange(len(rows.starts) - 1, dtype=np.int32), np.diff(rows.starts))[order]
        starts = np.searchsorted(rows.columns[order], np.arange(num_columns)).astype(np.int32)
        self.backward: Final = [torch.from_numpy(part) for part in (owners, starts, rows.values[order])]

    def __call__(self, matrix: Tensor, is_transposed: bool = False) -> Tensor:
        ids, starts, values = self.backward if is_transposed else self.forward
        return functional.embedding_bag(ids, matrix, starts, mode="sum", per_sample_weights=values)


@torch.no_grad()
def fit_ngrams(
    table: NgramTable,
    rows: NgramRows,
    targets: NDArray[np.float32],
    penalty: float = 0.1,
    has_ratios: bool = False,
    most_steps: int = 50,
    has_label_sets: bool = False,
) -> NgramModel:
    """Minimise the cross-entropy, summed over texts, plus half the squared norm of the weights times `penalty`.

    Args:
        rows: n-grams of the training texts.
        targets: [row, label] distribution over labels of each.
        penalty: above 0.
        has_ratios: whether weights are scaled by log-count ratios.
        most_steps: largest number of steps.
        has_label_sets: whether a text may have any number of labels, which are told each by itself: targets are 0 or 1.

    Cost: two sparse products a step, each of as many multiply-adds as there are n-grams in the texts, times labels.
    """
    product = _Products(rows, len(table.hashes))
    target, num_labels = torch.from_numpy(targets), targets.shape[1]
    scale = _ratios(product, target) if has_ratios else torch.ones(())
    num_columns = len(table.hashes)

    def unpacked(point: Tensor) -> tuple[Tensor, Tensor]:
        return point[:-num_labels].view(num_columns, num_labels), point[-num_labels:]

    def gradient(point: Tensor) -> tuple[float, Tensor]:
        weights, bias = unpacked(point)
        scores = product(weights * scale) + bias
        if has_label_sets:
            loss = functional.binary_cross_entropy_with_logits(scores, target, reduction="sum")
            error = scores.sigmoid_().sub_(target)
        else:
            log_probs = functional.log_softmax(scores, dim=1)
            loss = -(log_probs * target).sum()
            error = log_probs.exp_().sub_(target)
        loss = loss + 0.5 * penalty * weights.square().sum()
        slope = product(error, is_transposed=True) * scale + penalty * weights
        return float(loss), torch.cat([slope.flatten(), error.sum(dim=0)])

    point = torch.zeros(num_columns * num_labels + num_labels)
    point = _minimised(point, gradient, most_steps)
    weights, bias = unpacked(point)
    return NgramModel(table, (weights * scale).numpy(), bias.numpy().copy())


def _ratios(product: _Products, target: Tensor) -> Tensor:
    """[n-gram, label] logarithms of the ratio of an n-gram's share in the texts of a label and in the others."""
    ids, starts, values = product.backward
    counts = functional.embedding_bag(ids, target, starts, mode="sum", per_sample_weights=torch.ones_like(values))
    inside = counts + SMOOTHING
    outside = counts.sum(dim=1, keepdim=True) - counts + SMOOTHING
    return (inside / inside.sum(dim=0)).log() - (outside / outside.sum(dim=0)).log()


def _minimised(point: Tensor, gradient: Callable[[Tensor], tuple[float, Tensor]], most_steps: int) -> Tensor:
    """Point near a minimum of a convex function, by L-BFGS with backtracking; Nocedal and Wright 2006, chapter 7."""
    value, slope = gradient(point)
    enough = TOLERANCE * float(slope.norm())
    steps: list[tuple[Tensor, Tensor, float]] = []
    number = 0
    while number < most_steps and float(slope.norm()) > enough:
        direction = -_scaled(slope, steps)
        along = float(direction @ slope)
        length = 1.0 if steps else min(1.0, 1.0 / float(slope.norm()))
        while True:
            moved = point + length * direction
            new_value, new_slope = gradient(moved)
            if new_value <= value + 1e-4 * length * along or length < 1e-6:
                break
            length *= 0.5
        difference, change = moved - point, new_slope - slope
        curvature = float(difference @ change)
        if curvature > 1e-10 * float(change @ change):
            steps = [*steps[1 - HISTORY :], (difference, change, 1.0 / curvature)]
        point, value, slope = moved, new_value, new_slope
        number += 1
    return point


def _scaled(slope: Tensor, steps: Sequence[tuple[Tensor, Tensor, float]]) -> Tensor:
    """Slope times an estimate of the inverse Hessian, by the two loops of L-BFGS."""
    vector = slope.clone()
    factors: list[float] = []
    for difference, change, inverse in reversed(steps):
        factors.append(inverse * float(difference @ vector))
        vector.add_(change, alpha=-factors[-1])
    if steps:
        difference, change, inverse = steps[-1]
        vector.mul_(1.0 / (inverse * float(change @ change)))
    for (difference, change, inverse), factor in zip(steps, reversed(factors), strict=True):
        vector.add_(difference, alpha=factor - inverse * float(change @ vector))
    return vector
