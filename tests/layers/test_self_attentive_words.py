"""Words beside their soft heads; the equations are in `tests/models/test_luong.py`."""

import pytest
import torch

from heedful.attention.scores import Additive
from heedful.attention.softmax import Softmax
from heedful.attention.structured import ProjectiveTree
from heedful.layers.self_attentive_words import SelfAttentiveWords
from tests.attention.test_structured_tree import projective_trees


def make(normalizer: Softmax | ProjectiveTree, is_bounded: bool = True) -> SelfAttentiveWords:
    torch.manual_seed(3)
    return SelfAttentiveWords(5, 6, Additive(6, 6), normalizer, is_bounded=is_bounded).double()


def test_the_odds_of_two_heads_are_bounded():
    words = 100.0 * torch.randn(1, 9, 5, dtype=torch.float64)
    largest: list[float] = []
    for is_bounded in (True, False):
        layer = make(Softmax(), is_bounded)
        torch.nn.init.constant_(layer.score.get_parameter("vector"), 50.0)
        weights = layer(words, torch.tensor([9]), need=("weights",))[1].weights
        assert weights is not None
        least = weights.masked_fill(weights == 0, 1.0).amin(dim=-1)
        largest.append(float((weights.amax(dim=-1) / least).log().max().detach()))
    assert largest[0] <= 2.0 + 1e-12
    assert largest[1] > 4.0


def test_no_word_is_its_own_head_and_padding_has_no_weight():
    words, lengths = torch.randn(3, 4, 5, dtype=torch.float64), torch.tensor([4, 2, 1])
    for normalizer in (Softmax(), ProjectiveTree()):
        layer = make(normalizer)
        outputs, attended = layer(words, lengths, need=("weights",))
        weights = attended.weights
        assert weights is not None
        assert outputs.shape == (3, 4, layer.output_size)
        assert torch.equal(outputs[..., :5], words)
        assert not weights.diagonal(1, dim1=-2, dim2=-1).any()
        for row, length in enumerate(lengths.tolist()):
            assert not weights[row, :, length + 1 :].any()
            torch.testing.assert_close(weights[row, :length].sum(-1), torch.ones(length, dtype=torch.float64))
        # The only word of the last source depends on the root, which has the vector 0.
        assert not outputs[2, 0, 5:].any()


@pytest.mark.parametrize("is_single_root", [False, True])
def test_no_tree_has_a_larger_sum_of_weights(is_single_root: bool):
    layer = make(ProjectiveTree(is_single_root=is_single_root), is_bounded=False)
    torch.nn.init.normal_(layer.score.get_parameter("vector"), std=9.0)
    words = 3.0 * torch.randn(5, 4, 5, dtype=torch.float64)
    weights = layer(words, torch.full((5,), 4), need=("weights",))[1].weights
    assert weights is not None
    trees = [heads for heads in projective_trees(4) if not is_single_root or heads.count(0) == 1]
    found = layer.tree(weights)
    assert found is not None
    for row, heads in zip(weights, found, strict=True):
        assert tuple(heads.tolist()) == max(trees, key=lambda tree: sum(row[i, j].item() for i, j in enumerate(tree)))
    assert make(Softmax()).tree(weights) is None


def test_padding_changes_nothing():
    words = torch.randn(2, 6, 5, dtype=torch.float64)
    layer = make(ProjectiveTree())
    wide, _ = layer(words, torch.tensor([3, 6]))
    narrow, _ = layer(words[:1, :3], torch.tensor([3]))
    torch.testing.assert_close(wide[0, :3], narrow[0], atol=1e-12, rtol=0)


def test_every_parameter_learns():
    layer = make(ProjectiveTree())
    outputs, _ = layer(torch.randn(2, 4, 5, dtype=torch.float64), torch.tensor([4, 3]))
    outputs[:, :3].square().sum().backward()
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None, name
        assert float(parameter.grad.abs().max()) > 1e-9, name
