"""Context of regions."""

import numpy as np
import pytest
import torch
from torch import Tensor

from heedful.layers.region_context import RegionContext
from tests.models.by_hand_captions import region_context

SIZE = 8
NUM_REGIONS = torch.tensor([4, 2, 1])


def make(has_order: bool = True, num_layers: int = 2) -> RegionContext:
    torch.manual_seed(3)
    context = RegionContext(SIZE, num_layers, has_order=has_order).double().eval()
    with torch.no_grad():
        for parameter in context.parameters():
            parameter.add_(torch.randn(parameter.shape, dtype=torch.float64) * 0.3)
    return context


def regions() -> Tensor:
    return torch.randn(3, 4, SIZE, generator=torch.Generator().manual_seed(4), dtype=torch.float64)


@pytest.mark.parametrize("has_order", [True, False])
def test_it_is_the_layers_written_as_loops(has_order: bool):
    context, vectors = make(has_order), regions()
    p = {name: parameter.detach().numpy() for name, parameter in context.named_parameters()}
    outputs = context(vectors, NUM_REGIONS).detach().numpy()
    for row, number in enumerate(NUM_REGIONS.tolist()):
        wanted = region_context(p, "", [*vectors[row, :number].numpy()], 2, has_order)
        np.testing.assert_allclose(outputs[row, :number], wanted, rtol=0, atol=1e-10)


def test_a_region_sees_the_others_and_no_padding():
    context, vectors = make(), regions()
    before = context(vectors, NUM_REGIONS)
    padded, real = vectors.clone(), vectors.clone()
    padded[1, 2:], real[1, 1] = 100.0, 100.0
    assert torch.equal(context(padded, NUM_REGIONS)[1, :2], before[1, :2])
    assert not torch.allclose(context(real, NUM_REGIONS)[1, 0], before[1, 0])


def test_the_order_of_regions_matters_only_where_it_is_added():
    swapped = torch.tensor([2, 0, 1, 3])
    for has_order in (True, False):
        context, vectors = make(has_order), regions()[:1]
        outputs, others = context(vectors, NUM_REGIONS[:1]), context(vectors[:, swapped], NUM_REGIONS[:1])
        assert torch.allclose(outputs[:, swapped], others) is not has_order


def test_dropout_acts_only_in_training():
    torch.manual_seed(0)
    context = RegionContext(SIZE, 1, dropout=0.5).double()
    vectors = regions()
    assert not torch.equal(context(vectors, NUM_REGIONS), context(vectors, NUM_REGIONS))
    context.eval()
    assert torch.equal(context(vectors, NUM_REGIONS), context(vectors, NUM_REGIONS))
