import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from heedful.attention.dispatch import attend
from heedful.attention.interface import Normalizer
from heedful.attention.masks import padding
from heedful.attention.reinforce import reinforce_loss, update_baseline
from heedful.attention.scores import Dot
from heedful.attention.stochastic import (
    GumbelSoftmax,
    Hard,
    Sampled,
    StraightThrough,
    gumbel_noise,
    gumbel_softmax,
    hard,
    number_rows,
    random_bits,
    sample,
    straight_through,
)
from heedful.errors import NeedError, ShapeError, UsageError

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
WORD = 1 << 64

Choose = Callable[[Tensor, Tensor | None], Tensor]
CHOOSERS: dict[str, Choose] = {
    "hard": hard,
    "sample": lambda scores, allowed: sample(scores, allowed, 5).weights,
    "straight_through": straight_through,
    "straight_through_drawn": lambda scores, allowed: straight_through(scores, allowed, 5),
    "gumbel_softmax_hard": lambda scores, allowed: gumbel_softmax(scores, allowed, 5, 0.7, is_hard=True),
}
ALL: dict[str, Choose] = {
    **CHOOSERS,
    "gumbel_softmax": lambda scores, allowed: gumbel_softmax(scores, allowed, 5, 0.7),
    "probabilities": lambda scores, allowed: sample(scores, allowed, 5).probabilities,
}


def some_scores(seed: int = 0, num_rows: int = 10, num_keys: int = 6) -> tuple[Tensor, Tensor]:
    """Scores and a mask whose first row allows nothing."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(num_rows, num_keys, generator=generator, dtype=torch.float64)
    allowed = torch.rand(num_rows, num_keys, generator=generator) < 0.7
    allowed[0], allowed[1:, 2] = False, True
    return scores, allowed


def slow_mix(state: int) -> int:
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % WORD
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) % WORD
    return state ^ (state >> 31)


def slow_bits(seed: int, row: int, key: int) -> int:
    """SplitMix64 in whole numbers: the stream of a row starts at the row-th output of the seed's stream."""
    golden = 0x9E3779B97F4A7C15
    start = slow_mix((slow_mix((seed + golden) % WORD) + row * golden) % WORD)
    return slow_mix((start + (key + 1) * golden) % WORD)


def test_splitmix_is_the_published_one():
    """First outputs of SplitMix64 for the state 1234567, as other implementations print them."""
    golden = 0x9E3779B97F4A7C15
    outputs = [slow_mix((1234567 + i * golden) % WORD) for i in (1, 2, 3)]
    assert outputs == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@pytest.mark.parametrize("seed", [0, 1, -1, 2**63 - 1, 2**63, 2**64 - 1, 2**64 + 1, -(2**63)])
def test_bits_are_the_hash_in_whole_numbers(seed: int):
    row_ids = torch.tensor([[0, 1, 7], [2**40, -3, 2**63 - 1]])
    bits = random_bits(seed, row_ids, 4)
    assert bits.shape == (2, 3, 4)
    expected = [[[slow_bits(seed, row, key) for key in range(4)] for row in rows] for rows in row_ids.tolist()]
    assert [[[bit % WORD for bit in row] for row in rows] for rows in bits.tolist()] == expected


def test_a_seed_may_be_a_tensor():
    rows = number_rows((3,))
    for seed in (0, 17, -5):
        assert torch.equal(random_bits(torch.tensor(seed), rows, 4), random_bits(seed, rows, 4))


def ones(bits: Tensor) -> Tensor:
    """The 64 bits as numbers along a new last axis."""
    return (bits[..., None] >> torch.arange(64)) & 1


@pytest.mark.parametrize("seed", [0, 1, 123456789])
def test_every_bit_is_one_half_of_the_time(seed: int):
    counts = ones(random_bits(seed, number_rows((128,)), 128)).double().mean((0, 1))
    # 64 bits of 16384 draws each, of standard error 1/256: beyond 4.5 of them once in 2,000 such tests.
    assert float((counts - 0.5).abs().max()) < 4.5 / 256


