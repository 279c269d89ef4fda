"""Additive scores as products of matrices: tanh(a + b) taken apart into features of a and of b, to a chosen error.

tanh(a + b) = 1 - 2 x / (x + y) with x = e^-2a and y = e^2b: a Cauchy kernel, which functions of one variable times
functions of the other come as near to as Zolotarev's third problem says. Taken at nodes p_l = e^(2 c_l) and put
together by rational interpolation with poles at -p_l,

    tanh(a + b) = sum_l tanh(a + c_l) L_l(b) + 1 - sum_l L_l(b)      up to the error below,
    L_l(b) = w_l r(y) / (y - p_l),   r(y) = product_k (y - p_k) / (y + p_k),   L_l(c_l) = 1,

the share of x / (x + y) that is lost is r(x) r(y). Zolotarev's nodes make the largest |r| on [e^-2R, e^2R] smallest, so
the error of tanh for |a|, |b| <= R is at most `error_of(R, rank)` = 8 exp(-pi^2 rank / (ln 4 + 4 R)) (Beckermann and
Townsend 2019, doi:10.1137/19M1244433, corollary 4.2). Scores are then one product of matrices hidden * rank deep.

This is the formula to read, in PyTorch and float64; kernels/cauchy_triton.py runs it on a GPU.
"""

import math
from functools import lru_cache
from typing import Final

import torch
from torch import Tensor

LARGEST_RANK: Final = 24
"""Beyond it exact scores are faster."""
SHARE: Final = 0.5
"""Of the unit of the inputs' type that the features may miss tanh by."""


def error_of(half_range: float, rank: int) -> float:
    """Bound the error of tanh.

    Args:
        half_range: R, largest |a| and |b|, above 0.
        rank: features, at least 1.

    Returns:
        The largest error of tanh(a + b) that features can make, before rounding.
    """
    return 8.0 * math.exp(-(math.pi**2) * rank / (math.log(4.0) + 4.0 * half_range))


def rank_for(half_range: float, error: float) -> int | None:
    """Choose how many features are enough.

    Args:
        half_range: R; may be infinite or NaN.
        error: of tanh, above 0.

    Returns:
        An even number, or None where more than `LARGEST_RANK` were needed.

    Example:
        >>> rank_for(2.2, 5e-4), rank_for(4.3, 5e-4), rank_for(9.0, 5e-4)
        (10, 20, None)
    """
    if not half_range < math.inf:
        return None
    needed = math.log(8.0 / error) * (math.log(4.0) + 4.0 * half_range) / math.pi**2
    rank = 2 * max(1, math.ceil(needed / 2.0))
    return rank if rank <= LARGEST_RANK else None


@lru_cache(maxsize=256)
def nodes(half_range: float, rank: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Place Zolotarev's nodes: p_l = e^2R dn((2 l - 1) K / (2 rank)), with the modulus that belongs to e^-4R.

    Args:
        half_range: R, above 0.
        rank: even.

    Returns:
        c_l = ln(p_l) / 2 and the weights w_l of the interpolation.
    """
    complement = math.exp(-4.0 * half_range)
    # Arithmetic and geometric means, and Jacobi's amplitude from them (DLMF 22.20(ii)).
    means, gaps = [1.0], [math.sqrt(1.0 - complement**2)]
    other = complement
    while gaps[-1] > 1e-17 and len(means) < 20:
        gaps.append((means[-1] - other) / 2.0)
        other, mean = math.sqrt(means[-1] * other), (means[-1] + other) / 2.0
        means.append(mean)
    upper: list[float] = []
    for place in range(rank // 2):
        quarter = math.pi / (2.0 * means[-1])
        angle = 2.0 ** (len(means) - 1) * means[-1] * (2 * place + 1) * quarter / (2 * rank)
        for mean, gap in zip(reversed(means[1:]), reversed(gaps[1:]), strict=True):
            angle = (angle + math.asin(gap / mean * math.sin(angle))) / 2.0
        dn = math.hypot(math.cos(angle), complement * math.sin(angle))
        upper.append(half_range + math.log(dn) / 2.0)
    # The lower half mirrors the upper one, where digits are.
    centres = (*upper, *(-centre for centre in reversed(upper)))
    points = [math.exp(2.0 * centre) for centre in centres]
    weights = tuple(
        2.0 * own * math.prod((own + point) / (own - point) for point in points if point != own) for own in points
    )
    return centres, weights


def key_features(key: Tensor, half_range: float, rank: int) -> Tensor:
    """Evaluate L_l.

    Args:
        key: [*] b, at most R in size.
        half_range: R.
        rank: even.

    Returns:
        [*, rank] float64.
    """
    centres, weights = nodes(half_range, rank)
    points = torch.tensor(centres, dtype=torch.float64, device=key.device).mul(2.0).exp()
    y = (2.0 * key.double()).exp()[..., None]
    differences = y - points
    # At a node 0 / 0 is 1: any small number in place of the 0 cancels.
    differences = torch.where(differences == 0.0, 1e-30, differences)
    whole = (differences / (y + points)).prod(dim=-1, keepdim=True)
    return torch.tensor(weights, dtype=torch.float64, device=key.device) * whole / differences


def query_features(query: Tensor, half_range: float, rank: int) -> Tensor:
    """Evaluate tanh(a + c_l).

    Args:
        query: [*] a, at most R in size.
        half_range: R.
        rank: even.

    Returns:
        [*, rank] float64.
    """
    centres = torch.tensor(nodes(half_range, rank)[0], dtype=torch.float64, device=query.device)
    return torch.tanh(query.double()[..., None] + centres)


def matched_scores(query: Tensor, key: Tensor, vector: Tensor, half_range: float, rank: int) -> Tensor:
    """Score by features: the formula, with nothing saved.

    Args:
        query: [*batch, query, hidden] a, at most R in size.
        key: [*batch, key, hidden] b.
        vector: [hidden].
        half_range: R.
        rank: even.

    Returns:
        [*batch, query, key] float64, near vector . tanh(query_i + key_j).

    Cost: query * key * hidden * rank multiply-adds.
    """
    left = query_features(query, half_range, rank).flatten(-2)
    right = key_features(key, half_range, rank) * vector.double()[:, None]
    constant = vector.double().sum() - right.sum(dim=(-1, -2))
    return left @ right.flatten(-2).mT + constant[..., None, :]


def measure(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """Find the range that features must cover, and the shift of each feature that makes it smallest.

    tanh((a - s) + (b + s)) is the same for every s.

    Args:
        query: [*, hidden] a.
        key: [*, hidden] b.

    Returns:
        [] R over all features, float32, NaN where something is; and [hidden] s.
    """
    ends = [(part.flatten(0, -2).amin(dim=0).float(), part.flatten(0, -2).amax(dim=0).float()) for part in (query, key)]
    (low, high), (key_low, key_high) = ends
    wanted = torch.stack(
        ((high - low) / 2.0, (key_high - key_low) / 2.0, (high + key_high) / 2.0, -(low + key_low) / 2.0)
    )
    own = wanted.amax(dim=0)
    # Any shift between these bounds keeps both sides within R of the feature.
    shift = (torch.maximum(high - own, -key_low - own) + torch.minimum(low + own, own - key_high)) / 2.0
    return own.amax(), shift
