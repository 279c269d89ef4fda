"""Evaluation from Python: `heedful.evaluate`."""

from pathlib import Path
from typing import Any

from heedful.data.rows import Columns
from heedful.errors import UsageError
from heedful.predictors.interface import Predictor
from heedful.predictors.table import load


def evaluate_model(
    model: str | Path | Predictor, *data: Any, columns: Columns = (1, 2), device: str = "auto", engine: str = "auto"
) -> Any:
    """Compare the outputs of a model with right ones, as `heedful evaluate` does.

    Args:
        model: path of a model folder, or an opened model.
        data: one file of examples, or two aligned files; or the examples themselves as `heedful.train` takes them: a
            list of pairs or dictionaries, sources and targets as two lists of equal length, an array [pair, 2], a
            dictionary of columns, or a table of pandas, polars, PyArrow or datasets.
        columns: columns of source and target, of text and label, or of image and caption, by 1-based number or name.
        device: PyTorch's device; "auto" = a CUDA device if there is one, else the CPU; of an opened model its own.
        engine: as for `heedful.load`; of an opened model its own.

    Returns:
        Report of the task, with `to_dict`, `to_text` and `summary`: `heedful.evaluation.report.Report` of translations
        and captions, `LabelReport`, `SetReport` or `NumberReport` of labels, `AnswerReport` or `SpanReport` of answers.

    Raises:
        UsageError: there are no data, the folder has no model, or there is no such device or engine.
        FileRefused: a file of the model was changed or is missing.
        DataError: the data are unusable, or have no examples; the message names the row.

    Example:
        >>> heedful.evaluate("reviews.model", [("a quiet room", "good"), ("rude staff", "bad")])  # doctest: +SKIP
        <LabelReport of 2 texts: accuracy 100.00, macro-F1 100.00>
    """
    if not data:
        raise UsageError("evaluate: no data given; give one file of examples, two aligned files, or examples")
    predictor = model if isinstance(model, Predictor) else load(model, device, engine)
    return predictor.evaluate(*data, columns=columns)
