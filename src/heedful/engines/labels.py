"""Classification of many texts, in batches, with PyTorch or with an ONNX Runtime graph."""

from pathlib import Path
from typing import Final, final

import numpy as np

from heedful.engines.documents import WORDS, DocumentGraphs
from heedful.engines.label_arrays import Floats, LabelArrays, LabelRun
from heedful.engines.onnx_session import num_threads, open_session
from heedful.errors import FileRefused
from heedful.search.inputs import InputArrays

GRAPH: Final = "classify.onnx"
BATCH_TOKENS: Final = 8192
"""Number of token ids in a batch that suits a CPU."""
_AGAIN: Final = "export the model again"


def run_labels(
    run: LabelRun, texts: InputArrays, batch_tokens: int = BATCH_TOKENS
) -> tuple[list[Floats], Floats, list[Floats | None]]:
    """Classify texts in batches of similar length.

    Args:
        run: function that classifies one batch.
        texts: one or more texts.
        batch_tokens: maximum number of token ids in a batch, padding included; a batch may always have one text.

    Returns:
        For each text its [label] or [end, position] log probabilities in nats; [text, size] vectors; and for each text
        its [position] or [step, position] attention weights, or None if the model has no attention.

    Raises:
        FileRefused: the function is the graph of a stranger, and gives other shapes.
    """
    lengths, widths = texts.num_numbers, texts.num_positions
    order = np.argsort(-lengths, kind="stable")
    batches: list[LabelArrays] = []
    log_probs: dict[int, Floats] = {}
    attention: list[Floats | None] = [None] * len(texts)
    start = 0
    while start < len(order):
        rows = order[start : start + max(1, batch_tokens // int(lengths[order[start]]))].tolist()
        batch = run(texts.take(rows))
        if any(each is not None and each.shape[:1] != (len(rows),) for each in batch) or batch.vectors.ndim != 2:
            shapes = ", ".join(f"{list(each.shape)}" for each in batch if each is not None)
            raise FileRefused(f"the graph gives results of the shapes {shapes} for {len(rows)} texts; {_AGAIN}")
        batches.append(batch)
        log_probs |= {
            row: own if own.ndim == 1 else own[:, : widths[row]] for row, own in zip(rows, batch.log_probs, strict=True)
        }
        if batch.weights is not None:
            for row, own in zip(rows, batch.weights, strict=True):
                attention[row] = own[..., : widths[row]]
        start += len(rows)
    places = np.argsort(order)
    in_order = [log_probs[row] for row in range(len(texts))]
    return in_order, np.concatenate([batch.vectors for batch in batches])[places], attention


@final
class LabelGraph:
    """Classifier as one graph in ONNX Runtime, written by `heedful.export.labels`."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        """Load the graph.

        Args:
            threads: number of threads; 0 = OMP_NUM_THREADS, or ONNX Runtime's own choice if that is not set.

        Raises:
            FileRefused: the file is missing or damaged.
        """
        self._path: Final = folder / GRAPH
        self._session: Final = open_session(self._path, num_threads(threads))

    def __call__(self, texts: InputArrays) -> LabelArrays:
        """Classify one batch.

        Args:
            texts: of the kind that the model reads.

        Returns:
            Log probabilities, vectors and attention weights.

        Raises:
            FileRefused: the graph reads or gives something else.
        """
        feeds = texts.named_arrays()
        if not {*self._session.input_names} <= feeds.keys() or len(self._session.output_names) not in (2, 3):
            raise FileRefused(f"{self._path}: not a graph for such texts; {_AGAIN}")
        return LabelArrays(*self._session.run(None, feeds))


def open_label_graphs(folder: Path, threads: int = 0) -> LabelRun:
    """Load an exported classifier.

    Args:
        threads: number of threads; 0 = OMP_NUM_THREADS, or ONNX Runtime's own choice if that is not set.

    Returns:
        A function for `label_log_probs`.

    Raises:
        FileRefused: a file is missing or damaged.
    """
    return DocumentGraphs(folder, threads) if (folder / WORDS).is_file() else LabelGraph(folder, threads)
