"""Value norms against their formula in loops."""

import math

import pytest

from heedful.inspection.measures.value_norms import summed_value_norms, value_norms
from tests.inspection.measures.models import NORMS, recorded


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("index", range(6))
def test_norms_are_those_of_loops(norm: str, index: int):
    one = recorded(norm)[index]
    num_heads, num_queries, num_keys = one.weights.shape
    by_head, together = value_norms(one), summed_value_norms(one)
    size = range(one.inputs.shape[1])
    for query in range(num_queries):
        vectors = [
            [
                [float(one.weights[head, query, key] * one.values[head, key, axis]) for axis in size]
                for key in range(num_keys)
            ]
            for head in range(num_heads)
        ]
        for head in range(num_heads):
            norms = [math.hypot(*vector) for vector in vectors[head]]
            assert by_head[head, query].tolist() == pytest.approx([each / sum(norms) for each in norms], abs=1e-12)
        sums = [
            math.hypot(*(sum(vectors[head][key][axis] for head in range(num_heads)) for axis in size))
            for key in range(num_keys)
        ]
        assert together[query].tolist() == pytest.approx([each / sum(sums) for each in sums], abs=1e-12)
        # Weights alone, which ignore the values, are something else.
        if index == 0:
            assert by_head[0, query].tolist() != pytest.approx(one.weights[0, query].tolist(), abs=1e-6)
