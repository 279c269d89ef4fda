"""Linear model of n-grams: log probabilities of labels from the weighted n-grams of a text, in NumPy alone.

x of a text has for each known n-gram (1 + log count) times log((1 + n) / (1 + n_i)) + 1, with n texts of which n_i
contain it; the n-grams of words and those of characters each have a Euclidean norm of 1. log p = log softmax(W x + b).
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from heedful.errors import FileRefused
from heedful.files.atomic_write import write_through
from heedful.files.formats import NGRAMS_FORMAT
from heedful.text.ngrams import Hashes, NgramSizes, text_ngrams

Floats = NDArray[np.float32]
NGRAMS: Final = "ngrams"
"""Entry of `heedful.json`: name of the file of the linear model."""
SHARE: Final = "ngram_share"
"""Entry of `heedful.json`: share of the classifier in its mixture with the linear model."""
SHIFTS: Final = "label_shifts"
"""Entry of `heedful.json`: addends of the log probabilities of labels, by which rare ones are found."""
DEFAULT_SHARE: Final = 0.3
_SLICE_CHARACTERS: Final = 1 << 19
"""Number of characters whose n-grams are listed together, so that memory does not grow with texts."""
_GATHERED: Final = 1 << 23
"""Number of weights that are gathered together."""


class NgramRows(NamedTuple):
    """Sparse rows of numbers, one for each text."""

    columns: NDArray[np.int32]
    """[entry] column, in ascending order in each row."""
    values: Floats
    """[entry]"""
    starts: NDArray[np.int64]
    """[row + 1] first entry of each row, and the number of entries."""


@final
@dataclass(frozen=True, eq=False)
class NgramTable:
    """Known n-grams and the weight of each."""

    sizes: NgramSizes
    hashes: Hashes
    """[n-gram] in ascending order."""
    rarity: Floats
    """[n-gram] logarithm of the inverse share of texts, plus 1."""

    def rows(self, texts: Sequence[str]) -> NgramRows:
        """Weight the n-grams of texts.

        Returns:
            A row for each text; empty for a text without a known n-gram.
        """
        return self.weighted([np.unique(keys, return_counts=True) for keys in self._keys(texts)], len(texts))

    def weighted(self, kinds: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]], num_texts: int) -> NgramRows:
        """Weight counted n-grams.

        Args:
            kinds: of each kind of n-grams the distinct keys, each a text times the number of n-grams plus a column,
                and the number of occurrences of each.
            num_texts: number of texts.

        Returns:
            A row for each text.
        """
        keys = np.concatenate([distinct for distinct, _ in kinds])
        order = np.argsort(keys, kind="stable")
        owners, columns = np.divmod(keys[order], max(1, len(self.hashes)))
        values = np.concatenate([self._values(*each, num_texts) for each in kinds])[order]
        starts = np.searchsorted(owners, np.arange(num_texts + 1))
        return NgramRows(columns.astype(np.int32), values, starts.astype(np.int64))

    def _keys(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Text and column of each occurrence as one number, of words and of characters."""
        kinds: list[list[NDArray[np.int64]]] = [[], []]
        for owners, parts in text_slices(texts):
            for ngrams, kind in zip(text_ngrams(parts, self.sizes), kinds, strict=True):
                places = np.searchsorted(self.hashes, ngrams.hashes)
                is_known = places < len(self.hashes)
                is_known[is_known] = self.hashes[places[is_known]] == ngrams.hashes[is_known]
                kind.append(owners[ngrams.texts[is_known]] * len(self.hashes) + places[is_known])
        return [np.concatenate(kind) if kind else np.empty(0, dtype=np.int64) for kind in kinds]

    def _values(self, distinct: NDArray[np.int64], counts: NDArray[np.int64], num_texts: int) -> Floats:
        """Weights of the n-grams of one kind."""
        owners, columns = np.divmod(distinct, max(1, len(self.hashes)))
        values = (1.0 + np.log(counts)) * self.rarity[columns]
        norms = np.sqrt(np.bincount(owners, values * values, minlength=num_texts))
        return (values / norms[owners]).astype(np.float32)


