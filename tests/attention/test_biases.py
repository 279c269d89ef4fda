"""Biases against their papers' formulas, evaluated number by number, and in calls too large for one tile."""

import copy
import math
import random

import pytest
import torch
from torch import Tensor, nn

from heedful.attention import tiled_attention as tiled
from heedful.attention.biases import BIASES, Alibi, Biased, RelativeBuckets, RelativeKeys, ScoreBias
from heedful.attention.dispatch import attend, explain
from heedful.attention.interface import Score
from heedful.attention.masks import causal, padding
from heedful.attention.scores import Dot, Function, Location, ScaledDot
from heedful.attention.simplex import Sparsemax
from heedful.attention.softmax import Softmax
from heedful.errors import KernelUnsupported, ShapeError, UsageError

SIZE = 4


def values_of(bias: ScoreBias, num_queries: int, num_keys: int, query: Tensor | None = None) -> Tensor:
    """All biases, of queries that are the last."""
    query = torch.zeros(max(1, bias.num_heads), num_queries, SIZE).double() if query is None else query
    return bias(query, torch.arange(num_queries) + num_keys - num_queries, torch.arange(num_keys))


def fresh(kind: str, num_heads: int = 0, is_causal: bool = False) -> ScoreBias:
    settings = {"relative_buckets": {"num_buckets": 8, "max_distance": 9}, "relative_keys": {"max_distance": 3}}
    bias = BIASES[kind](num_heads, SIZE, is_causal=is_causal, **settings.get(kind, {})).double()
    for parameter in bias.parameters():
        nn.init.normal_(parameter)
    return bias


@pytest.mark.parametrize("kind", BIASES)
def test_the_place_of_a_key_counts_as_the_score_says(kind: str):
    score, order = Biased(Dot(SIZE, SIZE), fresh(kind)), torch.tensor([2, 0, 3, 1])
    query, key, value = (torch.randn(4, SIZE).double() for _ in range(3))
    one, other = (attend(query, key[rows], value[rows], score=score).context for rows in (slice(None), order))
    assert score.is_positional
    assert not torch.allclose(one, other)


# Press et al. 2022, section 3: "For our models with 8 heads, the slopes are 1/2, 1/4, ..., 1/256".
SLOPES = {
    1: [2**-8],
    2: [2**-4, 2**-8],
    8: [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256],
    16: [2 ** (-head / 2) for head in range(1, 17)],
    # The authors' code: those of 4 and of 8 heads, the latter every other.
    6: [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3],
}


@pytest.mark.parametrize("num_heads", SLOPES)
@pytest.mark.parametrize("is_causal", [False, True])
def test_alibi(num_heads: int, is_causal: bool):
    found = values_of(Alibi(num_heads, is_causal=is_causal), 3, 5)
    for head, slope in enumerate(SLOPES[num_heads]):
        for row in range(3):
            for key in range(5):
                assert float(found[head, row, key]) == pytest.approx(-slope * abs(row + 2 - key), abs=1e-15)


def bucket_of(relative: int, is_causal: bool, num_buckets: int, max_distance: int) -> int:
    """The formula of the authors of T5, for one key."""
    first, distance = 0, -relative
    if is_causal:
        distance = max(distance, 0)
    else:
        num_buckets //= 2
        first = num_buckets if distance < 0 else 0
        distance = abs(distance)
    num_exact = num_buckets // 2
    if distance < num_exact:
        return first + distance
    share = math.log(distance / num_exact) / math.log(max_distance / num_exact)
    # 1e-9: a logarithm of a power is whole.
    return first + min(num_exact + int(share * (num_buckets - num_exact) + 1e-9), num_buckets - 1)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (16, 64), (8, 20), (32, 1000), (4, 3), (64, 40)])
def test_relative_buckets(is_causal: bool, num_buckets: int, max_distance: int):
    bias = RelativeBuckets(2, is_causal=is_causal, num_buckets=num_buckets, max_distance=max_distance).double()
    with torch.no_grad():
        # So the bias of a pair is the number of its bucket.
        bias.weight.copy_(torch.arange(num_buckets)[:, None] + torch.tensor([0.0, 0.5]))
    num_keys = 2 * max_distance + 9
    found = values_of(bias, num_keys, num_keys).detach()
    middle = num_keys // 2
    for key in range(num_keys if not is_causal else middle + 1):
        wanted = bucket_of(key - middle, is_causal, num_buckets, max_distance)
        assert found[:, middle, key].tolist() == [wanted, wanted + 0.5]
    used = {bucket_of(relative, is_causal, num_buckets, max_distance) for relative in range(-num_keys, num_keys)}
    assert used <= set(range(num_buckets))
    assert torch.equal(found[:, 1:, 1:], found[:, :-1, :-1])


