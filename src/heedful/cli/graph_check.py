"""Check of a model's ONNX graphs before other people get them: they run once, as they would elsewhere."""

import shutil
from typing import TYPE_CHECKING

from heedful.errors import FileRefused
from heedful.files.atomic_write import private_folder

if TYPE_CHECKING:
    from heedful.engines.exported import Exported
    from heedful.predictors.interface import Predictor


def check_graphs(predictor: "Predictor") -> None:
    """Run the graphs of each ONNX engine of a model once; those that are out of date are left alone.

    Raises:
        FileRefused: a graph is damaged, reads files outside its folder, or is none of such a model.
        MissingExtra: ONNX Runtime is not installed.
    """
    for name, engine in predictor.exported.items():
        if name.startswith("onnx") and not engine.fault:
            engine.verify()
            predictor.run_graphs(engine.path)


def check_graphs_alone(predictor: "Predictor", engine: "Exported") -> None:
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
            predictor.run_graphs(folder)
        except FileRefused as error:
            raise FileRefused(str(error).replace(str(folder), str(engine.path))) from None
