"""Page of the errors of a model, written by `heedful evaluate --html`."""

from collections.abc import Callable
from dataclasses import replace
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.cli.inspect_labels import write_page
from heedful.cli.lines import refuse_overwriting
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.data.prepare import EvaluationSet
    from heedful.predictors.interface import Predictor
    from heedful.predictors.translation_scores import TranslationScores

_KINDS = "classifiers and models that write single words; leave it out"


def check_errors(predictor: "Predictor", html: Path | None) -> None:
    """Check that the errors of a model can be written to a file; None = nothing is written.

    Raises:
        UsageError: the model gives no labels and writes no text, or the page would replace something else than a file.
    """
    if html is None:
        return
    from heedful.predictors.classifier import Classifier
    from heedful.predictors.translator import Translator

    if not isinstance(predictor, Classifier | Translator):
        raise UsageError(f"evaluate: --html is for {_KINDS}")
    refuse_overwriting(html, ())


def write_errors(predictor: "Predictor", items: Any, html: Path | None) -> dict[str, Any]:
    """Classify texts and write what is wrong.

    Args:
        items: from `read_items` of the model.
        html: new file; None = nothing is written.

    Returns:
        Nothing: the scores of classifiers have their errors already.
    """
    from heedful.predictors.classifier import Classifier
    from heedful.predictors.label_errors import label_errors

    if html is not None and isinstance(predictor, Classifier):
        write_page(html, label_errors(predictor, items).to_html())
    return {}


def divided(items: "EvaluationSet", html: Path | None) -> Callable[[str], list[str]] | None:
    """Find how the references of a model that writes text are divided into symbols.

    Args:
        html: page of errors to write; None = none.

    Returns:
        A function that lists the symbols of a word; None where the references are no single words.

    Raises:
        UsageError: a page of errors is to be written of such references.
    """
    from heedful.evaluation.symbol_alignment import symbol_division

    divide = symbol_division([text for texts in items.references for text in texts])
    if divide is None and html is not None:
        raise UsageError(f"evaluate: the references are no single words; --html is for {_KINDS}")
    return divide


def write_symbol_errors(
    model: str,
    items: "EvaluationSet",
    scores: "TranslationScores",
    divide: Callable[[str], list[str]] | None,
    html: Path | None,
    ignores_case: bool,
) -> dict[str, Any]:
    """Write which symbols of a model's outputs are wrong.

    Args:
        model: name of the model.
        items: the words.
        scores: scores of the model on them.
        divide: from `divided`.
        html: new file; None = none is written.
        ignores_case: whether words are compared without regard to case, as the scores are.

    Returns:
        The errors as values that JSON can hold, under the name "symbols"; nothing where outputs are no single words.
    """
    if divide is None:
        return {}
    from heedful.predictors.symbol_errors import symbol_errors

    probabilities = [*map(exp, scores.outputs.log_probs)]
    outputs = scores.outputs.outputs
    if ignores_case:
        items = replace(items, references=[[text.lower() for text in texts] for texts in items.references])
        outputs = [output.lower() for output in outputs]
    page = symbol_errors(model, items, outputs, probabilities, divide)
    if html is not None:
        write_page(html, page.to_html())
    return {"symbols": page.to_dict()}