@pytest.mark.parametrize("shift", [56, 28, 0])
def test_bytes_are_uniform(shift: int):
    """Chi-square of 256 values, 64 expected of each: mean 255, standard deviation 22.6."""
    values = (random_bits(3, number_rows((128,)), 128) >> shift) & 255
    counts = torch.bincount(values.flatten(), minlength=256).double()
    assert 255 - 4.5 * 22.6 < float((counts - 64).square().sum() / 64) < 255 + 4.5 * 22.6


@pytest.mark.parametrize("neighbour", ["row", "key", "seed", "far_row", "sign"])
def test_neighbours_share_half_of_their_bits(neighbour: str):
    rows = number_rows((64,)) * 2
    bits = random_bits(8, rows, 64)
    other = {
        "row": lambda: random_bits(8, rows + 1, 64),
        "key": lambda: random_bits(8, rows, 65)[:, 1:],
        "seed": lambda: random_bits(9, rows, 64),
        "far_row": lambda: random_bits(8, rows + 2**40, 64),
        "sign": lambda: random_bits(8, -rows - 1, 64),
    }[neighbour]()
    differing = ones(bits ^ other).double()
    # Of each of the 64 bits (4096 pairs, standard error 1/128), and of all of them together (1/1024).
    assert float((differing.mean((0, 1)) - 0.5).abs().max()) < 4.5 / 128
    assert float((differing.mean() - 0.5).abs()) < 4.5 / 1024


def test_no_two_bits_are_equal_in_a_large_grid():
    bits = torch.stack([random_bits(seed, number_rows((100,)), 100) for seed in range(4)])
    assert bits.unique().numel() == bits.numel()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_noise_is_gumbel(dtype: torch.dtype):
    """Kolmogorov and Smirnov: sqrt(n) times the largest distance is beyond 2 once in 1,500 samples."""
    noise = gumbel_noise(11, number_rows((100,)), 200, dtype).flatten().double().sort().values
    expected = torch.exp(-torch.exp(-noise))
    steps = torch.arange(1, noise.numel() + 1) / noise.numel()
    assert float((expected - steps).abs().max()) * math.sqrt(noise.numel()) < 2.0


