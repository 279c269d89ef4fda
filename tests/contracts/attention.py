"""What every implementation of attention must keep, as functions that raise AssertionError where it does not.

An implementation is called as ``attention(case)`` and answers with a context and weights; it may be `attend` with some
kernel, or a wrong one planted to see that a contract refuses it.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from heedful.attention.pairs import AdditivePairs, DotPairs
from heedful.attention.reference import reference_softmax_attention
from tests.attention.cases import MASKS, Case, make_case, per_item

Attention = Callable[[Case], tuple[Tensor, Tensor | None]]
"""Gives [*batch, query, value_size] contexts, and [*batch, query, key] weights where it has them."""
Contract = Callable[[Attention, str], None]
"""Given an implementation and the name of a score."""

SHAPES = [((), 3, 4), ((2,), 1, 1), ((3,), 4, 2), ((2, 3), 3, 5), ((2, 1, 2), 2, 3)]


def equals_the_reference(attention: Attention, score: str) -> None:
    """Contexts and weights are those of sums over single numbers, for all masks and any leading axes."""
    for seed, mask in enumerate(MASKS):
        for leading, num_queries, num_keys in SHAPES:
            case = make_case(score, mask, leading, num_queries, num_keys, seed=seed)
            context, weights = _reference(case)
            given_context, given_weights = attention(case)
            assert given_context.shape == context.shape
            assert _distance(given_context, context) <= 1e-12, mask
            assert given_weights is None or _distance(given_weights, weights) <= 1e-12, mask


def weights_are_distributions(attention: Attention, score: str) -> None:
    """Weights are 0 where nothing may be attended, positive elsewhere, and sum to 1 in rows that allow a key."""
    for seed, mask in enumerate(MASKS):
        case = make_case(score, mask, (3,), 4, 5, seed=seed)
        weights = attention(case)[1]
        assert weights is not None
        assert bool((weights[~case.allowed] == 0.0).all())
        assert bool((weights[case.allowed] > 0.0).all())
        assert _distance(weights.sum(dim=-1), case.allowed.any(dim=-1).double()) <= 1e-14


def empty_rows_are_zero(attention: Attention, score: str) -> None:
    """A query that may attend nothing gets a zero context and gives zero gradients; nothing is ever NaN."""
    case = make_case(score, "padding", (3,), 2, 4)
    lengths = torch.tensor([4, 0, 2])
    mask = MASKS["padding"].make(lengths)
    tensors = [tensor.clone().requires_grad_() for tensor in (case.query, case.key, case.value)]
    context, weights = attention(replace(case, query=tensors[0], key=tensors[1], value=tensors[2], mask=mask))
    loss = context.square().sum() + (0.0 if weights is None else weights.square().sum())
    parameters = list(case.score.parameters())
    gradients = torch.autograd.grad(loss, [*tensors, *parameters])
    assert bool((context[1] == 0.0).all())
    assert weights is None or bool((weights[1] == 0.0).all())
    assert all(bool(torch.isfinite(gradient).all()) for gradient in gradients)
    assert all(bool((gradient[1] == 0.0).all()) for gradient in gradients[:3])
    assert all(bool((gradient[[0, 2]] != 0.0).any()) for gradient in gradients[:3])


def keys_may_be_permuted(attention: Attention, score: str) -> None:
    """The order of keys (with their values) changes nothing but the order of the weights."""
    case = make_case(score, "none", (2,), 3, 5)
    order = torch.tensor([3, 0, 4, 1, 2])
    context, weights = attention(case)
    moved_context, moved_weights = attention(replace(case, key=case.key[:, order], value=case.value[:, order]))
    assert _distance(moved_context, context) <= 1e-14
    if weights is not None and moved_weights is not None:
        assert _distance(moved_weights, weights[..., order]) <= 1e-14


def queries_may_be_permuted(attention: Attention, score: str) -> None:
    """Each query is answered for itself."""
    case = make_case(score, "padding", (2,), 4, 5, seed=1)
    order = torch.tensor([2, 0, 3, 1])
    context = attention(case)[0]
    assert _distance(attention(replace(case, query=case.query[:, order]))[0], context[:, order]) <= 1e-14


def padding_is_invisible(attention: Attention, score: str) -> None:
    """What stands at masked keys changes no bit; how many there are, nothing beyond rounding."""
    case = make_case(score, "padding", (3,), 2, 6)
    lengths = torch.tensor([4, 1, 3])
    case = replace(case, mask=MASKS["padding"].make(lengths))
    key, value = case.key.clone(), case.value.clone()
    for row, length in enumerate(lengths.tolist()):
        key[row, length:], value[row, length:] = 1e6, -1e6
    context = attention(case)[0]
    assert torch.equal(attention(replace(case, key=key, value=value))[0], context)
    shorter = attention(replace(case, key=case.key[:, :4], value=case.value[:, :4]))[0]
    assert _distance(shorter, context) <= 1e-14


def gradients_are_right(attention: Attention, score: str) -> None:
    """Gradients equal finite differences, for query, key, value and parameters, under every mask."""
    for seed, mask in enumerate(MASKS):
        case = make_case(score, mask, (2,), 2, 3, size=2, value_size=2, seed=seed)
        inputs = [tensor.clone().requires_grad_() for tensor in (case.query, case.key, case.value)]
        parameters = list(case.score.parameters())

        def outputs(
            query: Tensor, key: Tensor, value: Tensor, *_: Tensor, case: Case = case
        ) -> Tensor | tuple[Tensor, Tensor]:
            context, weights = attention(replace(case, query=query, key=key, value=value))
            return context if weights is None else (context, weights)

        # The parameters are handed over too: gradcheck moves them in place, where the score sees it.
        assert torch.autograd.gradcheck(outputs, (*inputs, *parameters)), mask


def layouts_change_nothing(attention: Attention, score: str) -> None:
    """Transposed, sliced and expanded inputs give what contiguous copies give."""
    case = make_case(score, "padding", (2, 3), 4, 5)

    def transposed(tensor: Tensor) -> Tensor:
        return tensor.transpose(-1, -3).contiguous().transpose(-1, -3)

    def sliced(tensor: Tensor) -> Tensor:
        return torch.stack((tensor, tensor + 1.0), dim=-1).flatten(-2)[..., ::2]

    def expanded(tensor: Tensor) -> Tensor:
        return tensor[:, :1].expand(-1, 3, -1, -1)

    for layout in (transposed, sliced, expanded):
        laid = replace(case, query=layout(case.query), key=layout(case.key), value=layout(case.value))
        copies = (tensor.contiguous() for tensor in (laid.query, laid.key, laid.value))
        plain = replace(laid, **dict(zip(("query", "key", "value"), copies, strict=True)))
        assert not laid.key.is_contiguous()
        assert _distance(attention(laid)[0], attention(plain)[0]) <= 1e-14, layout.__name__


def shifts_of_scores_change_nothing(attention: Attention, score: str) -> None:
    """Scores a thousand higher for every key of a row give the same weights: they are never exponentiated as such."""
    case = make_case("dot", "padding", (2,), 3, 4, size=3, seed=2)
    query = torch.cat((case.query, torch.ones(2, 3, 1, dtype=torch.float64)), dim=-1)
    levels = [torch.cat((case.key, torch.full((2, 4, 1), level, dtype=torch.float64)), dim=-1) for level in (0.0, 1e3)]
    wide = make_case("dot", "padding", (2,), 3, 4, size=4).score
    low, high = (attention(replace(case, score=wide, query=query, key=key))[0] for key in levels)
    assert bool(torch.isfinite(high).all())
    assert _distance(low, high) <= 1e-11


def error_is_small(attention: Attention, score: str) -> None:
    """In float32 and bfloat16 the error is at most twice that of the plain formula in the same type."""
    for dtype in (torch.float32, torch.bfloat16):
        for seed in range(3):
            case = make_case(score, "padding & causal", (2, 4), 33, 33, size=16, value_size=16, seed=seed, dtype=dtype)
            wide = replace(
                case,
                score=case.score.double(),
                query=case.query.double(),
                key=case.key.double(),
                value=case.value.double(),
            )
            exact, weights = plain(wide)
            case.score.to(dtype)
            given = attention(case)[0]
            assert given.dtype == dtype
            floor = 2.0**-24 * float((weights @ wide.value.abs()).max())
            allowed = max(2.0 * _distance(plain(case)[0].double(), exact), floor)
            assert _distance(given.double(), exact) <= allowed, dtype


CONTRACTS: tuple[Contract, ...] = (
    equals_the_reference,
    weights_are_distributions,
    empty_rows_are_zero,
    keys_may_be_permuted,
    queries_may_be_permuted,
    padding_is_invisible,
    gradients_are_right,
    layouts_change_nothing,
    shifts_of_scores_change_nothing,
    error_is_small,
)
NEED_WEIGHTS = (weights_are_distributions,)
NEED_GRADIENT = (empty_rows_are_zero, gradients_are_right)


def plain(case: Case) -> tuple[Tensor, Tensor]:
    """The formula as one would write it down, in the type of the inputs."""
    pairs = case.score.lower(case.query, case.score.prepare(case.key))
    if isinstance(pairs, AdditivePairs):
        scores = torch.tanh(pairs.query[..., :, None, :] + pairs.key[..., None, :, :]) @ pairs.vector
    elif isinstance(pairs, DotPairs):
        scores = pairs.query @ pairs.key.mT
    else:
        raise TypeError(f"no plain formula for {type(pairs).__name__}")
    weights = torch.softmax(scores.masked_fill(~case.allowed, -torch.inf), dim=-1).nan_to_num(0.0)
    return weights @ case.value, weights


def _reference(case: Case) -> tuple[Tensor, Tensor]:
    """The oracle, item by item, with what the mask means rather than what it computes."""
    pairs = case.score.lower(case.query, case.score.prepare(case.key))
    results: list[tuple[Tensor, Tensor]] = []
    rows = zip(
        *(per_item(tensor.detach()) for tensor in (pairs.query, pairs.key, case.value, case.allowed)), strict=True
    )
    for query, key, value, allowed in rows:
        item = replace(pairs, query=query, key=key)
        results.append(reference_softmax_attention(item, value, allowed))
    leading = case.query.shape[:-2]
    context, weights = (torch.stack(parts) for parts in zip(*results, strict=True))
    return context.reshape(*leading, *context.shape[1:]), weights.reshape(*leading, *weights.shape[1:])


def _distance(one: Tensor, other: Tensor) -> float:
    difference = (one - other).abs()
    return float("inf") if bool(difference.isnan().any()) else float(difference.max()) if difference.numel() else 0.0
