"""Hard attention: one key per query, the best or a drawn one, and ways to learn through the choice.

Xu et al. 2015, arXiv:1502.03044, section 4.1: the key s ~ softmax(scores) is drawn, and the scores are learned by
REINFORCE (Williams 1992). Gumbel-softmax and straight-through: Jang, Gu and Poole 2017, arXiv:1611.01144; Bengio,
Leonard and Courville 2013, arXiv:1308.3432.

Noise is a function of (seed, row, key) alone, so that a recomputed tile of rows draws the same keys on every device.
Two calls with the same seed draw the same noise; without a seed, each call draws one from torch's generator.
"""

import math
from dataclasses import dataclass, replace
from math import prod
from typing import Final, final

import torch
from torch import Tensor

from heedful.attention.interface import Allowed, Normalized, Normalizer, RowIds, Scores
from heedful.attention.simplex import shift, wide_dtype
from heedful.attention.softmax import SOFTMAX, Softmax, require_positive
from heedful.cpu.concrete import concrete

# SplitMix64: Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators", figure 17.
_STEP: Final = 0x9E3779B97F4A7C15 - (1 << 64)
_FIRST_FACTOR: Final = 0xBF58476D1CE4E5B9 - (1 << 64)
_SECOND_FACTOR: Final = 0x94D049BB133111EB - (1 << 64)


@dataclass(frozen=True)
class Drawn:
    """Key drawn for each query, and its distribution."""

    weights: Tensor
    """[*batch, query, key] one-hot, without gradient; a zero row where nothing is allowed."""
    log_prob: Tensor
    """[*batch, query] of the drawn key, in nats, float32 at least, with gradient; 0 where nothing is allowed."""
    entropy: Tensor
    """[*batch, query] of the distribution, in nats, float32 at least, with gradient; 0 where nothing is allowed."""
    probabilities: Tensor
    """[*batch, query, key] the distribution, with gradient: soft weights."""


def number_rows(leading: tuple[int, ...], device: torch.device | None = None) -> RowIds:
    """Number the rows of a whole call from 0, so that any tile of them can be recomputed.

    Args:
        leading: (*batch, query).
        device: where the scores live.

    Returns:
        [*batch, query] int64; slice it like the scores to get the `row_ids` of a tile.
    """
    # A product of sizes, for in a recorded graph they may be symbols.
    return torch.arange(prod(leading), device=device).reshape(leading)


def random_bits(seed: Tensor | int, row_ids: RowIds, num_keys: int) -> Tensor:
    """Make 64 random bits for each row and key by hashing: every row is a SplitMix64 stream.

    Args:
        seed: [] int64, or any integer, of which the low 64 bits are used.
        row_ids: [*batch, query] int64, any numbers; equal numbers give equal bits.
        num_keys: number of keys; the bits of a key do not depend on it.

    Returns:
        [*batch, query, key] int64, uniformly distributed.
    """
    if not isinstance(seed, Tensor):
        # Two's complement, to fit a larger number into int64.
        seed = torch.tensor((seed + (1 << 63)) % (1 << 64) - (1 << 63))
    seed = seed.to(row_ids.device)
    rows = _mix(_mix(seed + _STEP) + row_ids * _STEP)
    return _mix(rows[..., None] + torch.arange(1, num_keys + 1, device=row_ids.device) * _STEP)


def gumbel_noise(seed: Tensor | int, row_ids: RowIds, num_keys: int, dtype: torch.dtype = torch.float32) -> Scores:
    """Draw noise -log(-log u), u uniform in (0, 1): the argmax of scores + noise is a draw from their softmax.

    Args:
        seed: as for `random_bits`.
        row_ids: [*batch, query] int64.
        num_keys: at least 0.
        dtype: float32 or float64; the noise of one is that of the other, rounded (coarsely near the lower end).

    Returns:
        [*batch, query, key] finite, between -4 and 38.
    """
    # 1 - u rather than u, because large noise decides the argmax, and floating point is finest near 0.
    return _uniform(seed, row_ids, num_keys, dtype).neg_().log1p_().neg_().log_().neg_()