def test_noise_of_single_precision_is_the_double_one_rounded():
    rows = number_rows((50,))
    narrow, wide = gumbel_noise(2, rows, 100), gumbel_noise(2, rows, 100, torch.float64)
    # Exact where it decides; single precision is coarse at the lower end, which never wins.
    torch.testing.assert_close(narrow[wide > 0].double(), wide[wide > 0], atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(narrow.double(), wide, atol=0.01, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.wrong_shapes
def test_noise_is_finite_at_both_ends(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch):
    ends = torch.tensor([0, 1 << 11, -1, -(1 << 63), (1 << 63) - 1])
    monkeypatch.setattr("heedful.attention.stochastic.random_bits", lambda *_: ends)
    noise = gumbel_noise(0, number_rows((1,)), 5, dtype)
    assert noise.isfinite().all()
    smallest = -math.log(-math.log(torch.finfo(dtype).eps / 2))
    expected = [54 * math.log(2), 53 * math.log(2), smallest, -math.log(math.log(2)), -math.log(math.log(2))]
    torch.testing.assert_close(noise.double(), torch.tensor(expected, dtype=torch.float64), atol=1e-5, rtol=0)


def test_hard_by_hand():
    scores = torch.tensor([[1.0, 3.0, 2.0], [2.0, 2.0, 2.0], [-1.0, -5.0, -1.0]])
    assert hard(scores).tolist() == [[0, 1, 0], [1, 0, 0], [1, 0, 0]]
    allowed = torch.tensor([[True, False, True], [False, True, True], [False, False, False]])
    assert hard(scores, allowed).tolist() == [[0, 0, 1], [0, 1, 0], [0, 0, 0]]


@pytest.mark.parametrize("num_keys", [8, 100, 5000])
def test_of_equal_scores_the_first_is_taken(num_keys: int):
    scores = torch.zeros(4, num_keys)
    assert hard(scores).argmax(-1).tolist() == [0, 0, 0, 0]
    allowed = torch.arange(num_keys) >= torch.tensor([[1], [3], [7], [2]])
    assert hard(scores, allowed).argmax(-1).tolist() == [1, 3, 7, 2]


def test_hard_passes_no_gradient():
    assert not hard(torch.zeros(2, 3, requires_grad=True)).requires_grad
    assert not sample(torch.zeros(2, 3, requires_grad=True), None, 0).weights.requires_grad


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CHOOSERS)
def test_one_allowed_key_has_all_weight(name: str, dtype: torch.dtype):
    scores, allowed = some_scores(1, 30, 17)
    weights = CHOOSERS[name](scores.to(dtype), allowed)
    assert weights.dtype == dtype
    assert weights[~allowed].count_nonzero() == 0
    assert weights.unique().tolist() == [0, 1]
    assert weights.sum(-1).tolist() == [0, *[1] * 29]


@pytest.mark.parametrize("name", ALL)
def test_any_leading_axes_and_none(name: str):
    scores, allowed = some_scores(2, 12)
    weights = ALL[name](scores, allowed)
    assert torch.equal(ALL[name](scores.reshape(2, 3, 2, 6), allowed.reshape(2, 3, 2, 6)), weights.reshape(2, 3, 2, 6))
    assert torch.equal(ALL[name](scores[0], None), ALL[name](scores, None)[0])
    shared = torch.arange(6) < 4
    assert torch.equal(ALL[name](scores, shared), ALL[name](scores, shared.expand(12, 6)))


@pytest.mark.parametrize("name", ALL)
def test_extreme_scores_stay_finite(name: str):
    for dtype in DTYPES:
        largest = torch.finfo(dtype).max / 2
        rows = [[largest, -largest, 0.0], [-largest, largest, -largest], [-largest, -largest, 0.0]]
        scores = torch.tensor(rows, dtype=dtype, requires_grad=True)
        weights = ALL[name](scores, torch.tensor([True, True, False]))
        assert weights[:2].tolist() == [[1, 0, 0], [0, 1, 0]]
        assert weights[2].sum() == 1
        if weights.requires_grad:
            (weights * torch.arange(3)).sum().backward()
            assert scores.grad is not None
            assert scores.grad.isfinite().all()


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("shape", [(2, 0), (0, 3), (0,), (2, 0, 3)])
def test_nothing_to_attend_to(name: str, shape: tuple[int, ...]):
    weights = ALL[name](torch.zeros(shape), torch.ones(shape, dtype=torch.bool))
    assert weights.shape == shape


def test_what_is_not_allowed_is_as_if_it_were_not_there():
    scores, allowed = some_scores(3)
    scores, allowed = scores[1:], allowed[1:]
    for name in sorted(ALL.keys() - {"gumbel_softmax", "gumbel_softmax_hard"}):
        polluted = scores.masked_fill(~allowed, torch.nan).requires_grad_()
        weights = ALL[name](polluted, allowed)
        assert torch.equal(weights, ALL[name](scores, allowed))
        if weights.requires_grad:
            (weights * scores).sum().backward()
            assert polluted.grad is not None
            assert polluted.grad.isfinite().all()


@pytest.mark.parametrize("name", ALL)
def test_more_keys_that_are_not_allowed_change_no_draw(name: str):
    scores, allowed = some_scores(4)
    more = torch.cat([scores, torch.ones(10, 3)], dim=-1)
    padded = torch.cat([allowed, torch.zeros(10, 3, dtype=torch.bool)], dim=-1)
    torch.testing.assert_close(ALL[name](more, padded)[:, :6], ALL[name](scores, allowed), atol=1e-15, rtol=0)


def test_the_same_seed_repeats_and_another_does_not():
    scores = torch.zeros(50, 20)
    first = sample(scores, None, 1).weights
    torch.rand(7)  # torch's own generator has no part in it
    assert torch.equal(first, sample(scores, None, 1).weights)
    same = float((first * sample(scores, None, 2).weights).sum())
    assert same < 12  # 2.5 of 50 expected; more than 11 once in 100,000


def test_rows_differ():
    keys = sample(torch.zeros(400, 20), None, 1).weights.argmax(-1)
    counts = torch.bincount(keys, minlength=20)
    assert int(counts.min()) > 4  # 20 expected of each
    assert int(counts.max()) < 45
    repeats = int((keys[1:] == keys[:-1]).sum())
    assert 4 < repeats < 45


@pytest.mark.parametrize("tile", [slice(0, 2), slice(2, 5), slice(4, 5)])
def test_a_tile_of_rows_computed_again_is_the_same(tile: slice):
    scores = torch.randn(3, 2, 5, 7, generator=torch.Generator().manual_seed(4))
    rows = number_rows((3, 2, 5))
    part, part_rows = scores[..., tile, :], rows[..., tile]
    whole = sample(scores, None, 9)
    again = sample(part, None, 9, part_rows)
    assert torch.equal(again.weights, whole.weights[..., tile, :])
    assert torch.equal(again.log_prob, whole.log_prob[..., tile])
    assert torch.equal(
        gumbel_softmax(part, None, 9, 0.5, row_ids=part_rows), gumbel_softmax(scores, None, 9, 0.5)[..., tile, :]
    )
    assert torch.equal(straight_through(part, None, 9, part_rows), straight_through(scores, None, 9)[..., tile, :])
    if tile.start:  # the numbers matter: without them a tile would draw what the first rows did
        assert not torch.equal(sample(part, None, 9).weights, again.weights)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("seed", [0, 1])
def test_draws_follow_the_softmax(seed: int, dtype: torch.dtype):
    """Chi-square with 4 degrees of freedom is beyond 23.5 once in 10,000."""
    scores = torch.tensor([0.5, -1.0, 2.0, 0.0, 1.0, 3.0], dtype=dtype)
    allowed = torch.tensor([True, True, True, True, True, False])
    counts = sample(scores.expand(20_000, 6), allowed, seed).weights.double().sum(0)
    expected = torch.softmax(scores[:5].double(), -1) * 20_000
    assert counts[5] == 0
    assert float(((counts[:5] - expected).square() / expected).sum()) < 23.5


def test_log_prob_and_entropy_by_hand():
    scores, allowed = some_scores(5)
    drawn = sample(scores, allowed, 3)
    assert drawn.log_prob[0] == drawn.entropy[0] == 0.0
    for row in range(1, 10):
        kept = {j: math.exp(float(scores[row, j])) for j in range(6) if allowed[row, j]}
        total = math.fsum(kept.values())
        key = int(drawn.weights[row].argmax())
        assert float(drawn.log_prob[row]) == pytest.approx(math.log(kept[key] / total))
        entropy = -math.fsum(x / total * math.log(x / total) for x in kept.values())
        assert float(drawn.entropy[row]) == pytest.approx(entropy, abs=1e-12)
        assert float(drawn.probabilities[row, key]) == pytest.approx(kept[key] / total)


def test_log_prob_and_entropy_of_half_precision_are_single():
    scores, allowed = some_scores(6)
    drawn = sample(scores.bfloat16(), allowed, 3)
    single = sample(scores.bfloat16().float(), allowed, 3)
    assert drawn.weights.dtype == drawn.probabilities.dtype == torch.bfloat16
    assert torch.equal(drawn.log_prob, single.log_prob)
    assert torch.equal(drawn.entropy, single.entropy)


def test_gradients_of_log_prob_and_entropy():
    scores, allowed = some_scores(7)
    scores.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: sample(x, allowed, 3).log_prob, scores)
    assert torch.autograd.gradcheck(lambda x: sample(x, allowed, 3).entropy, scores)
    assert torch.autograd.gradcheck(lambda x: sample(x, allowed, 3).probabilities, scores)
    drawn = sample(scores, allowed, 3)
    (drawn.log_prob.sum() + drawn.entropy.sum()).backward()
    assert scores.grad is not None
    assert scores.grad[0].count_nonzero() == scores.grad[~allowed].count_nonzero() == 0
    # d log p_k / d z = onehot - p
    scores.grad = None
    sample(scores, allowed, 3).log_prob.sum().backward()
    torch.testing.assert_close(scores.grad, drawn.weights - drawn.probabilities.detach())


