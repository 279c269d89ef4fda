"""Context of regions along their row."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from heedful.layers.row_context import RowContext
from tests.models.by_hand_captions import row_context

SIZE = 6
NUM_REGIONS = torch.tensor([6, 6, 6])


def make(num_layers: int = 2) -> RowContext:
    torch.manual_seed(3)
    context = RowContext(SIZE, num_layers).double().eval()
    with torch.no_grad():
        for parameter in context.parameters():
            parameter.add_(torch.randn(parameter.shape, dtype=torch.float64) * 0.3)
    return context


def regions() -> Tensor:
    return torch.randn(3, 6, SIZE, generator=torch.Generator().manual_seed(4), dtype=torch.float64)


def check(read: Callable[..., Tensor], context: RowContext, num_columns: int) -> None:
    vectors = regions()
    p = {name: parameter.detach().numpy() for name, parameter in context.named_parameters()}
    outputs = read(vectors, NUM_REGIONS, num_columns).detach().numpy()
    for row, own in enumerate(vectors.numpy()):
        wanted = row_context(p, "", [*own], len(context.stack.layers), num_columns)
        np.testing.assert_allclose(outputs[row], wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("num_columns", [2, 3, 6])
def test_it_is_the_recurrence_written_as_loops(num_columns: int):
    context = make()
    check(context, context, num_columns)


def test_the_comparison_would_see_rows_that_are_joined():
    context = make()
    with pytest.raises(AssertionError):
        check(lambda vectors, num_regions, num_columns: context(vectors, num_regions), context, 3)


def test_regions_without_places_are_one_row_without_padding():
    context, vectors = make(), regions()
    numbers = torch.tensor([6, 4, 1])
    outputs = context(vectors, numbers)
    for row, number in enumerate(numbers.tolist()):
        alone = context(vectors[row : row + 1, :number], numbers[row : row + 1])
        assert torch.allclose(outputs[row, :number], alone[0], rtol=0, atol=1e-12)


def test_dropout_acts_only_in_training():
    torch.manual_seed(0)
    context = RowContext(SIZE, 1, dropout=0.5).double()
    assert not torch.equal(context(regions(), NUM_REGIONS, 3), context(regions(), NUM_REGIONS, 3))
    context.eval()
    assert torch.equal(context(regions(), NUM_REGIONS, 3), context(regions(), NUM_REGIONS, 3))
