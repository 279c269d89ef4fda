"""Formulas of scores, against sums over single numbers."""

import torch

from heedful.attention.kernels.formulas import additive_formula
from heedful.attention.lowered import LoweredAdditive
from tests.attention.reference import reference_scores


def test_additive():
    generator = torch.Generator().manual_seed(2)
    query, key, vector = (torch.randn(*shape, generator=generator).double() for shape in ((3, 5), (4, 5), (5,)))
    wanted = torch.tensor(reference_scores(LoweredAdditive(query, key, vector)), dtype=torch.float64)
    torch.testing.assert_close(additive_formula(query, key, vector), wanted)
