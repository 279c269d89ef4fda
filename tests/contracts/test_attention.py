"""Every score on every kernel keeps the contracts, and every contract refuses an implementation planted to break it."""

import math
from itertools import product

import pytest
import torch
from torch import Tensor

from heedful.attention.attend import KERNELS, attend
from heedful.attention.kernels.interface import Request
from heedful.attention.normalizers import Softmax
from heedful.attention.scores import SCORES
from tests.attention.cases import Case, make_case
from tests.contracts import attention as contracts
from tests.contracts.attention import CONTRACTS, NEED_GRADIENT, NEED_WEIGHTS, Attention, Contract, plain


def by_kernel(kernel: str) -> Attention:
    def attention(case: Case) -> tuple[Tensor, Tensor | None]:
        need = () if kernel == "sdpa" else ("weights",)
        attended = attend(case.query, case.key, case.value, score=case.score, mask=case.mask, need=need, kernel=kernel)
        assert attended.kernel == kernel
        return attended.context, attended.weights

    return attention


def runs(kernel: str, score: str, contract: Contract) -> bool:
    """Whether a kernel can do what a contract asks of a score, by its own word."""
    case = make_case(score)
    pairs = case.score.lower(case.query, case.score.prepare(case.key))
    need = frozenset({"weights"}) if contract in NEED_WEIGHTS else frozenset()
    request = Request(type(pairs), Softmax, torch.float64, "cpu", 3, 4, need, wants_gradient=contract in NEED_GRADIENT)
    return next(known for known in KERNELS if known.name == kernel).supports(request) is None


# What a kernel itself says it cannot do is not asked of it; `test_nothing_is_left_out` sees that somebody can.
KEPT = [
    (contract, kernel.name, score)
    for contract, kernel, score in product(CONTRACTS, KERNELS, SCORES)
    if runs(kernel.name, score, contract)
]


@pytest.mark.parametrize(("contract", "kernel", "score"), KEPT, ids=lambda part: getattr(part, "__name__", part))
def test_kept(contract: Contract, kernel: str, score: str):
    with torch.set_grad_enabled(contract in NEED_GRADIENT):
        contract(by_kernel(kernel), score)


def test_nothing_is_left_out():
    assert {(contract, score) for contract, _, score in KEPT} == set(product(CONTRACTS, SCORES))
    assert {kernel for _, kernel, _ in KEPT} == {kernel.name for kernel in KERNELS}


def scores_of(case: Case) -> Tensor:
    pairs = case.score.lower(case.query, case.score.prepare(case.key))
    return pairs.query @ pairs.key.mT


def forgets_the_mask(case: Case) -> tuple[Tensor, Tensor]:
    weights = torch.softmax(scores_of(case), dim=-1)
    return weights @ case.value, weights


def multiplies_by_the_mask(case: Case) -> tuple[Tensor, Tensor]:
    weights = torch.softmax(scores_of(case) * case.allowed, dim=-1)
    return weights @ case.value, weights


def masks_by_a_large_number(case: Case) -> tuple[Tensor, Tensor]:
    rows = None if case.mask is None else case.mask.rows(case.query.shape[-2], case.key.shape[-2], torch.device("cpu"))
    scores = scores_of(case)
    if rows is not None:
        scores = scores.masked_fill(~rows.allowed(scores.dim() - 2, scores.shape[-1]), -1e6)
    weights = torch.softmax(scores, dim=-1)
    return weights @ case.value, weights


