"""Contracts of every implementation of attention, as functions that raise AssertionError where one is broken.

An implementation is called with a case and answers as `attend` does; it may be `attend` with some kernel, or a wrong
one planted to see that a contract refuses it.
"""

from collections.abc import Callable
from dataclasses import replace
from zlib import crc32

import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from heedful.attention.interface import Attended, Need, Normalizer
from heedful.attention.masks import padding
from heedful.attention.softmax import Softmax
from heedful.errors import KernelUnsupported
from tests.attention.cases import MASKS, Case, make_case, write_out
from tests.attention.reference import reference_scores
from tests.contracts.errors import Attention, exceeded, measure
from tests.contracts.oracle import existing, lowered, oracle
from tests.contracts.shifted import Shifted, shifted
from tests.contracts.ways import PLAIN, Combination

LEADING = ((2,), (), (1, 2), (2, 2))


def make(combination: Combination, leading: tuple[int, ...] = (2,), lengths: list[int] | None = None) -> Case:
    """A case of a combination, its numbers drawn from its name."""
    score, mask, normalizer, num_queries, num_keys = combination
    seed = crc32(str(combination).encode())
    return make_case(score, mask, leading, num_queries, num_keys, seed=seed, normalizer=normalizer, lengths=lengths)


def both(attention: Attention, case: Case) -> tuple[Tensor, Tensor]:
    """Contexts and weights, of any kernel: where the values are the unit vectors, the contexts are the weights."""
    num_keys, size = case.value.shape[-2:]
    unit = torch.eye(num_keys, dtype=case.value.dtype).expand(*case.value.shape[:-1], num_keys)
    context = attention(replace(case, value=torch.cat((case.value, unit), dim=-1))).context
    return context[..., :size], context[..., size:]


def equals_the_reference(attention: Attention, combination: Combination) -> None:
    """Contexts and weights are those of sums over single numbers, for any leading axes."""
    leading = LEADING[crc32(str(combination).encode()) % len(LEADING)]
    case = make(combination, leading)
    context, weights = oracle(case)
    given = attention(case).context
    assert given.shape == context.shape
    assert distance(given, context) <= 1e-11
    assert distance(both(attention, case)[1], weights) <= 1e-11


def weights_lie_in_their_set(attention: Attention, combination: Combination) -> None:
    """Weights are zero where nothing may be attended, and lie in the set that the normalizer declares elsewhere.

    A Gaussian may only make them smaller.
    """
    case = make(combination, (3,))
    may = existing(case)
    weights = both(attention, case)[1]
    assert bool((weights[~may] == 0.0).all())
    assert bool((weights >= 0.0).all())
    total, region = weights.sum(dim=-1), case.normalizer.weights_lie_in
    if region == "box":
        assert bool((weights <= 1.0).all())
    elif region == "sub-simplex" or case.factors is not None:
        assert bool((total <= 1.0 + 1e-12).all())
    else:
        assert distance(total, may.any(dim=-1).double()) <= 1e-12
    if case.factors is not None:
        assert bool((weights <= case.factors + 1e-12).all())


def empty_rows_are_zero(attention: Attention, combination: Combination) -> None:
    """A query that may attend nothing gets a zero context and gives zero gradients; nothing is ever NaN."""
    case = make(combination, (3,))
    real = padding(torch.tensor([combination.num_keys, 0, combination.num_keys]))
    tensors = [tensor.clone().requires_grad_() for tensor in case.inputs]
    learned = [tensor.requires_grad_() for tensor in case.learned]
    mask = real if case.mask is None else case.mask & real
    case = replace(case, query=tensors[0], key=tensors[1], value=tensors[2], mask=mask)
    context, weights = both(attention, case)
    loss = context.square().sum() + weights.square().sum()
    gradients = torch.autograd.grad(loss, [*tensors, *learned], allow_unused=True, materialize_grads=True)
    assert bool((context[1] == 0.0).all())
    assert bool((weights[1] == 0.0).all())
    assert bool(torch.isfinite(context).all())
    assert all(bool(torch.isfinite(gradient).all()) for gradient in gradients)
    assert all(bool((gradient[1] == 0.0).all()) for gradient in gradients[:3])
    assert bool(gradients[2][[0, 2]].any()) == bool((weights[[0, 2]] != 0.0).any())


