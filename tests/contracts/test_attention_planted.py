"""Every contract refuses an implementation planted to break it, and takes the formula as written."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from heedful.attention.interface import Attended
from heedful.attention.softmax import SOFTMAX
from tests.attention.cases import Case
from tests.contracts import attention as contracts
from tests.contracts.errors import Attention, plain_scores
from tests.contracts.nonfinite import hidden_nan_and_infinity_reach_nothing
from tests.contracts.table import CONTRACTS, Contract
from tests.contracts.ways import PLAIN, Combination

pytestmark = pytest.mark.wrong_shapes  # what is planted here, contracts must find

Change = Callable[[Tensor], Tensor]
Check = Callable[[Attention, Combination], None]


def formula(
    case: Case,
    scores: Change = lambda scores: scores,
    masked: Callable[[Tensor, Tensor | None], tuple[Tensor, Tensor | None]] = lambda scores, may: (scores, may),
    weights: Change = lambda weights: weights,
    has_gaussian: bool = True,
    row_ids: Tensor | None = None,
) -> Attended:
    """Attention as one would write it, with places where it may be changed."""
    pairs = case.score.lower(case.query, case.score.prepare(case.key), case.normalizer.inverse_temperature)
    made, exists = plain_scores(pairs)
    num_leading, num_keys = made.dim() - 2, made.shape[-1]
    rows = None if case.mask is None else case.mask.rows(case.query.shape[-2], num_keys, made.device)
    may = exists if rows is None else exists & rows.allowed(num_leading, num_keys)
    if case.score.max_keys is not None:
        may = may & (torch.arange(num_keys) < case.score.max_keys)
    given = masked(scores(made), may)
    normalized = case.normalizer.normalize(*given, row_ids)
    found = weights(normalized.weights)
    if rows is not None and rows.gaussian is not None and has_gaussian:
        found = found * rows.gaussian.factors(torch.arange(num_keys), num_leading).to(found.dtype)
    return Attended(found @ case.value, "planted", weights=found, log_normalizer=normalized.log_normalizer)


def forgets_the_mask(case: Case) -> Attended:
    return formula(case, masked=lambda scores, may: (scores, None))


def multiplies_by_the_mask(case: Case) -> Attended:
    return formula(case, masked=lambda scores, may: (scores if may is None else scores * may, None))


def masks_by_a_large_number(case: Case) -> Attended:
    return formula(case, masked=lambda scores, may: (scores if may is None else scores.masked_fill(~may, -1e6), None))


def masks_by_infinity(case: Case) -> Attended:
    return formula(
        case, masked=lambda scores, may: (scores if may is None else scores.masked_fill(~may, -math.inf), None)
    )


def masks_afterwards(case: Case) -> Attended:
    found = forgets_the_mask(case)
    assert found.weights is not None
    return replace(found, context=(found.weights * case.allowed) @ case.value)


def normalizes_over_queries(case: Case) -> Attended:
    found = forgets_the_mask(replace(case, normalizer=SOFTMAX))
    assert found.weights is not None
    return replace(found, context=torch.softmax(found.weights.log(), dim=-2) @ case.value)


def forgets_the_scale(case: Case) -> Attended:
    return formula(case, scores=lambda scores: scores * math.sqrt(case.query.shape[-1]))


def forgets_the_temperature(case: Case) -> Attended:
    return formula(case, scores=lambda scores: scores / case.normalizer.inverse_temperature)


def forgets_the_gaussian(case: Case) -> Attended:
    return formula(case, has_gaussian=False)


def shares_out_again_after_the_gaussian(case: Case) -> Attended:
    found = formula(case).weights
    assert found is not None
    total = found.sum(dim=-1, keepdim=True)
    return Attended((found / total.masked_fill(total == 0, 1.0)) @ case.value, "planted")


def gives_negative_weights(case: Case) -> Attended:
    return formula(case, weights=lambda weights: 2.0 * weights - weights.square())


def sums_to_less_than_one(case: Case) -> Attended:
    return formula(case, weights=lambda weights: weights * (1.0 - 1e-6))


def prefers_early_keys(case: Case) -> Attended:
    return formula(case, scores=lambda scores: scores - 1e-6 * torch.arange(scores.shape[-1]))


def reads_the_query_before(case: Case) -> Attended:
    found = formula(case)
    return replace(found, context=found.context + 1e-6 * found.context.roll(1, dims=-2))


def reads_the_other_items(case: Case) -> Attended:
    found = formula(case)
    return replace(found, context=found.context + 1e-6 * found.context.mean(dim=0, keepdim=True))


def divides_by_the_padded_length(case: Case) -> Attended:
    found = formula(case)
    return replace(found, context=found.context / case.key.shape[-2])


def leaks_padding(case: Case) -> Attended:
    found = formula(case)
    return replace(found, context=found.context + 1e-9 * case.value.sum(dim=-2, keepdim=True))


def zeroes_hidden_values_alone(case: Case) -> Attended:
    """The context is right, but gradients of queries are sums over keys that are not finite."""
    return formula(replace(case, value=torch.nan_to_num(case.value, 0.0, 0.0, 0.0)))


def zeroes_all_that_is_not_finite(case: Case) -> Attended:
    query, key, value = (torch.nan_to_num(each, 0.0, 0.0, 0.0) for each in case.inputs)
    return formula(replace(case, query=query, key=key, value=value))


def detaches_the_keys(case: Case) -> Attended:
    return formula(replace(case, key=case.key.detach()))


def detaches_the_temperature(case: Case) -> Attended:
    normalizer = replace(case.normalizer, temperature=case.normalizer.temperature.detach())  # type: ignore
    return formula(replace(case, normalizer=normalizer))


def detaches_the_transition(case: Case) -> Attended:
    normalizer = replace(case.normalizer, transition=case.normalizer.transition.detach())  # type: ignore
    return formula(replace(case, normalizer=normalizer))


def detaches_the_gaussian(case: Case) -> Attended:
    assert case.mask is not None
    gaussian = case.mask.rows(case.query.shape[-2], case.key.shape[-2], case.key.device).gaussian
    assert gaussian is not None
    factors = gaussian.factors(torch.arange(case.key.shape[-2]), case.key.dim() - 2).detach()
    return formula(case, weights=lambda weights: weights * factors, has_gaussian=False)


def ignores_strides(case: Case) -> Attended:
    value = torch.as_strided(case.value, case.value.shape, torch.empty(case.value.shape).stride())
    return formula(replace(case, value=value))


def repeats_a_batch_of_one(case: Case) -> Attended:
    """As a loop that reads the first item wherever the queries have but one."""
    found = formula(case)
    return replace(found, context=found.context[:, : case.query.shape[1]].expand_as(found.context))


def exponentiates_as_is(case: Case) -> Attended:
    pairs = case.score.lower(case.query, case.score.prepare(case.key), case.normalizer.inverse_temperature)
    exponentials = plain_scores(pairs)[0].exp() * case.allowed
    return Attended(exponentials / exponentials.sum(dim=-1, keepdim=True) @ case.value, "planted")


def computes_in_a_narrow_type(case: Case) -> Attended:
    value = case.value
    return formula(replace(case, value=value.half().to(value.dtype)))


class _NarrowGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, context: Tensor) -> Tensor:
        return context.clone()

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return (gradient * 1.001) if gradient.dtype != torch.float64 else gradient


def goes_back_in_a_narrow_type(case: Case) -> Attended:
    found = formula(case)
    return replace(found, context=_NarrowGradient.apply(found.context))


class _OneDerivative(torch.autograd.Function):
    """The sine, whose gradient is right and has no graph."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        ctx.save_for_backward(scores)
        return scores.sin()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return gradient * ctx.saved_tensors[0].cos()


