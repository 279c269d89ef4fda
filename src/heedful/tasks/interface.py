"""The interface of a task: all that training knows of what is learned, from data files to a predictor."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from torch import nn

from heedful.config import Tree
from heedful.data.batch import Sampler
from heedful.data.rows import Columns
from heedful.errors import ConfigError
from heedful.experiment import Experiment, build_model
from heedful.predictors.interface import Predictor
from heedful.predictors.table import load
from heedful.training.loop import Validation
from heedful.training.loss import TrainingStep


@dataclass(frozen=True)
class Recipe:
    """Everything a person can say about a training run."""

    data: tuple[Path, ...]
    """One file of examples, or two aligned files."""
    out: Path | None = None
    """The model folder; None = named after the data."""
    dev: tuple[Path, ...] = ()
    test: tuple[Path, ...] = ()
    columns: Columns = (1, 2)
    languages: tuple[str, str] = ("", "")
    task: str = ""
    """Key of `heedful.tasks.table.TASKS`; empty = what the settings say, or translation."""
    preset: str = ""
    config: Path | None = None
    settings: tuple[str, ...] = ()
    device: str = "cpu"


class DataFile(Protocol):
    """One part of the data of a run, such as its training examples."""

    @property
    def name(self) -> str:
        """Name after which a model may be called."""
        ...

    def fingerprint(self) -> dict[str, Any]:
        """Describe the content so that any change shows.

        Returns:
            Values that JSON can hold.
        """
        ...


@dataclass(frozen=True)
class Prepared(ABC):
    """Data of a run, ready to train on; each task adds fields of its own."""

    sizes: tuple[Any, ...]
    """Sizes that the data gives the model: the arguments of its configuration's `build`."""
    facts: Mapping[str, Any]
    """Entries of `heedful.json`, such as the names of tokenizer files."""
    report: tuple[str, ...]
    """Lines for a person: what was kept, left out, split off, found twice."""
    vocabulary: str
    """One line about the sizes, such as "8,000 pieces"."""
    test: Sized
    """Items held out or given for testing, as the task's predictor measures them; may be empty."""


FileT = TypeVar("FileT", bound=DataFile)
DataT = TypeVar("DataT", bound=Prepared)


class Task(ABC, Generic[FileT, DataT]):
    """One kind of thing to learn; without state, so that one object serves every run."""

    name: str
    """Key in `heedful.tasks.table.TASKS`, also in `heedful.json` and in `config.toml`."""
    default_preset: str
    """Preset of `heedful.models.table.PRESETS` that is trained where nothing else is asked for."""
    command: str
    """Command of `heedful` that runs its models."""
    kinds: frozenset[str]
    """Kinds of the package's models that do this task."""
    model: ClassVar[type[nn.Module]] = nn.Module
    """Class of all models that do this task, those from outside the package included."""
    higher_is_better: ClassVar[Mapping[str, bool]]
    """Scores that its validations can give, by name, and whether a higher one is better; `training.select_by` names one
    of them."""

    @abstractmethod
    def find(self, recipe: Recipe) -> dict[str, FileT]:
        """Look at the data files.

        Args:
            recipe: names them.

        Returns:
            Parts by name: "train", and "dev" and "test" where they were given.

        Raises:
            DataError: a file cannot be used.
        """

    def suited(self, files: Mapping[str, FileT], resolve: Callable[[Tree], Experiment]) -> Tree:
        """Choose settings that suit the files at first sight, of keys that nobody set.

        Args:
            files: from `find`.
            resolve: gives the whole configuration where such settings are chosen.

        Returns:
            Values for `heedful.experiment.load_experiment`; as written here, none.
        """
        return {}

    @abstractmethod
    def prepare(self, files: Mapping[str, FileT], experiment: Experiment, folder: Path, recipe: Recipe) -> DataT:
        """Split, learn tokenizers and encode, or take from the folder what an earlier call left there.

        Args:
            files: from `find`.
            experiment: whose settings of text count.
            folder: the model's folder; examples go to `run/data` in it.
            recipe: what else was said.

        Returns:
            The data.

        Raises:
            DataError: the data cannot be used.
        """

    @abstractmethod
    def adapted(self, data: DataT, experiment: Experiment) -> Tree:
        """Choose settings that suit the data, of keys that nobody set.

        Args:
            data: from `prepare`.
            experiment: as known before.

        Returns:
            Values for `heedful.experiment.load_experiment`.
        """

    def completed(self, data: DataT, experiment: Experiment, folder: Path) -> DataT:
        """Add what the resolved settings ask of the data.

        Args:
            data: from `prepare`.
            experiment: fully resolved.
            folder: the model's folder.

        Returns:
            The data; as written here, unchanged.
        """
        return data

    def build_model(self, experiment: Experiment, sizes: tuple[Any, ...]) -> nn.Module:
        """Make the model with fresh parameters, a function of the seed.

        Args:
            experiment: fully resolved.
            sizes: those of the data.

        Returns:
            The model.

        Raises:
            ConfigError: a class from outside the package makes models of another task.
        """
        config = experiment.model
        model = build_model(experiment, sizes) if _takes(getattr(config, "build", None), sizes) else None
        if not isinstance(model, self.model):
            raise ConfigError(
                f"model.kind: {config.kind} makes no {self.model.__name__} of {len(sizes)} sizes, which "
                f"{self.name} needs; name another kind or another task"
            )
        return model

    def initialize(self, model: nn.Module, data: DataT) -> None:
        """Replace fresh parameters by what the data brings, such as pretrained vectors; as written here, nothing.

        Args:
            model: from `build_model`; changed in place.
            data: from `completed`.
        """

    @abstractmethod
    def sampler(self, experiment: Experiment, folder: Path, data: DataT | None) -> Sampler:
        """Draw batches.

        Args:
            experiment: fully resolved.
            folder: the model's folder.
            data: from `completed`; None in a process that takes what the first one left in the folder.

        Returns:
            Batches that the task's step takes, the same in every process.
        """

    @abstractmethod
    def step(self, experiment: Experiment, model: nn.Module) -> TrainingStep:
        """Join a model and the loss of the task.

        Args:
            experiment: fully resolved.
            model: on its device.

        Returns:
            The training step.
        """

    @abstractmethod
    def validator(self, data: DataT, experiment: Experiment) -> Callable[[nn.Module], Validation]:
        """Make the measurement that chooses the best model.

        Args:
            data: from `completed`.
            experiment: fully resolved.

        Returns:
            A function of a model in evaluation mode.
        """

    def open(self, folder: Path, device: str = "cpu") -> Predictor:
        """Open a trained model.

        Args:
            folder: the model's folder.
            device: where PyTorch computes.

        Returns:
            The predictor of the task.
        """
        return load(folder, device)


def _takes(build: object, sizes: tuple[Any, ...]) -> bool:
    """Whether a configuration's `build` can be called with sizes."""
    if not callable(build):
        return False
    try:
        signature(build).bind(*sizes)
    except TypeError:
        return False
    return True
