"""Sums of two scores."""

import pytest
import torch

from heedful.attention.dispatch import attend
from heedful.attention.interface import Score
from heedful.attention.kernels.plain import PlainScores
from heedful.attention.scores import Additive, Concat, Gaussian, General, Trilinear
from heedful.errors import UsageError
from heedful.layers.summed_score import SummedScore


@pytest.mark.parametrize("factor", [1.0, 0.5])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (General(3, 4), General(3, 2)),
        (Additive(3, 4, 5), Additive(3, 2, 6)),
        (Concat(3, 4), Concat(3, 2)),
        (Trilinear(3, 3), General(3, 2)),
    ],
)
def test_it_is_the_sum(first: Score, second: Score, factor: float):
    score = SummedScore(first, second).double()
    query, key = torch.randn(2, 5, 3).double(), torch.randn(2, 7, score.key_size).double()
    parts = key.split((first.key_size, second.key_size), dim=-1)
    wanted = sum(
        PlainScores().scores(one.lower(query, one.prepare(part), factor))[0]
        for one, part in zip((first, second), parts, strict=True)
    )
    torch.testing.assert_close(PlainScores().scores(score.lower(query, score.prepare(key), factor))[0], wanted)
    value = torch.randn(2, 7, 2).double()
    context = attend(query, score.prepare(key), value, score=score).context
    assert isinstance(wanted, torch.Tensor)
    if factor == 1.0:
        torch.testing.assert_close(context, wanted.softmax(dim=-1) @ value)


def test_scores_of_other_kinds_do_not_add_up():
    score = SummedScore(Gaussian(3, 3), Gaussian(3, 3))
    with pytest.raises(UsageError, match="add up only where"):
        score.lower(torch.zeros(1, 3), score.prepare(torch.zeros(1, 6)))
    mixed = SummedScore(General(3, 3), Additive(3, 3))
    with pytest.raises(UsageError, match="add up only where"):
        mixed.lower(torch.zeros(1, 3), mixed.prepare(torch.zeros(1, 6)))