class _DetachedDerivative(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        ctx.save_for_backward(scores)
        return scores.sin()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return gradient * ctx.saved_tensors[0].detach().cos()


def refuses_or_forgets_second_derivatives(case: Case) -> Attended:
    return formula(case, scores=_OneDerivative.apply)


def forgets_second_derivatives(case: Case) -> Attended:
    return formula(case, scores=_DetachedDerivative.apply)


def numbers_rows_anew(case: Case) -> Attended:
    """As a tile that forgets which rows it has."""
    shape = case.allowed.shape[:-1]
    return formula(case, row_ids=(torch.arange(shape.numel()) % 3).reshape(shape))


def tells_of_other_weights(case: Case) -> Attended:
    found = PLAIN(case)
    weights = None if found.weights is None else found.weights.roll(1, dims=-1)
    return replace(found, weights=weights)


def names_the_worst_key(case: Case) -> Attended:
    found = PLAIN(case)
    return replace(found, argmax=None if found.argmax is None else (found.argmax + 1) % case.key.shape[-2])


def measures_entropy_in_bits(case: Case) -> Attended:
    found = PLAIN(case)
    return replace(found, entropy=None if found.entropy is None else found.entropy / math.log(2.0))


def forgets_the_largest_score(case: Case) -> Attended:
    """As a log normalizer of scores from which the largest was taken and not added again."""
    found = PLAIN(case)
    return replace(found, log_normalizer=None if found.log_normalizer is None else found.log_normalizer - 0.1)


def named(score: str, mask: str, normalizer: str = "softmax", num_queries: int = 3, num_keys: int = 4) -> Combination:
    return Combination(score, mask, normalizer, num_queries, num_keys)


DOT, PADDED = named("scaled_dot", "none"), named("scaled_dot", "padding")
EMPTY = named("scaled_dot", "nothing")
LOCAL = named("scaled_dot", "local-p over the source")
GRADIENT = frozenset(contract.check for contract in CONTRACTS if contract.has_gradients)
PLANTED: list[tuple[Check, Attention, Combination]] = [
    (contracts.equals_the_reference, forgets_the_mask, PADDED),
    (contracts.equals_the_reference, multiplies_by_the_mask, PADDED),
    (contracts.equals_the_reference, masks_by_a_large_number, EMPTY),
    (contracts.equals_the_reference, masks_afterwards, PADDED),
    (contracts.equals_the_reference, normalizes_over_queries, DOT),
    (contracts.equals_the_reference, forgets_the_scale, DOT),
    (contracts.equals_the_reference, forgets_the_temperature, DOT),
    (contracts.equals_the_reference, forgets_the_gaussian, LOCAL),
    (contracts.equals_the_reference, shares_out_again_after_the_gaussian, LOCAL),
    (contracts.equals_the_reference, numbers_rows_anew, named("dot", "none", "gumbel_softmax")),
    (contracts.weights_lie_in_their_set, multiplies_by_the_mask, PADDED),
    (contracts.weights_lie_in_their_set, masks_by_a_large_number, EMPTY),
    (contracts.weights_lie_in_their_set, masks_afterwards, PADDED),
    (contracts.weights_lie_in_their_set, normalizes_over_queries, DOT),
    (contracts.weights_lie_in_their_set, sums_to_less_than_one, DOT),
    (contracts.weights_lie_in_their_set, gives_negative_weights, DOT),
    (contracts.weights_lie_in_their_set, shares_out_again_after_the_gaussian, LOCAL),
    (contracts.empty_rows_are_zero, masks_by_a_large_number, DOT),
    (contracts.empty_rows_are_zero, masks_by_infinity, DOT),
    (contracts.keys_may_change_places, prefers_early_keys, DOT),
    (contracts.queries_are_answered_one_by_one, reads_the_query_before, DOT),
    (contracts.queries_are_answered_one_by_one, normalizes_over_queries, DOT),
    (contracts.padding_is_invisible, divides_by_the_padded_length, PADDED),
    (contracts.padding_is_invisible, leaks_padding, PADDED),
    (contracts.padding_is_invisible, forgets_the_mask, PADDED),
    (hidden_nan_and_infinity_reach_nothing, formula, PADDED),
    (hidden_nan_and_infinity_reach_nothing, zeroes_hidden_values_alone, PADDED),
    (hidden_nan_and_infinity_reach_nothing, zeroes_all_that_is_not_finite, PADDED),
    (contracts.batch_changes_nothing, reads_the_other_items, DOT),
    (contracts.gradients_are_right, detaches_the_keys, DOT),
    (contracts.gradients_are_right, detaches_the_temperature, DOT),
    (contracts.gradients_are_right, detaches_the_transition, named("dot", "padding", "linear_chain")),
    (contracts.gradients_are_right, detaches_the_gaussian, LOCAL),
    (contracts.second_derivatives_are_right, refuses_or_forgets_second_derivatives, DOT),
    (contracts.second_derivatives_are_right, forgets_second_derivatives, DOT),
    (contracts.layouts_change_nothing, ignores_strides, DOT),
    (contracts.layouts_change_nothing, repeats_a_batch_of_one, DOT),
    (contracts.shifts_of_scores_change_nothing, exponentiates_as_is, DOT),
    (contracts.agrees_with_plain, numbers_rows_anew, named("dot", "none", "sampled")),
    (contracts.agrees_with_plain, forgets_the_mask, PADDED),
    (contracts.summaries_are_of_the_weights, tells_of_other_weights, DOT),
    (contracts.summaries_are_of_the_weights, names_the_worst_key, DOT),
    (contracts.summaries_are_of_the_weights, measures_entropy_in_bits, DOT),
    (contracts.summaries_are_of_the_weights, forgets_the_largest_score, DOT),
    (contracts.errors_are_small, computes_in_a_narrow_type, DOT),
    (contracts.errors_are_small, goes_back_in_a_narrow_type, DOT),
]


def name_of(part: object) -> str:
    return getattr(part, "__name__", str(part))


@pytest.mark.parametrize(("check", "planted", "combination"), PLANTED, ids=name_of)
def test_a_wrong_implementation_is_refused(check: Check, planted: Attention, combination: Combination):
    with torch.set_grad_enabled(check in GRADIENT), pytest.raises((AssertionError, RuntimeError)):
        check(planted, combination)


def test_every_contract_has_something_planted():
    assert {check for check, _, _ in PLANTED} == {contract.check for contract in CONTRACTS}


# These ask for what the formula does not give.
BEYOND = {"agrees_with_plain", "summaries_are_of_the_weights", "hidden_nan_and_infinity_reach_nothing"}
TAKEN = [each for each in CONTRACTS if str(each) not in BEYOND]


@pytest.mark.parametrize("combination", [DOT, PADDED, LOCAL, named("additive", "causal", "sparsemax")], ids=str)
@pytest.mark.parametrize("contract", TAKEN, ids=str)
def test_the_formula_as_written_is_taken(contract: Contract, combination: Combination):
    with torch.set_grad_enabled(contract.has_gradients):
        contract.check(formula, combination)