@pytest.mark.parametrize("seed", [None, 4])
def test_straight_through_goes_back_as_softmax(seed: int | None):
    scores, allowed = some_scores(8)
    scores.requires_grad_()
    factor = torch.randn(10, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    weights = straight_through(scores, allowed, seed)
    chosen = hard(scores, allowed) if seed is None else sample(scores, allowed, seed).weights
    assert torch.equal(weights, chosen)
    (grad,) = torch.autograd.grad((weights * factor).sum(), scores)
    (soft,) = torch.autograd.grad((sample(scores, allowed, 0).probabilities * factor).sum(), scores)
    torch.testing.assert_close(grad, soft)
    assert grad[0].count_nonzero() == 0


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_gumbel_softmax_by_hand(temperature: float):
    scores, allowed = some_scores(9)
    noise = gumbel_noise(6, number_rows((10,)), 6, torch.float64)
    weights = gumbel_softmax(scores, allowed, 6, temperature)
    for row in range(10):
        kept = [j for j in range(6) if allowed[row, j]]
        powers = {j: math.exp((float(scores[row, j]) + float(noise[row, j])) / temperature) for j in kept}
        total = math.fsum(powers.values())
        expected = [powers[j] / total if j in powers else 0.0 for j in range(6)]
        assert weights[row].tolist() == pytest.approx(expected)


def test_gumbel_softmax_of_low_temperature_is_the_draw():
    scores, allowed = some_scores(10, 200)
    weights = gumbel_softmax(scores, allowed, 6, 2**-20)
    torch.testing.assert_close(weights, sample(scores, allowed, 6).weights, atol=1e-6, rtol=0)
    assert torch.equal(gumbel_softmax(scores, allowed, 6, 0.5, is_hard=True), sample(scores, allowed, 6).weights)


def test_gradients_of_gumbel_softmax():
    scores, allowed = some_scores(11)
    temperature = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)
    inputs = (scores.requires_grad_(), temperature)
    assert torch.autograd.gradcheck(lambda x, t: gumbel_softmax(x, allowed, 6, t), inputs)
    factor = torch.arange(6, dtype=torch.float64)
    grads = [
        torch.autograd.grad((gumbel_softmax(scores, allowed, 6, temperature, is_hard) * factor).sum(), inputs)
        for is_hard in (False, True)
    ]
    torch.testing.assert_close(grads[0], grads[1])
    assert grads[0][0][0].count_nonzero() == 0


