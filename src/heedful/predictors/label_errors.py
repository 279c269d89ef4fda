"""Errors of a classifier on a test set: confused or missed labels, by length, the most confident or largest ones."""

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import Final

import numpy as np

from heedful.data.label_kinds import parse_number, rank_of
from heedful.data.labelled_texts import LabelledTexts
from heedful.evaluation.labels import wilson_interval
from heedful.pages.label_errors import (
    ErrorPage,
    LengthError,
    LengthScore,
    NumberErrorPage,
    SetErrorPage,
    SetLabelErrors,
    WrongText,
)
from heedful.predictors.classifier import Classification, Classifier
from heedful.text.label_sets import split_labels
from heedful.text.weighted_words import weighted_sentences

MOST_WRONG: Final = 50
"""Number of wrong texts that are shown, the most confident first, or those of the largest errors."""
NUM_LENGTHS: Final = 5
"""Number of groups of texts by length, of about equal size."""
NO_LABEL: Final = "no label"
"""Name of an empty set of labels."""


def label_errors(classifier: Classifier, items: LabelledTexts) -> ErrorPage | SetErrorPage | NumberErrorPage:
    """Classify texts and collect what is wrong.

    Args:
        items: texts with a label each, or a set of labels, or a number.

    Returns:
        The page, whose texts show where the model looked.

    Raises:
        DataError: the model gives numbers, and a right one is none.
    """
    results = [*classifier.stream(items.texts)]
    name, kind = classifier.folder.path.name, classifier.text.labels
    if kind == "several":
        return _set_errors(name, results, [split_labels(label) for label in items.labels])
    if kind == "number":
        return _number_errors(name, results, items.labels)
    right = [one.label == label for one, label in zip(results, items.labels, strict=True)]
    pairs = Counter(zip(items.labels, (one.label for one in results), strict=True))
    labels = {label for pair in pairs for label in pair}
    return ErrorPage(
        name,
        len(results),
        sum(right),
        pairs,
        scores_by_length(_lengths(results), right),
        [_shown(results[index], items.labels[index]) for index in _most_confident(results, right)],
        sorted(labels, key=rank_of) if kind == "ordered" else (),
    )


def _set_errors(name: str, results: Sequence[Classification], gold: Sequence[tuple[str, ...]]) -> SetErrorPage:
    pairs = [({*one.labels}, {*labels}) for one, labels in zip(results, gold, strict=True)]
    right = [own == other for own, other in pairs]
    wanted, missed, added = (Counter[str]() for _ in range(3))
    for own, other in pairs:
        wanted.update(other)
        missed.update(other - own)
        added.update(own - other)
    return SetErrorPage(
        name,
        len(results),
        sum(right),
        [SetLabelErrors(label, wanted[label], missed[label], added[label]) for label in sorted(wanted | added)],
        scores_by_length(_lengths(results), right),
        [_shown_set(results[index], gold[index]) for index in _most_confident(results, right)],
    )


def _number_errors(name: str, results: Sequence[Classification], gold: Sequence[str]) -> NumberErrorPage:
    errors = np.array(
        [abs(parse_number(one.label) - parse_number(number)) for one, number in zip(results, gold, strict=True)]
    )
    largest = [int(index) for index in np.argsort(-errors, kind="stable") if errors[index] > 0.0][:MOST_WRONG]
    lengths = _lengths(results)
    by_length = [
        LengthError(*_ends(lengths, group), len(group), float(errors[group].mean())) for group in by_lengths(lengths)
    ]
    wrong = [
        WrongText(results[index].text, gold[index], results[index].label, None, None, _sentences(results[index]))
        for index in largest
    ]
    return NumberErrorPage(name, len(results), float(errors.mean()), by_length, wrong)


def _most_confident(results: Sequence[Classification], right: Sequence[bool]) -> list[int]:
    """Indices of the wrong texts that are shown, the most confident first."""
    wrong = (index for index, is_right in enumerate(right) if not is_right)
    return sorted(wrong, key=lambda index: -results[index].probability)[:MOST_WRONG]


def _lengths(results: Sequence[Classification]) -> list[int]:
    """Length of each text in words; in characters where it has no spaces."""
    return [len(one.text.split()) if " " in one.text else len(one.text) for one in results]


def _shown(result: Classification, gold: str) -> WrongText:
    share = result.probabilities.get(gold, 0.0)
    return WrongText(result.text, gold, result.label, result.probability, share, _sentences(result))


def _shown_set(result: Classification, gold: Sequence[str]) -> WrongText:
    own = {*gold}
    share = prod(
        probability if label in own else 1.0 - probability for label, probability in result.probabilities.items()
    )
    right, predicted = (", ".join(labels) or NO_LABEL for labels in (gold, result.labels))
    share = share if own <= result.probabilities.keys() else 0.0
    return WrongText(result.text, right, predicted, result.probability, share, _sentences(result))


def _sentences(result: Classification) -> Sequence[Sequence[tuple[str, float]]]:
    """Words of a text with their weights; without weights where the model has no attention."""
    if result.attention is None:
        return [[(result.text, 0.0)]]
    return [*weighted_sentences(result.pieces, result.attention.tolist(), result.text)]


def by_lengths(lengths: Sequence[int]) -> list[list[int]]:
    """Divide texts into groups of about equal length; those of one length are in one group.

    Args:
        lengths: length of each text.

    Returns:
        Indices of the texts of each group, the shortest first.
    """
    edges = np.unique(np.quantile(lengths, np.linspace(0.0, 1.0, NUM_LENGTHS + 1)[1:]).astype(int))
    groups = np.searchsorted(edges, lengths)
    divided = (np.flatnonzero(groups == group).tolist() for group in range(len(edges)))
    return [group for group in divided if group]


def _ends(lengths: Sequence[int], group: Sequence[int]) -> tuple[int, int]:
    """Least and largest length of a group."""
    own = [lengths[index] for index in group]
    return min(own), max(own)


def scores_by_length(lengths: Sequence[int], right: Sequence[bool]) -> list[LengthScore]:
    """Count right ones in groups of about equal length; those of one length are in one group.

    Args:
        lengths: length of each text.
        right: whether its output is right.

    Returns:
        The groups, shortest first.
    """
    scores: list[LengthScore] = []
    for group in by_lengths(lengths):
        num_right = sum(right[index] for index in group)
        interval = wilson_interval(num_right, len(group))
        scores.append(LengthScore(*_ends(lengths, group), len(group), num_right, interval))
    return scores
