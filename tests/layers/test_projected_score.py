import pytest
import torch

from heedful.attention.dispatch import attend
from heedful.attention.scores import Dot, Location
from heedful.layers.projected_score import ProjectedScore


def test_it_is_the_inner_score_of_what_was_mapped():
    score = ProjectedScore(3, 5, Dot(4, 4))
    query, key, value = torch.randn(2, 6, 3), torch.randn(2, 7, 5), torch.randn(2, 7, 2)
    scores = (query @ score.query_projection.weight.mT) @ (key @ score.key_projection.weight.mT).mT
    wanted = torch.softmax(scores, dim=-1) @ value
    assert torch.allclose(attend(query, key, value, score=score).context, wanted, atol=1e-6)
    prepared = attend(query, score.prepare(key), value, score=score).context
    assert torch.allclose(prepared, wanted, atol=1e-6)


def test_gradient_reaches_both_maps():
    score = ProjectedScore(3, 5, Dot(4, 4))
    query, key = torch.randn(2, 6, 3), torch.randn(2, 7, 5)
    attend(query, key, torch.randn(2, 7, 2), score=score).context.square().sum().backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in score.parameters())


@pytest.mark.parametrize("positions", [2, 9])
def test_the_reach_of_the_inner_score_stays(positions: int):
    score = ProjectedScore(3, 5, Location(4, 4, positions))
    weights = attend(torch.randn(1, 6, 3), torch.randn(1, 7, 5), torch.randn(1, 7, 2), score=score, need=["weights"])
    assert weights.weights is not None
    assert int((weights.weights > 0).sum(dim=-1).max()) == min(positions, 7)