REWARDS = torch.tensor([1.0, -2.0, 0.5, 3.0, 50.0], dtype=torch.float64)
LOGITS = torch.tensor([0.3, -0.5, 1.0, 0.1, 2.0], dtype=torch.float64)
MAY = torch.tensor([True, True, True, True, False])
NUM_DRAWS = 40_000


def reinforce_gradients(seed: int, baseline: float) -> Tensor:
    """[draw, key] the gradient of the loss of each of many draws from one distribution."""
    scores = LOGITS.expand(NUM_DRAWS, 5).clone().requires_grad_()
    drawn = sample(scores, MAY, seed)
    reward = (drawn.weights * REWARDS).sum(-1)
    reinforce_loss(drawn.log_prob, reward, baseline, drawn.entropy).sum().backward()
    assert scores.grad is not None
    return scores.grad


def expected_reward(logits: Tensor) -> Tensor:
    return (torch.softmax(logits[:4], -1) * REWARDS[:4]).sum()


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("baseline", [0.0, 1.3, -4.0])
def test_reinforce_is_unbiased(seed: int, baseline: float):
    """Its mean is the gradient of -E[reward]: 4 numbers within 4.2 standard errors, beyond it once in 9,000."""
    exact = torch.autograd.functional.jacobian(expected_reward, LOGITS)
    grads = reinforce_gradients(seed, baseline)
    errors = grads.std(0)[:4] / math.sqrt(NUM_DRAWS)
    assert float(errors.max()) < 0.1 * float(exact.abs().max())
    assert float(((grads.mean(0) + exact)[:4].abs() / errors).max()) < 4.2
    assert grads[:, 4].count_nonzero() == 0