@pytest.mark.parametrize("is_causal", [False, True])
def test_relative_keys(is_causal: bool):
    torch.manual_seed(0)
    bias = RelativeKeys(0, SIZE, is_causal=is_causal, max_distance=2).double()
    query = torch.randn(3, SIZE, dtype=torch.float64)
    found = values_of(bias, 3, 7, query).detach()
    weight = bias.weight.detach().tolist()
    for row in range(3):
        for key in range(row + 5 if is_causal else 7):
            clipped = max(-2, min(2, key - (row + 4)))
            wanted = math.fsum(q * w for q, w in zip(query[row].tolist(), weight[clipped + 2], strict=True)) / 2
            assert float(found[row, key]) == pytest.approx(wanted, abs=1e-14)
    assert len(weight) == (3 if is_causal else 5)


@pytest.mark.parametrize("kind", BIASES)
@pytest.mark.parametrize("normalizer", [Softmax(), Softmax(0.7), Sparsemax()])
def test_the_weights_are_those_of_scores_plus_biases(kind: str, normalizer: Softmax | Sparsemax):
    torch.manual_seed(0)
    query, key = torch.randn(2, 3, 5, SIZE).double(), torch.randn(2, 3, 6, SIZE).double()
    bias = fresh(kind, num_heads=3)
    found = attend(query, key, key, score=Biased(ScaledDot(SIZE, SIZE), bias), normalizer=normalizer, mask=causal())

    def scores(query: Tensor, key: Tensor) -> Tensor:
        return query @ key.mT / SIZE**0.5 + values_of(bias, 5, 6, query)

    wanted = attend(query, key, key, score=scores, normalizer=normalizer, mask=causal())
    assert float((found.context - wanted.context).detach().abs().max()) <= 1e-14
    without = attend(query, key, key, score=ScaledDot(SIZE, SIZE), normalizer=normalizer, mask=causal())
    assert float((found.context - without.context).detach().abs().max()) > 1e-3


@pytest.mark.parametrize("kind", BIASES)
def test_queries_one_by_one_over_growing_keys_are_all_at_once(kind: str):
    torch.manual_seed(0)
    score = Biased(ScaledDot(SIZE, SIZE), fresh(kind, num_heads=2, is_causal=True))
    query, key = torch.randn(2, 6, SIZE).double(), torch.randn(2, 6, SIZE).double()
    whole = attend(query, key, key, score=score, mask=causal()).context
    for step in range(6):
        one = attend(query[:, step : step + 1], key[:, : step + 1], key[:, : step + 1], score=score).context
        assert float((one - whole[:, step : step + 1]).detach().abs().max()) <= 1e-14


NUM_MANY = 3000