def keys_may_change_places(attention: Attention, combination: Combination) -> None:
    """The order of keys that the mask cannot tell apart changes nothing but the order of their weights."""
    case = make(combination)
    order = order_within_mask(case)
    context, weights = both(attention, case)
    moved = replace(case, key=case.key[..., order, :], value=case.value[..., order, :])
    moved_context, moved_weights = both(attention, moved)
    # Of equal scores one that chooses a key takes the first.
    rows = ~ties(case) if chooses(case.normalizer) else torch.ones_like(case.allowed[..., 0])
    assert distance(moved_context[rows], context[rows]) <= 1e-12
    assert distance(moved_weights[rows], weights[..., order][rows]) <= 1e-12


def queries_are_answered_one_by_one(attention: Attention, combination: Combination) -> None:
    """What one query asks changes no other's answer."""
    case = make(combination)
    query = case.query.clone()
    query[..., 0, :] += 0.5
    before, after = (attention(each).context for each in (case, replace(case, query=query)))
    assert distance(after[..., 1:, :], before[..., 1:, :]) <= 1e-12


def padding_is_invisible(attention: Attention, combination: Combination) -> None:
    """What stands at keys that nobody may attend changes nothing, nor whether they are there."""
    num_queries, num_keys = combination.num_queries, combination.num_keys
    lengths = [num_keys - 1, 1, num_keys - 2]
    case = make(combination, (3,), lengths)
    unseen = ~case.allowed.any(dim=-2)[..., None]
    context = attention(case).context
    hidden = replace(case, key=case.key.masked_fill(unseen, 1e3), value=case.value.masked_fill(unseen, -1e6))
    assert distance(attention(hidden).context, context) <= 1e-12
    less = num_keys - 1
    tables = (case.allowed, case.factors)
    shorter = write_out(combination.mask, torch.tensor(lengths), (3,), num_queries, less)
    is_same = all(
        one is None or (other is not None and torch.equal(one[..., :less], other))
        for one, other in zip(tables, shorter, strict=True)
    )
    if is_same and bool(unseen[:, -1].all()) and case.normalizer.scope == "row":
        mask = MASKS[combination.mask].make(torch.tensor(lengths), num_queries, less)
        cut = replace(case, key=case.key[:, :less], value=case.value[:, :less], mask=mask)
        assert distance(attention(cut).context, context) <= 1e-12


def batch_changes_nothing(attention: Attention, combination: Combination) -> None:
    """An item is answered alike alone and among others."""
    lengths = [combination.num_keys - 1, 1, 2]
    among, alone = make(combination, (3,), lengths), make(combination, (1,), lengths[:1])
    alone = replace(alone, query=among.query[:1], key=among.key[:1], value=among.value[:1])
    assert distance(attention(alone).context, attention(among).context[:1]) <= 1e-12


def gradients_are_right(attention: Attention, combination: Combination) -> None:
    """Gradients equal finite differences: of query, key, value, and all that score, mask and normalizer learn."""
    outputs, moved = differentiable(attention, combination)
    assert gradcheck(outputs, moved, fast_mode=True)


def second_derivatives_are_right(attention: Attention, combination: Combination) -> None:
    """Gradients of gradients equal finite differences, whether or not the gradient that comes in has a graph."""
    outputs, moved = differentiable(attention, combination)
    assert gradgradcheck(outputs, moved, fast_mode=True)

    # The gradient of a sum has no graph.
    slopes = torch.autograd.grad(outputs(*moved)[0].sum(), moved, create_graph=True, allow_unused=True)
    directions = [torch.full_like(each, 0.3).cos_() for each in moved]
    product = sum((one * other).sum() for one, other in zip(slopes, directions, strict=True) if one is not None)
    if isinstance(product, Tensor) and product.requires_grad:
        seconds = torch.autograd.grad(product, moved, allow_unused=True, materialize_grads=True)
        with torch.no_grad():
            for each, direction in zip(moved, directions, strict=True):
                each.add_(direction, alpha=1e-5)
        ahead = torch.autograd.grad(outputs(*moved)[0].sum(), moved, allow_unused=True, materialize_grads=True)
        with torch.no_grad():
            for each, direction in zip(moved, directions, strict=True):
                each.add_(direction, alpha=-2e-5)
        behind = torch.autograd.grad(outputs(*moved)[0].sum(), moved, allow_unused=True, materialize_grads=True)
        for second, one, other in zip(seconds, ahead, behind, strict=True):
            torch.testing.assert_close(second, (one - other) / 2e-5, rtol=1e-4, atol=1e-5)