def test_a_baseline_near_the_expected_reward_lowers_the_variance():
    variances = [float(reinforce_gradients(0, baseline).var(0).sum()) for baseline in (-4.0, 0.0, 0.8)]
    assert variances[0] > 2 * variances[1] > 2 * variances[2]


def test_reinforce_loss_by_hand():
    log_prob = torch.tensor([[-1.0, -2.0], [-3.0, -0.5]], requires_grad=True)
    entropy = torch.tensor([[0.5, 1.0], [0.25, 0.75]], requires_grad=True)
    reward = torch.tensor([2.0, -1.0], requires_grad=True)
    baseline = torch.tensor(0.5, requires_grad=True)
    loss = reinforce_loss(log_prob, reward, baseline, entropy, reward_weight=0.1, entropy_weight=0.002)
    expected = [[0.15 - 0.001, 0.3 - 0.002], [-0.45 - 0.0005, -0.075 - 0.0015]]
    torch.testing.assert_close(loss, torch.tensor(expected))
    loss.sum().backward()
    torch.testing.assert_close(log_prob.grad, torch.tensor([[-0.15, -0.15], [0.15, 0.15]]))
    torch.testing.assert_close(entropy.grad, torch.full((2, 2), -0.002))
    assert reward.grad is None
    assert baseline.grad is None


def test_the_axes_of_a_reward_are_the_first_ones():
    log_prob = torch.randn(2, 2, 3, generator=torch.Generator().manual_seed(0))
    reward = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    loss = reinforce_loss(log_prob, reward, torch.zeros(2, 2), torch.zeros_like(log_prob))
    torch.testing.assert_close(loss, -reward[..., None] * log_prob)
    torch.testing.assert_close(
        reinforce_loss(log_prob, torch.tensor(2.0), 0.5, torch.zeros_like(log_prob)), -1.5 * log_prob
    )
    for shape in ((3,), (2, 3), (2, 2, 3, 1)):
        with pytest.raises(ShapeError, match="does not fit log_prob"):
            reinforce_loss(log_prob, torch.zeros(shape), 0.0, torch.zeros_like(log_prob))


def test_baseline_is_a_moving_average():
    baseline = torch.zeros(())
    for rewards in ([-1.0, -3.0], [-4.0, -4.0], [0.0, 1.0]):
        baseline = update_baseline(baseline, torch.tensor(rewards, requires_grad=True))
    assert float(baseline) == pytest.approx(0.9 * (0.9 * 0.1 * -2.0 + 0.1 * -4.0) + 0.1 * 0.5)
    assert not baseline.requires_grad
    halved = update_baseline(torch.tensor(8.0), torch.tensor([[2.0], [4.0]], dtype=torch.bfloat16), decay=0.5)
    assert float(halved) == 5.5
    assert halved.dtype == torch.float32


NORMALIZERS: dict[str, tuple[Normalizer, Choose]] = {
    "hard": (Hard(), hard),
    "sampled": (Sampled(5), lambda scores, allowed: sample(scores, allowed, 5).weights),
    "straight_through": (StraightThrough(), straight_through),
    "straight_through_drawn": (StraightThrough(5), lambda scores, allowed: straight_through(scores, allowed, 5)),
    "gumbel_softmax": (GumbelSoftmax(5, 0.5), lambda scores, allowed: gumbel_softmax(scores, allowed, 5, 0.5)),
    "gumbel_softmax_hard": (
        GumbelSoftmax(torch.tensor(5), torch.tensor(0.5), is_hard=True),
        lambda scores, allowed: gumbel_softmax(scores, allowed, 5, 0.5, is_hard=True),
    ),
}


