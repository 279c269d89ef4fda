"""Contract: NaN and infinity that a mask hides reach no result and no gradient."""

from dataclasses import replace

import torch
from torch import Tensor

from tests.attention.cases import Case
from tests.contracts.attention import ask, both, distance, make
from tests.contracts.errors import Attention
from tests.contracts.ways import Combination


def hidden_nan_and_infinity_reach_nothing(attention: Attention, combination: Combination) -> None:
    """Queries that may not attend to a spoilt key, and spoilt queries that may attend to none, notice nothing."""
    case = make(combination, (3,), [combination.num_keys - 1, 0, max(1, combination.num_keys - 2)])
    query, key, value = (tensor.clone() for tensor in case.inputs)
    key[:, -1] = torch.nan
    key[1, 0, 0] = torch.inf
    value[:, -1, 0] = -torch.inf
    value[2, -2] = torch.nan
    if not combination.num_queries == combination.num_keys:
        query[~_may_attend(case)] = torch.nan
    is_clean = _clean(case, key, value)

    plain, spoilt = _results(attention, case), _results(attention, replace(case, query=query, key=key, value=value))
    for name, result in plain[0].items():
        assert distance(spoilt[0][name][is_clean], result[is_clean]) <= 1e-12, name
    for gradient, wanted in zip(*(_gradients(*each, is_clean) for each in (spoilt, plain)), strict=True):
        assert distance(gradient, wanted) <= 1e-11
    _visible_nan_stays(attention, case, plain[0]["unit contexts"])


def _visible_nan_stays(attention: Attention, case: Case, weights: Tensor) -> None:
    """NaN in a value that has a weight is an error of the caller, which must not be hidden from them."""
    value = case.value.clone()
    value[:, 0, 0] = torch.nan
    context = attention(replace(case, value=value)).context
    assert bool(context[..., 0][weights[..., 0] > 1e-6].isnan().all())


def _may_attend(case: Case) -> Tensor:
    return _allowed(case).any(dim=-1)


def _allowed(case: Case) -> Tensor:
    reach = case.key.shape[-2] if case.score.max_keys is None else case.score.max_keys
    return case.allowed & (torch.arange(case.key.shape[-2]) < reach)


def _clean(case: Case, key: Tensor, value: Tensor) -> Tensor:
    """[*leading, query] whether a query may attend to finite keys and values alone; a tree is clean as a whole."""
    is_spoilt = ~(torch.isfinite(key).all(dim=-1) & torch.isfinite(value).all(dim=-1))
    is_clean = ~(_allowed(case) & is_spoilt[..., None, :]).any(dim=-1)
    return is_clean.all(dim=-1, keepdim=True) & is_clean if case.normalizer.scope == "matrix" else is_clean


def _results(attention: Attention, case: Case) -> tuple[dict[str, Tensor], list[Tensor]]:
    """All results by name, and the tensors they may be differentiated by."""
    inputs = [tensor.clone().requires_grad_() for tensor in case.inputs]
    learned = [tensor.requires_grad_() for tensor in case.learned]
    case = replace(case, query=inputs[0], key=inputs[1], value=inputs[2])
    context, weights = both(attention, case)
    others = ask(attention, replace(case, need=frozenset(case.normalizer.provides)))
    return {**others, "context": context, "unit contexts": weights}, [*inputs, *learned]


def _gradients(results: dict[str, Tensor], tensors: list[Tensor], is_clean: Tensor) -> tuple[Tensor, ...]:
    loss = sum(
        (result[is_clean].sin().sum() for result in results.values() if result.requires_grad),
        start=torch.zeros((), dtype=torch.float64, requires_grad=True),
    )
    return torch.autograd.grad(loss, tensors, allow_unused=True, materialize_grads=True)
