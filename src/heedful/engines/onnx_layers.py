"""Attention of every layer and head from an ONNX engine; no PyTorch.

The graph is written by `heedful.export.onnx_layers`: it generates a whole given output at once.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.engines.onnx_session import num_threads, open_session
from heedful.search.inputs import InputArrays
from heedful.text.vocabulary import BOS

LAYERS: Final = "layers.onnx"
"""File of the graph, in the engine's folder; absent from engines exported without it."""


@final
class OnnxLayers:
    """Loaded graph of the attention of every layer."""

    def __init__(self, path: Path) -> None:
        """Load the graph.

        Raises:
            FileRefused: the file is missing or damaged.
            MissingExtra: ONNX Runtime is not installed.
        """
        self._session: Final = open_session(path, num_threads(0))

    def weights(self, source: InputArrays, output: Sequence[int]) -> dict[tuple[str, int], NDArray[np.float32]]:
        """Compute the attention weights while the model generates a given output.

        Args:
            output: token ids of the output, with EOS if the model ended it.

        Returns:
            By role and layer [head, query, key] weights.
        """
        target_in = np.array([[BOS, *output[:-1]]], dtype=np.int64)
        names = self._session.output_names
        known = {"target_in": target_in, **source.named_arrays()}
        feeds = {name: known[name] for name in self._session.input_names}
        values = self._session.run(names, feeds)
        weights: dict[tuple[str, int], NDArray[np.float32]] = {}
        for name, value in zip(names, values, strict=True):
            role, _, layer = name.partition(".")
            weights[role, int(layer)] = np.asarray(value, dtype=np.float32)[0]
        return weights
