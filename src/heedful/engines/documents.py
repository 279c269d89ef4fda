"""Classification of documents by two ONNX graphs: words to sentence vectors, and sentences to label probabilities."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.engines.label_arrays import Floats, LabelArrays
from heedful.engines.onnx_session import num_threads, open_session
from heedful.search.inputs import InputArrays, token_sequences
from heedful.text.vocabulary import EOS

WORDS: Final = "words.onnx"
SENTENCES: Final = "sentences.onnx"
SHORTEST_SHARE: Final = 0.85
"""Length of the shortest sequence of a block as a share of the longest one's; the rest is padding."""


@final
class DocumentGraphs:
    """Hierarchical classifier as two graphs in ONNX Runtime, written by `heedful.export.documents`."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        """Load the graphs.

        Args:
            threads: number of threads; 0 = OMP_NUM_THREADS, or ONNX Runtime's own choice if that is not set.

        Raises:
            FileRefused: a file is missing or damaged.
        """
        self._words: Final = open_session(folder / WORDS, num_threads(threads))
        self._sentences: Final = open_session(folder / SENTENCES, num_threads(threads))

    def __call__(self, texts: InputArrays) -> LabelArrays:
        """Classify one batch.

        Args:
            texts: token ids; every sentence ends in EOS.

        Returns:
            Log probabilities, vectors, and products of the weights of a word and of its sentence.
        """
        tokens = np.concatenate(token_sequences(texts))
        last = texts.num_positions.cumsum() - 1
        is_end = tokens == EOS
        is_end[last] = True
        ends = is_end.nonzero()[0]
        lengths = np.diff(ends, prepend=-1)
        counts = np.diff(np.searchsorted(ends, last, side="right"), prepend=0)
        (vectors,), word_weights = _pooled(self._words, tokens, lengths, 1)
        (log_probs, documents), sentence_weights = _pooled(self._sentences, vectors, counts, 2)
        if word_weights is None or sentence_weights is None:
            return LabelArrays(log_probs, documents)
        weights = np.zeros((len(texts), texts.width), dtype=np.float32)
        real = np.arange(texts.width) < texts.num_positions[:, None]
        weights[real] = word_weights * np.repeat(sentence_weights, lengths)
        return LabelArrays(log_probs, documents, weights)


def _pooled(
    session: Any, items: NDArray[Any], lengths: NDArray[np.int64], num_results: int
) -> tuple[list[Floats], Floats | None]:
    """Run a graph on sequences that lie one after another.

    Returns:
        [sequence, size] results, and [item] weights or None.
    """
    starts = lengths.cumsum() - lengths
    order = np.argsort(-lengths, kind="stable")
    blocks: list[list[Floats]] = []
    weights: Floats | None = None
    for rows in _blocks(order, lengths):
        positions = np.arange(int(lengths[rows[0]]))
        real = positions < lengths[rows][:, None]
        indices = np.where(real, starts[rows][:, None] + positions, 0)
        outputs = session.run(None, {"items": items[indices], "lengths": lengths[rows]})
        blocks.append(outputs[:num_results])
        if len(outputs) > num_results:
            weights = np.zeros(len(items), dtype=np.float32) if weights is None else weights
            weights[indices[real]] = outputs[num_results][real]
    places = np.argsort(order)
    return [np.concatenate(parts)[places] for parts in zip(*blocks, strict=True)], weights


def _blocks(order: NDArray[np.int64], lengths: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Blocks of sequences of similar length, the longest first."""
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or lengths[order[end]] < SHORTEST_SHARE * lengths[order[start]]:
            yield order[start:end]
            start = end
