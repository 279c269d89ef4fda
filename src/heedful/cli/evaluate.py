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
  heedful evaluate pairs.model test.tsv --terms terms.tsv
  heedful evaluate pairs.model test.tsv --png by-length.png
  heedful evaluate pairs.model test.tsv --risk-png risk.png
  heedful evaluate pairs.model paragraphs.tsv --segments auto
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from heedful.cli.completion import metrics as complete_metrics
from heedful.cli.error_page import check_errors, write_errors
from heedful.cli.evaluation_pictures import draw_lengths, draw_risks
from heedful.cli.lines import refuse_overwriting
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
from heedful.errors import UsageError
from heedful.text.counts import counted
from heedful.text.durations import duration
from heedful.text.segments import Policy

if TYPE_CHECKING:
    from heedful.data.prepare import EvaluationSet
    from heedful.evaluation.confidence import ConfidenceReport
    from heedful.predictors.interface import Measured, Predictor
    from heedful.predictors.perplexity import Perplexity
    from heedful.predictors.translation import MeasuredTranslations
    from heedful.predictors.translator import Translator

    Scored = tuple[MeasuredTranslations, Perplexity, ConfidenceReport | None]

_MEASURES: Final = "Measures"
_BATCH_TOKENS: Final = 4096
_FOR_TRANSLATION: Final = (
    *("--terms", "--term-languages", "--bind-terms", "--lowercase", "--replace-unknown", "--as"),
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
        help="Write the errors of a classifier as a page: confused labels, by length, the most confident ones.",
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
    _refuse_conflicts(record, (png, risk_png), bool(ensemble), bool(terms), segments is not None)
    if (other := _other_task(model, engine, device)) is not None:
        wording = terms, term_languages, bind_terms, lowercase, replace_unknown is not None, bool(last_column)
        rest = record, png, risk_png, ensemble, shortlist, batch_tokens != _BATCH_TOKENS, segments is not None
        _refuse_options(dict(zip(_FOR_TRANSLATION, (*wording, *rest), strict=True)), other, beam)
        setting = _Setting(tuple(data), columns, keys, output_format, seed, engine, device, limit, beam or 0, html)
        return _measure(model, other, versus, setting)
    if html is not None:
        raise UsageError("evaluate: --html is for classifiers; --record stores scores and worst outputs for the page")
    items = _items(model, data, columns, bool(last_column), limit, messages)

    def score(path: Path) -> "Scored":
        from heedful.cli.scoring import announce_engine, changed_search, load_to_run
        from heedful.predictors.calibration import measure_confidence
        from heedful.predictors.confidence import ROLE, read_confidence
        from heedful.predictors.translator import Translator

        constraints = text_constraints(terms=listed_terms(terms, term_languages, model), bind_terms=bind_terms)
        column = last_column if path == model or reads_columns(path) else ""
        arguments = path, engine, device, (ensemble or ()) if path == model else ()
        translator = load_to_run(*arguments, kind=Translator, last_column=column)
        changes = {"replace_unknown": replace_unknown, "shortlist": shortlist or None}
        chosen = changed_search(translator, beam, changes=changes)
        bound = constraints.of_sources(translator.target_tokenizer)
        search = announce_engine(translator, chosen, False, messages, bound.strictest)
        if risk_png and path == model:
            read_confidence(translator.folder)  # refuses a model without one before it translates
        rest = batch_tokens, constraints, segments
        evaluated = translator.measure(items, search, keys, *rest, lowercase=lowercase, seed=seed)
        speed = f"{len(items) / max(1e-9, evaluated.seconds):.1f} a second, beam {search.beam}"
        messages.say(f"{path}: {counted(len(items), 'source')} in {duration(evaluated.seconds)}, {speed}")
        calibration = None
        if not (ensemble and path == model) and segments is None:  # confidence is calibrated on single sentences
            calibration = measure_confidence(translator, items, evaluated.outputs, seed, evaluated.generated)
            if calibration is None and ROLE in translator.folder.facts:
                reason = f"it needs attention, which --engine {engine} does not give"
                messages.warn(f"{path}: confidence not measured: {reason}")
        return evaluated, _perplexity(translator, items, messages), calibration

    scored = score(model)
    _keep(model if record else None, scored[0], messages)
    draw_risks(risk_png, scored[2], f"{model}, {counted(len(items), 'source')}")
    baseline = score(versus) if versus else None
    draw_lengths(png, {str(path): one[0].report for path, one in ((model, scored), (versus, baseline)) if one})
    _print_scored(model, scored, versus, baseline, output_format, data, seed)


def _items(
    model: Path, data: list[Path], columns: str, lacks_last: bool, limit: int, messages: Messages
) -> "EvaluationSet":
    from heedful.engines.folder import open_folder
    from heedful.predictors.source_columns import model_pairs
    from heedful.predictors.translation import read_items

    messages.say((pairs := model_pairs(open_folder(model), data, parse_columns(columns), lacks_last)).describe())
    return read_items(pairs, limit)


def _refuse_conflicts(
    is_recording: bool, pictures: tuple[Path | None, Path | None], has_ensemble: bool, has_terms: bool, is_split: bool
) -> None:
    """Check options that exclude each other.

    Raises:
        UsageError: they do, or the picture would replace something else than a file.
    """
    if is_recording and (has_ensemble or has_terms):
        raise UsageError("evaluate: --record stores the scores of one model alone; leave out --ensemble and --terms")
    _, risks = pictures
    if risks is not None and has_ensemble:
        raise UsageError("evaluate: --risk-png draws the confidence of one model alone; leave out --ensemble")
    if risks is not None and is_split:
        raise UsageError("evaluate: --risk-png draws the confidence of whole outputs; leave out --segments")
    for path in pictures:
        if path is not None:
            refuse_overwriting(path, ())


def _refuse_options(options: dict[str, Any], predictor: "Predictor", beam: int | None) -> None:
    """Refuse options, true where they are given, that a model which does not translate has no use for.

    Raises:
        UsageError: some are given.
    """
    from heedful.predictors.captioner import Captioner

    options |= {"--beam": beam is not None and not isinstance(predictor, Captioner)}
    if names := [name for name, is_given in options.items() if is_given]:
        raise UsageError(f"evaluate: a model for {predictor.folder.task} has no {' and no '.join(names)}; leave it out")


def _keep(model: Path | None, evaluated: "MeasuredTranslations", messages: Messages) -> None:
    """Store the scores in the folder of a model, for the page; None = nowhere."""
    if model is None:
        return
    from heedful.engines.folder import open_folder
    from heedful.predictors.cached_test_scores import keep_evaluation

    keep_evaluation(open_folder(model), evaluated)
    messages.say(f"{model}: scores stored; heedful serve {model} shows them")


def _perplexity(translator: "Translator", items: "EvaluationSet", messages: Messages) -> "Perplexity":
    """Perplexity of the references, with a warning about those that were cut."""
    from heedful.predictors.perplexity import perplexity

    of_references = perplexity(translator, items)
    if of_references.num_cut:
        cut, most = counted(of_references.num_cut, "reference"), translator.text.max_tokens
        messages.warn(f"perplexity: {cut} cut at {most} tokens, the most {translator.folder.path} takes")
    return of_references


def _other_task(model: Path, engine: str, device: str) -> "Predictor | None":
    """Open a model of a task other than translation, which has no search options."""
    from heedful.cli.scoring import load_to_run
    from heedful.engines.folder import open_folder
    from heedful.predictors.interface import Predictor

    if open_folder(model).task == "translation":
        return None
    return load_to_run(model, engine, device, kind=Predictor)


def _print_scored(
    model: Path,
    scored: "Scored",
    versus: Path | None,
    baseline: "Scored | None",
    output_format: str,
    data: list[Path],
    seed: int,
) -> None:
    if output_format == "json":
        facts = _facts(model, scored) | {"data": [str(path) for path in data]}
        if versus and baseline:
            facts["versus"] = _facts(versus, baseline) | {"differences": _differences(scored, baseline, seed)[1]}
        print(json.dumps(facts, ensure_ascii=False, indent=1))
        return
    print(_text(scored), end="")
    if versus and baseline:
        print(
            f"\n{versus}\n{_text(baseline)}\n{model} against {versus}\n{_differences(scored, baseline, seed)[0]}",
            end="",
        )


class _Setting(NamedTuple):
    """Options of the evaluation of a model that is not for translation."""

    data: tuple[Path, ...]
    columns: str
    metrics: tuple[str, ...]
    output_format: str
    seed: int
    engine: str
    device: str
    limit: int
    beam: int
    html: Path | None


def _measure(model: Path, predictor: "Predictor", versus: Path | None, setting: _Setting) -> None:
    """Print the scores of a model, and their difference from those of another one.

    Raises:
        UsageError: the models are for different tasks, or for one whose models are not compared or whose metrics are
            fixed.
    """
    from heedful.evaluation.answers import AnswerReport, SpanReport
    from heedful.evaluation.evaluate import compare
    from heedful.evaluation.labels import LabelReport, compare_labels
    from heedful.evaluation.report import differences_to_text
    from heedful.predictors.captioner import Captioner
    from heedful.predictors.translation import MeasuredTranslations

    def measure(one: "Predictor") -> "Measured":
        items = one.read_items(setting.data, parse_columns(setting.columns))[: setting.limit or None]
        return one.measure(items, setting.metrics, setting.beam) if isinstance(one, Captioner) else one.measure(items)

    if setting.metrics and not isinstance(predictor, Captioner):
        raise UsageError(f"--metrics: models for {predictor.folder.task} have metrics of their own; leave it out")
    if setting.html is not None:
        check_errors(predictor, setting.html)

    baseline = None if versus is None else _other_task(versus, setting.engine, setting.device)
    if versus is not None and (baseline is None or baseline.folder.task != predictor.folder.task):
        raise UsageError(f"--versus {versus}: a model for another task than {model}")
    measured = [measure(one) for one in (predictor, baseline) if one is not None]
    facts, text = measured[0].to_dict(), measured[0].to_text().rstrip()
    if versus is not None:
        captions = [one.report for one in measured if isinstance(one, MeasuredTranslations)]
        right = [one.right for one in measured if isinstance(one, LabelReport | AnswerReport | SpanReport)]
        if len(captions) == len(measured):
            differences = compare(captions[0], captions[1], seed=setting.seed)
        elif len(right) == len(measured):
            differences = (compare_labels(*right, seed=setting.seed),)
        else:
            raise UsageError(f"--versus: models for {predictor.folder.task} are not compared")
        named = [difference.to_dict() for difference in differences]
        facts["versus"] = {"model": str(versus), **measured[1].to_dict(), "differences": named}
        text += f"\n\n{versus}\n{measured[1].to_text()}\n{model} against {versus}\n{differences_to_text(differences)}"
    print(json.dumps(facts, ensure_ascii=False, indent=1) if setting.output_format == "json" else text.rstrip())
    if setting.html is not None:
        items = predictor.read_items(setting.data, parse_columns(setting.columns))[: setting.limit or None]
        write_errors(predictor, items, setting.html)


def _checked_metrics(metrics: str) -> tuple[str, ...]:
    """Keys of the value of --metrics; an unknown one is refused before translating."""
    from heedful.evaluation.interface import Setting
    from heedful.evaluation.metrics.table import build_metric

    keys = tuple(key.strip() for key in metrics.split(",") if key.strip())
    for key in keys:
        build_metric(key, Setting())
    return keys


def _text(scored: "Scored") -> str:
    evaluated, reference_perplexity, calibration = scored
    terms = f"{evaluated.terms}\n" if evaluated.terms else ""
    return (
        f"{evaluated.report.to_text()}\n{_without_replacing(evaluated)}{terms}"
        f"perplexity {reference_perplexity.per_token:.3f} a target token ({reference_perplexity.num_tokens:,}), "
        f"{reference_perplexity.bits_per_character:.3f} bits a character\n"
        f"{calibration.to_text() if calibration else ''}"
    )


def _without_replacing(evaluated: "MeasuredTranslations") -> str:
    """Scores without replacement of unknown words."""
    if evaluated.unreplaced is None:
        return ""
    pairs = zip(evaluated.unreplaced.results, evaluated.report.results, strict=True)
    scores = ", ".join(f"{before.metric.name} {before.score:.2f} -> {after.score:.2f}" for before, after in pairs)
    return f"unknown words replaced in {counted(evaluated.num_replaced, 'output')}: {scores}\n"


def _facts(path: Path, scored: "Scored") -> dict[str, Any]:
    evaluated, reference_perplexity, calibration = scored
    facts = {
        "model": str(path),
        **evaluated.report.to_dict(),
        "perplexity": vars(reference_perplexity),
        "seconds": evaluated.seconds,
    }
    if evaluated.terms is not None:
        facts["terms"] = vars(evaluated.terms)
    if calibration is not None:
        facts["confidence"] = calibration.to_dict()
    if evaluated.unreplaced is not None:
        facts |= {"num_replaced": evaluated.num_replaced, "unreplaced": evaluated.unreplaced.to_dict()}
    return facts


def _differences(scored: "Scored", baseline: "Scored", seed: int) -> tuple[str, list[dict[str, Any]]]:
    from heedful.evaluation.evaluate import compare
    from heedful.evaluation.report import differences_to_text

    differences = compare(scored[0].report, baseline[0].report, seed=seed)
    return differences_to_text(differences), [difference.to_dict() for difference in differences]
