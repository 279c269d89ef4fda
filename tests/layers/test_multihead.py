import math

import pytest
import torch
from torch import nn

from heedful.attention.masks import causal, padding
from heedful.errors import ShapeError
from heedful.layers.multihead import MultiheadAttention


def pair(bias: bool = True, dropout: float = 0.0) -> tuple[MultiheadAttention, nn.MultiheadAttention]:
    """Ours and PyTorch's with the same random parameters."""
    torch.manual_seed(0)
    ours = MultiheadAttention(12, 3, dropout, bias).double().eval()
    for parameter in ours.parameters():
        nn.init.normal_(parameter)
    theirs = nn.MultiheadAttention(12, 3, dropout, bias, batch_first=True).double().eval()
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


@pytest.mark.parametrize("bias", [True, False])
def test_it_is_pytorchs_with_the_same_parameters(bias: bool):
    ours, theirs = pair(bias)
    query, memory = torch.randn(2, 4, 12).double(), torch.randn(2, 5, 12).double()
    lengths = torch.tensor([5, 3])
    (projected,) = ours.project(query, 0, 1)
    key, value = ours.project(memory, 1, 3)
    given, attended = ours.attend(projected, key, value, padding(lengths), ("weights",))
    hidden = torch.arange(5) >= lengths[:, None]
    wanted, weights = theirs(query, memory, memory, key_padding_mask=hidden, average_attn_weights=False)
    assert float((given - wanted).detach().abs().max()) <= 1e-13
    assert attended.weights is not None
    assert float((attended.weights - weights).detach().abs().max()) <= 1e-14


def test_self_attention_in_one_product():
    ours, theirs = pair()
    vectors = torch.randn(2, 5, 12).double()
    given = ours.attend(*ours.project(vectors, 0, 3), causal())[0]
    above = torch.ones(5, 5, dtype=torch.bool).triu(1)
    wanted = theirs(vectors, vectors, vectors, attn_mask=above, need_weights=False)[0]
    assert float((given - wanted).detach().abs().max()) <= 1e-13


def test_projections_one_by_one_are_those_of_one_product():
    ours, _ = pair()
    vectors = torch.randn(2, 5, 12).double()
    together = ours.project(vectors, 0, 3)
    for index, part in enumerate(together):
        assert part.shape == (2, 3, 5, 4)
        (alone,) = ours.project(vectors, index, index + 1)
        assert float((alone - part).detach().abs().max()) <= 1e-14


def test_weights_are_dropped_in_training_alone():
    ours, _ = pair(dropout=0.5)
    heads = ours.project(torch.randn(1, 6, 12).double(), 0, 3)
    whole = ours.eval().attend(*heads)[0]
    assert torch.equal(ours.attend(*heads)[0], whole)
    assert not torch.equal(ours.train().attend(*heads)[0], whole)


def test_a_size_that_heads_do_not_divide_is_refused():
    with pytest.raises(ShapeError, match="10 is not divisible by 4 heads"):
        MultiheadAttention(10, 4)


def test_keys_and_values_of_other_sizes_are_projected_one_by_one():
    layer = MultiheadAttention(12, 3, kdim=5, vdim=7)
    for index, size in enumerate((12, 5, 7)):
        (projected,) = layer.project(torch.zeros(2, 4, size), index, index + 1)
        assert projected.shape == (2, 3, 4, 4)
    with pytest.raises(ShapeError, match=r"query size 12, key size 5 and value size 7 differ; project them one by one"):
        layer.project(torch.zeros(2, 4, 5), 1, 3)


def test_keys_and_values_of_one_other_size_are_projected_in_one_product():
    layer = MultiheadAttention(12, 3, kdim=5, vdim=5).double()
    nn.init.normal_(layer.in_proj_bias)
    vectors = torch.randn(2, 4, 5).double()
    for index, part in enumerate(layer.project(vectors, 1, 3), 1):
        (alone,) = layer.project(vectors, index, index + 1)
        assert float((alone - part).detach().abs().max()) <= 1e-14


@pytest.mark.parametrize("sizes", [{}, {"kdim": 30, "vdim": 150}])
def test_each_projection_can_be_drawn_for_itself(sizes: dict[str, int]):
    torch.manual_seed(0)
    layer = MultiheadAttention(60, 3, **sizes)
    layer.draw_each_projection()
    blocks = [layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight]
    if not sizes:
        blocks = list(layer.in_proj_weight.detach().chunk(3))
    for block in (*blocks, layer.out_proj.weight):
        bound = math.sqrt(6.0 / sum(block.shape))
        assert 0.95 * bound <= float(block.detach().abs().max()) <= bound
    assert layer.in_proj_bias.count_nonzero() == layer.out_proj.bias.count_nonzero() == 0


def test_leading_axes_of_any_number():
    ours, _ = pair()
    vectors = torch.randn(2, 4, 3, 5, 12).double()
    together, attended = ours.attend(*ours.project(vectors, 0, 3), causal(), ("weights",))
    assert together.shape == vectors.shape
    assert attended.weights is not None
    assert attended.weights.shape == (2, 4, 3, 3, 5, 5)
    alone = ours.attend(*ours.project(vectors[1, 2, 0], 0, 3), causal())[0]
    assert float((together[1, 2, 0] - alone).detach().abs().max()) <= 1e-13