def masks_by_infinity(case: Case) -> tuple[Tensor, Tensor]:
    rows = None if case.mask is None else case.mask.rows(case.query.shape[-2], case.key.shape[-2], torch.device("cpu"))
    scores = scores_of(case)
    if rows is not None:
        scores = scores.masked_fill(~rows.allowed(scores.dim() - 2, scores.shape[-1]), -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ case.value, weights


def masks_afterwards(case: Case) -> tuple[Tensor, Tensor]:
    weights = torch.softmax(scores_of(case), dim=-1) * case.allowed
    return weights @ case.value, weights


def normalizes_over_queries(case: Case) -> tuple[Tensor, Tensor]:
    weights = torch.softmax(scores_of(case), dim=-2)
    return weights @ case.value, weights


def prefers_early_keys(case: Case) -> tuple[Tensor, Tensor]:
    scores = scores_of(case)
    weights = torch.softmax(scores - 1e-6 * torch.arange(scores.shape[-1]), dim=-1)
    return weights @ case.value, weights


def reads_its_neighbour(case: Case) -> tuple[Tensor, Tensor]:
    context, weights = by_kernel("eager")(case)
    return context + 1e-6 * context[..., :1, :], weights if weights is not None else context


def divides_by_the_padded_length(case: Case) -> tuple[Tensor, Tensor | None]:
    context, weights = by_kernel("eager")(case)
    return context / case.key.shape[-2], weights


def leaks_padding(case: Case) -> tuple[Tensor, Tensor | None]:
    context, weights = by_kernel("eager")(case)
    return context + 1e-9 * case.value.sum(dim=-2, keepdim=True), weights


def detaches_the_keys(case: Case) -> tuple[Tensor, Tensor | None]:
    attended = attend(case.query, case.key.detach(), case.value, score=case.score, mask=case.mask, need=("weights",))
    return attended.context, attended.weights


def ignores_strides(case: Case) -> tuple[Tensor, Tensor]:
    value = torch.as_strided(case.value, case.value.shape, torch.empty(case.value.shape).stride())
    weights = torch.softmax(scores_of(case), dim=-1)
    return weights @ value, weights


def exponentiates_as_is(case: Case) -> tuple[Tensor, Tensor]:
    exponentials = scores_of(case).exp()
    weights = exponentials / exponentials.sum(dim=-1, keepdim=True)
    return weights @ case.value, weights


def computes_in_a_narrow_type(case: Case) -> tuple[Tensor, Tensor]:
    weights = plain(case)[1]
    return (weights.half() @ case.value.half()).to(case.value.dtype), weights


def forgets_the_scale(case: Case) -> tuple[Tensor, Tensor]:
    scores = scores_of(case) * math.sqrt(case.query.shape[-1])
    weights = torch.softmax(scores.masked_fill(~case.allowed, -torch.inf), dim=-1).nan_to_num(0.0)
    return weights @ case.value, weights


PLANTED: list[tuple[Contract, Attention]] = [
    (contracts.equals_the_reference, forgets_the_mask),
    (contracts.equals_the_reference, multiplies_by_the_mask),
    (contracts.equals_the_reference, masks_by_a_large_number),
    (contracts.equals_the_reference, masks_afterwards),
    (contracts.equals_the_reference, normalizes_over_queries),
    (contracts.equals_the_reference, forgets_the_scale),
    (contracts.weights_are_distributions, multiplies_by_the_mask),
    (contracts.weights_are_distributions, masks_by_a_large_number),
    (contracts.weights_are_distributions, masks_afterwards),
    (contracts.weights_are_distributions, normalizes_over_queries),
    (contracts.empty_rows_are_zero, masks_by_a_large_number),
    (contracts.empty_rows_are_zero, masks_by_infinity),
    (contracts.keys_may_be_permuted, prefers_early_keys),
    (contracts.queries_may_be_permuted, reads_its_neighbour),
    (contracts.padding_is_invisible, divides_by_the_padded_length),
    (contracts.padding_is_invisible, leaks_padding),
    (contracts.padding_is_invisible, forgets_the_mask),
    (contracts.gradients_are_right, detaches_the_keys),
    (contracts.layouts_change_nothing, ignores_strides),
    (contracts.shifts_of_scores_change_nothing, exponentiates_as_is),
    (contracts.error_is_small, computes_in_a_narrow_type),
]


@pytest.mark.parametrize(
    ("contract", "planted"), PLANTED, ids=lambda function: getattr(function, "__name__", str(function))
)
def test_a_wrong_implementation_is_refused(contract: Contract, planted: Attention):
    with torch.set_grad_enabled(contract in NEED_GRADIENT), pytest.raises((AssertionError, RuntimeError)):
        contract(planted, "scaled_dot")


def test_every_contract_has_something_planted():
    assert {contract for contract, _ in PLANTED} == set(CONTRACTS)


def plain_by_mask(case: Case) -> tuple[Tensor, Tensor]:
    context, weights = masks_by_infinity(case)
    return context.nan_to_num(0.0), weights.nan_to_num(0.0)


# Not in NEED_GRADIENT: softmax over nothing but -inf has NaN gradients, which is why `attend` is not written so.
@pytest.mark.parametrize("contract", [c for c in CONTRACTS if c not in NEED_GRADIENT], ids=lambda c: c.__name__)
def test_the_plain_formula_is_taken(contract: Contract):
    with torch.no_grad():
        contract(plain_by_mask, "scaled_dot")
