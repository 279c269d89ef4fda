"""Interface of predictors: loaded models of any task."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from html import escape
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol, Self, TypeVar

from heedful.data.rows import Columns
from heedful.engines.folder import ModelFolder
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.engines.exported import Exported
    from heedful.evaluation.bootstrap import Difference
    from heedful.export.archive import ArchivedModel
    from heedful.pages.attention_view import AttentionView


TRIED_LENGTHS: Final = (1, 3)
"""Numbers of positions of the sources that graphs are tried with."""
_PART_USERS: Final = {
    "layers": "--to onnx and models that translate",
    "shortlist": "engines of models that translate",
    "int8": "models that translate or describe images",
}
"""Models and forms that each part of an engine is for, by its option of `heedful export`."""


class Measured(Protocol):
    """Scores of a model on evaluation items."""

    def summary(self) -> str:
        """Summarise the scores in a few lines."""
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

    def differences(self, baseline: Any, seed: int = 12345) -> "tuple[Difference, ...]":
        """Compare with a baseline on the same items, by paired bootstrap resampling.

        Args:
            baseline: scores of the same class.
            seed: seed of the resampling.

        Raises:
            DataError: the baseline was measured on other items.
        """
        ...


class Sliceable(Protocol):
    """Items that can be counted and sliced."""

    def __len__(self) -> int:
        """Count the items."""
        ...

    def __getitem__(self, selection: slice, /) -> Self:
        """Select some of the items."""
        ...


class Items(Sliceable, Protocol):
    """Evaluation items of a task."""

    @property
    def sources(self) -> Sequence[str]:
        """Source of each item, as `Predictor.predict` takes it."""
        ...

    @property
    def references(self) -> Sequence[Sequence[str]]:
        """Right outputs of each item, one at least."""
        ...


ItemsT = TypeVar("ItemsT", bound=Sliceable)


def spaced(items: ItemsT, number: int) -> ItemsT:
    """Select evenly spaced items.

    Args:
        number: largest number of selected items, 1 or more.

    Returns:
        Every k-th item, with the smallest k that gives at most this number.

    Example:
        >>> spaced([1, 2, 3, 4, 5], 3)
        [1, 3, 5]
    """
    return items[:: max(1, ceil(len(items) / number))]


class EngineRequest(NamedTuple):
    """Engine to be exported, with the parts that it may have besides."""

    engine: str
    """Kind, such as onnx."""
    int8: bool = False
    layers: bool = False
    shortlist: bool = False
    folder: ModelFolder | None = None
    """Folder that the engine is written into; None = that of the model."""

    def refuse_parts(self, allowed: Collection[str]) -> None:
        """Refuse parts that the models of a task cannot have.

        Args:
            allowed: names of those they can have.

        Raises:
            UsageError: another one is wanted.
        """
        for name, users in _PART_USERS.items():
            if getattr(self, name) and (name not in allowed or (name == "layers" and self.engine != "onnx")):
                raise UsageError(f"export: --{name} is for {users}")


class Predictor(ABC):
    """Loaded model.

    Example:
        >>> heedful.load("reviews.model").predict(["A quiet room"])  # doctest: +SKIP
        ['good']
    """

    generates_text: ClassVar[bool] = False
    """True for models that write outputs token by token, by a search; metrics of texts measure them."""
    engine_kinds: ClassVar[tuple[str, ...]] = ()
    """Kinds of engines that models of the task can be exported to."""
    engine_parts: ClassVar[frozenset[str]] = frozenset()
    """Parts that these engines can have besides: int8, layers, shortlist."""
    folder: ModelFolder
    """Verified folder of the model."""
    opened_with: tuple[Callable[..., "Predictor"], tuple[Any, ...]] | None = None
    """Function that opened the predictor, and its arguments, with which a copy or a pickled one is opened again."""

    def __reduce__(self) -> tuple[Any, ...]:
        if self.opened_with is None:
            raise TypeError(f"{type(self).__name__}: only a predictor that heedful.load opened is copied or pickled")
        return self.opened_with

    @abstractmethod
    def __init__(
        self, folder: ModelFolder, device: str = "cpu", engine: str = "auto", ensemble: Sequence[ModelFolder] = ()
    ) -> None:
        """Open a model; all predictors share this signature.

        Args:
            folder: verified folder of the model.
            device: PyTorch device, such as cpu or cuda; "auto" takes a CUDA device where there is one.
            engine: torch, "auto" or the name of an exported engine.
            ensemble: further models that predict together with the first.
        """

    @abstractmethod
    def measure(self, items: Any, metrics: tuple[str, ...] = (), beam: int = 0) -> Measured:
        """Score the model on evaluation items, as `heedful train` does at its end.

        Args:
            items: evaluation items of the task, of the type of its `Prepared.test`.
            metrics: keys of metrics; none = those that suit the outputs.
            beam: beam width; 0 = the model's own.

        Raises:
            TypeError: the items are of another task.
            UsageError: metrics or a beam are given to a model that generates no text.
        """

    def evaluate(self, *data: Any, columns: Columns = (1, 2)) -> Any:
        """Compare outputs with right ones, as `heedful evaluate` does.

        Args:
            data: one file of examples, or two aligned files; or examples in memory as `heedful.train` takes them.
            columns: columns of source and target, or text and label, by 1-based number or by name.

        Returns:
            Report of the scores, of the class that suits the task.

        Raises:
            DataError: the data are unusable, or have no examples.
        """
        from heedful.data.in_memory import PAIR_KEYS, SIDES, example_files

        with example_files(data, "test", columns, SIDES.get(self.folder.task, PAIR_KEYS)) as files:
            return self.measure(self.read_items(files.paths, files.columns))

    def attention_views(self, sources: Sequence[str]) -> "list[AttentionView]":
        """Compute attention for a page; a model without attention has none.

        Returns:
            A drawing for each text that has one.
        """
        return []

    @property
    def exported(self) -> "Mapping[str, Exported]":
        """Engines that the model folder has, by name; none of a model that runs in PyTorch alone."""
        return {}

    @property
    def usual_engines(self) -> tuple[str, ...]:
        """Names of the engines that training ends by exporting; none by default.

        Raises:
            MissingExtra: PyTorch is not installed.
        """
        return ()

    def exporter(
        self,
        engine: str,
        *,
        int8: bool = False,
        layers: bool = False,
        shortlist: bool = False,
        folder: ModelFolder | None = None,
    ) -> "Callable[[], Exported]":
        """Prepare the export of an engine, as `heedful export --to` writes it.

        Args:
            engine: onnx or ctranslate2.
            int8: whether matrices are quantised to int8.
            layers: whether the attention of every layer is exported too.
            shortlist: whether a shortlist of the vocabulary is learned too.
            folder: folder that the engine is written into; None = that of the model.

        Returns:
            A function that writes the engine, compares it with PyTorch and describes it; it raises `FileRefused` where
            they differ.

        Raises:
            UsageError: the model has no such engine, or none of that kind.
            MissingExtra: PyTorch is not installed.
        """
        request = EngineRequest(engine, int8, layers, shortlist, folder)
        request.refuse_parts(self.engine_parts)
        if engine not in self.engine_kinds:
            advice = f"; take html, js or {' or '.join(self.engine_kinds)}" if self.engine_kinds else ""
            task = self.folder.task
            raise UsageError(f"{self.folder.path}: a {task} model, which --to {engine} does not take{advice}")
        return self._writer(request)

    def _writer(self, request: EngineRequest) -> "Callable[[], Exported]":
        """Function that exports an engine of one of `engine_kinds`, with parts of `engine_parts`."""
        raise NotImplementedError

    def run_graphs(self, folder: Path) -> None:
        """Run the model's ONNX graphs once, for two drawn sources.

        Args:
            folder: folder with the graphs.

        Raises:
            FileRefused: a graph is damaged, reads files outside its folder, or is none of such a model.
            MissingExtra: ONNX Runtime is not installed.
            UsageError: models for the task have no graphs.
        """
        raise UsageError(f"{self.folder.path}: a {self.folder.task} model, which has no graphs")

    def archived(self, has_layers: bool = False) -> "ArchivedModel":
        """Describe the model as the archive for JavaScript has it.

        Args:
            has_layers: whether the attention of every layer and head is in the archive.

        Raises:
            UsageError: models for the task do not run in JavaScript.
        """
        task = self.folder.task
        raise UsageError(f"{self.folder.path}: a model for {task}, which JavaScript cannot run yet; use heedful serve")

    def page_example(self, text: str) -> str | dict[str, str]:
        """Give an example as the page with the model inside shows it.

        Args:
            text: a source, as `predict` takes it.
        """
        return text

    @property
    def target_language(self) -> str:
        """Language code of the outputs; empty if unknown, or if they are no texts."""
        return ""

    @property
    @abstractmethod
    def metrics(self) -> tuple[str, ...]:
        """Keys of the metrics that suit the outputs, the primary one first."""

    @abstractmethod
    def predict(self, sources: Sequence[str]) -> list[str]:
        """Predict the output of each source: its translation, label, answer or caption.

        Args:
            sources: texts, stories in one line, or paths of images.

        Returns:
            One output for each source, in order.
        """

    def annotate(self, table: Any, column: str, to: str) -> Any:
        """Predict a column of a table in memory.

        Args:
            table: a table of pandas, polars, PyArrow or datasets, a dictionary of columns, or dictionaries in a list.
            column: name of the column of sources.
            to: name of the new column.

        Returns:
            A table of the same kind, with the column of outputs; the given one is not changed.

        Raises:
            DataError: the column is missing or holds other values than texts, or there is one of the new name.

        Example:
            >>> table = {"german": ["Guten Tag"]}  # doctest: +SKIP
            >>> heedful.load("de-en.model").annotate(table, "german", to="english")  # doctest: +SKIP
            {'german': ['Guten Tag'], 'english': ['Good day']}
        """
        from heedful.data.in_memory import column_of, with_column

        return with_column(table, to, self.predict(column_of(table, column)))

    def _repr_html_(self) -> str:
        """Show the facts of the model in a notebook, and its test scores where they are known."""
        from heedful.pages.record import read_scores

        facts = self.folder.facts
        rows = [("model", str(self.folder.path)), ("task", self.folder.task), ("kind", str(facts.get("kind", "")))]
        if languages := " → ".join(filter(None, map(str, facts.get("languages", ())))):
            rows.append(("languages", languages))
        if tested := str(read_scores(self.folder.path).get("text", "")).strip():
            rows.append(("test", tested))
        cells = "".join(
            f"<tr><th style='text-align: left'>{name}</th><td style='text-align: left; white-space: pre-wrap'>"
            f"{escape(text)}</td></tr>"
            for name, text in rows
        )
        return f"<table>{cells}</table>"

    @abstractmethod
    def read_items(self, paths: tuple[Path, ...], columns: Columns) -> Items:
        """Read evaluation items.

        Args:
            paths: one file, or two aligned files.
            columns: columns of source and target, or text and label, by 1-based number or by name.

        Returns:
            The items, at least one.

        Raises:
            DataError: the file is unusable, or has no items.
        """
