"""Attention of packed sequences, against the formula for each sequence and head alone in float64."""

import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from heedful.cpu import threads
from heedful.cpu.availability import loops_problem
from heedful.errors import KernelUnsupported, ShapeError
from heedful.layers.cpu import packed_attention
from heedful.layers.cpu.packed_attention import attend_packed
from heedful.layers.packing import Packing

pytestmark = pytest.mark.skipif(loops_problem() is not None, reason=str(loops_problem()))

SIZE, HEADS = 24, 3
LENGTHS = [
    ([3, 5, 1], [3, 5, 1]),
    ([1], [1]),
    ([7, 2, 9, 4, 1, 8, 3], [2, 8, 1, 17, 5, 3, 9]),
    ([4, 0, 2], [3, 5, 0]),
    ([5] * 70, [6] * 70),
    ([1100, 3], [700, 2]),
    ([], []),
]


class Case(NamedTuple):
    """Leaves and how they lie."""

    first: Tensor
    second: Tensor | None
    bias: Tensor
    queries: Packing
    keys: Packing


def make_case(query_lengths: list[int], key_lengths: list[int], is_cross: bool) -> Case:
    torch.manual_seed(len(query_lengths))
    queries = Packing.of(torch.tensor(query_lengths, dtype=torch.int64), max(query_lengths, default=0))
    keys = (
        Packing.of(torch.tensor(key_lengths, dtype=torch.int64), max(key_lengths, default=0)) if is_cross else queries
    )
    first = torch.randn(queries.num_rows, SIZE * (1 if is_cross else 3)).bfloat16().requires_grad_()
    second = torch.randn(keys.num_rows, 2 * SIZE).bfloat16().requires_grad_() if is_cross else None
    return Case(first, second, torch.randn(3 * SIZE, requires_grad=True), queries, keys)


