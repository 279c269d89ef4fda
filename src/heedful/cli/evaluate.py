"""Evaluate a model on a test set, alone or against another model.

DATA is one file of pairs, or two aligned files; rows with the same source are its references. Scores are
printed with 95 % confidence intervals, with sacreBLEU-style signatures that make them comparable, and by source length.
Of a calibrated model, the calibration of its confidence is printed too, beside the log probability.
For a model that classifies texts or answers questions, DATA is a file like the one it was trained on.

Examples:
  heedful evaluate pairs.model test.tsv
  heedful evaluate pairs.model test.de test.en --metrics bleu,chrf
  heedful evaluate new.model test.tsv --versus old.model --format json
  heedful evaluate pairs.model test.tsv --record
  heedful evaluate reviews.model test.tsv --html errors.html
  heedful evaluate reviews.model test.tsv --precision 0.95
  heedful evaluate ron.model test.tsv --html phones.html
  heedful evaluate pairs.model test.tsv --terms terms.tsv
  heedful evaluate pairs.model test.tsv --png by-length.png
  heedful evaluate pairs.model test.tsv --risk-png risk.png
  heedful evaluate pairs.model paragraphs.tsv --segments auto
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from heedful.cli.completion import metrics as complete_metrics
from heedful.cli.error_page import check_errors, divided, write_errors, write_symbol_errors
from heedful.cli.label_measures import check_precision, chosen_confidence, warn_of_cut_texts, warn_of_rows_left_out
from heedful.cli.messages import Messages
from heedful.cli.options import (
    DATA,
    MOST_ITEMS,
    MOST_SEED,
    BatchTokens,
    Beam,
    ColumnsText,
    DataPaths,
    Debug,
    Device,
    Engine,
    EnsembleModels,
    LastColumn,
    ModelPath,
    Quiet,
    ReplaceUnknown,
    ReportFormat,
    Shortlist,
    Threads,
    parse_columns,
    use_threads,
)
from heedful.cli.search_options import BindTerms, TermLanguages, TermsPath, listed_terms, text_constraints
from heedful.cli.source_columns import reads_columns
from heedful.cli.translation_scoring import TranslationScoring, read_pairs, refuse_conflicts
from heedful.errors import UsageError
from heedful.text.segments import Policy

if TYPE_CHECKING:
    from heedful.data.prepare import EvaluationSet
    from heedful.predictors.interface import Measured, Predictor
    from heedful.predictors.translation_scores import TranslationScores
    from heedful.predictors.translator import Translator

_MEASURES: Final = "Measures"
_BATCH_TOKENS: Final = 4096
_FOR_TRANSLATION: Final = (
    *("--terms", "--term-languages", "--bind-terms", "--lowercase", "--replace-unknown"),
    *("--record", "--png", "--risk-png", "--ensemble", "--shortlist", "--batch-tokens", "--segments"),
)
"""Options that models for other tasks have no use for."""
Versus = Annotated[
    Path | None,
    typer.Option(
        metavar="MODEL", help="Baseline model, compared by paired bootstrap resampling.", rich_help_panel=_MEASURES
    ),
]
MetricKeys = Annotated[
    str,
    typer.Option(
        metavar="A,B,...",
        help="Metrics; see: heedful list metrics.",
        show_default="what suits the model",
        rich_help_panel=_MEASURES,
        autocompletion=complete_metrics,
    ),
]
Lowercase = Annotated[bool, typer.Option("--lowercase", help="Ignore case.", rich_help_panel=_MEASURES)]
Limit = Annotated[
    int,
    typer.Option(
        min=0, max=MOST_ITEMS, metavar="INTEGER", help="Number of sources to score; 0 = all.", rich_help_panel=DATA
    ),
]
Record = Annotated[
    bool,
    typer.Option(
        "--record",
        help="Store the scores and the worst outputs in the model folder, for the page.",
        rich_help_panel=_MEASURES,
    ),
]
LengthPath = Annotated[
    Path | None,
    typer.Option(
        "--png",
        metavar="FILE",
        help="Draw the score by source length, and dashed that of the baseline.",
        rich_help_panel=_MEASURES,
    ),
]
RiskPath = Annotated[
    Path | None,
    typer.Option(
        "--risk-png",
        metavar="FILE",
        help="Draw how many outputs are wrong if only the most confident ones are given.",
        rich_help_panel=_MEASURES,
    ),
]
ErrorPath = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        help="Write the errors as a page, for classifiers and models that write single words: confused labels, phones "
        "or letters, by length, the most confident ones.",
        rich_help_panel=_MEASURES,
    ),
]
Precision = Annotated[
    float | None,
    typer.Option(
        "--precision",
        min=0.0,
        max=1.0,
        metavar="FLOAT",
        help="Wanted share of right labels: print the least confidence that reaches it, for classify --min-confidence.",
        show_default=False,
        rich_help_panel=_MEASURES,
    ),
]
SegmentsOrNone = Annotated[
    Policy | None,
    typer.Option(
        metavar="auto|sentence|line",
        help="Parts of a source that are translated by themselves, as translate does; the scores are of whole outputs.",
        show_default="each source as a whole",
        rich_help_panel=_MEASURES,
    ),
]
BootstrapSeed = Annotated[
    int,
    typer.Option(
        min=0, max=MOST_SEED, metavar="INTEGER", help="Seed of the bootstrap resamples.", rich_help_panel=_MEASURES
    ),
]


def run(
    model: ModelPath,
    data: DataPaths,
    versus: Versus = None,
    metrics: MetricKeys = "",
    beam: Beam = None,
    engine: Engine = "auto",
    ensemble: EnsembleModels = None,
    replace_unknown: ReplaceUnknown = None,
    shortlist: Shortlist = False,
    terms: TermsPath = None,
    term_languages: TermLanguages = "",
    bind_terms: BindTerms = False,
    columns: ColumnsText = "",
    last_column: LastColumn = "",
    lowercase: Lowercase = False,
    segments: SegmentsOrNone = None,
    limit: Limit = 0,
    batch_tokens: BatchTokens = _BATCH_TOKENS,
    record: Record = False,
    png: LengthPath = None,
    risk_png: RiskPath = None,
    html: ErrorPath = None,
    precision: Precision = None,
    output_format: ReportFormat = "text",
    seed: BootstrapSeed = 12345,
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Score a model.

    Raises:
        UsageError: an option of translation is given for a model of another task.
    """
    use_threads(threads)
    messages, keys = Messages(quiet), _checked_metrics(metrics)
    refuse_conflicts(record, (png, risk_png), bool(ensemble), bool(terms), segments is not None)
    wording = terms, term_languages, bind_terms, lowercase, replace_unknown is not None
    rest = record, png, risk_png, ensemble, shortlist, batch_tokens != _BATCH_TOKENS, segments is not None
    _refuse_options(dict(zip(_FOR_TRANSLATION, (*wording, *rest), strict=True)), model, keys, beam)
    models, translators = _loaded(model, versus, engine, device, ensemble or (), last_column)
    _check_outputs(models[0], html, precision)
    cells = parse_columns(columns)
    if translators:
        items = read_pairs(translators[0], data, cells, messages, bool(last_column), limit)
        constraints = text_constraints(terms=listed_terms(terms, term_languages, model), bind_terms=bind_terms)
        decoding = beam, replace_unknown, shortlist, constraints, batch_tokens, segments
        scoring = TranslationScoring(keys, *decoding, lowercase, seed, bool(ensemble), record, png, risk_png)
        measured, more = _scored(scoring, translators, items, html, output_format == "json", messages)
    else:
        item_sets = [one.read_items(tuple(data), cells)[: limit or None] for one in models]
        measured, more = _measured(models, item_sets, keys, beam, html, data[0], messages)
    _print(models, measured, output_format, data, seed, more, precision)


