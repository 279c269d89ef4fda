"""Classification of many texts, in batches, with PyTorch or with an ONNX Runtime graph."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.errors import FileRefused
from heedful.runtime.onnx import import_runtime, num_threads
from heedful.search.inputs import TokenArrays

Floats = NDArray[np.float32]
LabelRun = Callable[[TokenArrays], tuple[Floats, Floats | None]]
"""Function that classifies a batch: [text, label] log probabilities in nats, and [text, position] attention or None."""
GRAPH: Final = "classify.onnx"


def label_log_probs(run: LabelRun, texts: TokenArrays, batch_tokens: int = 8192) -> tuple[Floats, list[Floats | None]]:
    """Classify texts in batches of similar length.

    Args:
        run: function that classifies one batch.
        texts: token ids of one or more texts.
        batch_tokens: maximum number of positions in a batch, padding included; a batch may always have one text.

    Returns:
        [text, label] log probabilities in nats, and for each text its [position] attention weights, or None if the
        model has no attention.
    """
    lengths = texts.num_positions
    log_probs: dict[int, Floats] = {}
    attention: list[Floats | None] = [None] * len(texts)
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        rows = order[start : start + max(1, batch_tokens // int(lengths[order[start]]))].tolist()
        log_prob_rows, weights = run(texts.take(rows))
        log_probs.update(zip(rows, log_prob_rows, strict=True))
        if weights is not None:
            for row, own in zip(rows, weights, strict=True):
                attention[row] = own[: lengths[row]]
        start += len(rows)
    return np.stack([log_probs[row] for row in range(len(texts))]), attention


@final
class LabelGraph:
    """Classifier as one graph in ONNX Runtime, written by `heedful.export.labels`."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        """Load the graph.

        Args:
            folder: folder of the engine.
            threads: number of threads; 0 = OMP_NUM_THREADS, or ONNX Runtime's own choice if that is not set.

        Raises:
            FileRefused: the file is missing or damaged.
        """
        onnxruntime = import_runtime()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = num_threads(threads)
        path = folder / GRAPH
        try:
            self._session: Any = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime raises many exception classes that it does not export
            reason = str(error).partition("\n")[0]
            raise FileRefused(f"{path}: not readable: {reason}; export the model again") from None

    def __call__(self, texts: TokenArrays) -> tuple[Floats, Floats | None]:
        """Classify one batch.

        Args:
            texts: token ids.

        Returns:
            [text, label] log probabilities in nats, and [text, position] attention weights, or None if the graph gives
            none.
        """
        outputs = self._session.run(None, texts.named_arrays())
        return outputs[0], outputs[1] if len(outputs) > 1 else None
