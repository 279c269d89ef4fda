"""BLEU as the lessons of Dive into Deep Learning compute it: of one sentence, longer matches weighing more."""

from collections import Counter
from collections.abc import Sequence
from math import exp, prod

from heedful.errors import UsageError


def lesson_bleu(output: Sequence[str], reference: Sequence[str], max_order: int = 2) -> float:
    """Compute exp(min(0, 1 - |reference| / |output|)) prod_n p_n^(1 / 2^n), p_n the precision of n-grams.

    Zhang et al., Dive into Deep Learning, section 10.7.6. To check a lesson's figures, not to compare systems: for
    that there is BLEU over a corpus, the metric `bleu`.

    Args:
        output: tokens of an output.
        reference: tokens it should have.
        max_order: longest n-grams, at least 1; those longer than the output are left out.

    Returns:
        In [0, 1]; 0 for an empty output.

    Raises:
        UsageError: max_order is below 1.

    Example:
        >>> round(lesson_bleu("A B B C D".split(), "A B C D E F".split()), 6)
        0.681477
    """
    if max_order < 1:
        raise UsageError(f"lesson_bleu: max_order {max_order} is below 1; 2 is usual")
    if not output:
        return 0.0
    precisions: list[float] = []
    for order in range(1, min(max_order, len(output)) + 1):
        found, wanted = (
            Counter(tuple(tokens[start : start + order]) for start in range(len(tokens) - order + 1))
            for tokens in (output, reference)
        )
        precisions.append((found & wanted).total() / found.total())
    brevity = exp(min(0.0, 1.0 - len(reference) / len(output)))
    return brevity * prod(precision ** (0.5**order) for order, precision in enumerate(precisions, start=1))