@pytest.mark.parametrize("kind", BIASES)
def test_thousands_of_keys_are_attended_in_tiles(kind: str, monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(0)
    score = Biased(ScaledDot(SIZE, SIZE), fresh(kind, num_heads=1))
    query, key = (torch.randn(1, NUM_MANY, SIZE).double().requires_grad_() for _ in range(2))
    rows = [0, 1, 1700, NUM_MANY - 1]
    sizes: list[int] = []
    bias_of_tile = type(score.bias).forward

    def watched(self: ScoreBias, *inputs: Tensor) -> Tensor:
        sizes.append(inputs[1].numel())
        return bias_of_tile(self, *inputs)

    monkeypatch.setattr(type(score.bias), "forward", watched)
    attended = attend(query, key, key, score=score, mask=padding(torch.tensor(NUM_MANY - 7)))
    assert attended.kernel == "plain"
    assert len(sizes) > 4
    assert max(sizes) < NUM_MANY / 4
    leaves = [query, key, *score.parameters()]
    chosen = attended.context[:, rows]
    found = torch.autograd.grad(chosen.sin().sum(), leaves)
    monkeypatch.undo()
    # The same four rows by plain operations, each with its own position.
    biases = torch.cat([score.bias(query[:, [r]], torch.tensor([r]), torch.arange(NUM_MANY)) for r in rows], dim=-2)
    scores = query[:, rows] @ key.mT / SIZE**0.5 + biases
    wanted = torch.softmax(scores.masked_fill(torch.arange(NUM_MANY) >= NUM_MANY - 7, -torch.inf), dim=-1) @ key
    assert float((chosen - wanted).detach().abs().max()) <= 1e-13
    for one, other in zip(found, torch.autograd.grad(wanted.sin().sum(), leaves), strict=True):
        assert float((one - other).abs().max()) <= 1e-13


@pytest.mark.parametrize("kind", ["relative_buckets", "relative_keys"])
def test_half_precision_sums_gradients_of_parameters_in_single(kind: str, monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(0)
    score = Biased(ScaledDot(SIZE, SIZE), fresh(kind)).bfloat16()
    query = torch.randn(64, SIZE).bfloat16()
    exact = copy.deepcopy(score).double()
    wide = attend(query.double(), query.double(), query.double(), score=exact).context
    (wanted,) = torch.autograd.grad(wide.sum(), exact.bias.parameters())
    errors: list[float] = []
    for whole in (1 << 22, 0):
        monkeypatch.setattr(tiled, "WHOLE", whole)
        monkeypatch.setattr(tiled, "TILE", 1)
        context = attend(query, query, query, score=score).context
        assert context.dtype == torch.bfloat16
        (found,) = torch.autograd.grad(context.sum(), score.bias.parameters())
        assert found.dtype == torch.bfloat16
        errors.append(float((found - wanted).abs().max()))
    assert errors[1] <= 2 * errors[0]


def test_named_kernels_that_take_no_bias_say_so():
    query = torch.zeros(2, 3, SIZE)
    score = Biased(ScaledDot(SIZE, SIZE), Alibi(2))
    with pytest.raises(KernelUnsupported, match="'sdpa' cannot run this call: takes no score with a bias by positions"):
        attend(query, query, query, score=score, kernel="sdpa")
    reasons = {choice.kernel: choice.reason for choice in explain(query, query, query, score=score)}
    assert reasons["sdpa"] == reasons["window"] == "takes no score with a bias by positions"
    assert reasons["plain"] == ""


@pytest.mark.wrong_shapes
def test_heads_that_the_scores_do_not_have_are_refused():
    query = torch.zeros(3, SIZE)
    for shape in ((3, SIZE), (4, 3, SIZE)):
        query = torch.zeros(shape)
        with pytest.raises(ShapeError, match=r"cannot have biases \[2, 3, 3\]"):
            attend(query, query, query, score=Biased(Dot(SIZE, SIZE), Alibi(2)))


def test_a_biased_score_keeps_what_the_score_says():
    assert Biased(Location(SIZE, SIZE, 5), Alibi()).max_keys == 5
    assert (Biased(Dot(SIZE, SIZE), Alibi()).query_size, Biased(Dot(SIZE, SIZE), Alibi()).key_size) == (SIZE, SIZE)
    biased = Biased(Function(lambda query, key: query @ key.mT), Alibi())
    query = torch.randn(3, SIZE)
    wanted = attend(query, query, query, score=Biased(Dot(SIZE, SIZE), Alibi())).context
    torch.testing.assert_close(attend(query, query, query, score=biased).context, wanted)


@pytest.mark.parametrize("kind", BIASES)
def test_no_number_is_drawn_twice_and_empty_calls_pass(kind: str):
    score: Score = Biased(ScaledDot(SIZE, SIZE), fresh(kind))
    for num_queries, num_keys in ((0, 3), (2, 0)):
        query, key = torch.zeros(num_queries, SIZE).double(), torch.zeros(num_keys, SIZE).double()
        assert attend(query, key, key, score=score).context.shape == (num_queries, SIZE)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RelativeBuckets(num_buckets=2), "2 buckets of distances up to 128: at least 2 in each direction"),
        (lambda: RelativeBuckets(num_buckets=32, max_distance=8), "half of them must be fewer than the largest"),
        (lambda: RelativeKeys(0, 0), "query size 0 and largest distance 16 must be positive"),
        (lambda: RelativeKeys(0, 4, max_distance=0), "largest distance 0 must be positive"),
    ],
)
def test_settings_that_mean_nothing_are_refused(make, message: str):  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match=message):
        make()
    with pytest.raises(ShapeError, match="must not be negative"):
        Alibi(-1)


def test_random_functions_of_positions_can_be_written_as_a_module():
    torch.manual_seed(0)

    class Twice(ScoreBias):
        """A bias that a user wrote, with a tensor that is no parameter."""

        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.randn(7))

        def forward(self, query: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
            return self.table[(query_positions[:, None] * 3 + key_positions) % 7].to(query.dtype)

    score = Biased(Dot(SIZE, SIZE), Twice())
    query = torch.randn(5, SIZE)
    table = score.bias.table
    numbers = torch.stack([torch.stack([table[(row * 3 + key) % 7] for key in range(5)]) for row in range(5)])
    wanted = torch.softmax(query @ query.mT + numbers, dim=-1) @ query
    found = attend(query, query, query, score=score).context
    torch.testing.assert_close(found, wanted)
    weights = torch.tensor([random.Random(1).random() for _ in range(SIZE)])
    one, other = (torch.autograd.grad((each @ weights).sum(), table)[0] for each in (found, wanted))
    torch.testing.assert_close(one, other)