def normal_noise(seed: Tensor | int, row_ids: RowIds, num_keys: int, dtype: torch.dtype = torch.float32) -> Scores:
    """Draw standard normal noise.

    Args:
        seed: as for `random_bits`.
        row_ids: [*batch, query] int64.
        num_keys: at least 0.
        dtype: float32 or float64.

    Returns:
        [*batch, query, key] finite, between -9 and 9.
    """
    return _uniform(seed, row_ids, num_keys, dtype).mul_(2.0).sub_(1.0).erfinv_().mul_(math.sqrt(2.0))


def hard(scores: Scores, allowed: Allowed | None = None) -> Scores:
    """Put all weight on the key with the largest score, in a tie on the first.

    Args:
        scores: [*batch, query, key] finite.
        allowed: [#*batch, #query, key] bool, True = may attend; None = all.

    Returns:
        [*batch, query, key] one-hot, without gradient; a zero row where nothing is allowed.

    Example:
        >>> hard(torch.tensor([[1.0, 3.0, 3.0]])).tolist()
        [[0.0, 1.0, 0.0]]
    """
    if not scores.shape[-1]:
        return torch.zeros_like(scores)
    hidden = scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)
    is_best = torch.arange(scores.shape[-1], device=scores.device) == hidden.argmax(dim=-1, keepdim=True)
    return (is_best if allowed is None else is_best & allowed.any(dim=-1, keepdim=True)).to(scores.dtype)


def sample(scores: Scores, allowed: Allowed | None, seed: Tensor | int, row_ids: RowIds | None = None) -> Drawn:
    """Draw one key for each query from softmax(scores).

    The weights carry no gradient; learn with `reinforce_loss` on log_prob and entropy. Xu et al. 2015, section 4.1.

    Args:
        scores: [*batch, query, key] finite, any floating dtype; computed in float32 at least.
        allowed: [#*batch, #query, key] bool, True = may attend; None = all.
        seed: as for `random_bits`.
        row_ids: [*batch, query] numbers of the rows; None numbers them from 0.

    Returns:
        The drawn key, and the statistics of its distribution that REINFORCE needs.
    """
    shifted = shift(scores, allowed)
    log_probs = torch.log_softmax(shifted, dim=-1)
    probabilities = log_probs.exp()
    if allowed is not None:
        probabilities = probabilities.masked_fill(~allowed, 0.0)
    weights = hard(shifted + _noise(shifted, seed, row_ids), allowed)
    return Drawn(
        weights=weights.to(scores.dtype),
        log_prob=(log_probs * weights).sum(dim=-1),
        entropy=-(probabilities * log_probs).sum(dim=-1),
        probabilities=probabilities.to(scores.dtype),
    )


def straight_through(
    scores: Scores, allowed: Allowed | None = None, seed: Tensor | int | None = None, row_ids: RowIds | None = None
) -> Scores:
    """Choose one key for each query, and let gradients through as if the weights were softmax(scores).

    Bengio et al. 2013, arXiv:1308.3432: biased, but without the variance of REINFORCE.

    Args:
        scores: [*batch, query, key] finite, any floating dtype; computed in float32 at least.
        allowed: [#*batch, #query, key] bool, True = may attend; None = all.
        seed: draws the key from the softmax, as `sample` does; None takes the key of the largest score.
        row_ids: [*batch, query] numbers of the rows; None numbers them from 0.

    Returns:
        [*batch, query, key] exactly one-hot, with the gradient of softmax; a zero row where nothing is allowed.
    """
    shifted = shift(scores, allowed)
    choice = hard(shifted if seed is None else shifted + _noise(shifted, seed, row_ids), allowed)
    return _with_gradient_of(SOFTMAX.normalize(shifted, allowed).weights, choice).to(scores.dtype)


