import math
from collections.abc import Sequence
from itertools import chain, combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from heedful.attention.dispatch import attend
from heedful.attention.interface import Normalizer
from heedful.attention.masks import padding
from heedful.attention.scores import Dot
from heedful.attention.simplex import FLOOR, Entmax, Sparsemax, entmax, shift, sparsemax
from heedful.errors import ShapeError, UsageError

ALPHAS = [1.0, 1.001, 1.25, 1.5, 1.75, 2.0, 2.5, 4.0]
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


def slow_sparsemax(scores: Sequence[float]) -> list[float]:
    """The nearest point of the simplex, found by trying every set of keys that may have weight."""
    best, nearest = math.inf, list[float]()
    keys = range(len(scores))
    for support in chain.from_iterable(combinations(keys, size) for size in range(1, len(scores) + 1)):
        threshold = (math.fsum(scores[j] for j in support) - 1.0) / len(support)
        point = [scores[j] - threshold if j in support else 0.0 for j in keys]
        distance = math.fsum((point[j] - scores[j]) ** 2 for j in keys)
        if min(point) >= 0.0 and distance < best:
            best, nearest = distance, point
    return nearest


def slow_entmax(scores: Sequence[float], alpha: float) -> list[float]:
    """Weights from their definition, with the threshold between the two points where the sum is surely too large or
    too small."""
    if alpha == 1.0:
        largest = max(scores)
        total = math.fsum(math.exp(score - largest) for score in scores)
        return [math.exp(score - largest) / total for score in scores]

    def weights(threshold: float) -> list[float]:
        return [max((alpha - 1.0) * score - threshold, 0.0) ** (1.0 / (alpha - 1.0)) for score in scores]

    high = (alpha - 1.0) * max(scores)
    low = high - 1.0
    for _ in range(200):
        middle = (low + high) / 2.0
        low, high = (middle, high) if math.fsum(weights(middle)) > 1.0 else (low, middle)
    return weights(low)


def slow_rows(scores: Tensor, allowed: Tensor, alpha: float) -> Tensor:
    """`slow_entmax` of the allowed keys of each row."""
    weights = torch.zeros(scores.shape, dtype=torch.float64)
    for row, (values, places) in enumerate(zip(scores.double().tolist(), allowed.tolist(), strict=True)):
        kept = [j for j, is_allowed in enumerate(places) if is_allowed]
        if kept:
            weights[row, kept] = torch.tensor(slow_entmax([values[j] for j in kept], alpha), dtype=torch.float64)
    return weights


