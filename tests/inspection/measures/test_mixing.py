"""Rollout and ALTI against their definitions in loops."""

from dataclasses import replace

import pytest
import torch

from heedful.inspection.measures.mixing import Shares, attention_shares, contribution_shares, mixed
from heedful.inspection.measures.sublayers import AttentionSublayer
from tests.inspection.measures.models import NORMS, recorded


def slow_rollout(one: AttentionSublayer) -> tuple[list[list[float]], list[float]]:
    rows = [
        [
            0.5 * sum(float(one.weights[head, query, key]) for head in range(2)) / 2
            for key in range(one.weights.shape[2])
        ]
        for query in range(one.weights.shape[1])
    ]
    return rows, [0.5] * len(rows)


def slow_alti(one: AttentionSublayer) -> tuple[list[list[float]], list[float]]:
    parts, own, _ = one.contributions()
    rows: list[list[float]] = []
    residuals: list[float] = []
    for query in range(parts.shape[0]):
        output = one.output[query]
        whole = float(output.abs().sum())
        vectors = [parts[query, key] for key in range(parts.shape[1])]
        if one.role == "cross":
            vectors.append(own[query])
        else:
            vectors[query] = vectors[query] + own[query]
        nearer = [max(0.0, whole - float((output - vector).abs().sum())) for vector in vectors]
        each = [value / sum(nearer) for value in nearer]
        residuals.append(each.pop() if one.role == "cross" else 0.0)
        rows.append(each)
    return rows, residuals


def product(left: list[list[float]], right: list[list[float]]) -> list[list[float]]:
    return [
        [sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*right, strict=True)] for row in left
    ]


def plus(left: list[list[float]], factors: list[float], right: list[list[float]]) -> list[list[float]]:
    return [
        [a + factor * b for a, b in zip(one, other, strict=True)]
        for one, factor, other in zip(left, factors, right, strict=True)
    ]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["rollout", "alti"])
def test_shares_of_a_layer_are_those_of_loops_and_sum_to_one(norm: str, name: str):
    fast: Shares = attention_shares if name == "rollout" else contribution_shares
    for one in recorded(norm):
        attended, own = fast(one)
        rows, residuals = (slow_rollout if name == "rollout" else slow_alti)(one)
        for query, row in enumerate(rows):
            assert attended[query].tolist() == pytest.approx(row, abs=1e-12)
            assert float(own[query]) == pytest.approx(residuals[query], abs=1e-12)
            assert sum(row) + residuals[query] == pytest.approx(1.0)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["rollout", "alti"])
def test_shares_of_all_layers_are_products(norm: str, name: str):
    slow = slow_rollout if name == "rollout" else slow_alti
    sublayers = recorded(norm)
    results = mixed(sublayers, attention_shares if name == "rollout" else contribution_shares)
    identity = [[float(row == column) for column in range(5)] for row in range(5)]
    for one in sublayers[:2]:
        rows, own = slow(one)
        identity = plus(product(rows, identity), own, identity)
    encoder = identity
    target = [[float(row == column) for column in range(4)] for row in range(4)]
    source = [[0.0] * 5 for _ in range(4)]
    for layer in (0, 1):
        rows, own = slow(sublayers[2 + 2 * layer])
        target, source = plus(product(rows, target), own, target), plus(product(rows, source), own, source)
        rows, own = slow(sublayers[3 + 2 * layer])
        nothing = [[0.0] * 4 for _ in range(4)]
        target, source = plus(nothing, own, target), plus(product(rows, encoder), own, source)
    assert [(one.role, one.layer) for one in results] == [(one.role, one.layer) for one in sublayers]
    for fast, wanted in ((results[1].shares, encoder), (results[5].shares, source)):
        for one, other in zip(fast.tolist(), wanted, strict=True):
            assert one == pytest.approx(other, abs=1e-12)
    for one, other in zip(source, target, strict=True):
        assert sum(one) + sum(other) == pytest.approx(1.0)  # source and target tokens share all there is


@pytest.mark.parametrize("norm", NORMS)
def test_rollout_ignores_values_and_alti_does_not(norm: str):
    one = recorded(norm)[3]
    before = attention_shares(one)[0], contribution_shares(one)[0]
    values = one.values.clone()
    values[:, 1] *= 0.01
    changed = replace(one, values=values)
    assert torch.equal(attention_shares(changed)[0], before[0])
    assert not torch.allclose(contribution_shares(changed)[0], before[1], atol=1e-3)
