"""Page of the errors of a classifier, written by `heedful evaluate --html`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.cli.inspect_labels import write_page
from heedful.cli.lines import refuse_overwriting
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.predictors.interface import Predictor


def check_errors(predictor: "Predictor", html: Path | None) -> None:
    """Check that the errors of a model can be written to a file; None = nothing is written.

    Raises:
        UsageError: the model gives no text one label, or the page would replace something else than a file.
    """
    if html is None:
        return
    from heedful.predictors.classifier import Classifier

    if not isinstance(predictor, Classifier) or predictor.text.labels != "one":
        raise UsageError("evaluate: --html is for classifiers that give each text one label; leave it out")
    refuse_overwriting(html, ())


def write_errors(predictor: "Predictor", items: Any, html: Path | None) -> None:
    """Classify texts and write what is wrong.

    Args:
        items: from `read_items` of the model.
        html: new file; None = nothing is written.
    """
    from heedful.predictors.classifier import Classifier
    from heedful.predictors.label_errors import label_errors

    if html is not None and isinstance(predictor, Classifier):
        write_page(html, label_errors(predictor, items).to_html())