def _check_outputs(predictor: "Predictor", html: Path | None, precision: float | None) -> None:
    """Check that what is wanted besides scores can be had of a model.

    Args:
        html: page of its errors; None = none.
        precision: wanted share of right labels; None = none.

    Raises:
        UsageError: the model has no such errors or no such labels, or the page would replace something else.
    """
    check_errors(predictor, html)
    check_precision(predictor, precision)


def _measured(
    models: "Sequence[Predictor]",
    item_sets: Sequence[Any],
    keys: tuple[str, ...],
    beam: int | None,
    html: Path | None,
    source: Path,
    messages: Messages,
) -> "tuple[list[Measured], dict[str, Any]]":
    """Measure models that do not translate, warn of texts that they cut, and write the errors of the first.

    Args:
        item_sets: items of each.
        source: file of the items, for the warning.

    Returns:
        The scores, and further facts about the errors, for JSON.
    """
    measured = [one.measure(own, keys, beam or 0) for one, own in zip(models, item_sets, strict=True)]
    warn_of_rows_left_out(item_sets[0], source, messages)
    warn_of_cut_texts(models, measured, source, messages)
    return measured, write_errors(models[0], item_sets[0], html)


def _scored(
    scoring: TranslationScoring,
    translators: "Sequence[Translator]",
    items: "EvaluationSet",
    html: Path | None,
    lists_errors: bool,
    messages: Messages,
) -> "tuple[list[TranslationScores], dict[str, Any]]":
    """Score models that translate, and write the errors of the first.

    Args:
        lists_errors: whether facts about the errors are returned, even without a page.

    Returns:
        The scores, and further facts about the errors, for JSON.
    """
    divide = divided(items, html) if html or lists_errors else None  # before it translates
    scores = scoring.run(translators, items, messages)
    name = translators[0].folder.path.name
    return scores, write_symbol_errors(name, items, scores[0], divide, html, scoring.lowercase)


