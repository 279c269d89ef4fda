"""Check of a model's ONNX graphs before other people get them: they run once, as they would elsewhere."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from heedful.engines.exported import Exported
from heedful.engines.onnx_layers import LAYERS
from heedful.errors import FileRefused
from heedful.files.atomic_write import private_folder

if TYPE_CHECKING:
    from heedful.predictors.interface import Predictor
    from heedful.predictors.label_predictor import LabelPredictor
    from heedful.predictors.translator import Translator
    from heedful.search.inputs import InputDraw

_LENGTHS: Final = (1, 3)
"""Numbers of positions of the sources that a graph is tried with."""


def check_graphs(predictor: "Predictor") -> None:
    """Run the graphs of each ONNX engine of a model once; those that are out of date are left alone.

    Raises:
        FileRefused: a graph is damaged, reads files outside its folder, or is none of such a model.
        MissingExtra: ONNX Runtime is not installed.
    """
    from heedful.predictors.captioner import Captioner
    from heedful.predictors.label_predictor import LabelPredictor
    from heedful.predictors.translator import Translator

    exported: Mapping[str, Exported] = {}
    if isinstance(predictor, LabelPredictor):
        exported = predictor.exported
    elif isinstance(predictor, Translator | Captioner):
        exported = predictor.backends.exported
    for name, engine in exported.items():
        if name.startswith("onnx") and not engine.fault:
            engine.verify()
            _run(predictor, engine.path)


def check_graphs_alone(predictor: "Predictor", engine: Exported) -> None:
    """Run the graphs of an engine once, without the files beside them, as browsers do.

    Args:
        engine: an ONNX engine of the model.

    Raises:
        FileRefused: a graph is damaged, needs another file, or is none of such a model.
        MissingExtra: ONNX Runtime is not installed.
    """
    engine.verify()
    with private_folder() as folder:
        for graph in engine.path.glob("*.onnx"):
            shutil.copyfile(graph, folder / graph.name)
        try:
            _run(predictor, folder)
        except FileRefused as error:
            raise FileRefused(str(error).replace(str(folder), str(engine.path))) from None


def _run(predictor: "Predictor", folder: Path) -> None:
    from heedful.predictors.captioner import Captioner
    from heedful.predictors.label_predictor import LabelPredictor
    from heedful.predictors.translator import Translator

    generator = np.random.default_rng(0)
    if isinstance(predictor, LabelPredictor):
        from heedful.engines.labels import open_label_graphs, run_labels

        run_labels(open_label_graphs(folder), _draw(predictor)(np.array(_LENGTHS), generator))
    elif isinstance(predictor, Translator | Captioner):
        from heedful.engines.onnx import onnx_backend
        from heedful.search.config import SearchConfig

        sources = predictor.backends.draw(np.array(_LENGTHS), generator)
        few = SearchConfig(beam=2, max_length_ratio=0.0, max_length_offset=3)
        onnx_backend("onnx", folder, predictor.text.max_tokens).decode(sources, few)
    if isinstance(predictor, Translator) and (folder / LAYERS).is_file():
        _run_layers(predictor, folder / LAYERS)


def _draw(predictor: "LabelPredictor") -> "InputDraw":
    """Function that draws texts of the kind that a model of labels reads."""
    from heedful.engines.passages import passage_draw
    from heedful.engines.stories import story_draw
    from heedful.predictors.answerer import Answerer
    from heedful.search.inputs import token_draw

    number = len(predictor.tokenizer)
    if not isinstance(predictor, Answerer):
        return token_draw(number)
    return story_draw(number) if predictor.labels else passage_draw(number)


def _run_layers(translator: "Translator", path: Path) -> None:
    """Run the graph of the attention of every layer.

    Raises:
        FileRefused: it is none of such a model.
    """
    from heedful.engines.onnx_layers import OnnxLayers
    from heedful.text.vocabulary import EOS

    source = translator.backends.draw(np.array(_LENGTHS[-1:]), np.random.default_rng(0))
    try:
        OnnxLayers(path).weights(source, [EOS])
    except (KeyError, ValueError, IndexError):  # names of inputs and outputs that are a stranger's
        raise FileRefused(f"{path}: not a graph of the attention of every layer; export the model again") from None
