"""Spans of passages: the most probable pairs of a start and an end, of which the start is not behind the end."""

from math import exp
from typing import NamedTuple

import numpy as np

from heedful.data.passages import Floats, Passage


class Span(NamedTuple):
    """Span of positions."""

    first: int
    last: int
    """Position of the last token, not below `first`."""
    log_prob: float
    """Sum of the log probabilities of both ends, in nats."""


def best_spans(log_probs: Floats, number: int) -> list[Span]:
    """Find the most probable spans.

    Args:
        log_probs: [2, position] log probabilities of start and end.
        number: largest number of spans.

    Returns:
        Spans with start <= end, the most probable first; of equal ones, the earlier.

    Cost: position^2 additions.

    Example:
        >>> best_spans(np.log(np.array([[0.1, 0.9], [0.8, 0.2]], dtype=np.float32)), 1)[0][:2]
        (1, 1)
    """
    start, end = log_probs.astype(np.float64)
    size = len(start)
    scores = np.where(np.tri(size, dtype=bool).T, start[:, None] + end, -np.inf).ravel()
    least = np.partition(scores, -number)[-number] if number < scores.size else -np.inf
    known = np.flatnonzero(scores >= least)
    best = known[np.argsort(-scores[known], kind="stable")][:number]
    rows = (divmod(int(index), size) for index in best if scores[index] > -np.inf)
    return [Span(first, last, float(start[first] + end[last])) for first, last in rows]


class SpanAnswer(NamedTuple):
    """Span of a passage as an answer."""

    text: str
    probability: float
    """Product of the probabilities of start and end, in [0, 1]."""
    start: int
    """First character in the text of the passage."""
    end: int
    """Character after the last."""


def best_answers(passage: Passage, log_probs: Floats, number: int, has_impossible: bool = False) -> list[SpanAnswer]:
    """Find the most probable answers in a passage.

    Args:
        log_probs: [2, position] log probabilities of start and end; no span has EOS, the last position.
        number: largest number of answers.
        has_impossible: whether the passage may not answer the question: both ends are at EOS then, as those of
            unanswerable questions are at a position of its own in Devlin et al. 2019, arXiv:1810.04805, section 4.3.

    Returns:
        The answers, the most probable first, of which an empty one says that there is none; for an empty passage one
        empty answer, of probability 0 unless `has_impossible`.
    """
    ranges = [(*passage.span(one.first, one.last), one.log_prob) for one in best_spans(log_probs[:, :-1], number)]
    known = [SpanAnswer(passage.text[start:end], exp(log_prob), start, end) for start, end, log_prob in ranges]
    none = SpanAnswer("", exp(float(log_probs[:, -1].sum())) if has_impossible else 0.0, 0, 0)
    if has_impossible:
        known = sorted([*known, none], key=lambda one: -one.probability)[:number]
    return known or [none]
