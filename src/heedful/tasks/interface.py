"""Interface of tasks: everything about a task that training needs, from data files to a predictor."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from torch import nn

from heedful.config.base import Tree
from heedful.data.batch import Sampler
from heedful.data.encoded import EncodedSide
from heedful.data.prepare import EvaluationSet
from heedful.data.rows import Columns
from heedful.data.same_data import WatchedFile
from heedful.errors import ConfigError, FileRefused
from heedful.models.store import takes_sizes
from heedful.predictors.interface import Items, Predictor
from heedful.predictors.table import load
from heedful.tasks.experiment import Experiment, build_model
from heedful.tasks.throughput import Throughput
from heedful.text.tokenizer import Tokenizer
from heedful.training.loss import TrainingStep
from heedful.training.progress import Validation

FOR_TRANSLATION: Final = ("training.split_pieces", "training.term_share", "training.mix", "training.mix_share")
"""Settings that translation alone uses."""


@dataclass(frozen=True, kw_only=True)
class DataPaths(ABC):
    """Paths of the data of a training, and how they are read."""

    data: tuple[Path, ...]
    """One file of examples, or two aligned files."""
    dev: tuple[Path, ...] = ()
    test: tuple[Path, ...] = ()
    columns: Columns = (1, 2)
    separator: str = ""
    """Separator of several labels in a cell; empty = a cell is one label."""
    languages: tuple[str, str] = ("", "")
    pretrained: Path | None = None
    """Folder of a trained model to go on from; None = fresh weights."""

    @property
    def parts(self) -> dict[str, tuple[Path, ...]]:
        """Paths by part of the data: "train", and "dev" and "test" where there are any."""
        parts = {"train": self.data, "dev": self.dev, "test": self.test}
        return {name: paths for name, paths in parts.items() if paths}


class DataFile(WatchedFile, Protocol):
    """One part of the data of a run, such as its training examples."""

    @property
    def name(self) -> str:
        """Name of the data, used as the default name of a model."""
        ...


@dataclass(frozen=True)
class Prepared(ABC):
    """Data of a run, ready to train on; each task adds fields of its own."""

    sizes: tuple[Any, ...]
    """Sizes that the data gives the model: the arguments of its configuration's `build`."""
    facts: Mapping[str, Any]
    """Entries of `heedful.json`, such as the names of tokenizer files."""
    report: tuple[str, ...]
    """Lines for the user about examples used, left out, split off and found twice."""
    num_examples: int
    """Number of training examples."""
    vocabulary: str
    """One line about the sizes, such as "8,000 pieces"."""
    test: Items
    """Items held out or given for testing, as the task's predictor measures them; may be empty."""


FileT = TypeVar("FileT", bound=DataFile)
DataT = TypeVar("DataT", bound=Prepared)


