import pytest
import torch

from heedful.layers.nested_tensors import nest_as, pad_nested

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")

LAYOUTS = {"strided": torch.strided, "jagged": torch.jagged}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sequences_are_padded_and_nested_again(layout: str):
    sequences = [torch.randn(length, 4) for length in (3, 0, 5)]
    nested = torch.nested.nested_tensor(sequences, layout=LAYOUTS[layout])
    padded, is_padding = pad_nested(nested)
    assert padded.shape == (3, 5, 4)
    assert (~is_padding).sum(dim=1).tolist() == [3, 0, 5]
    assert padded[is_padding].count_nonzero() == 0
    again = nest_as(nested, padded)
    assert again.layout == nested.layout
    for one, two in zip(again.unbind(), sequences, strict=True):
        assert torch.equal(one, two)
    for one, two in zip((again + nested).unbind(), sequences, strict=True):
        assert torch.equal(one, two + two)


def test_a_jagged_tensor_with_gaps():
    whole = torch.nested.nested_tensor([torch.randn(4, 2), torch.randn(5, 2)], layout=torch.jagged)
    gaps = torch.nested.nested_tensor_from_jagged(whole.values(), whole.offsets(), lengths=torch.tensor([2, 3]))
    padded, is_padding = pad_nested(gaps)
    assert (~is_padding).sum(dim=1).tolist() == [2, 3]
    for one, two in zip(nest_as(gaps, 2 * padded).unbind(), gaps.unbind(), strict=True):
        assert torch.equal(one, 2 * two)


def test_gradients_flow_through_both_conversions():
    nested = torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)], requires_grad=True)
    result = nest_as(nested, 3 * pad_nested(nested)[0])
    loss = torch.stack([each.sum() for each in result.unbind()]).sum()
    (gradient,) = torch.autograd.grad(loss, nested)
    assert all(bool((each == 3).all()) for each in gradient.unbind())