def drawn(seed: int, num_rows: int = 12, num_keys: int = 7, scale: float = 1.5) -> tuple[Tensor, Tensor]:
    """Scores and a mask whose first row allows nothing and whose second allows one key."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(num_rows, num_keys, generator=generator, dtype=torch.float64) * scale
    allowed = torch.rand(num_rows, num_keys, generator=generator) < 0.7
    allowed[:1], allowed[1:2], allowed[2:, 3] = False, torch.arange(num_keys) == 4, True
    return scores, allowed


@pytest.mark.parametrize(
    ("scores", "weights"),
    [
        ([0.5, 0.2], [0.65, 0.35]),
        ([1.0, 0.6, -1.0], [0.7, 0.3, 0.0]),
        ([2.0, 0.0, 0.0], [1.0, 0.0, 0.0]),
        ([1.0, 0.0], [1.0, 0.0]),
        ([0.3, 0.3, 0.3], [1 / 3, 1 / 3, 1 / 3]),
        ([0.1, 0.4, 0.5], [1 / 10, 4 / 10, 5 / 10]),
        ([-5.0], [1.0]),
    ],
)
def test_sparsemax_by_hand(scores: list[float], weights: list[float]):
    expected = torch.tensor(weights, dtype=torch.float64)
    torch.testing.assert_close(sparsemax(torch.tensor(scores, dtype=torch.float64)), expected)


@pytest.mark.parametrize(
    ("scores", "weights"),
    [
        # p_j = (z_j / 2 - threshold)^2: the scores differ by twice what the roots of the weights do.
        ([0.4, 0.0], [0.64, 0.36]),
        ([2.0, 0.0], [1.0, 0.0]),
        ([2 * (2 / 3 - 1 / 3), 2 * (2 / 3 - 1 / 3), 0.0], [4 / 9, 4 / 9, 1 / 9]),
        ([7.0, 7.0, 7.0, 7.0], [0.25, 0.25, 0.25, 0.25]),
    ],
)
@pytest.mark.parametrize("alpha", [1.5, torch.tensor(1.5, dtype=torch.float64)])
def test_entmax15_by_hand(scores: list[float], weights: list[float], alpha: Tensor | float):
    expected = torch.tensor(weights, dtype=torch.float64)
    torch.testing.assert_close(entmax(torch.tensor(scores, dtype=torch.float64), None, alpha), expected)


def test_entmax15_just_within_and_just_without_its_support():
    # Two roots r and r - 0.95 with r^2 + (r - 0.95)^2 = 1; the third score is 0.05 too low to have weight.
    root = (0.95 + math.sqrt(2.0 - 0.95**2)) / 2.0
    expected = torch.tensor([root**2, (root - 0.95) ** 2, 0.0], dtype=torch.float64)
    torch.testing.assert_close(entmax(torch.tensor([1.9, 0.0, -0.2], dtype=torch.float64)), expected)
    assert float(expected[1]) < 0.003


@given(st.lists(st.integers(-40, 40).map(lambda tenths: tenths / 10), min_size=1, max_size=7))
@settings(max_examples=80)
def test_sparsemax_is_the_nearest_point(scores: list[float]):
    """Tenths, so that ties and keys exactly at the edge of the support are common."""
    expected = torch.tensor(slow_sparsemax(scores), dtype=torch.float64)
    torch.testing.assert_close(sparsemax(torch.tensor(scores, dtype=torch.float64)), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("is_tensor", [False, True])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_entmax_is_its_definition(alpha: float, is_tensor: bool):
    scores, allowed = drawn(1)
    given_alpha = torch.tensor(alpha, dtype=torch.float64) if is_tensor else alpha
    weights = entmax(scores, allowed, given_alpha)
    torch.testing.assert_close(weights, slow_rows(scores, allowed, alpha), atol=1e-11, rtol=0)


@pytest.mark.parametrize("alpha", [1.0, 1.25, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("num_keys", [1, 2, 300])
def test_float32_is_as_good_as_its_digits(alpha: float, num_keys: int):
    scores = torch.randn(6, num_keys, generator=torch.Generator().manual_seed(num_keys)) / 4
    exact = entmax(scores.double(), None, alpha)
    weights = entmax(scores, None, alpha)
    # A weight near the edge of the support has a steep slope when alpha is above 2.
    torch.testing.assert_close(weights.double(), exact, atol=float(exact.max()) * (2e-5 if alpha > 2 else 2e-6), rtol=0)


@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_entmax15_keeps_its_digits_where_its_variance_does_not(spread: float):
    """One key ahead of a thousand like ones: the mean square and the squared mean share nearly all digits."""
    scores = torch.rand(3, 1000, generator=torch.Generator().manual_seed(0)) * spread - 1.772 - spread
    scores[:, 0] = 0.0
    exact = entmax(scores.double(), None, torch.tensor(1.5, dtype=torch.float64))
    torch.testing.assert_close(entmax(scores, None, 1.5).double(), exact, atol=2e-6, rtol=0)
    assert bool((exact[:, 0] < 0.999).all())


@pytest.mark.parametrize("alpha", [1.3, 1.5, 2.0])
def test_many_keys_that_are_not_allowed_do_not_blur_the_few_that_are(alpha: float):
    scores = torch.tensor([0.3, 0.5, 0.0, 0.45])
    weights = entmax(torch.cat([torch.full((50_000,), 9.0), scores]), torch.arange(50_004) >= 50_000, alpha)
    torch.testing.assert_close(weights[50_000:], entmax(scores, None, alpha))
    assert weights[:50_000].count_nonzero() == 0


@pytest.mark.parametrize("alpha", [30.0, 100.0, 1000.0])
def test_a_huge_alpha_is_the_best_key(alpha: float):
    scores = torch.randn(5, 1000, generator=torch.Generator().manual_seed(0))
    scores[0, :2] = 9.0
    weights = entmax(scores, None, alpha)
    expected = torch.nn.functional.one_hot(scores.argmax(-1), 1000).float()
    expected[0, :2] = 0.5
    torch.testing.assert_close(weights, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("alpha", [*ALPHAS, torch.tensor(1.3)])
def test_rows_lie_in_the_simplex(alpha: Tensor | float, dtype: torch.dtype):
    scores, allowed = drawn(2, num_rows=40, num_keys=19)
    weights = entmax(scores.to(dtype), allowed, alpha)
    assert weights.dtype == dtype
    assert bool((weights >= 0).all())
    assert weights[~allowed].count_nonzero() == 0
    expected = torch.ones(40, dtype=torch.float64)
    expected[0] = 0.0
    # Only the weights themselves are rounded to 16 bits.
    tolerance = {torch.float64: 1e-14, torch.float32: 1e-6}.get(dtype, 19 * torch.finfo(dtype).eps / 4)
    torch.testing.assert_close(weights.double().sum(-1), expected, atol=tolerance, rtol=0)


def test_half_precision_is_computed_in_single():
    scores, allowed = drawn(3, num_keys=50, scale=0.2)
    for dtype in (torch.bfloat16, torch.float16):
        narrow = scores.to(dtype)
        for alpha in (1.25, 1.5, 2.0):
            assert torch.equal(entmax(narrow, allowed, alpha), entmax(narrow.float(), allowed, alpha).to(dtype))


@pytest.mark.parametrize("num_leading", [0, 1, 3])
def test_any_number_of_leading_axes(num_leading: int):
    scores, allowed = drawn(4)
    weights = entmax(scores, allowed, 1.5)
    shape = ((12, 7), (3, 4, 7), (2, 1, 3, 2, 7))[(0, 1, 3).index(num_leading)]
    again = entmax(scores.reshape(shape), allowed.reshape(shape), 1.5)
    assert torch.equal(again, weights.reshape(shape))
    assert torch.equal(entmax(scores[5], None, 1.5), entmax(scores, None, 1.5)[5])


def test_a_mask_of_fewer_axes_than_sizes_is_broadcast():
    scores = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    allowed = torch.arange(5) < torch.tensor([3, 0])[:, None, None, None]
    weights = sparsemax(scores, allowed)
    assert torch.equal(weights[0, ..., :3], sparsemax(scores[0, ..., :3]))
    assert weights[0, ..., 3:].count_nonzero() == weights[1].count_nonzero() == 0


@pytest.mark.parametrize("alpha", ALPHAS)
def test_what_is_not_allowed_is_as_if_it_were_not_there(alpha: float):
    scores, allowed = drawn(5)
    weights = entmax(scores, allowed, alpha)
    for row in range(1, 12):
        kept = allowed[row]
        torch.testing.assert_close(weights[row, kept], entmax(scores[row, kept], None, alpha), atol=1e-13, rtol=0)
    polluted = scores.masked_fill(~allowed, torch.nan).requires_grad_()
    again = entmax(polluted, allowed, alpha)
    assert torch.equal(again, weights)
    if alpha > 1.0:
        (again * scores).sum().backward()
        assert polluted.grad is not None
        assert polluted.grad[allowed].isfinite().all()
        assert polluted.grad[~allowed].count_nonzero() == 0


@pytest.mark.parametrize("alpha", [1.0, 1.25, 1.5, 2.0, 3.0, torch.tensor(1.0), torch.tensor(1.5)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_extreme_scores_stay_finite(alpha: Tensor | float, dtype: torch.dtype):
    largest = torch.finfo(dtype).max
    rows = [[largest, -largest, 0.0], [largest, largest, -largest], [-largest, -largest, -largest], [0.0, -largest, 1]]
    scores = torch.tensor(rows, dtype=dtype, requires_grad=True)
    weights = entmax(scores, torch.tensor([True, True, True]), alpha)
    (weights * torch.arange(3)).sum().backward()
    expected = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]], dtype=torch.float64)
    torch.testing.assert_close(weights[:3].double(), expected, atol=2e-3 if dtype.itemsize == 2 else 1e-6, rtol=0)
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


def test_gradients_in_float16_do_not_overflow_within():
    scores = torch.randn(4, 2000, generator=torch.Generator().manual_seed(0)).half().requires_grad_()
    entmax(scores, None, 2.0).square().sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


@pytest.mark.parametrize("alpha", ALPHAS)
def test_gradient_of_scores(alpha: float):
    scores, allowed = drawn(6, num_rows=6)
    assert torch.autograd.gradcheck(lambda x: entmax(x, allowed, alpha), scores.requires_grad_())


@pytest.mark.parametrize("alpha", [1.05, 1.5, 1.9, 2.0, 2.7])
def test_gradient_of_alpha(alpha: float):
    scores, allowed = drawn(7, num_rows=6)
    alphas = torch.full((6, 1), alpha, dtype=torch.float64) + torch.arange(6)[:, None] * 0.003
    inputs = (scores.requires_grad_(), alphas.requires_grad_())
    assert torch.autograd.gradcheck(lambda x, a: entmax(x, allowed, a), inputs)


def test_gradient_of_one_alpha_for_each_head_is_the_sum_over_its_rows():
    scores = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    heads = torch.tensor([1.2, 1.5, 2.2], dtype=torch.float64)[:, None, None].requires_grad_()
    assert torch.autograd.gradcheck(lambda a: entmax(scores, None, a), heads)
    weights = entmax(scores, None, heads)
    torch.testing.assert_close(weights[:, 1], entmax(scores[:, 1], None, 1.5))


def test_gradient_of_alpha_at_one_is_the_limit():
    """At alpha = 1 there are no two sides: a difference of three points above it, of error h^2 / 3 |p'''|."""
    scores, allowed = drawn(8, num_rows=6)
    factor = torch.randn(6, 7, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    alpha = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    (entmax(scores, allowed, alpha) * factor).sum().backward()
    step = 1e-4
    at = [float((slow_rows(scores, allowed, 1.0 + i * step) * factor).sum()) for i in range(3)]
    slope = (-3.0 * at[0] + 4.0 * at[1] - at[2]) / (2.0 * step)
    assert alpha.grad is not None
    assert float(alpha.grad) == pytest.approx(slope, rel=1e-4)


@pytest.mark.parametrize("excess", [2**-23, 1e-4, 1e-2, 0.3, 1.0])
def test_gradient_of_alpha_keeps_its_digits_near_one(excess: float):
    """The paper's formula, divided by (alpha - 1)^2, would have none left in float32."""
    scores, allowed = drawn(9)
    factor = torch.arange(7.0, dtype=torch.float64)
    grads: list[float] = []
    for dtype in (torch.float32, torch.float64):
        alpha = torch.tensor(float(torch.tensor(1.0 + excess)), dtype=dtype, requires_grad=True)
        (entmax(scores.float().to(dtype), allowed, alpha) * factor).sum().backward()
        assert alpha.grad is not None
        grads.append(float(alpha.grad))
    assert grads[0] == pytest.approx(grads[1], rel=2e-5)


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0])
def test_gradient_of_alpha_is_the_published_one(alpha: float):
    scores, _ = drawn(10, num_rows=1, num_keys=5, scale=0.5)
    factor = [0.3, -1.0, 2.0, 0.7, -0.2]
    weights = slow_entmax(scores[0].tolist(), alpha)
    slopes = [p ** (2.0 - alpha) if p > 0 else 0.0 for p in weights]
    logs = [p * math.log(p) if p > 0 else 0.0 for p in weights]
    skewed = [slope / math.fsum(slopes) for slope in slopes]
    published = math.fsum(
        f * ((p - q) / (alpha - 1.0) ** 2 - (log - q * math.fsum(logs)) / (alpha - 1.0))
        for f, p, q, log in zip(factor, weights, skewed, logs, strict=True)
    )
    learned = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    (entmax(scores, None, learned) * torch.tensor(factor, dtype=torch.float64)).sum().backward()
    assert learned.grad is not None
    assert float(learned.grad) == pytest.approx(published, rel=1e-8)


@pytest.mark.parametrize("is_tensor", [False, True])
@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0, 3.0])
def test_empty_rows_have_no_gradient(alpha: float, is_tensor: bool):
    scores, allowed = drawn(11)
    scores.requires_grad_()
    order = torch.full((12, 1), alpha, dtype=torch.float64, requires_grad=True)
    weights = entmax(scores, allowed, order if is_tensor else alpha)
    (weights * torch.arange(7)).sum().backward()
    assert scores.grad is not None
    assert scores.grad[0].count_nonzero() == 0
    assert scores.grad[2:].isfinite().all()
    assert float(scores.grad[2:].abs().max()) > 1e-3
    if is_tensor:
        assert order.grad is not None
        assert order.grad[0].count_nonzero() == order.grad[1].abs().gt(1e-12).sum() == 0
        assert order.grad.isfinite().all()


def test_entropy_of_sparse_weights_has_a_gradient():
    """The slope of -p log p is infinite at 0, where sparse weights often are."""
    scores = torch.tensor([[1.0, 0.6, -1.0]], dtype=torch.float64, requires_grad=True)
    torch.special.entr(sparsemax(scores)).sum().backward()
    slope = (math.log(0.3) - math.log(0.7)) / 2.0
    expected = torch.tensor([[slope, -slope, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(scores.grad, expected)


def test_alpha_as_tensor_meets_the_exact_solutions():
    scores, allowed = drawn(12, num_rows=30, num_keys=40)
    for alpha in (1.0, 1.5, 2.0):
        found = entmax(scores, allowed, torch.full((30, 1), alpha, dtype=torch.float64))
        torch.testing.assert_close(found, entmax(scores, allowed, alpha), atol=1e-13, rtol=0)


def test_larger_alpha_is_sparser():
    scores, _ = drawn(13, num_rows=1, num_keys=60, scale=0.6)
    counts = [int(entmax(scores, None, alpha).count_nonzero()) for alpha in (1.0, 1.25, 1.5, 2.0, 4.0, 50.0)]
    assert counts[0] == 60
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) >= 5


@pytest.mark.parametrize("shape", [(2, 0), (0, 3), (2, 0, 3), (0,)])
def test_nothing_to_attend_to(shape: tuple[int, ...]):
    for alpha in (1.0, 1.3, 1.5, 2.0, torch.tensor(1.5)):
        scores = torch.zeros(shape, requires_grad=True)
        weights = entmax(scores, torch.ones(shape, dtype=torch.bool), alpha)
        weights.sum().backward()
        assert weights.shape == shape


@pytest.mark.parametrize("alpha", [0.99, 0.0, -1.0, math.nan, math.inf])
def test_alpha_out_of_range_is_refused(alpha: float):
    with pytest.raises(UsageError, match="alpha must be a finite number of at least 1"):
        entmax(torch.zeros(3), None, alpha)
    with pytest.raises(UsageError, match="alpha must be a finite number of at least 1"):
        Entmax(alpha=alpha)


def test_a_tensor_alpha_below_one_counts_as_one_and_may_come_back():
    alpha = torch.tensor(0.5, requires_grad=True)
    scores = torch.tensor([2.0, 1.0, 0.0], requires_grad=True)
    weights, soft = entmax(scores, None, alpha), torch.softmax(scores, -1)
    torch.testing.assert_close(weights, soft)
    torch.testing.assert_close(torch.autograd.grad(soft[0], scores)[0], torch.autograd.grad(weights[0], scores)[0])
    entmax(scores, None, alpha)[0].backward()
    assert alpha.grad is not None
    assert float(alpha.grad) > 0.01


@pytest.mark.parametrize("shape", [(3,), (2, 5), (5, 1, 1), (2, 2, 1), (1, 1, 2, 1)])
def test_an_alpha_that_fits_no_row_is_refused(shape: tuple[int, ...]):
    with pytest.raises(ShapeError, match=r"must broadcast to the rows \[4, 2, 1\]"):
        entmax(torch.zeros(4, 2, 5), None, torch.full(shape, 1.5))


def test_shift_moves_the_largest_allowed_score_to_zero():
    scores = torch.tensor([[5.0, 9.0, 4.0], [1.0, 2.0, 3.0], [0.0, -5000.0, 1.0]])
    allowed = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])
    expected = [[0.0, FLOOR, -1.0], [FLOOR, FLOOR, FLOOR], [-1.0, FLOOR, 0.0]]
    assert shift(scores, allowed).tolist() == expected


@pytest.mark.parametrize(
    ("normalizer", "alpha"),
    [(Sparsemax(), 2.0), (Entmax(), 1.5), (Entmax(1.3), 1.3), (Entmax(torch.tensor(1.7)), 1.7), (Entmax(1.0), 1.0)],
)
def test_attention_with_sparse_weights(normalizer: Normalizer, alpha: float):
    generator = torch.Generator().manual_seed(3)
    query, key = (torch.randn(2, 2, size, 4, generator=generator) for size in (3, 6))
    query.requires_grad_()
    lengths = torch.tensor([4, 0])
    attended = attend(
        query,
        key,
        key,
        score=Dot(4, 4),
        mask=padding(lengths),
        normalizer=normalizer,
        need=("weights", "argmax", "entropy"),
    )
    weights = torch.zeros(2, 2, 3, 6)
    weights[0, ..., :4] = entmax(query.detach()[0] @ key[0, :, :4].mT, None, alpha)
    torch.testing.assert_close(attended.weights, weights)
    torch.testing.assert_close(attended.context, weights @ key)
    torch.testing.assert_close(attended.entropy, torch.special.entr(weights).sum(-1))
    attended.context.sum().backward()
    assert query.grad is not None
    assert float(query.grad[0].abs().max()) > 1e-3
    assert query.grad[1].count_nonzero() == 0


@pytest.mark.parametrize("make", [Sparsemax, lambda temperature: Entmax(1.3, temperature)])
def test_temperature_divides_the_scores_and_learns(make: type[Sparsemax]):
    query, key = torch.tensor([[1.0, 0.3]]), torch.tensor([[0.4, 0.1], [0.2, 0.7], [0.0, 0.3]])
    temperature = torch.tensor(2.0, requires_grad=True)
    normalizer = make(temperature=temperature)
    attended = attend(query, key, key, score=Dot(2, 2), normalizer=normalizer, need=("weights",))
    expected = normalizer.normalize(query @ key.mT / 2.0, None).weights
    torch.testing.assert_close(attended.weights, expected)
    attended.context[0, 0].backward()
    assert temperature.grad is not None
    assert float(temperature.grad.abs()) > 1e-4


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan])
def test_a_temperature_that_is_not_above_zero_is_refused(temperature: float):
    for make in (Sparsemax, Entmax):
        with pytest.raises(UsageError, match="is not above 0"):
            make(temperature=temperature)
