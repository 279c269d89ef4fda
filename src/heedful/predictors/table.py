"""The predictor of each task, and how a model folder is opened with the right one."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from heedful.custom_code import allow_code
from heedful.errors import FileRefused
from heedful.predictors.classifier import Classifier
from heedful.predictors.interface import Predictor
from heedful.predictors.translator import Translator
from heedful.runtime.folder import ModelFolder, open_folder

PREDICTORS: Final[Mapping[str, Callable[[ModelFolder, str, str, Sequence[ModelFolder]], Predictor]]] = {
    "translation": Translator,
    "classification": Classifier,
}
"""By task, what makes a predictor of a verified folder, a device, an engine and partners of an ensemble."""


def load(
    path: str | Path,
    device: str = "cpu",
    engine: str = "torch",
    ensemble: Sequence[str | Path] = (),
    code: Sequence[str] = (),
) -> Predictor:
    """Open a model folder with the predictor of its task.

    Args:
        path: made by `train`.
        device: where PyTorch computes.
        engine: what computes: torch, "auto" or the name of an exported engine.
        ensemble: folders of other models that predict together with it, such as trainings with other seeds.
        code: classes outside the package that the model may import, each ``module:Class``; without them a model that
            needs one is refused.

    Returns:
        A `Translator` or a `Classifier`; weights load when first used.

    Raises:
        UsageError: there is no model there, no such engine in it, or the ensemble does not fit.
        FileRefused: a file was changed or is missing, the model needs code that `code` does not name, or it is of a
            task that this heedful does not know.
    """
    allow_code(code)
    folder = open_folder(Path(path))
    if folder.task not in PREDICTORS:
        raise FileRefused(f"{path}: a model for {folder.task}, which this heedful does not know; use a newer one")
    return PREDICTORS[folder.task](folder, device, engine, [open_folder(Path(each)) for each in ensemble])
