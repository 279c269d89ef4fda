"""Base of predictors that write texts token by token, by a search: the choice of engine, and the export of engines."""

from abc import ABC
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from heedful.engines.ctranslate2 import why_not
from heedful.engines.exported import Exported
from heedful.errors import FileRefused
from heedful.predictors.engine_choice import Backends
from heedful.predictors.interface import TRIED_LENGTHS, EngineRequest, Predictor
from heedful.search.config import SearchConfig
from heedful.text.tokenizer import TextConfig

if TYPE_CHECKING:
    from heedful.export.engine import EngineKind
    from heedful.models.interface import Seq2Seq


class SearchPredictor(Predictor, ABC):
    """Loaded model that writes texts by a search."""

    generates_text = True
    engine_kinds = ("onnx",)
    engine_parts = frozenset({"int8"})
    text: TextConfig
    """Settings of its tokens."""
    search: SearchConfig
    """Settings of its search."""
    backends: Backends
    """Engines that can run it, and the choice among them."""

    @property
    def exported(self) -> Mapping[str, Exported]:
        return self.backends.exported

    def model(self) -> "Seq2Seq":
        """Return the PyTorch model, loaded on first use.

        Returns:
            The model in evaluation mode, the same object at every call.
        """
        return self.backends.model()

    @property
    def usual_engines(self) -> tuple[str, ...]:
        from heedful.models.transformer import Transformer

        model = self.model()
        is_fast = isinstance(model, Transformer) and model.has_papers_form and why_not(self.search, False) is None
        # CTranslate2 would never be used for other models, or for other searches.
        return tuple(kind for kind in self.engine_kinds if kind != "ctranslate2" or is_fast)

    def _writer(self, request: EngineRequest) -> Callable[[], Exported]:
        from heedful.export.engine import export_engine
        from heedful.export.layers import export_layers, refuse_layerless
        from heedful.export.shortlist import learn_shortlist

        kind: EngineKind = "ctranslate2" if request.engine == "ctranslate2" else "onnx"
        model, draw, most = self.model(), self.backends.draw, self.text.max_tokens
        write_more = None
        if request.layers:
            refuse_layerless(model)
            write_more = partial(export_layers, model, max_length=most, draw=draw)

        def write() -> Exported:
            learned = learn_shortlist(self.folder.path) if request.shortlist else None
            return export_engine(
                model, request.folder or self.folder, kind, request.int8, draw, most, write_more, learned
            )

        return write

    def run_graphs(self, folder: Path) -> None:
        from heedful.engines.onnx import onnx_backend
        from heedful.engines.onnx_layers import LAYERS

        sources = self.backends.draw(np.array(TRIED_LENGTHS), np.random.default_rng(0))
        few = SearchConfig(beam=2, max_length_ratio=0.0, max_length_offset=3)
        onnx_backend("onnx", folder, self.text.max_tokens).decode(sources, few)
        if (folder / LAYERS).is_file():
            self._run_layers(folder / LAYERS)

    def _run_layers(self, path: Path) -> None:
        """Run the graph of the attention of every layer.

        Raises:
            FileRefused: it is none of such a model.
        """
        from heedful.engines.onnx_layers import OnnxLayers
        from heedful.text.vocabulary import EOS

        source = self.backends.draw(np.array(TRIED_LENGTHS[-1:]), np.random.default_rng(0))
        try:
            OnnxLayers(path).weights(source, [EOS])
        except (KeyError, ValueError, IndexError):  # names of inputs and outputs that are a stranger's
            raise FileRefused(f"{path}: not a graph of the attention of every layer; export the model again") from None
