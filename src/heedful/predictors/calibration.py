"""Calibration of a model: its confidence, fitted to evaluation items, and measured on others."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from heedful.data.prepare import EvaluationSet
from heedful.errors import UsageError
from heedful.evaluation.calibration import fit_calibrator
from heedful.evaluation.confidence import ConfidenceReport, Criterion, right_outputs
from heedful.predictors.confidence import (
    FEATURES,
    OF_ATTENTION,
    ROLE,
    Confidence,
    as_pairs,
    features_of,
    read_confidence,
)
from heedful.predictors.translator import Translator
from heedful.text.counts import counted

LEAST_ITEMS: Final = 100
"""Smallest number of sources that a confidence is fitted on."""


def suited_criterion(translator: Translator) -> Criterion:
    """Choose when outputs of a model are right.

    Returns:
        exact_match where a side is split into characters, so that texts are words, names or numbers; else chrf.
    """
    units = (translator.text.source_units, translator.text.target_units)
    return "exact_match" if "characters" in units else "chrf"


def calibrate(
    translator: Translator, items: EvaluationSet, criterion: Criterion
) -> tuple[Confidence, ConfidenceReport]:
    """Fit a confidence to a model's outputs for sources that it was not trained on.

    Args:
        items: sources and references, at least `LEAST_ITEMS`.
        criterion: when an output is right.

    Returns:
        The confidence, and a report about the probabilities that each fifth of the items gets from the others.

    Raises:
        UsageError: there are too few items.
    """
    if len(items) < LEAST_ITEMS:
        raise UsageError(f"calibrate: {counted(len(items), 'source')}; give at least {LEAST_ITEMS}")
    outputs = list(translator.stream(items.sources, translator.search))
    has_attention = not translator.backends.scoring(attention=True).supports_scoring(True)
    names = FEATURES if has_attention else tuple(name for name in FEATURES if name not in OF_ATTENTION)
    scored = list(translator.scored_pairs(as_pairs(outputs), has_attention))
    features = np.array([features_of(one, names) for one in scored])
    right = right_outputs([one.text for one in outputs], items.references, criterion)
    calibrator, apart = fit_calibrator(features, right)
    log_probs = np.array([one.log_prob for one in scored])
    return (
        Confidence(names, calibrator, criterion, len(items)),
        ConfidenceReport.of(apart, log_probs, right, criterion),
    )


def measure_confidence(
    translator: Translator,
    items: EvaluationSet,
    outputs: Sequence[str],
    seed: int = 12345,
    generated: Sequence[str] = (),
) -> ConfidenceReport | None:
    """Measure how far the confidence of a model can be trusted on an evaluation set.

    Args:
        outputs: the model's output for each source.
        generated: the outputs before unknown words were replaced, if any was.

    Returns:
        The report; None for a model that is not calibrated, and where the confidence needs attention, which the named
        engine does not give.
    """
    if ROLE not in translator.folder.facts:
        return None
    confidence = read_confidence(translator.folder)
    needs_attention = confidence.needs_attention
    if translator.backends.scoring(needs_attention).supports_scoring(needs_attention):
        return None
    pairs = zip(items.sources, generated or outputs, strict=True)
    scored = list(translator.scored_pairs(pairs, needs_attention))
    right = right_outputs(outputs, items.references, confidence.criterion)
    log_probs = np.array([one.log_prob for one in scored])
    probabilities = np.array(confidence.probabilities(scored))
    return ConfidenceReport.of(probabilities, log_probs, right, confidence.criterion, seed)