@pytest.mark.parametrize("name", NORMALIZERS)
def test_attention_with_one_key(name: str):
    normalizer, choose = NORMALIZERS[name]
    generator = torch.Generator().manual_seed(3)
    query, key = (torch.randn(2, 2, size, 4, generator=generator) for size in (3, 6))
    query.requires_grad_()
    mask = padding(torch.tensor([4, 0]))
    attended = attend(query, key, key, score=Dot(4, 4), mask=mask, normalizer=normalizer, need=("weights", "argmax"))
    allowed = torch.arange(6) < torch.tensor([4, 0])[:, None, None, None]
    weights = choose(query.detach() @ key.mT, allowed)
    torch.testing.assert_close(attended.weights, weights)
    torch.testing.assert_close(attended.context, weights @ key)
    assert attended.context[1].count_nonzero() == 0
    if name in {"hard", "sampled"}:
        assert not attended.context.requires_grad
    else:
        attended.context.sum().backward()
        assert query.grad is not None
        assert float(query.grad[0].abs().max()) > 1e-3
        assert query.grad[1].count_nonzero() == 0


def test_temperature_divides_the_scores_of_a_draw():
    """A hot distribution draws the worst of two keys about as often as the best, a cold one never."""
    query, key = torch.ones(1000, 1), torch.tensor([[0.0], [5.0]])
    counts: list[float] = []
    for temperature in (0.1, 5.0, 1e6):
        normalizer = Sampled(7, temperature)
        attended = attend(query, key, key, score=Dot(1, 1), normalizer=normalizer, need=("weights",))
        assert attended.weights is not None
        counts.append(float(attended.weights[:, 0].sum()))
    assert counts[0] == 0
    assert abs(counts[1] - 1000 / (1 + math.e)) < 4.5 * 14.1
    assert abs(counts[2] - 500) < 4.5 * 15.9


def test_a_draw_of_a_normalizer_gives_its_log_prob_and_the_entropy_of_its_distribution():
    scores, allowed = some_scores(12)
    rows = number_rows((10,)) + 3
    drawn, normalized = sample(scores, allowed, 5, rows), Sampled(5).normalize(scores, allowed, rows)
    assert torch.equal(normalized.weights, drawn.weights)
    assert normalized.log_prob is not None
    assert torch.equal(normalized.log_prob, drawn.log_prob)
    assert normalized.entropy is not None
    assert torch.equal(normalized.entropy, drawn.entropy)


def test_attention_gives_what_reinforce_needs():
    query, key = torch.randn(2, 3, 4).double(), torch.randn(2, 5, 4).double()
    mask = padding(torch.tensor([5, 0]))
    attended = attend(query, key, key, score=Dot(4, 4), mask=mask, normalizer=Sampled(1), need=("log_prob", "entropy"))
    logs = torch.log_softmax(query @ key.mT, dim=-1)
    assert attended.entropy is not None
    torch.testing.assert_close(attended.entropy[0], -(logs.exp() * logs).sum(dim=-1)[0])
    assert attended.log_prob is not None
    chosen = [key[0].tolist().index(row) for row in attended.context[0].tolist()]
    torch.testing.assert_close(attended.log_prob[0], logs[0, range(3), chosen])
    assert (attended.log_prob[1].tolist(), attended.entropy[1].tolist()) == ([0.0] * 3, [0.0] * 3)


def test_the_entropy_of_one_hot_weights_is_refused_where_it_would_mislead():
    query = torch.zeros(2, 3)
    for normalizer in (StraightThrough(), GumbelSoftmax(0)):
        with pytest.raises(NeedError, match="cannot provide entropy"):
            attend(query, query, query, score=Dot(3, 3), normalizer=normalizer, need=("entropy",))


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan])
def test_a_temperature_that_is_not_above_zero_is_refused(temperature: float):
    makers: list[Callable[[], object]] = [
        lambda: Sampled(0, temperature),
        lambda: StraightThrough(None, temperature),
        lambda: GumbelSoftmax(0, temperature),
        lambda: gumbel_softmax(torch.zeros(2), None, 0, temperature),
    ]
    for make in makers:
        with pytest.raises(UsageError, match="is not above 0"):
            make()
