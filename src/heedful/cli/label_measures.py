"""Facts about a classifier that `heedful evaluate` tells beside its scores: least confidence, texts cut or left out."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from heedful.cli.answered_tables import warn_of_cut
from heedful.cli.messages import Messages
from heedful.errors import UsageError
from heedful.text.counts import counted

if TYPE_CHECKING:
    from heedful.predictors.interface import Measured, Predictor

_ROUNDING: Final = 1e-9
"""Share in percent by which a wanted one may be missed, because it is rounded."""


def check_precision(predictor: "Predictor", precision: float | None) -> None:
    """Check that a model gives labels that are right or wrong; None = no share of right ones is wanted.

    Raises:
        UsageError: it is no classifier, or gives numbers.
    """
    if precision is None:
        return
    from heedful.predictors.classifier import Classifier

    if not isinstance(predictor, Classifier):
        raise UsageError(f"evaluate: --precision is for classifiers, not for {predictor.folder.task}; leave it out")
    if predictor.text.labels == "number":
        raise UsageError("evaluate: --precision is for labels, not for models that give numbers; leave it out")


def chosen_confidence(measured: "Measured", precision: float | None) -> tuple[str, dict[str, Any]]:
    """Choose the least confidence by which a wanted share of the texts with a label is right.

    Args:
        measured: scores of labels.
        precision: share of right labels, in [0, 1]; None = none is wanted.

    Returns:
        A line, and the same as values that JSON can hold, under the name "chosen"; nothing where none is wanted. Where
        no confidence has this share, it is None, and the largest share that one has is under the name "best".
    """
    if precision is None:
        return "", {}
    from heedful.evaluation.label_sets import SetReport
    from heedful.evaluation.labels import LabelReport
    from heedful.evaluation.selective import select_confident, select_most_precise, shown_confidence

    if not isinstance(measured, LabelReport | SetReport):
        return "", {}
    chosen = select_confident(measured.confidences, measured.right, 100.0 * precision - _ROUNDING)
    best = chosen or select_most_precise(measured.confidences, measured.right)
    failure = "" if chosen else f"no confidence from which on {100.0 * precision:g} % of the texts are right"
    if best is None:
        return failure, {"chosen": None, "best": None}
    option = f"use heedful classify --min-confidence {shown_confidence(best.min_confidence)}"
    if chosen is None:
        return f"{failure}; the best is {best.to_text()}; {option}", {"chosen": None, "best": best._asdict()}
    return f"{chosen.to_text()}; {option}", {"chosen": chosen._asdict()}


def warn_of_rows_left_out(items: Any, source: Path, messages: Messages) -> None:
    """Warn of rows of a file that have no text or no label, or cannot be read.

    Args:
        items: items that are measured.
        source: their file.
    """
    from heedful.data.labelled_texts import LabelledTexts

    for note in getattr(items, "notes", ()):
        messages.warn(note)
    if not isinstance(items, LabelledTexts):
        return
    counts = {"without text": items.num_without_text, "without a label": items.num_without_label}
    if parts := [f"{number:,} {lack}" for lack, number in counts.items() if number]:
        messages.warn(f"{source}: {counted(sum(counts.values()), 'row')} left out: {' and '.join(parts)}")


def warn_of_cut_texts(
    models: "Sequence[Predictor]", measured: "Sequence[Measured]", source: Path, messages: Messages
) -> None:
    """Warn of texts of which classifiers read the beginning only.

    Args:
        models: the models.
        measured: scores of each.
        source: file of the texts.
    """
    from heedful.predictors.classifier import Classifier

    for model, scores in zip(models, measured, strict=True):
        if isinstance(model, Classifier):
            by = str(model.folder.path) if len(models) > 1 else ""
            warn_of_cut(messages, source, getattr(scores, "num_cut", 0), model.text.max_tokens, by)
