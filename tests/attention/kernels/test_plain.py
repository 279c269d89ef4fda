import math

import pytest
import torch
from torch.nn import functional

from heedful.attention.dispatch import attend
from heedful.attention.interface import Need
from heedful.attention.kernels.plain import PlainScores
from heedful.attention.lowered import GivenScores, LoweredAdditive, LoweredDistance, LoweredDot
from heedful.attention.masks import local_predictive, padding
from heedful.attention.scores import Dot
from heedful.attention.simplex import Sparsemax
from heedful.attention.stochastic import Sampled
from heedful.errors import ShapeError, UsageError
from tests.attention.cases import make_case
from tests.attention.reference import reference_scores

ALL: tuple[Need, ...] = ("weights", "log_normalizer", "argmax", "entropy")


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape)), dtype=torch.float64)


@pytest.mark.parametrize("factor", [1.0, 0.5, torch.tensor(0.5).double()])
@pytest.mark.parametrize("profile", ["gaussian", "laplacian", "boxcar", "triangular", "epanechnikov", "constant"])
def test_scores_of_distances(profile: str, factor: float):
    pairs = LoweredDistance(draw(5, 3), draw(7, 3), torch.tensor(1.9).double(), profile, factor)
    scores, exists = PlainScores().scores(pairs)
    for i, row in enumerate(reference_scores(pairs)):
        for j, wanted in enumerate(row):
            assert (exists is None or bool(exists[i, j])) == (wanted is not None)
            assert wanted is None or float(scores[i, j]) == pytest.approx(wanted, abs=1e-12)


def test_scores_of_the_other_kinds():
    for pairs in (
        LoweredDot(draw(5, 3), draw(7, 3)),
        LoweredAdditive(draw(5, 3), draw(7, 3), draw(3)),
        GivenScores(draw(5, 3), draw(7, 3), lambda query, key: query.square() @ key.mT, 0.5),
    ):
        scores, exists = PlainScores().scores(pairs)
        assert exists is None
        torch.testing.assert_close(scores, torch.tensor(reference_scores(pairs), dtype=torch.float64))


def test_a_function_gives_scores_for_all_pairs_in_floating_point():
    for function in (lambda query, key: query @ key.mT[:, :1], lambda query, key: query[..., :1]):
        with pytest.raises(ShapeError, match=r"gave \[5, 1\], expected \[5, 7\]"):
            PlainScores().scores(GivenScores(draw(5, 3), draw(7, 3), function))
    with pytest.raises(UsageError, match="gave int64"):
        PlainScores().scores(GivenScores(draw(5, 3), draw(7, 3), lambda query, key: (query @ key.mT).long()))


def test_how_many_numbers_it_holds_for_each_score():
    plain = PlainScores()
    assert plain.numbers_per_score(LoweredDot(draw(5, 30), draw(7, 30))) == 1
    assert plain.numbers_per_score(LoweredAdditive(draw(5, 30), draw(7, 30), draw(30))) == 30
    assert plain.numbers_per_score(LoweredDistance(draw(5, 3), draw(7, 3), draw(), "boxcar")) == 3
    assert plain.numbers_per_score(LoweredDistance(draw(5, 0), draw(7, 0), draw(), "boxcar")) == 1


def test_all_summaries_are_those_of_the_weights():
    query = torch.tensor([[[1.0]]], dtype=torch.float64)
    key = torch.tensor([[[1.0], [2.0], [3.0], [9.0]]], dtype=torch.float64)
    value = torch.eye(4, dtype=torch.float64)[None]
    attended = attend(query, key, value, score=Dot(1, 1), mask=padding(torch.tensor([3])), need=ALL, kernel="plain")
    weights = [math.exp(i) / (math.exp(1) + math.exp(2) + math.exp(3)) for i in (1, 2, 3)]
    assert attended.weights is not None
    assert attended.log_normalizer is not None
    assert attended.argmax is not None
    assert attended.entropy is not None
    assert attended.weights[0, 0].tolist() == pytest.approx([*weights, 0.0])
    assert attended.context[0, 0].tolist() == pytest.approx([*weights, 0.0])
    assert float(attended.log_normalizer) == pytest.approx(math.log(math.exp(1) + math.exp(2) + math.exp(3)))
    assert attended.argmax.tolist() == [[2]]
    assert float(attended.entropy) == pytest.approx(-sum(w * math.log(w) for w in weights))


