"""Scores of translations of an evaluation set."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from heedful.data.corpus import PairFile
from heedful.data.prepare import EvaluationSet
from heedful.data.row_faults import LEFT_OUT
from heedful.errors import DataError
from heedful.evaluation.evaluate import evaluate
from heedful.evaluation.worst import worst_outputs
from heedful.predictors.translation import MeasuredTranslations, Translation
from heedful.text.terms import TermCounts, Terms


def measured(
    items: EvaluationSet,
    translations: Sequence[Translation],
    seconds: float,
    beam: int,
    metrics: tuple[str, ...],
    usual_metrics: tuple[str, ...],
    terms: Terms | None,
    settings: Mapping[str, Any],
) -> MeasuredTranslations:
    """Score translations.

    Args:
        translations: output of each source.
        seconds: time that they took.
        beam: number of hypotheses per source.
        metrics: keys of metrics; empty = the usual ones.
        usual_metrics: keys of metrics that suit the model's tokens.
        terms: term list; None = terms are not counted.
        settings: other keywords of `heedful.evaluation.evaluate.evaluate`.
    """
    num_replaced = sum(bool(one.unreplaced) for one in translations)
    keys = metrics or usual_metrics
    if num_replaced and not metrics:  # replaced words mean that outputs are sentences, for which BLEU is usual
        keys = ("bleu", *(key for key in keys if key != "bleu"))
    report = partial(evaluate, references=items.references, sources=items.sources, **{"metrics": keys, **settings})
    outputs = [one.text for one in translations]
    generated = tuple(one.unreplaced or one.text for one in translations) if num_replaced else ()
    before = report([*generated]) if num_replaced else None
    scored = report(outputs)
    worst = worst_outputs(items, outputs, scored.results)
    counts = TermCounts.of(terms, items.sources, outputs) if terms else None
    log_probs = tuple(one.log_prob for one in translations)
    return MeasuredTranslations(
        outputs, scored, seconds, beam, num_replaced, before, worst, counts, generated, log_probs
    )


def read_items(pairs: PairFile, limit: int = 0) -> EvaluationSet:
    """Read sources with their references.

    Args:
        pairs: rows of an evaluation file; rows with the same source give its references.
        limit: largest number of sources; 0 = all.

    Returns:
        The items, at least one, with notes about rows that were left out as unreadable.

    Raises:
        DataError: no row has a source, or a file cannot be read.
    """
    items = EvaluationSet.of(pairs)
    if not len(items):
        raise DataError(f"{pairs.paths[0]}: no row has a source; give pairs to score")
    items = replace(items, notes=tuple(note for note in pairs.notes if LEFT_OUT in note))
    return items[:limit] if limit else items
