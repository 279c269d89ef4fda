"""Predictor class of each task, and `load`, which opens a model folder with the right one."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Final, TypeVar, overload

from heedful.config.plugins import allow_code
from heedful.engines.folder import ModelFolder, open_folder
from heedful.engines.members import members_of
from heedful.errors import FileRefused, UsageError, needed_for
from heedful.predictors.interface import Predictor

PredictorT = TypeVar("PredictorT", bound=Predictor)

PREDICTORS: Final[Mapping[str, tuple[str, str]]] = {
    "translation": ("translator", "Translator"),
    "classification": ("classifier", "Classifier"),
    "captioning": ("captioner", "Captioner"),
    "answering": ("answerer", "Answerer"),
}
"""Module here and predictor class by name of the task; only that of the task is imported, so that a start is quick."""


def find_predictor(folder: ModelFolder) -> type[Predictor]:
    """Find the predictor class of a model.

    Raises:
        FileRefused: this version of heedful does not know the task.
    """
    if folder.task not in PREDICTORS:
        raise FileRefused(
            f"{folder.path}: a model for {folder.task}, which this heedful does not know; use a newer one"
        )
    return predictor_of(folder.task)


def predictor_of(task: str) -> type[Predictor]:
    """Import the predictor class of a task.

    Args:
        task: key of `PREDICTORS`.
    """
    module, name = PREDICTORS[task]
    return getattr(import_module(f"heedful.predictors.{module}"), name)


@overload
def load(
    path: str | Path,
    device: str = "cpu",
    engine: str = "auto",
    ensemble: Sequence[str | Path] = (),
    code: Sequence[str] = (),
) -> Predictor: ...


@overload
def load(
    path: str | Path,
    device: str = "cpu",
    engine: str = "auto",
    ensemble: Sequence[str | Path] = (),
    code: Sequence[str] = (),
    *,
    kind: type[PredictorT],
) -> PredictorT: ...


def load(
    path: str | Path,
    device: str = "cpu",
    engine: str = "auto",
    ensemble: Sequence[str | Path] = (),
    code: Sequence[str] = (),
    *,
    kind: type[Predictor] = Predictor,
) -> Predictor:
    """Open a model folder with the predictor of its task.

    Args:
        path: model folder.
        device: PyTorch device, such as cpu or cuda; "auto" takes a CUDA device where there is one.
        engine: torch, the name of an exported engine, or "auto": on the CPU an exported engine whose results equal
            PyTorch's, which needs no PyTorch, and PyTorch in its absence or on another device.
        ensemble: folders of further models that predict together with the first, besides those of its own seeds.
        code: classes outside the package that the model may import, each ``module:Class``; a model that needs another
            class is refused.
        kind: expected class of the predictor, such as `Translator`; any other is refused.

    Returns:
        The predictor, such as a `Translator` or a `Classifier`; weights load when first used.

    Raises:
        UsageError: the folder has no model, a model for another kind of predictor or no such engine, the ensemble does
            not fit, or there is no such kind of device.
        FileRefused: a file was changed or is missing, the model needs code that `code` does not name, or its task is
            unknown to this version of heedful.
        ResourceError: the device is CUDA's, and PyTorch finds none of this number.

    Example:
        >>> heedful.load("pairs.model").translate(["March 5th, 2021"])[0].text  # doctest: +SKIP
        '2021-03-05'
    """
    allow_code(code)
    folder = open_folder(Path(path))
    predictor = find_predictor(folder)
    if not issubclass(predictor, kind):
        expected = ", ".join(task for task in PREDICTORS if issubclass(predictor_of(task), kind))
        raise UsageError(f"{path}: a model for {folder.task}, not for {expected}; see: heedful info {path}")
    if device not in ("auto", "cpu") and engine in ("auto", "torch"):
        with needed_for(f"device {device}"):
            from heedful.models.devices import check_device
        check_device(device)  # here, because the first prediction may be hours later
    if engine == "auto" and device not in ("auto", "cpu"):
        engine = "torch"  # exported engines compute on the CPU
    opened = predictor(folder, device, engine, [*members_of(folder), *(open_folder(Path(each)) for each in ensemble)])
    others = tuple(str(Path(each).resolve()) for each in ensemble)
    opened.opened_with = load, (str(folder.path.resolve()), device, engine, others, tuple(code))
    return opened
