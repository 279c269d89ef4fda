"""Facts of a training: everything that is read before its first decision, each file once."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any, final

from heedful.config.base import read_toml, validate
from heedful.data.corpus import find_pairs
from heedful.data.corrected_links import CorrectedLinks
from heedful.data.learned_corrections import LearnedCorrections
from heedful.data.pretrained_vectors import SIDES
from heedful.data.same_data import EXPERIMENT, DataWatch, WatchedFile, WholeFile, claim_data, has_begun
from heedful.engines.folder import claim, read_manifest
from heedful.errors import UsageError
from heedful.models.store import DEFAULT_TASK
from heedful.runs.pretrained import PretrainedModel
from heedful.runs.request import TrainRequest
from heedful.runs.settings import check_preset
from heedful.tasks.experiment import Experiment
from heedful.tasks.interface import DataFile, Task
from heedful.tasks.table import find_task
from heedful.training.lock import locked


@final
@dataclass(frozen=True)
class RunFacts:
    """Facts of one training."""

    task: Task[Any, Any]
    files: Mapping[str, DataFile]
    """Data files by part, such as "train"."""
    folder: Path
    """The model folder, locked."""
    earlier: Experiment | None
    """Settings of the training that is resumed; None = a new one."""
    pretrained: PretrainedModel | None
    """Model to go on from; None = fresh weights."""
    watch: DataWatch
    """Watch over all files that the training depends on."""


@contextmanager
def read_facts(request: TrainRequest, task: Task[Any, Any]) -> Generator[RunFacts]:
    """Find the files of a training, claim and lock its folder, and read what an earlier training left there.

    Yields:
        The facts, while the folder is locked.

    Raises:
        DataError: the data are unusable, or differ from those of the earlier training.
        UsageError: another training is running in the folder, the folder holds other files, or the model to go on from
            does not suit the request.
        FileRefused: a file of that model is damaged.
    """
    files = find_files(task, request)
    folder = model_folder(request, files)
    check_preset(request.preset)  # a wrong name is refused before anything is written
    new_folder = next((path for path in (folder, folder / "run") if not path.exists()), None)
    claim(folder)
    with _removed_if_refused(new_folder, folder), locked(folder / "run"):
        pretrained = _pretrained(request, task, folder)
        corrections = LearnedCorrections(folder, request.pretrained)
        others: dict[str, WatchedFile] = {**other_files(request)}
        others |= {"model": pretrained} if pretrained else {}
        others |= {"corrections": corrections} if corrections.content else {}
        watch = DataWatch({**files, **others})
        claim_data(folder, watch.fingerprints)
        corrections.store()
        earlier = validate(Experiment, read_toml(folder / EXPERIMENT)) if has_begun(folder) else None
        yield RunFacts(task, files, folder, earlier, pretrained, watch)


@contextmanager
def _removed_if_refused(new_folder: Path | None, folder: Path) -> Generator[None]:
    """Remove the folder that a request made if it is refused before its training begins.

    Raises:
        UsageError: passed on.
    """
    try:
        yield
    except UsageError:
        if new_folder is not None and not has_begun(folder):
            rmtree(new_folder, ignore_errors=True)
        raise


def request_task(request: TrainRequest) -> Task[Any, Any]:
    """Find the task that a request or its settings name, or that of the model to go on from.

    Raises:
        UsageError: the task is unknown, or there is no such model.
        FileRefused: the manifest of the model is damaged.
    """
    named = request.task or str(request.settings.get("task", ""))
    return find_task(named or (read_manifest(request.pretrained).task if request.pretrained else DEFAULT_TASK))


def find_files(task: Task[Any, Any], request: TrainRequest) -> dict[str, DataFile]:
    """Find and inspect the data files of a request.

    Raises:
        UsageError: there are no data files.
    """
    if not request.data:
        raise UsageError("train: no data given; give one file of pairs, or two aligned files")
    return task.find(request)


def other_files(request: TrainRequest) -> dict[str, WatchedFile]:
    """Find the files that settings name and a training depends on like its data: corrected links, older pairs, vectors.

    Raises:
        DataError: a file does not exist.
    """
    training, text = request.settings.get("training"), request.settings.get("text")
    links, mix = (training.get(key) if isinstance(training, dict) else None for key in ("links", "mix"))
    files: dict[str, WatchedFile] = {}
    if links and isinstance(links, str):
        files["links"] = CorrectedLinks(Path(links))
    if mix and isinstance(mix, list):
        files["mix"] = find_pairs([Path(str(path)) for path in mix], request.columns)
    for side in SIDES:
        path = text.get(f"{side}_vectors") if isinstance(text, dict) else None
        if path and isinstance(path, str) and Path(path).is_file():  # another is refused later, with what is there
            files[f"{side} vectors"] = WholeFile(Path(path))
    return files


def model_folder(request: TrainRequest, files: Mapping[str, DataFile]) -> Path:
    """Choose the model folder of a request.

    Returns:
        The folder that it names, or one named after the data.
    """
    return request.out or Path(f"{files['train'].name}.model")


def _pretrained(request: TrainRequest, task: Task[Any, Any], folder: Path) -> PretrainedModel | None:
    """Trained model that a training goes on from.

    Raises:
        UsageError: it is of another task, is the model to be trained, or a preset is named too.
    """
    if request.pretrained is None:
        return None
    model = PretrainedModel(request.pretrained)
    if task.name != model.folder.task:
        raise UsageError(f"--from {model.path}: a {model.folder.task} model, not one for {task.name}")
    if request.preset:
        raise UsageError(
            f"--preset {request.preset}: the sizes are those of --from {model.path}; leave one of them out"
        )
    if folder.exists() and folder.samefile(model.path):
        raise UsageError(f"--from {model.path}: the trained model would replace it; choose another --out")
    return model
