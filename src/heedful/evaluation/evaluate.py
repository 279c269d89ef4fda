"""Evaluation of hypotheses: the full report, quick scores for validation, and comparison of two systems."""

import unicodedata
from collections.abc import Sequence

from heedful.errors import DataError, UsageError
from heedful.evaluation.bootstrap import Difference, paired_bootstrap, score_interval
from heedful.evaluation.by_length import by_length, even_edges
from heedful.evaluation.interface import Matrix, Metric, References, Setting, corpus_score
from heedful.evaluation.items import check_items, items_digest
from heedful.evaluation.language import TokenizerChoice, choose_tokenizer, text_lengths
from heedful.evaluation.lead import are_summaries, score_lead
from heedful.evaluation.metrics.rouge import Rouge
from heedful.evaluation.metrics.table import build_metric
from heedful.evaluation.report import Report, Result

DEFAULT_METRICS = ("bleu", "chrf", "exact_match")


def evaluate(
    hypotheses: Sequence[str],
    references: References,
    sources: Sequence[str],
    metrics: Sequence[str] = DEFAULT_METRICS,
    target_language: str = "",
    lowercase: bool = False,
    tokenizer: str = "",
    length_edges: Sequence[int] = (),
    num_resamples: int = 1000,
    seed: int = 12345,
) -> Report:
    """Score hypotheses against references, on all items and by source length, with confidence intervals.

    Args:
        hypotheses: one text per item.
        references: a list of texts per item, at least one each; items may have different numbers.
        sources: one text per item.
        target_language: a code such as ``de``; chooses BLEU's tokenizer. Empty: guessed from the script.
        lowercase: compare without regard to case.
        tokenizer: BLEU's tokenizer by sacreBLEU's name; empty to choose by language.
        length_edges: source lengths at which a new range begins; empty for ranges of about equally many items.
        num_resamples: number of resamples behind each 95 % interval, 1 or more.

    Raises:
        DataError: hypotheses, references and sources do not belong together.
        UsageError: a metric or the tokenizer does not exist, no metric is given, or a number is out of range.
        MissingExtra: a metric needs sacreBLEU, which is not installed.
    """
    check_items(hypotheses, references, sources)
    keys = _metric_keys(metrics)
    choice = choose_tokenizer(target_language, (text for texts in references for text in texts), tokenizer)
    built = {key: build_metric(key, Setting(choice.tokenizer, lowercase)) for key in keys}
    length_unit, lengths = text_lengths(sources)
    edges = tuple(length_edges) or even_edges(lengths)

    def measure(key: str, metric: Metric) -> Result:
        statistics: Matrix = metric.statistics(hypotheses, references)
        return Result(
            key=key,
            metric=metric,
            score=corpus_score(metric, statistics),
            interval=score_interval(metric, statistics, num_resamples, seed),
            signature=metric.signature(references),
            by_length=by_length(metric, statistics, lengths, edges, num_resamples, seed),
            statistics=statistics,
        )

    summary_metrics = [metric for metric in built.values() if isinstance(metric, Rouge)]
    is_summary = are_summaries(sources, references)
    notes = _notes(hypotheses, references, choice, "bleu" in keys)
    if is_summary and not summary_metrics:
        notes = (*notes, "the references are summaries of the sources; --metrics rouge1,rouge2,rougeL suits them")
    return Report(
        num_items=len(hypotheses),
        num_references=sum(map(len, references)),
        length_unit=length_unit,
        results=tuple(measure(key, metric) for key, metric in built.items()),
        notes=notes,
        num_resamples=num_resamples,
        seed=seed,
        items=items_digest(references, sources),
        lead=score_lead(sources, references, summary_metrics) if is_summary and summary_metrics else None,
    )


def quick_scores(
    hypotheses: Sequence[str],
    references: References,
    target_language: str = "",
    lowercase: bool = False,
    metrics: Sequence[str] = DEFAULT_METRICS,
) -> dict[str, float]:
    """Score hypotheses without intervals, for use while training.

    Args:
        hypotheses: one text per item.
        references: a list of texts per item, at least one each.
        target_language: a code such as ``de``; chooses BLEU's tokenizer. Empty: guessed from the script.
        lowercase: compare without regard to case.

    Raises:
        DataError: hypotheses and references do not belong together.
        UsageError: a metric does not exist.
        MissingExtra: sacreBLEU is not installed.
    """
    check_items(hypotheses, references, hypotheses)
    tokenizer = choose_tokenizer(target_language, (text for texts in references for text in texts)).tokenizer
    built = {key: build_metric(key, Setting(tokenizer, lowercase)) for key in metrics}
    return {key: corpus_score(metric, metric.statistics(hypotheses, references)) for key, metric in built.items()}


def compare(report: Report, baseline: Report, num_resamples: int = 1000, seed: int = 12345) -> tuple[Difference, ...]:
    """Compare a system with a baseline by paired bootstrap resampling.

    Args:
        baseline: report of the baseline, on the same items.
        num_resamples: number of resamples, 1 or more.

    Returns:
        A difference for each metric in both reports.

    Raises:
        DataError: the reports are about different items.
        UsageError: the reports share no metric or have different signatures of one, or num_resamples is below 1.
    """
    if report.items != baseline.items:
        raise DataError(
            "the two systems were not evaluated on the same sources and references; evaluate both on one file"
        )
    others = {result.key: result for result in baseline.results}
    shared = [(result, others[result.key]) for result in report.results if result.key in others]
    if not shared:
        raise UsageError("the two reports share no metric; evaluate both with the same metrics")
    for result, other in shared:
        if result.signature != other.signature:
            raise UsageError(
                f"{result.metric.name} was measured in two ways, {result.signature} and {other.signature}; "
                f"evaluate both with the same options"
            )
    return tuple(
        paired_bootstrap(result.metric, result.statistics, other.statistics, num_resamples, seed)
        for result, other in shared
    )


def _metric_keys(metrics: Sequence[str]) -> tuple[str, ...]:
    if isinstance(metrics, str):
        raise UsageError(f"metrics must be a list of names, got the single text {metrics!r}")
    if not metrics:
        raise UsageError("no metric given; name at least one")
    return tuple(metrics)


def _notes(
    hypotheses: Sequence[str], references: References, choice: TokenizerChoice, has_bleu: bool
) -> tuple[str, ...]:
    notes: list[str] = []
    if has_bleu and choice.tokenizer != "13a":
        notes.append(f"BLEU splits words with the tokenizer {choice.tokenizer}, because {choice.reason}")
    num_empty = sum(not text.strip() for text in hypotheses)
    if num_empty:
        notes.append(f"{num_empty} of {len(hypotheses)} hypotheses are empty")
    num_missing = sum(any(not text.strip() for text in texts) for texts in references)
    if num_missing:
        notes.append(
            f"{num_missing} of {len(references)} items have an empty reference, which counts as the right answer"
        )
    if has_bleu and choice.tokenizer == "13a" and 2 * sum(text.endswith(" .") for text in hypotheses) > len(hypotheses):
        notes.append("the hypotheses look tokenised; BLEU compares across systems only on plain text")
    num_forms = sum(map(_differs_in_form, hypotheses, references))
    if num_forms:
        notes.append(
            f"{num_forms} hypotheses equal a reference but for the Unicode form (NFC, NFD), and count as wrong"
        )
    return tuple(notes)


def _differs_in_form(hypothesis: str, texts: Sequence[str]) -> bool:
    if hypothesis in texts:
        return False
    return unicodedata.normalize("NFC", hypothesis) in [unicodedata.normalize("NFC", text) for text in texts]
