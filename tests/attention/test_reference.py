"""The oracle itself, against numbers worked out by hand and against what defines them."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful.attention.lowered import GivenScores, LoweredAdditive, LoweredDistance, LoweredDot
from tests.attention.reference import (
    LARGEST,
    by_row,
    entmax,
    gaussian_factors,
    hard,
    linear_chain,
    projective_tree,
    reference_attention,
    reference_scores,
    softmax,
    sparsemax,
)

SOFTMAX = by_row(softmax)
rows_of_scores = st.lists(st.floats(-6, 6), min_size=1, max_size=6)


def test_dot_pairs_by_hand():
    pairs = LoweredDot(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    context, weights = reference_attention(pairs, torch.tensor([[1.0], [10.0], [100.0]]), SOFTMAX)
    parts = [math.exp(1), math.exp(2), math.exp(3)]
    assert weights[0].tolist() == pytest.approx([part / sum(parts) for part in parts])
    assert float(context) == pytest.approx((parts[0] + 10 * parts[1] + 100 * parts[2]) / sum(parts))


def test_additive_pairs_by_hand():
    pairs = LoweredAdditive(torch.tensor([[0.5]]), torch.tensor([[0.5], [-0.5]]), torch.tensor([2.0]))
    weights = reference_attention(pairs, torch.eye(2), SOFTMAX)[1]
    ratio = math.exp(2 * math.tanh(1.0))
    assert weights[0].tolist() == pytest.approx([ratio / (ratio + 1), 1 / (ratio + 1)])


# u = 5/10 and 13/10: the distances are 3-4-5 and 5-12-13 triangles.
@pytest.mark.parametrize(
    ("profile", "scores"),
    [
        ("gaussian", [-0.125, -0.845]),
        ("laplacian", [-0.5, -1.3]),
        ("boxcar", [0.0, None]),
        ("triangular", [math.log(0.5), None]),
        ("epanechnikov", [math.log(0.75), None]),
        ("constant", [0.0, 0.0]),
    ],
)
def test_distance_pairs_by_hand(profile: str, scores: list[float | None]):
    points = torch.tensor([[4.0, 6.0], [6.0, 14.0]])
    pairs = LoweredDistance(torch.tensor([[1.0, 2.0]]), points, torch.tensor(10.0), profile, 2.0)
    assert reference_scores(pairs)[0] == [None if score is None else pytest.approx(2 * score) for score in scores]


def test_a_kernel_ends_at_the_bandwidth():
    for profile in ("boxcar", "triangular", "epanechnikov"):
        pairs = LoweredDistance(torch.zeros(1, 1), torch.tensor([[1.0], [0.999]]), torch.tensor(1.0), profile)
        assert [score is None for score in reference_scores(pairs)[0]] == [True, False]


def test_given_scores_come_from_one_query_at_a_time_and_are_finite():
    def function(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        assert query.shape == (1, 1)
        return torch.where(key.mT > 0, torch.inf, query * key.mT)

    pairs = GivenScores(torch.tensor([[1.0], [2.0]]), torch.tensor([[-3.0], [4.0]]), function, 0.5)
    assert reference_scores(pairs) == [[-1.5, 0.5 * LARGEST], [-3.0, 0.5 * LARGEST]]


def test_masked_keys_count_for_nothing_and_an_empty_row_is_zero():
    pairs = LoweredDot(torch.zeros(2, 1), torch.zeros(3, 1))
    allowed = torch.tensor([[True, False, True], [False, False, False]])
    context, weights = reference_attention(pairs, torch.tensor([[1.0], [50.0], [3.0]]), SOFTMAX, allowed)
    assert weights.tolist() == [[0.5, 0.0, 0.5], [0.0, 0.0, 0.0]]
    assert context.tolist() == [[2.0], [0.0]]


def test_no_keys_and_no_queries():
    empty = LoweredDot(torch.zeros(2, 1), torch.zeros(0, 1))
    context, weights = reference_attention(empty, torch.zeros(0, 3), SOFTMAX)
    assert (context.tolist(), weights.shape) == ([[0.0] * 3] * 2, (2, 0))
    assert reference_attention(LoweredDot(torch.zeros(0, 1), torch.zeros(2, 1)), torch.zeros(2, 3), SOFTMAX)[
        0
    ].shape == (
        0,
        3,
    )


def test_huge_scores_do_not_overflow():
    pairs = LoweredDot(torch.tensor([[1e4]]), torch.tensor([[1.0], [2.0]]))
    assert reference_attention(pairs, torch.eye(2), SOFTMAX)[1].tolist() == [[0.0, 1.0]]


def test_the_gaussian_of_local_p_is_the_one_of_the_paper_notes():
    # p = 4.3, D = 2, sigma = 1, s = 2 ... 6.
    (factors,) = gaussian_factors([4.3], 1.0, 7)
    assert factors[2:] == pytest.approx([0.071005, 0.429557, 0.955997, 0.782705, 0.235746], abs=5e-7)


def test_factors_multiply_weights_after_normalising():
    pairs = LoweredDot(torch.zeros(1, 1), torch.zeros(2, 1))
    assert reference_attention(pairs, torch.eye(2), SOFTMAX, factors=[[0.5, 0.25]])[1].tolist() == [[0.25, 0.125]]


@pytest.mark.parametrize(
    ("temperature", "weights"), [(0.5, [0.015876, 0.117310, 0.866813]), (2.0, [0.186324, 0.307196, 0.506480])]
)
def test_softmax_is_that_of_the_paper_notes(temperature: float, weights: list[float]):
    assert softmax([score / temperature for score in (1.0, 2.0, 3.0)]) == pytest.approx(weights, abs=5e-7)


def test_sparsemax_and_entmax_by_hand():
    assert sparsemax([1.0, 0.5, -1.0]) == pytest.approx([0.75, 0.25, 0.0])
    assert sparsemax([3.0]) == [1.0]
    assert sparsemax([2.0, 2.0]) == [0.5, 0.5]
    # sqrt(p) = z / 2 - threshold: 0.8^2 + 0.6^2 = 1.
    assert entmax([0.4, 0.0, -2.0], 1.5) == pytest.approx([0.64, 0.36, 0.0])


@given(rows_of_scores)
def test_sparsemax_is_nearer_than_any_other_point_of_the_simplex(scores: list[float]):
    weights = sparsemax(scores)
    assert math.fsum(weights) == pytest.approx(1.0)
    # The distance cannot fall towards any corner: (p - z) . (corner - p) >= 0.
    slopes = [p - z for p, z in zip(weights, scores, strict=True)]
    along = math.fsum(slope * p for slope, p in zip(slopes, weights, strict=True))
    assert min(slopes) >= along - 1e-9


@given(rows_of_scores)
def test_entmax_of_two_is_sparsemax_and_near_one_it_is_softmax(scores: list[float]):
    assert entmax(scores, 2.0) == pytest.approx(sparsemax(scores), abs=1e-12)
    assert entmax(scores, 1.0001) == pytest.approx(softmax(scores), abs=1e-3)


def test_hard_takes_the_first_of_equals():
    assert hard([1.0, 3.0, 3.0]) == [0.0, 1.0, 0.0]


def test_the_chain_is_that_of_the_paper_notes():
    weights = linear_chain([0.5, -0.2, 1.0], [[0.1, -0.3], [-0.3, 0.4]], [0.0, 0.0], [0.0, 0.0])
    assert weights == pytest.approx([0.679374, 0.633946, 0.772368], abs=5e-7)


def test_ends_of_a_chain_add_to_its_first_and_last_state():
    assert linear_chain([0.3], [[9.0, 9.0], [9.0, 9.0]], [1.0, 1.5], [2.0, 2.25]) == pytest.approx(
        [1 / (1 + math.exp(-(0.3 + 0.5 + 0.25)))]
    )


def test_the_tree_is_that_of_the_paper_notes():
    scores: list[list[float | None]] = [
        [None if head == word else 0.1 * head - 0.2 * word + 0.05 * head * word for head in range(4)]
        for word in range(1, 4)
    ]
    weights = projective_tree(scores)
    marginals = {
        (0, 1): 0.517968,
        (0, 2): 0.277588,
        (0, 3): 0.563112,
        (1, 2): 0.299659,
        (1, 3): 0.174290,
        (2, 1): 0.269154,
        (2, 3): 0.262598,
        (3, 1): 0.212878,
        (3, 2): 0.422753,
    }
    for (head, word), probability in marginals.items():
        assert weights[word - 1][head] == pytest.approx(probability, abs=5e-7)


def test_a_tree_with_and_without_the_row_of_the_root():
    words: list[list[float | None]] = [[0.3, None, 1.0], [0.1, 0.2, None]]
    with_root = projective_tree([[None] * 3, *words])
    assert with_root == [[0.0] * 3, *projective_tree(words)]


def test_words_without_heads_are_in_no_tree():
    # Word 1 may attend nothing, and nobody may attend it: word 2 hangs on the root, as no word hangs on itself.
    assert projective_tree([[None, None, None], [0.5, None, 9.0]]) == [[0.0] * 3, [1.0, 0.0, 0.0]]
    # Nobody may attend the root: there is no tree.
    assert projective_tree([[None, None, 0.1], [None, 0.2, None]]) == [[0.0] * 3] * 2