def text_slices(texts: Sequence[str]) -> Iterator[tuple[NDArray[np.int64], list[str]]]:
    """Cut texts into parts whose n-grams are listed together.

    Yields:
        Indices of the texts of the parts, and the parts.
    """
    owners: list[int] = []
    parts: list[str] = []
    size = 0
    for index, text in enumerate(texts):
        start = 0
        while start == 0 or start < len(text):
            stop = start + _SLICE_CHARACTERS
            if stop < len(text):  # words stay whole where there are spaces
                space = text.rfind(" ", start, stop)
                stop = space if space > start else stop
            owners.append(index)
            parts.append(text[start:stop])
            size += min(stop, len(text)) - start
            start = max(stop, 1)
            if size >= _SLICE_CHARACTERS:
                yield np.array(owners, dtype=np.int64), parts
                owners, parts, size = [], [], 0
    if parts:
        yield np.array(owners, dtype=np.int64), parts


@final
@dataclass(frozen=True, eq=False)
class NgramModel:
    """Weights of the labels for each known n-gram."""

    table: NgramTable
    weights: NDArray[np.floating]
    """[n-gram, label]"""
    bias: Floats
    """[label]"""

    def scores(self, texts: Sequence[str]) -> Floats:
        """Score labels.

        Returns:
            [text, label] unnormalised log probabilities.

        Cost: a multiply-add for each n-gram of a text and label.
        """
        if not texts:
            return np.empty((0, len(self.bias)), dtype=np.float32)
        return self.scores_of(self.table.rows(texts))

    def scores_of(self, rows: NgramRows) -> Floats:
        """Score labels.

        Returns:
            [row, label] unnormalised log probabilities.
        """
        scores = np.tile(self.bias, (len(rows.starts) - 1, 1))
        most = max(1, _GATHERED // len(self.bias))
        first = 0
        while first < len(scores):
            last = max(first + 1, int(np.searchsorted(rows.starts, rows.starts[first] + most, side="right")) - 1)
            span = slice(int(rows.starts[first]), int(rows.starts[last]))
            own = np.arange(first, last)[rows.starts[first + 1 : last + 1] > rows.starts[first:last]]
            if len(own):
                gathered = self.weights[rows.columns[span]].astype(np.float32) * rows.values[span, None]
                scores[own] += np.add.reduceat(gathered, rows.starts[own] - span.start, axis=0)
            first = last
        return scores

    def save(self, path: Path) -> None:
        """Write the model, its weights in half precision."""
        tensors = {
            "hashes": self.table.hashes.view(np.int64),
            "rarity": self.table.rarity,
            "weights": self.weights.astype(np.float16),
            "bias": self.bias,
        }
        facts = NGRAMS_FORMAT.stamp(asdict(self.table.sizes))
        path.unlink(missing_ok=True)
        write_through(path, save(tensors, metadata={"facts": json.dumps(facts)}))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a model.

        Raises:
            FileRefused: the file is damaged.
            NewerFormat: a newer heedful wrote it.
        """
        try:
            with safe_open(path, framework="numpy") as file:
                facts: dict[str, Any] = json.loads((file.metadata() or {}).get("facts", ""))
                facts = NGRAMS_FORMAT.strip(path, facts)
                hashes, rarity, weights, bias = (
                    file.get_tensor(name) for name in ("hashes", "rarity", "weights", "bias")
                )
            sizes = NgramSizes(**{name: int(facts[name]) for name in NgramSizes.__dataclass_fields__})
        except (OSError, SafetensorError, ValueError, TypeError, KeyError) as error:
            raise FileRefused(f"{path}: damaged: {error}; copy the folder again") from None
        if not (hashes.shape == rarity.shape and weights.shape == (*hashes.shape, *bias.shape)):
            raise FileRefused(f"{path}: damaged: its arrays have different sizes; copy the folder again")
        return cls(NgramTable(sizes, hashes.view(np.uint64), rarity), weights, bias)


def mean_model(models: Sequence[NgramModel]) -> NgramModel:
    """Return the model whose scores are the means of those of some models.

    Args:
        models: one or more, with one table.
    """
    weights = np.stack([model.weights for model in models]).mean(axis=0)
    bias = np.stack([model.bias for model in models]).mean(axis=0)
    return NgramModel(models[0].table, weights, bias)