def gumbel_softmax(
    scores: Scores,
    allowed: Allowed | None,
    seed: Tensor | int,
    temperature: Tensor | float = 1.0,
    is_hard: bool = False,
    row_ids: RowIds | None = None,
) -> Scores:
    """Relax a draw from softmax(scores): weights = softmax((scores + noise) / temperature).

    Jang et al. 2017, arXiv:1611.01144, eq. 2; as the temperature goes to 0 the weights become the one-hot draw.

    Args:
        scores: [*batch, query, key] finite, any floating dtype; computed in float32 at least.
        allowed: [#*batch, #query, key] bool, True = may attend; None = all.
        seed: as for `random_bits`.
        temperature: above 0; a tensor has shape [] and receives gradient.
        is_hard: give the one-hot draw with the gradient of the relaxed weights (section 2.2, straight-through).
        row_ids: [*batch, query] numbers of the rows; None numbers them from 0.

    Returns:
        [*batch, query, key] weights with gradient; a zero row, without gradient, where nothing is allowed.

    Raises:
        UsageError: the temperature is not above 0.
        ShapeError: it is a tensor with axes.
    """
    require_positive(temperature, "gumbel_softmax")
    inverse_temperature = 1.0 / temperature
    scaled = scores.to(wide_dtype(scores.dtype)) * inverse_temperature
    return _relax(scaled, allowed, inverse_temperature, is_hard, seed, row_ids).to(scores.dtype)


def _uniform(seed: Tensor | int, row_ids: Tensor, num_keys: int, dtype: torch.dtype) -> Tensor:
    """Uniform numbers in (0, 1), of the 53 bits that a float64 holds."""
    bits = random_bits(seed, row_ids, num_keys)
    uniform = ((bits >> 11) & ((1 << 53) - 1)).to(dtype) * 2.0**-53
    return uniform.clamp_(2.0**-54, 1.0 - torch.finfo(dtype).eps / 2)


def _mix(state: Tensor) -> Tensor:
    """Output function of SplitMix64; int64 products wrap, and shifts are corrected for the sign bit."""
    state = (state ^ ((state >> 30) & ((1 << 34) - 1))) * _FIRST_FACTOR
    state = (state ^ ((state >> 27) & ((1 << 37) - 1))) * _SECOND_FACTOR
    return state ^ ((state >> 31) & ((1 << 33) - 1))


def fresh_seed() -> Tensor:
    """Draw a seed from torch's generator.

    Returns:
        [] int64.
    """
    if not concrete():
        return torch.randint(torch.iinfo(torch.int64).max, ())  # neither compilers nor vmap take draws in place
    return torch.empty((), dtype=torch.int64).random_()


def _noise(scores: Tensor, seed: Tensor | int, row_ids: Tensor | None) -> Tensor:
    rows = number_rows(scores.shape[:-1], scores.device) if row_ids is None else row_ids
    return gumbel_noise(seed, rows, scores.shape[-1], scores.dtype)


def _with_gradient_of(soft: Tensor, choice: Tensor) -> Tensor:
    # The soft weights cancel exactly, so that the result is exactly one-hot.
    return choice + (soft - soft.detach())


def _relax(
    scaled: Tensor,
    allowed: Tensor | None,
    inverse_temperature: Tensor | float,
    is_hard: bool,
    seed: Tensor | int,
    row_ids: Tensor | None,
) -> Tensor:
    """Gumbel-softmax of scores already divided by the temperature."""
    wide = scaled.to(wide_dtype(scaled.dtype))
    noisy = wide + _noise(wide, seed, row_ids) * inverse_temperature
    soft = SOFTMAX.normalize(noisy, allowed).weights
    return (_with_gradient_of(soft, hard(noisy, allowed)) if is_hard else soft).to(scaled.dtype)


@final
@dataclass(frozen=True, eq=False)
class Hard(Normalizer):
    """weights = one-hot of the largest score, the first of equal ones; no gradient reaches the scores.

    Hahn 2020, arXiv:1906.06755, section 3.

    Cost: a comparison per score.

    Example:
        >>> scores = torch.tensor([[2.0, 1.0, -1.0]]).double()
        >>> Hard().normalize(scores, None).weights.round(decimals=2).tolist()
        [[1.0, 0.0, 0.0]]
    """

    provides = frozenset({"weights", "argmax", "entropy"})
    weights_lie_in = "simplex"
    has_gradient = False

    @property
    def inverse_temperature(self) -> Tensor | float:
        return 1.0

    def normalize(self, scores: Scores, allowed: Allowed | None, row_ids: RowIds | None = None) -> Normalized:
        return Normalized(hard(scores, allowed))