class Task(ABC, Generic[FileT, DataT]):
    """Task that models are trained for; stateless, so that one object serves every run."""

    name: str
    """Key in `heedful.tasks.table.TASKS`, also in `heedful.json` and in `config.toml`."""
    default_preset: str
    """Key of `heedful.models.table.PRESETS`: the preset that is trained by default."""
    command: str
    """Command of `heedful` that runs models of the task."""
    kinds: frozenset[str]
    """Kinds of models in this package that suit the task."""
    examples: ClassVar[str] = "pairs"
    """Noun for the examples that are learned from."""
    model: ClassVar[type[nn.Module]] = nn.Module
    """Base class of all models for the task, including those from outside the package."""
    higher_is_better: ClassVar[Mapping[str, bool]]
    """Names of the scores that validations can give, and whether a higher one is better; `training.select_by` is one of
    the names."""
    without_effect: ClassVar[tuple[str, ...]] = ()
    """Settings, or sections of settings, that the task does not use, such as ``text.target_vectors`` or ``images``;
    only their defaults are accepted."""

    @abstractmethod
    def find(self, paths: DataPaths) -> dict[str, FileT]:
        """Find the data files and their formats.

        Returns:
            Parts by name: "train", and "dev" and "test" where there are any.

        Raises:
            DataError: a file is unusable.
        """

    def warnings(self, paths: DataPaths, experiment: Experiment) -> Iterable[str]:
        """Check the data files for what would harm the model; by default, for nothing.

        Args:
            experiment: configuration, of which the text settings matter.

        Returns:
            A line for each problem.
        """
        return ()

    def file_defaults(self, files: Mapping[str, FileT], resolve: Callable[[Tree], Experiment]) -> Tree:
        """Choose settings from a first look at the files, for keys that the user did not set.

        Args:
            files: from `find`.
            resolve: function that returns the whole configuration with given settings of this kind.

        Returns:
            Values for `heedful.tasks.experiment.load_experiment`; none by default.
        """
        return {}

    @abstractmethod
    def prepare(self, files: Mapping[str, FileT], experiment: Experiment, folder: Path, paths: DataPaths) -> DataT:
        """Split the data, train tokenizers and encode examples, or read the results of an earlier call from the folder.

        Args:
            files: from `find`.
            experiment: configuration, of which the text settings matter.
            folder: the model's folder; examples are stored in its `run/data`.
            paths: paths of the files, and of the model to go on from.

        Raises:
            DataError: the data are unusable.
        """

    def own_validation(self, folder: Path) -> Items:
        """Read the validation items that a model was trained with; by default, there are none.

        Args:
            folder: the model's folder.

        Returns:
            The items, as the task's predictor reads them.

        Raises:
            FileRefused: the record is missing, as in a packed or imported model, or damaged.
            KeyError: the record is of an earlier version, and lacks a field.
        """
        raise FileRefused(f"{folder}: no record of validation items")

    @abstractmethod
    def data_defaults(self, data: DataT, experiment: Experiment) -> Tree:
        """Choose settings that suit the prepared data, for keys that the user did not set.

        Args:
            data: from `prepare`.
            experiment: configuration before these settings.

        Returns:
            Values for `heedful.tasks.experiment.load_experiment`.
        """

    def time_limited_defaults(
        self, data: DataT, experiment: Experiment, pace: Throughput, is_named: bool = False
    ) -> Tree:
        """Choose settings that suit the prepared data and measured speeds, mostly for a limit of time.

        By default, these are the settings of `data_defaults`.

        Args:
            data: from `completed`.
            experiment: configuration with the settings of `data_defaults`.
            pace: limit of time, if there is one, and speeds measured with that configuration.
            is_named: whether the user named the preset, so that the model keeps its size.

        Returns:
            Values for `heedful.tasks.experiment.load_experiment`.
        """
        return self.data_defaults(data, experiment)

    def completed(self, data: DataT, experiment: Experiment, folder: Path) -> DataT:
        """Add to the data what the resolved settings require.

        Args:
            data: from `prepare`.
            folder: the model's folder.

        Returns:
            The data; unchanged by default.
        """
        return data

    def reasons(self, data: DataT, experiment: Experiment) -> Mapping[str, str]:
        """Explain the choices that the task made, and how to choose otherwise.

        Args:
            data: from `completed`.
            experiment: configuration, fully resolved.

        Returns:
            A line by section of the settings, "text" or "model"; none by default.
        """
        return {}

    def expectation(self, data: DataT, experiment: Experiment) -> str:
        """Say what can be expected of the data.

        Args:
            data: from `completed`.
            experiment: configuration, fully resolved.

        Returns:
            One line; empty by default.
        """
        return ""

    def build_model(self, experiment: Experiment, sizes: tuple[Any, ...]) -> nn.Module:
        """Build the model with initial parameters, which are a function of the seed.

        Args:
            experiment: configuration, fully resolved.
            sizes: `Prepared.sizes` of the data.

        Raises:
            ConfigError: the configured class builds models of another task.
        """
        config = experiment.model
        model = build_model(experiment, sizes) if takes_sizes(config, sizes) else None
        if not isinstance(model, self.model):
            raise ConfigError(
                f"model.kind: {config.kind} makes no {self.model.__name__} of {len(sizes)} sizes, which "
                f"{self.name} needs; name another kind or another task"
            )
        return model

    @abstractmethod
    def trial_sizes(self, experiment: Experiment) -> tuple[Any, ...]:
        """Return small sizes like those that data give the model, to try settings before any data are read.

        Returns:
            Sizes, as in `Prepared.sizes`.
        """

    def initialize(self, model: nn.Module, data: DataT) -> None:
        """Replace initial parameters by those that the data provide, such as pretrained vectors; by default, none.

        Args:
            model: from `build_model`; changed in place.
            data: from `completed`.
        """

    @abstractmethod
    def sampler(self, experiment: Experiment, folder: Path, data: DataT | None) -> Sampler:
        """Return the sampler of training batches.

        Args:
            experiment: configuration, fully resolved.
            folder: the model's folder.
            data: from `completed`; None in a further process, which reads what the first process stored in the folder.

        Returns:
            Sampler of batches for the task's step, the same batches in every process.
        """

    @abstractmethod
    def step(self, experiment: Experiment, model: nn.Module) -> TrainingStep:
        """Combine a model with the loss of the task.

        Args:
            experiment: configuration, fully resolved.
            model: the model, on its device.
        """

    @abstractmethod
    def validator(self, data: DataT, experiment: Experiment) -> Callable[[nn.Module], Validation]:
        """Return the validation that selects the best model.

        Args:
            data: from `completed`.
            experiment: configuration, fully resolved.

        Returns:
            A function that validates a model in evaluation mode.
        """

    def encoded_sides(self, data: DataT) -> Mapping[str, tuple[EncodedSide, Tokenizer]]:
        """List the encoded texts of the training data that a pretrained model's vocabulary may not know.

        Args:
            data: from `completed`.

        Returns:
            For each side its token ids and its tokenizer; none by default.
        """
        return {}

    def calibration_items(self, data: DataT) -> EvaluationSet | None:
        """Choose the validation items that a confidence is fitted on.

        Args:
            data: from `completed`.

        Returns:
            The items; None by default: models of the task have no confidence to fit.
        """
        return None

    def finish(self, folder: Path, data: DataT, experiment: Experiment) -> None:
        """Complete the model of a folder after its training, such as by values that validation chooses; by default, no.

        Args:
            folder: the model's folder, with the best model.
            data: from `completed`.
            experiment: configuration, fully resolved.
        """

    def judgement(self, data: DataT, best: float, short: str = "") -> str:
        """Judge a result by simple models of the same data.

        Args:
            data: from `completed`.
            best: best score on validation, by which the model was selected.
            short: time of a training that a limit ended while it was learning, such as "after 15 steps, 3.0 epochs";
                empty for others.

        Returns:
            One line; empty where there is nothing to compare with, which is the default.
        """
        return ""

    @property
    def poor_scores(self) -> Mapping[str, float]:
        """Scores of a model of little use, by the name of the score; none by default."""
        return {}

    def open(self, folder: Path, device: str = "cpu", engine: str = "auto") -> Predictor:
        """Open a trained model.

        Args:
            folder: the model's folder.
            device: PyTorch device.
            engine: torch, "auto" or the name of an exported engine.
        """
        return load(folder, device, engine)
