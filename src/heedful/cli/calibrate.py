"""Fit the confidence of a model: the probability that a translation is right.

DATA is one file of pairs, or two aligned files, that the model was not trained on; the validation set is a good choice.
heedful train does the same with the validation set at its end. The result is stored in the model folder, for translate
--min-confidence and evaluate. The printed figures are honest: each output's probability comes from a fit to the others.

Examples:
  heedful calibrate pairs.model dev.tsv
  heedful calibrate pairs.model dev.de dev.en --right exact_match
"""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.messages import Messages
from heedful.cli.options import (
    ColumnsText,
    DataPaths,
    Debug,
    Device,
    Engine,
    ModelPath,
    Quiet,
    ReportFormat,
    Threads,
    parse_columns,
    use_threads,
)
from heedful.cli.translation_scoring import read_pairs
from heedful.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from heedful.evaluation.confidence import Criterion

Right = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="When an output is right: exact_match (usual for characters), or chrf (60 or more).",
        show_default="by the tokens",
    ),
]


def run(
    model: ModelPath,
    data: DataPaths,
    right: Right = "",
    engine: Engine = "auto",
    columns: ColumnsText = "",
    output_format: ReportFormat = "text",
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Calibrate a model."""
    use_threads(threads)
    criterion = _criterion(right)
    from heedful.cli.scoring import load_to_run
    from heedful.predictors.calibration import calibrate, suited_criterion
    from heedful.predictors.confidence import write_confidence
    from heedful.predictors.translator import Translator

    messages = Messages(quiet)
    translator = load_to_run(model, engine, device, kind=Translator)
    items = read_pairs(translator, data, parse_columns(columns), messages)
    confidence, report = calibrate(translator, items, criterion or suited_criterion(translator))
    write_confidence(translator.folder, confidence)
    print(json.dumps(report.to_dict(), indent=1) if output_format == "json" else report.to_text().rstrip())
    messages.say(f"stored in {model}; use it: heedful translate {model} --min-confidence 0.5")


def _criterion(name: str) -> "Criterion | None":
    """Criterion of the option; None where it is not given.

    Raises:
        UsageError: there is no such criterion.
    """
    if name == "exact_match" or name == "chrf":
        return name
    if name:
        raise UsageError(f"--right {name}: unknown{did_you_mean(name, ('exact_match', 'chrf'))}")
    return None