@final
@dataclass(frozen=True, eq=False)
class Sampled(Normalizer):
    """weights = one-hot of a key drawn from softmax(scores / temperature). Xu et al. 2015, arXiv:1502.03044, 4.1.

    Cost: two exponentials, two logarithms and a hash per score.

    Example:
        >>> Sampled(seed=1).normalize(torch.zeros(2, 3), None).weights.sum(dim=-1).tolist()  # one key each
        [1.0, 1.0]
    """

    seed: Tensor | int | None = None
    """Seed as for `random_bits`; None draws a new one from torch's generator in every call."""
    temperature: Tensor | float = 1.0
    """Temperature above 0; a tensor has shape [] and receives gradient through log_prob and entropy."""

    provides = frozenset({"weights", "argmax", "entropy", "log_prob"})
    weights_lie_in = "simplex"
    is_random = True
    has_gradient = False

    def __post_init__(self) -> None:
        require_positive(self.temperature, "sampled")

    @property
    def inverse_temperature(self) -> Tensor | float:
        return 1.0 / self.temperature

    def seeded(self) -> "Sampled":
        return self if self.seed is not None else replace(self, seed=fresh_seed())

    def without_noise(self) -> Hard:
        return Hard()

    def normalize(self, scores: Scores, allowed: Allowed | None, row_ids: RowIds | None = None) -> Normalized:
        drawn = sample(scores, allowed, fresh_seed() if self.seed is None else self.seed, row_ids)
        return Normalized(drawn.weights, entropy=drawn.entropy, log_prob=drawn.log_prob)


@final
@dataclass(frozen=True, eq=False)
class StraightThrough(Normalizer):
    """weights = one-hot forward, softmax(scores / temperature) backward. Bengio et al. 2013, arXiv:1308.3432.

    Cost: an exponential per score; with a seed, two logarithms and a hash more.

    Example:
        >>> StraightThrough(seed=1).normalize(torch.zeros(2, 3), None).weights.sum(dim=-1).tolist()  # one key each
        [1.0, 1.0]
    """

    seed: Tensor | int | None = None
    """Seed of the drawn key, new in every call; None chooses the key of the largest score."""
    temperature: Tensor | float = 1.0
    """Temperature above 0; a tensor has shape [] and receives gradient."""

    provides = frozenset({"weights", "argmax"})
    weights_lie_in = "simplex"
    is_random = True

    def __post_init__(self) -> None:
        require_positive(self.temperature, "straight_through")

    @property
    def inverse_temperature(self) -> Tensor | float:
        return 1.0 / self.temperature

    def without_noise(self) -> Hard:
        return Hard()

    def normalize(self, scores: Scores, allowed: Allowed | None, row_ids: RowIds | None = None) -> Normalized:
        return Normalized(straight_through(scores, allowed, self.seed, row_ids))


@final
@dataclass(frozen=True, eq=False)
class GumbelSoftmax(Normalizer):
    """weights = softmax((scores + Gumbel noise) / temperature). Jang, Gu and Poole 2017, arXiv:1611.01144, eq. 2.

    Cost: an exponential, two logarithms and a hash per score.

    Example:
        >>> bool((GumbelSoftmax(seed=1).normalize(torch.zeros(2, 3), None).weights > 0).all())  # relaxed: some of each
        True
    """

    seed: Tensor | int | None = None
    """Seed as for `random_bits`; None draws a new one from torch's generator in every call."""
    temperature: Tensor | float = 1.0
    """Temperature of the relaxation, above 0; towards 0 the weights become one-hot. A tensor receives gradient."""
    is_hard: bool = False
    """Whether the forward pass uses the one-hot draw."""

    provides = frozenset({"weights", "argmax"})
    weights_lie_in = "simplex"
    is_random = True

    def __post_init__(self) -> None:
        require_positive(self.temperature, "gumbel_softmax")

    @property
    def inverse_temperature(self) -> Tensor | float:
        return 1.0 / self.temperature

    def seeded(self) -> "GumbelSoftmax":
        return self if self.seed is not None else replace(self, seed=fresh_seed())

    def without_noise(self) -> Hard | Softmax:
        return Hard() if self.is_hard else Softmax(self.temperature)

    def normalize(self, scores: Scores, allowed: Allowed | None, row_ids: RowIds | None = None) -> Normalized:
        seed = fresh_seed() if self.seed is None else self.seed
        return Normalized(_relax(scores, allowed, self.inverse_temperature, self.is_hard, seed, row_ids))
