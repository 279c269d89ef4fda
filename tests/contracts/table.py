"""All contracts of attention, with the combinations that each applies to."""

from collections.abc import Callable
from dataclasses import dataclass

from heedful.attention.interface import Normalizer
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import SCORES
from heedful.attention.softmax import Softmax
from tests.contracts.attention import (
    agrees_with_plain,
    batch_changes_nothing,
    empty_rows_are_zero,
    equals_the_reference,
    errors_are_small,
    gradients_are_right,
    keys_may_change_places,
    layouts_change_nothing,
    padding_is_invisible,
    queries_are_answered_one_by_one,
    second_derivatives_are_right,
    shifts_of_scores_change_nothing,
    summaries_are_of_the_weights,
    weights_lie_in_their_set,
)
from tests.contracts.errors import Attention
from tests.contracts.nonfinite import hidden_nan_and_infinity_reach_nothing
from tests.contracts.oracle import ORACLES
from tests.contracts.shifted import can_shift
from tests.contracts.ways import Combination


@dataclass(frozen=True)
class Contract:
    """A function that raises, and what it can be asked of."""

    check: Callable[[Attention, Combination], None]
    applies: Callable[[Combination], bool] = lambda combination: True
    has_gradients: bool = False
    strength: int = 1
    """1: every score, mask and normalizer is tried; 2: every pair of these."""
    is_crossed: bool = False
    """Whether every score is tried with every normalizer, under one mask of many."""
    is_dear: bool = False
    """Whether one combination takes a tenth of a second or more."""

    def __str__(self) -> str:
        return self.check.__name__


def _kind(combination: Combination) -> type[Normalizer]:
    return NORMALIZERS[combination.normalizer]


def _is_unordered(combination: Combination) -> bool:
    return not (
        SCORES[combination.score].is_positional or _kind(combination).is_positional or _kind(combination).is_random
    )


CONTRACTS: tuple[Contract, ...] = (
    Contract(equals_the_reference, lambda each: _kind(each) in ORACLES, strength=2),
    Contract(weights_lie_in_their_set),
    Contract(empty_rows_are_zero, has_gradients=True),
    Contract(keys_may_change_places, _is_unordered),
    Contract(queries_are_answered_one_by_one, lambda each: _kind(each).scope == "row"),
    Contract(padding_is_invisible),
    Contract(
        hidden_nan_and_infinity_reach_nothing, lambda each: each.mask != "none", has_gradients=True, is_crossed=True
    ),
    Contract(batch_changes_nothing),
    Contract(gradients_are_right, has_gradients=True),
    Contract(second_derivatives_are_right, has_gradients=True, is_crossed=True, is_dear=True),
    Contract(layouts_change_nothing),
    Contract(shifts_of_scores_change_nothing, lambda each: _kind(each).is_shift_invariant and can_shift(each.score)),
    Contract(agrees_with_plain),
    Contract(summaries_are_of_the_weights),
    Contract(errors_are_small, lambda each: _kind(each) is Softmax, has_gradients=True, is_dear=True),
)