def in_float64(case: Case, is_causal: bool, scale: float = 1.0) -> tuple[list[Tensor], Tensor]:
    """Leaves, and the contexts of each sequence and head by the formula, one after the other."""
    leaves = [one.detach().double().requires_grad_() for one in (case.first, case.second, case.bias) if one is not None]
    query, key, value = leaves[0].chunk(3, 1) if case.second is None else (leaves[0], *leaves[1].chunk(2, 1))
    query, key, value = (one + shift for one, shift in zip((query, key, value), leaves[-1].chunk(3), strict=True))
    rows: list[Tensor] = []
    for start, length, place, number in zip(
        case.queries.starts.tolist(), case.queries.lengths.tolist(),
        case.keys.starts.tolist(), case.keys.lengths.tolist(), strict=True,
    ):  # fmt: skip
        heads: list[Tensor] = []
        for head in range(HEADS):
            part = slice(head * SIZE // HEADS, (head + 1) * SIZE // HEADS)
            q, k, v = (
                query[start : start + length, part],
                key[place : place + number, part],
                value[place : place + number, part],
            )
            scores = scale * q @ k.mT / math.sqrt(SIZE // HEADS)
            if is_causal:
                scores = scores.masked_fill(torch.ones(length, number).triu(1).bool(), -math.inf)
            heads.append(torch.softmax(scores, dim=-1) @ v if number else 0.0 * q)
        rows.append(torch.cat(heads, dim=1))
    whole = torch.cat([query[:0], *rows])
    return leaves, torch.cat([whole, whole.new_zeros(case.queries.num_rows - len(whole), SIZE)])


def is_near(given: Tensor, wanted: Tensor) -> bool:
    """Within a few roundings to bfloat16 of numbers of this size."""
    return float((given.detach().double() - wanted.detach()).norm()) <= 0.015 * float(wanted.detach().norm())


@pytest.mark.parametrize("is_cross", [False, True])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_it_is_the_formula_for_each_sequence(lengths: tuple[list[int], list[int]], is_cross: bool):
    case = make_case(*lengths, is_cross)
    for is_causal in (False,) if is_cross else (False, True):
        given = attend_packed(case.first, case.second, case.bias, case.queries, case.keys, HEADS, is_causal)
        leaves, wanted = in_float64(case, is_causal)
        assert given.dtype == torch.bfloat16
        assert is_near(given, wanted)
        slope = torch.randn(wanted.shape).bfloat16()
        slope[case.queries.num_real :] = 0.0
        found = torch.autograd.grad(given, [one for one in case[:3] if isinstance(one, Tensor)], slope)
        exact = torch.autograd.grad(wanted, leaves, slope.double(), materialize_grads=True)
        for one, other in zip(found[:-1], exact[:-1], strict=True):
            assert is_near(one, other)
        # The bias of keys changes no weight, so rounding is all that its gradient is; it is not of that size.
        of_bias, exact_of_bias = (one.chunk(3) for one in (found[-1], exact[-1]))
        assert is_near(torch.cat([of_bias[0], of_bias[2]]), torch.cat([exact_of_bias[0], exact_of_bias[2]]))
        assert float(of_bias[1].norm()) <= 0.02 * float(found[-1].norm()) + 0.02 * float(found[-2].norm())


def test_other_formulas_are_not_near():
    case = make_case([7, 2, 9], [7, 2, 9], is_cross=False)
    given = attend_packed(case.first, None, case.bias, case.queries, case.keys, HEADS, is_causal=True)
    assert is_near(given, in_float64(case, True)[1])
    assert not is_near(given, in_float64(case, False)[1])
    assert not is_near(given, in_float64(case, True, scale=1.1)[1])
    moved = case._replace(queries=Packing.of(torch.tensor([2, 7, 9]), 9), keys=Packing.of(torch.tensor([2, 7, 9]), 9))
    assert not is_near(given, in_float64(moved, True)[1])


def test_nothing_passes_between_sequences_or_from_behind_them():
    case = make_case([4, 6, 3], [4, 6, 3], is_cross=False)
    before = attend_packed(case.first, None, None, case.queries, case.keys, HEADS, is_causal=True)
    with torch.no_grad():
        changed = case.first.detach().clone()
        changed[4:10] = torch.nan
        changed[13:] = torch.nan
    after = attend_packed(changed, None, None, case.queries, case.keys, HEADS, is_causal=True)
    assert torch.equal(after[:4], before[:4])
    assert torch.equal(after[10:13], before[10:13])
    assert bool(after[4:10].isnan().all())
    assert bool((after[13:] == 0.0).all())
    (gradient,) = torch.autograd.grad(before.float().square().sum(), case.first)
    assert bool((gradient[13:] == 0.0).all())


def test_it_is_the_same_for_any_number_of_threads(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(packed_attention, "_GROUP_POSITIONS", 64)
    case = make_case([9, 5, 7] * 30, [9, 5, 7] * 30, is_cross=False)
    results: list[list[Tensor]] = []
    for number in (1, 3):
        monkeypatch.setattr(threads, "num_threads", lambda number=number: number)
        monkeypatch.setattr(packed_attention, "num_threads", lambda number=number: number)
        given = attend_packed(case.first, None, case.bias, case.queries, case.keys, HEADS)
        results.append([given, *torch.autograd.grad(given.float().square().sum(), [case.first, case.bias])])
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))


def test_a_second_derivative_is_refused():
    case = make_case([4, 6], [4, 6], is_cross=False)
    given = attend_packed(case.first, None, None, case.queries, case.keys, HEADS)
    (gradient,) = torch.autograd.grad(given.float().square().sum(), case.first, create_graph=True)
    with pytest.raises(KernelUnsupported, match="differentiated once only: leave out autocast"):
        gradient.float().sum().backward()


def test_each_sequence_of_queries_needs_one_of_keys():
    case = make_case([4, 6], [4, 6], is_cross=True)
    other = Packing.of(torch.tensor([10]), 10)
    with pytest.raises(ShapeError, match="2 sequences of queries, 1 of keys"):
        attend_packed(case.first, case.second, None, case.queries, other, HEADS)