def differentiable(
    attention: Attention, combination: Combination
) -> tuple[Callable[..., tuple[Tensor, Tensor]], list[Tensor]]:
    """Contexts and weights as a function, and the tensors that they are smooth in."""
    case = make(combination, (2,))
    inputs = [tensor.clone().requires_grad_() for tensor in case.inputs]
    learned = [tensor.requires_grad_() for tensor in case.learned]
    # Where a key is chosen there is no slope to compare with; estimators are tested where they are defined.
    moved = [inputs[2]] if chooses(case.normalizer) else [*inputs, *learned]
    fixed = replace(case, query=inputs[0], key=inputs[1], value=inputs[2])

    def outputs(*_: Tensor) -> tuple[Tensor, Tensor]:
        # gradcheck moves its arguments in place, and this sees it.
        return both(attention, fixed)

    return outputs, moved


def layouts_change_nothing(attention: Attention, combination: Combination) -> None:
    """Transposed, sliced, expanded and broadcast inputs give what contiguous copies give."""
    case = make(combination, (2, 3))

    def transposed(tensor: Tensor) -> Tensor:
        return tensor.transpose(-1, -3).contiguous().transpose(-1, -3)

    def sliced(tensor: Tensor) -> Tensor:
        return torch.stack((tensor, tensor + 1.0), dim=-1).flatten(-2)[..., ::2]

    def expanded(tensor: Tensor) -> Tensor:
        return tensor[:, :1].expand(-1, 3, -1, -1)

    def compare(laid: tuple[Tensor, ...], copies: tuple[Tensor, ...]) -> None:
        one, other = (
            attention(replace(case, query=query, key=key, value=value)).context for query, key, value in (laid, copies)
        )
        assert one.shape == other.shape
        assert distance(one, other) <= 1e-12

    for layout in (transposed, sliced, expanded):
        laid = tuple(layout(tensor) for tensor in case.inputs)
        assert not any(tensor.is_contiguous() for tensor in laid)
        compare(laid, tuple(tensor.contiguous() for tensor in laid))
    few = (case.query[:, :1], case.key[:1], case.value[:1, :1])
    compare(few, tuple(tensor.expand(2, 3, -1, -1).contiguous() for tensor in few))


def shifts_of_scores_change_nothing(attention: Attention, combination: Combination) -> None:
    """Scores a thousand higher or lower for every key give the same weights: they are never exponentiated as such."""
    case = make(combination)
    before = both(attention, case)
    for level in (1e3, -1e3):
        if shifted(lowered(case)[0], level) is not None:
            after = both(attention, replace(case, score=Shifted(case.score, level)))
            assert max(distance(one, other) for one, other in zip(before, after, strict=True)) <= 1e-9


def agrees_with_plain(attention: Attention, combination: Combination) -> None:
    """In larger shapes, and with all that may be asked, the answer is that of the plain kernel in one piece."""
    score, mask, normalizer, _, num_keys = combination
    num_queries, num_keys = (7, 41) if num_keys > 9 else (7, 8)
    case = make_case(score, mask, (2, 3), num_queries, num_keys, seed=3, normalizer=normalizer)
    needs = replace(case, need=frozenset(case.normalizer.provides))
    given, wanted = ask(attention, needs), ask(PLAIN, needs)
    assert distance(given["context"], wanted["context"]) <= 1e-11
    assert distance(both(attention, case)[1], wanted["weights"]) <= 1e-11
    for need, summary in given.items():
        if need != "argmax":
            assert distance(summary, wanted[need]) <= 1e-11, need
        else:
            best = wanted["weights"].gather(-1, summary[..., None]).squeeze(-1)
            assert distance(best, wanted["weights"].amax(dim=-1)) <= 1e-11