def test_summaries_of_an_empty_row():
    case = make_case(leading=(1,))
    attended = attend(*case.inputs, score=case.score, mask=padding(torch.tensor([0])), need=ALL, kernel="plain")
    assert attended.entropy is not None
    assert attended.log_normalizer is not None
    assert attended.argmax is not None
    assert attended.entropy.tolist() == [[0.0] * 3]
    assert attended.log_normalizer.tolist() == [[-math.inf] * 3]
    assert attended.argmax.tolist() == [[0] * 3]


def test_the_argmax_may_be_attended_even_where_a_gaussian_leaves_nothing():
    # exp(-(100 / 0.1)^2 / 2) is 0 for every key; keys 2 and 3 are allowed.
    mask = local_predictive(torch.tensor([102.6]), 100, 0.1)
    query, key = torch.zeros(1, 2).double(), torch.zeros(4, 2).double()
    attended = attend(
        query, key, torch.eye(4).double(), score=Dot(2, 2), mask=mask & padding(torch.tensor(4)), need=ALL
    )
    assert attended.argmax is not None
    assert attended.argmax.tolist() == [3]
    assert not attended.context.any()


def test_log_prob_and_entropy_of_what_was_drawn_come_from_the_normalizer():
    case = make_case(normalizer="sampled")
    needs: tuple[Need, ...] = ("weights", "entropy", "log_prob")
    attended = attend(*case.inputs, score=case.score, normalizer=Sampled(3), need=needs)
    scores = case.query @ case.key.mT / 2.0
    assert attended.weights is not None
    assert attended.log_prob is not None
    assert attended.entropy is not None
    logs = torch.log_softmax(scores, dim=-1)
    torch.testing.assert_close(attended.log_prob, (logs * attended.weights).sum(dim=-1))
    torch.testing.assert_close(attended.entropy, -(logs.exp() * logs).sum(dim=-1))


def test_entropy_of_weights_with_zeros_has_a_finite_gradient():
    case = make_case()
    query = case.query.clone().requires_grad_()
    attended = attend(
        query, case.key, case.value, score=case.score, normalizer=Sparsemax(0.1), need=("weights", "entropy")
    )
    assert attended.weights is not None
    assert bool((attended.weights == 0.0).any())
    assert attended.entropy is not None
    (gradient,) = torch.autograd.grad(attended.entropy.sum(), query)
    assert bool(torch.isfinite(gradient).all())


def test_only_what_is_asked_is_given():
    case = make_case()
    attended = attend(*case.inputs, score=case.score, need=("entropy",), kernel="plain")
    assert attended.entropy is not None
    assert (attended.weights, attended.log_normalizer, attended.argmax) == (None, None, None)


def test_dropout_leaves_out_weights_and_reports_them_whole():
    case = make_case(num_keys=40)
    torch.manual_seed(5)
    attended = attend(*case.inputs, score=case.score, dropout=0.4, need=("weights",), kernel="plain")
    torch.manual_seed(5)
    assert attended.weights is not None
    assert attended.weights.sum(dim=-1).flatten().tolist() == pytest.approx([1.0] * 6)
    assert torch.equal(attended.context, functional.dropout(attended.weights, 0.4) @ case.value)


def test_values_may_have_more_leading_axes_than_scores():
    case = make_case(leading=(3,), lengths=[1, 4, 0])
    value = torch.randn(2, 3, 4, 3).double()
    mask = padding(torch.tensor([1, 4, 0]))
    context = attend(case.query, case.key, value, score=case.score, mask=mask).context
    for item in range(2):
        alone = attend(case.query, case.key, value[item], score=case.score, mask=mask, kernel="plain").context
        torch.testing.assert_close(context[item], alone)
