"""The interface of predictors: a trained model that a user holds, whatever its task."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from heedful.data.rows import Columns
from heedful.runtime.folder import ModelFolder


class Measured(Protocol):
    """The outcome of measuring a model on evaluation items."""

    def summary(self) -> str:
        """Sum the scores up in a few lines.

        Returns:
            Lines that end in a newline.
        """
        ...

    def to_text(self) -> str:
        """Write all scores as tables.

        Returns:
            Lines that end in a newline.
        """
        ...

    def to_dict(self) -> dict[str, Any]:
        """List all scores.

        Returns:
            Values that JSON can hold.
        """
        ...


class Predictor(ABC):
    """A loaded model."""

    folder: ModelFolder
    """Its verified folder."""

    @abstractmethod
    def __init__(
        self, folder: ModelFolder, device: str = "cpu", engine: str = "torch", ensemble: Sequence[ModelFolder] = ()
    ) -> None:
        """Open a model; every predictor is made alike.

        Args:
            folder: a verified model folder.
            device: where PyTorch computes, such as cpu or cuda; "auto" takes a CUDA device where there is one.
            engine: what computes: torch, "auto" or the name of an exported engine.
            ensemble: other models that predict together with it.
        """

    @abstractmethod
    def measure(self, items: Any) -> Measured:
        """Score the model on evaluation items, as `heedful train` does at its end.

        Args:
            items: of the task, as its `Prepared.test` holds them.

        Returns:
            The scores.
        """

    @abstractmethod
    def measure_files(self, paths: tuple[Path, ...], columns: Columns) -> Measured:
        """Score the model on an evaluation file, as `heedful evaluate` does.

        Args:
            paths: one file, or two aligned files.
            columns: by 1-based number or by name.

        Returns:
            The scores.
        """
