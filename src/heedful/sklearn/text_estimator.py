"""Base of estimators over texts: parameters, training on rows in memory, the fitted model, and pickling."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from heedful.engines.folder import MANIFEST
from heedful.errors import ConfigError, DataError, FileRefused, needed_for
from heedful.files.atomic_write import private_folder
from heedful.files.bounded_read import read_json_object
from heedful.predictors.classifier import Classifier
from heedful.predictors.table import load
from heedful.runs.python_terms import in_python
from heedful.runs.request import TrainRequest, merged_settings
from heedful.runs.train import Console, train

with needed_for("heedful.sklearn"):
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted


_LINE: Final = re.compile(r"texts\.jsonl:(\d+)")
"""Line of the file that is made of X and y."""


class TextEstimator(BaseEstimator, ABC):
    """Estimator of a value for each text, trained as by `heedful train --task classification`.

    X is a list, array or Series of texts, or a DataFrame of one column. Texts need no preparation. A fitted estimator
    holds its model in memory, so that pickle and joblib carry it.

    Attributes:
        files_: contents of the files of the model's folder, by name.
    """

    def __init__(
        self,
        preset: str = "",
        minutes: float = 0.0,
        settings: Mapping[str, object] | None = None,
        random_state: int = 1,
        device: str = "cpu",
    ) -> None:
        """Store the parameters; scikit-learn asks for no more here.

        Args:
            preset: name of a preset for classification; empty = `classifier`.
            minutes: longest time of training; 0 = as many epochs as suit the texts.
            settings: values by dotted key, such as ``{"model.dropout": 0.5}``.
            random_state: seed of initial weights, data order and dropout.
            device: PyTorch's device.
        """
        self.preset = preset
        self.minutes = minutes
        self.settings = settings
        self.random_state = random_state
        self.device = device

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Self:
        """Train a model.

        Args:
            X: [text] texts.
            y: value of each text.
        """

    def fit_rows(
        self, texts: Sequence[str], labels: Sequence[str], settings: Mapping[str, object], separator: str = ""
    ) -> None:
        """Train a model on labelled texts.

        Args:
            labels: label of each text, as a file has it.
            settings: settings of the kind of labels, by dotted key.
            separator: separator of several labels of a text; empty = a text has one label.

        Raises:
            ValueError: there are too few texts or labels.
        """
        if self.minutes < 0.0:
            raise ValueError(f"minutes={self.minutes}; give 0 or more")
        rows = [
            json.dumps({"text": _writable(text), "label": label}, ensure_ascii=False)
            for text, label in zip(texts, labels, strict=True)
        ]
        limit = {"training.max_minutes": float(self.minutes)} if self.minutes else {}
        own = {"training.seed": self.random_state, "training.export": False, **settings}
        with private_folder() as folder:
            data, test = folder / "texts.jsonl", folder / "test.jsonl"
            data.write_bytes("".join(f"{row}\n" for row in rows).encode())
            tested = next((row for row, text in zip(rows, texts, strict=True) if text.strip()), rows[0])
            test.write_bytes(f"{tested}\n".encode())  # so that no texts are held out for testing
            request = TrainRequest(
                data=(data,),
                test=(test,),
                columns=("text", "label"),
                separator=separator,
                out=folder / "m",
                task="classification",
                preset=self.preset,
                settings=merged_settings(options={**own, **limit, **(self.settings or {})}),
                device=self.device,
            )
            try:
                train(request, Console(lambda progress: None, _ignore, _ignore))
            except (DataError, ConfigError) as error:
                raise ValueError(_without_files(str(error), folder)) from error
            names = read_json_object(folder / "m" / MANIFEST)["files"]
            self.files_ = {name: (folder / "m" / name).read_bytes() for name in (MANIFEST, *names)}
        self._opened: Classifier | None = None
        self.n_features_in_ = 1

    @property
    def classifier(self) -> Classifier:
        """The fitted model, whose labels are the indices of `classes_`."""
        check_is_fitted(self)
        if self._opened is None:
            with private_folder() as folder:
                for name, content in self.files_.items():
                    (folder / name).write_bytes(content)
                opened = load(folder, self.device, kind=Classifier)
                opened.label_run()  # reads the weights
            self._opened = opened
        return self._opened

    def __getstate__(self) -> dict[str, Any]:
        # What is open belongs to this process; the files are all of a model.
        state: dict[str, Any] = {**super().__getstate__()}  # pyright: ignore[reportGeneralTypeIssues]
        return {key: None if key == "_opened" else value for key, value in state.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        names = state.get("files_", {})
        if any(Path(name).name != name for name in names):
            raise FileRefused("a pickled estimator names files in other folders; fit it again")
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.target_tags.required = True
        return tags


def _without_files(message: str, folder: Path) -> str:
    """Message about rows of X and y in place of lines of the files that were made of them."""
    named = _LINE.sub(lambda line: f"X and y, row {int(line[1]) - 1}", in_python(message.replace(f"{folder}/", "")))
    return named.replace("texts.jsonl", "X and y").replace("pairs kept", "texts kept")


def _ignore(_: object) -> None: ...


def texts_of(values: Any) -> list[str]:
    """List texts.

    Raises:
        ValueError: the values are not a sequence of texts; the message names the row.
    """
    if isinstance(values, str | bytes):
        raise ValueError("X is one text; give a list of texts")
    items = _column(values, "X")
    for row, item in enumerate(items):
        if not isinstance(item, str):
            raise ValueError(f"X: row {row} is {item!r:.40}, of type {type(item).__name__}; give texts")
    if not items:
        raise ValueError("X: no texts, 0 sample(s); give 1 or more")
    return [str(item) for item in items]


def labels_of(values: Any, instead: str = "give one number") -> NDArray[Any]:
    """Array of labels.

    Args:
        instead: advice where a text has a list of labels.

    Raises:
        ValueError: there are none, a label is missing, or a text has a list of them; the message names the row.
    """
    if values is None:
        raise ValueError("requires y to be passed, but the target y is None")
    items = _column(values, "y")
    for row, item in enumerate(items):
        if isinstance(item, list | tuple | set | frozenset | np.ndarray):
            raise ValueError(f"y: row {row} is a {type(item).__name__}; {instead}")
        if item is None or item != item:  # NaN differs from itself
            raise ValueError(f"y: row {row} is {item!r}; leave out rows without a label")
    return np.asarray(items)


def _column(values: Any, name: str) -> list[Any]:
    """List the values of a sequence, or of the only column of a table.

    Raises:
        ValueError: there are several columns, or the values are no sequence.
    """
    array = values.to_numpy() if hasattr(values, "to_numpy") else values
    if isinstance(array, np.ndarray):
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1:
            raise ValueError(f"{name} has shape {array.shape}; give one column")
        return array.tolist()
    if not isinstance(array, Iterable):
        raise ValueError(f"{name} is of type {type(values).__name__}; give a list")
    return [*array]


def _writable(text: str) -> str:
    """Text that a file can hold, without NUL and half characters."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