def summaries_are_of_the_weights(attention: Attention, combination: Combination) -> None:
    """Weights, argmax, entropy and log_normalizer are those of the weights that make the context."""
    case = make(combination, (3,), [combination.num_keys, 0, 2])
    weights = both(attention, case)[1]
    given = ask(attention, replace(case, need=frozenset(case.normalizer.provides)))
    if "weights" in given:
        assert distance(given["weights"], weights) <= 1e-12
    if "argmax" in given:
        best = weights.gather(-1, given["argmax"][..., None]).squeeze(-1)
        assert bool((best == weights.amax(dim=-1)).all())
    if "entropy" in given and not case.normalizer.is_random:
        assert distance(given["entropy"], torch.special.entr(weights).sum(dim=-1)) <= 1e-12
    if "log_normalizer" in given and isinstance(case.normalizer, Softmax):
        scores = [
            [s if s is not None else -torch.inf for s in row]
            for pairs in lowered(case)
            for row in reference_scores(pairs)
        ]
        hidden = (
            torch.tensor(scores, dtype=torch.float64).reshape(case.allowed.shape).masked_fill(~case.allowed, -torch.inf)
        )
        wanted, got = hidden.logsumexp(dim=-1), given["log_normalizer"]
        # Sums of exponentials have digits, not places.
        assert distance(got.exp(), wanted.exp()) <= 1e-11 * max(1.0, float(wanted.exp().max()))
        assert bool((got.isneginf() == wanted.isneginf()).all())


def errors_are_small(attention: Attention, combination: Combination) -> None:
    """In float32 and bfloat16 errors are at most twice those of the plain formula, three times for gradients.

    What is too large by chance, in a few numbers, is not in many.
    """
    score, mask, _, _, num_keys = combination
    shape = (10, 40) if num_keys > 9 else (17, 21)

    def draw(seed: int, dtype: torch.dtype) -> Case:
        return make_case(score, mask, (2, 2), *shape, 12, 12, seed, dtype)

    for dtype in (torch.float32, torch.bfloat16):
        for num_cases in (4, 40):
            try:
                errors = measure(attention, [draw(seed, dtype) for seed in range(num_cases)])
            except KernelUnsupported:
                excess = []
                break
            kernel = attention(draw(0, torch.float32)).kernel
            excess = [(name, error) for name, error in errors.items() if exceeded(error, name, kernel)]
            if not excess:
                break
        assert not excess, dtype


def order_within_mask(case: Case) -> Tensor:
    """An order of the keys that moves each to the place of another with the same mask for every query."""
    tables = [case.allowed.double(), *([] if case.factors is None else [case.factors])]
    columns = torch.cat([table.reshape(-1, table.shape[-1]) for table in tables])
    order, groups = torch.arange(columns.shape[-1]), torch.unique(columns, dim=-1, return_inverse=True)[1]
    for group in groups.unique():
        places = (groups == group).nonzero().squeeze(-1)
        order[places] = places.roll(1)
    return order


def ties(case: Case) -> Tensor:
    """[*leading, query] whether two keys have the largest score."""
    rows: list[bool] = []
    for pairs, allowed in zip(lowered(case), case.allowed.reshape(-1, *case.allowed.shape[-2:]).tolist(), strict=True):
        for scores, may in zip(reference_scores(pairs), allowed, strict=True):
            given = [score for score, is_in in zip(scores, may, strict=True) if is_in and score is not None]
            rows.append(bool(given) and given.count(max(given)) > 1)
    return torch.tensor(rows).reshape(case.allowed.shape[:-1])


def chooses(normalizer: Normalizer) -> bool:
    """Whether one key gets all weight: then equal scores have unequal weights, and nothing is smooth."""
    scores = torch.tensor([[0.1, 0.5, 0.3], [0.2, 0.0, 0.7]], dtype=torch.float64)
    return bool(torch.isin(normalizer.normalize(scores, None).weights, torch.tensor([0.0, 1.0])).all())


def ask(attention: Attention, case: Case) -> dict[str, Tensor]:
    """All a case needs, or as much of it as the implementation gives."""

    def results(attended: Attended, needs: frozenset[Need]) -> dict[str, Tensor]:
        found = {need: getattr(attended, need) for need in needs}
        assert all(value is not None for value in found.values())
        return {"context": attended.context, **found}

    try:
        return results(attention(case), case.need)
    except KernelUnsupported:
        found = {"context": attention(replace(case, need=frozenset())).context}
    for need in case.need:
        try:
            found |= results(attention(replace(case, need=frozenset({need}))), frozenset({need}))
        except KernelUnsupported:
            pass
    return found


def distance(one: Tensor, other: Tensor) -> float:
    """The largest difference; equal infinities have none, and NaN is infinitely far from everything."""
    difference = torch.where(one == other, 0.0, (one - other).abs()).detach()
    if bool(difference.isnan().any()):
        return float("inf")
    return float(difference.max()) if difference.numel() else 0.0
