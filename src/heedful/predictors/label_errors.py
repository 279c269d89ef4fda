"""Errors of a classifier on a test set: the labels that it confuses, by length, and the most confident wrong ones."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from heedful.data.labelled_texts import LabelledTexts
from heedful.evaluation.labels import wilson_interval
from heedful.pages.label_errors import ErrorPage, LengthScore, WrongText
from heedful.predictors.classifier import Classification, Classifier
from heedful.text.weighted_words import weighted_sentences

MOST_WRONG: Final = 50
"""Number of wrong texts that are shown, the most confident first."""
NUM_LENGTHS: Final = 5
"""Number of groups of texts by length, of about equal size."""


def label_errors(classifier: Classifier, items: LabelledTexts) -> ErrorPage:
    """Classify texts and collect what is wrong.

    Args:
        items: texts with a label each.

    Returns:
        The page, whose texts show where the model looked.
    """
    results = [*classifier.stream(items.texts)]
    right = [one.label == label for one, label in zip(results, items.labels, strict=True)]
    pairs = Counter(zip(items.labels, (one.label for one in results), strict=True))
    wrong = sorted(
        (index for index, is_right in enumerate(right) if not is_right), key=lambda i: -results[i].probability
    )
    return ErrorPage(
        classifier.folder.path.name,
        len(results),
        sum(right),
        pairs,
        scores_by_length([len(each.split()) if " " in each else len(each) for each in items.texts], right),
        [_shown(results[index], items.labels[index]) for index in wrong[:MOST_WRONG]],
    )


def _shown(result: Classification, gold: str) -> WrongText:
    if result.attention is None:
        sentences = [[(result.text, 0.0)]]
    else:
        sentences = [*weighted_sentences(result.pieces, result.attention.tolist(), result.text)]
    return WrongText(
        result.text, gold, result.label, result.probability, result.probabilities.get(gold, 0.0), sentences
    )


def scores_by_length(lengths: Sequence[int], right: Sequence[bool]) -> list[LengthScore]:
    """Count right ones in groups of about equal length; those of one length are in one group.

    Args:
        lengths: length of each text.
        right: whether its output is right.

    Returns:
        The groups, shortest first.
    """
    edges = np.unique(np.quantile(lengths, np.linspace(0.0, 1.0, NUM_LENGTHS + 1)[1:]).astype(int))
    groups = np.searchsorted(edges, lengths)
    scores: list[LengthScore] = []
    for group in range(len(edges)):
        chosen = np.flatnonzero(groups == group).tolist()
        if chosen:
            num_right = sum(right[index] for index in chosen)
            own = [lengths[index] for index in chosen]
            scores.append(LengthScore(min(own), max(own), len(own), num_right, wilson_interval(num_right, len(own))))
    return scores
