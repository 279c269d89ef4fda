"""Base of predictors whose results are labels or spans: opens the tokenizer, the labels, and the engine that scores."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from heedful.config.base import read_toml, validate
from heedful.engines.exported import ENGINES, Exported, find_exported, named_engine
from heedful.engines.folder import CONFIG, ModelFolder, require_same_tokens
from heedful.engines.label_arrays import LabelRun, mean_run
from heedful.engines.labels import open_label_graphs, run_labels
from heedful.errors import FileRefused, MissingExtra, UsageError, needed_for
from heedful.files.bounded_read import MOST_BULK_BYTES, read_json
from heedful.predictors.interface import TRIED_LENGTHS, EngineRequest, Predictor
from heedful.text.tokenizer import TextConfig
from heedful.text.tokenizer_files import load_tokenizer

if TYPE_CHECKING:
    from heedful.models.label_model import LabelModel
    from heedful.search.inputs import InputDraw

SEPARATOR: Final = "label_separator"
"""Entry of `heedful.json`: separator of several labels in a cell of the training data."""
TEXT_COLUMNS: Final = "text_columns"
"""Entry of `heedful.json`: names of the columns of texts in the training data."""


def read_labels(path: Path) -> list[str]:
    """Read the labels of a model.

    Returns:
        Labels in the order of their ids.

    Raises:
        FileRefused: the file is missing or damaged.
    """
    try:
        names = read_json(path, MOST_BULK_BYTES)
    except OSError as error:
        raise FileRefused(f"{path}: not readable: {error}") from None
    if not isinstance(names, list):
        raise FileRefused(f"{path}: damaged: not a list of labels; copy the folder again")
    return [*map(str, names)]


class LabelPredictor(Predictor, ABC):
    """Loaded model that chooses one of its labels."""

    noun: ClassVar[str]
    """Noun for the predictor in messages."""
    engine_kinds = ("onnx",)

    def __init__(
        self, folder: ModelFolder, device: str = "cpu", engine: str = "auto", ensemble: Sequence[ModelFolder] = ()
    ) -> None:
        """Load a model's tokenizer and labels; its weights are loaded on first use.

        Args:
            folder: opened model folder.
            device: PyTorch device, such as cpu or cuda; "auto" takes a CUDA device where there is one.
            engine: torch; onnx, if `heedful export` wrote it; or "auto": onnx where its results equal PyTorch's and
                ONNX Runtime is installed, else torch.
            ensemble: folders of further models with the same tokens and labels, which run in PyTorch; the probabilities
                of all are averaged.

        Raises:
            UsageError: there is no such engine, it runs no ensemble, or the ensemble has other tokens or labels.
            FileRefused: the list of labels is damaged.
        """
        if ensemble and engine not in ("auto", "torch"):
            raise UsageError(f"engine {engine}: an ensemble of {self.noun}s runs in PyTorch; take torch or auto")
        self.folder = folder
        self._others: Final = [require_same_tokens(each, folder) for each in ensemble]
        self.text: Final = validate(TextConfig, read_toml(folder.path / CONFIG).get("text", {}), "text")
        self.tokenizer: Final = load_tokenizer(
            folder.file("tokenizer"), self.text.source_units, self.text.normalization
        )
        self.labels: Final[tuple[str, ...]] = tuple(read_labels(folder.file("labels")))
        self._exported: Final = find_exported(folder, self.text.max_tokens)
        if engine in ENGINES and engine != "onnx":
            raise UsageError(f"engine {engine}: not for {self.noun}s; take onnx, torch or auto")
        if engine not in ("auto", "torch"):
            named_engine(self._exported, engine, folder)
        self._engine: Final = engine
        self._device: Final = device
        self._run: LabelRun | None = None
        self._model: LabelModel | None = None

    def _refuse_search(self, metrics: tuple[str, ...], beam: int) -> None:
        """Refuse what is only for models that generate text.

        Raises:
            UsageError: metrics or a beam are given.
        """
        if metrics or beam:
            raise UsageError(f"a {self.noun} has metrics of its own and no beam; leave both out")

    @property
    def exported(self) -> Mapping[str, Exported]:
        return self._exported

    @property
    def usual_engines(self) -> tuple[str, ...]:
        return self.engine_kinds

    def _writer(self, request: EngineRequest) -> "Callable[[], Exported]":
        from heedful.export.labels import export_classifier

        sizes = len(self.tokenizer), self.text.max_tokens
        return partial(export_classifier, self.model(), request.folder or self.folder, *sizes)

    def run_graphs(self, folder: Path) -> None:
        draw = self._draw(len(self.tokenizer))
        run_labels(open_label_graphs(folder), draw(np.array(TRIED_LENGTHS), np.random.default_rng(0)))

    @abstractmethod
    def _draw(self, num_tokens: int) -> "InputDraw":
        """Function that draws inputs of the kind that the model reads."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Keys of the metrics that suit labels."""
        return ("accuracy",)

    def __repr__(self) -> str:
        labels = f"{len(self.labels):,} labels"
        return (
            f"<{type(self).__name__} {str(self.folder.path)!r}: {self.folder.facts.get('kind')}, {labels}, "
            f"engine {self._engine}>"
        )

    def model(self) -> "LabelModel":
        """Return the PyTorch model, loaded on first use.

        Returns:
            The model in evaluation mode, the same object at every call.

        Raises:
            MissingExtra: PyTorch is not installed.
            FileRefused: the folder holds a model of another task.
        """
        if self._model is None:
            self._model = self._load(self.folder)
        return self._model

    def _load(self, folder: ModelFolder) -> "LabelModel":
        """PyTorch model of a folder.

        Raises:
            MissingExtra: PyTorch is not installed.
            FileRefused: the folder holds a model of another task.
        """
        with needed_for("running this model"):
            from heedful.models.label_model import LabelModel
            from heedful.models.store import load_model
        model = load_model(folder, (len(self.tokenizer), len(self.labels)), self._device)
        if not isinstance(model, LabelModel):
            raise FileRefused(f"{folder.path}: its model is no {self.noun}")
        model.has_label_sets = self.text.labels == "several"
        return model

    def label_run(self) -> LabelRun:
        """Return the function that computes label probabilities, loaded on first use.

        Returns:
            The function, of the exported graph or of the PyTorch model.

        Raises:
            MissingExtra: what the engine needs is not installed.
            FileRefused: the folder is damaged.
        """
        if self._run is None:
            self._run = self._graph()
        if self._run is None:
            models = [self.model(), *map(self._load, self._others)]
            from heedful.models.label_model import label_run

            self._run = mean_run([*map(label_run, models)])
        return self._run

    def _graph(self) -> LabelRun | None:
        """Return the exported graph if the engine is onnx, or is "auto" and the graph's results equal PyTorch's.

        Raises:
            MissingExtra: the engine is onnx, and ONNX Runtime is not installed.
        """
        exported = self._exported.get("onnx")
        if self._engine == "torch" or exported is None or self._others:
            return None
        if self._engine == "auto" and (exported.fault or not exported.parity.is_exact):
            return None
        exported.verify()
        try:
            return open_label_graphs(exported.path)
        except MissingExtra:
            if self._engine != "auto":
                raise
            return None
