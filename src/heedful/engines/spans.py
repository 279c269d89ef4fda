"""Spans of passages: the most probable pairs of a start and an end, of which the start is not behind the end."""

from collections.abc import Sequence
from math import exp
from typing import Final, NamedTuple

import numpy as np

from heedful.data.passages import Floats, Passage

NO_ANSWER_SHIFT: Final = "no_answer_shift"
"""Entry of `heedful.json`: nats added to the log odds that facts do not answer a question."""
LEAST_QUESTIONS: Final = 10
"""Number of validation questions with and without an answer, each, from which on a shift is chosen."""
LEAST_GAIN: Final = 0.01
"""Mean gain in score that a shift must bring."""
MOST_SHIFT: Final = 50.0


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


def best_answers(
    passage: Passage, log_probs: Floats, number: int, no_answer_shift: float | None = None
) -> list[SpanAnswer]:
    """Find the most probable answers in a passage.

    Args:
        passage: the passage.
        log_probs: [2, position] log probabilities of start and end; no span has EOS, the last position.
        number: largest number of answers.
        no_answer_shift: nats that are added to the log odds that the passage does not answer the question, from
            `choose_shift`: both ends are at EOS then, as those of unanswerable questions are at a position of its own
            in Devlin et al. 2019, arXiv:1810.04805, section 4.3. None = it always does.

    Returns:
        The answers, the most probable first, of which an empty one says that there is none; for an empty passage one
        empty answer, of probability 0 unless there is a shift.
    """
    none, scale = no_answer(log_probs, no_answer_shift)
    ranges = [(*passage.span(one.first, one.last), one.log_prob) for one in best_spans(log_probs[:, :-1], number)]
    known = [SpanAnswer(passage.text[start:end], scale * exp(log_prob), start, end) for start, end, log_prob in ranges]
    if no_answer_shift is not None:
        known = sorted([*known, SpanAnswer("", none, 0, 0)], key=lambda one: -one.probability)[:number]
    return known or [SpanAnswer("", none, 0, 0)]


def no_answer(log_probs: Floats, shift: float | None) -> tuple[float, float]:
    """Compute the probability that a passage does not answer its question.

    Args:
        log_probs: [2, position] log probabilities of start and end, the last position that of no answer.
        shift: nats added to the log odds; None = the passage does.

    Returns:
        The probability, and the factor of those of spans that belongs to it: both sum to at most 1.
    """
    if shift is None:
        return 0.0, 1.0
    own = exp(float(log_probs[:, -1].sum()))
    scale = 1.0 / (1.0 + own * (exp(shift) - 1.0))
    return min(1.0, own * exp(shift) * scale), scale


def choose_shift(log_odds: Sequence[float], answered: Sequence[float], unanswered: Sequence[float]) -> float:
    """Choose the shift of the log odds of no answer that scores best, as for SQuAD 2.0 (Rajpurkar et al. 2018).

    Args:
        log_odds: log probability of no answer less that of the best span, of each question, in nats.
        answered: score of each question if the best span is the answer, in [0, 1].
        unanswered: score of each if there is none, 1 or 0.

    Returns:
        The shift in nats, within `MOST_SHIFT`; 0 where there are few questions of either kind, or where it gains less
        than `LEAST_GAIN`.

    Example:
        >>> choose_shift([-3.0] * 20 + [-1.0] * 20, [1.0] * 20 + [0.0] * 20, [0.0] * 20 + [1.0] * 20)
        2.0
    """
    gains = np.array(unanswered, dtype=np.float64) - np.array(answered, dtype=np.float64)
    num_none = int(np.sum(np.array(unanswered) > 0.0))
    if min(num_none, len(gains) - num_none) < LEAST_QUESTIONS:
        return 0.0
    odds = np.clip(np.array(log_odds, dtype=np.float64), -MOST_SHIFT, MOST_SHIFT)
    order = np.argsort(-odds, kind="stable")
    ordered = odds[order]
    # After the n questions of the highest odds have no answer; the threshold lies halfway to the next.
    totals = np.concatenate([[0.0], np.cumsum(gains[order])])
    edges = np.concatenate([[ordered[0] + 1.0], (ordered[:-1] + ordered[1:]) / 2.0, [ordered[-1] - 1.0]])
    is_between = np.concatenate([[True], ordered[:-1] > ordered[1:], [True]])
    usual = totals[int(np.sum(ordered > 0.0))]
    best = min(np.flatnonzero(is_between), key=lambda index: (-totals[index], abs(edges[index])))
    gain = totals[best] - usual
    return -float(edges[best]) if gain >= LEAST_GAIN * len(gains) else 0.0
