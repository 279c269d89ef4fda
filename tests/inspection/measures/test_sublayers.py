"""Contributions of attention sub-layers sum to their outputs."""

import pytest
import torch

from heedful.inspection.measures.sublayers import AttentionSublayer
from tests.inspection.measures.models import NORMS, recorded


@pytest.mark.parametrize("norm", NORMS)
def test_contributions_sum_to_the_output(norm: str):
    sublayers = recorded(norm)
    assert [(one.role, one.layer) for one in sublayers] == [
        ("encoder", 0),
        ("encoder", 1),
        ("decoder", 0),
        ("cross", 0),
        ("decoder", 1),
        ("cross", 1),
    ]
    for one in sublayers:
        parts, own, bias = one.contributions()
        torch.testing.assert_close(parts.sum(dim=1) + own + bias, one.output, rtol=0, atol=1e-12)
        for wrong in (parts.mean(dim=1) + own + bias, parts.sum(dim=1) + bias, parts.sum(dim=1) + own):
            assert not torch.allclose(wrong, one.output, rtol=0, atol=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_contributions_are_those_of_loops(norm: str):
    one: AttentionSublayer = recorded(norm)[3]
    parts, own, _ = one.contributions()
    num_heads, num_queries, num_keys = one.weights.shape
    size = one.inputs.shape[1]
    for query in range(num_queries):
        total = [
            float(one.inputs[query, axis] + one.output_bias[axis])
            + sum(
                float(one.weights[head, query, key] * one.values[head, key, axis])
                for head in range(num_heads)
                for key in range(num_keys)
            )
            for axis in range(size)
        ]
        mean = sum(total) / size
        deviation = (sum((each - mean) ** 2 for each in total) / size + one.residual.norm.eps) ** 0.5
        for key in range(num_keys):
            added = [
                sum(float(one.weights[head, query, key] * one.values[head, key, axis]) for head in range(num_heads))
                for axis in range(size)
            ]
            if norm == "post":
                middle = sum(added) / size
                scale = one.residual.norm.weight.tolist()
                added = [(each - middle) / deviation * factor for each, factor in zip(added, scale, strict=True)]
            assert parts[query, key].tolist() == pytest.approx(added, abs=1e-12)
    if norm == "pre":
        assert torch.equal(own, one.inputs)