def _loaded(
    model: Path, versus: Path | None, engine: str, device: str, ensemble: Sequence[Path], last_column: str
) -> "tuple[list[Predictor], list[Translator]]":
    """Open a model, with its ensemble, and its baseline, if there is one.

    Returns:
        Both, and those of them that translate.

    Raises:
        UsageError: they are for different tasks.
    """
    from heedful.cli.scoring import load_to_run
    from heedful.predictors.interface import Predictor
    from heedful.predictors.translator import Translator

    models = [load_to_run(model, engine, device, ensemble, kind=Predictor, last_column=last_column)]
    if versus is not None:
        column = last_column if versus == model or reads_columns(versus) else ""
        models.append(load_to_run(versus, engine, device, kind=Predictor, last_column=column))
        if models[1].folder.task != models[0].folder.task:
            raise UsageError(f"--versus {versus}: a model for another task than {model}")
    return models, [one for one in models if isinstance(one, Translator)]


def _refuse_options(options: dict[str, Any], model: Path, metrics: Sequence[str], beam: int | None) -> None:
    """Refuse options, true where they are given, that a model which does not translate has no use for.

    Raises:
        UsageError: some are given.
    """
    from heedful.engines.folder import read_manifest
    from heedful.predictors.table import find_predictor
    from heedful.predictors.translator import Translator

    folder = read_manifest(model)
    kind = find_predictor(folder)
    if issubclass(kind, Translator):
        return
    options |= {"--beam": beam is not None and not kind.generates_text}
    if names := [name for name, is_given in options.items() if is_given]:
        raise UsageError(f"evaluate: a model for {folder.task} has no {' and no '.join(names)}; leave it out")
    if metrics and not kind.generates_text:
        raise UsageError(f"--metrics: models for {folder.task} have metrics of their own; leave it out")


def _print(
    models: "Sequence[Predictor]",
    measured: "Sequence[Measured]",
    output_format: str,
    data: Sequence[Path],
    seed: int,
    more: dict[str, Any],
    precision: float | None,
) -> None:
    """Print the scores of a model, and their differences from those of a baseline, if there is one.

    Args:
        more: further facts about the model's outputs, for JSON.
        precision: share of right labels for which the least confidence is told; None = none is wanted.

    Raises:
        UsageError: the outputs of the two are of different kinds, such as labels and numbers.
    """
    from heedful.evaluation.report import differences_to_text

    names = [str(one.folder.path) for one in models]
    facts = [{"model": name, **one.to_dict()} for name, one in zip(names, measured, strict=True)]
    line, chosen = chosen_confidence(measured[0], precision)
    facts[0] |= {**more, **chosen, "data": [str(path) for path in data]}
    text = f"{measured[0].to_text().rstrip()}\n{line}".rstrip()
    for name, baseline, versus in zip(names[1:], measured[1:], facts[1:], strict=True):
        if type(baseline) is not type(measured[0]):
            raise UsageError(f"--versus {name}: its outputs are of another kind than those of {names[0]}")
        differences = measured[0].differences(baseline, seed)
        facts[0]["versus"] = versus | {"differences": [difference.to_dict() for difference in differences]}
        text += f"\n\n{name}\n{baseline.to_text()}\n{names[0]} against {name}\n{differences_to_text(differences)}"
    print(json.dumps(facts[0], ensure_ascii=False, indent=1) if output_format == "json" else text.rstrip())


def _checked_metrics(metrics: str) -> tuple[str, ...]:
    """Keys of the value of --metrics; an unknown one is refused before translating."""
    from heedful.evaluation.interface import Setting
    from heedful.evaluation.metrics.table import build_metric

    keys = tuple(key.strip() for key in metrics.split(",") if key.strip())
    for key in keys:
        build_metric(key, Setting())
    return keys
