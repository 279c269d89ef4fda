"""Sparse normalizers: sparsemax and entmax, which give exactly zero weight to low scores.

entmax_alpha(z) = argmax over the simplex of p . z + (1 / (alpha (alpha - 1))) sum_j (p_j - p_j^alpha), which is
p_j = [(alpha - 1) z_j - threshold]_+ ^ (1 / (alpha - 1)) with the threshold that makes the sum 1.
alpha = 1 is softmax, alpha = 2 sparsemax (Martins and Astudillo 2016, arXiv:1602.02068), the rest Peters, Niculae and
Martins 2019, arXiv:1905.05702; alpha may be learned (Correia, Niculae and Martins 2019, arXiv:1909.00015).
"""

import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import torch
from torch import Tensor

from heedful.attention.interface import Allowed, Normalized, Normalizer, RowIds, Scores
from heedful.attention.softmax import SOFTMAX, require_positive
from heedful.errors import ShapeError, UsageError

FLOOR: Final = -1000.0
"""Distance below the largest score of a row at which scores are cut off: exp(-1000) is zero in every dtype."""

_LARGEST_EXPONENT: Final = 80.0
"""Exponent whose exp is finite in float32 even after a factor of 1000."""


def sparsemax(scores: Scores, allowed: Allowed | None = None) -> Scores:
    """Project scores onto the simplex: the nearest point to them whose coordinates are weights.

    weights_j = [z_j - threshold]_+; Martins and Astudillo 2016, arXiv:1602.02068, algorithm 1, exact by sorting.

    Args:
        scores: [*batch, query, key] finite, any floating dtype; computed in float32 at least.
        allowed: [#*batch, #query, key] bool, True = may attend; None = all.

    Returns:
        [*batch, query, key] weights in the dtype of the scores; a zero row, without gradient, where nothing is allowed.

    Cost: a sort of each row; backward is one pass. It saves the weights only.

    Example:
        >>> sparsemax(torch.tensor([[1.0, 0.5, -1.0]])).tolist()
        [[0.75, 0.25, 0.0]]
    """
    return entmax(scores, allowed, 2.0)


def entmax(scores: Scores, allowed: Allowed | None = None, alpha: Tensor | float = 1.5) -> Scores:
    """Turn scores into weights that are the sparser the larger alpha is.

    alpha = 1.5 (Peters et al. 2019, arXiv:1905.05702, algorithm 2) and 2 are exact by sorting, 1 is softmax; every
    other number, and every tensor, is solved by bisection to the last bits of the dtype, and normalised.

    Args:
        scores: [*batch, query, key] finite, any floating dtype; computed in float32 at least.
        allowed: [#*batch, #query, key] bool, True = may attend; None = all.
        alpha: at least 1. A tensor has shape [] or [#*batch, #query, 1] (one for each head: [head, 1, 1]) and
            receives gradient; its values below 1 count as 1. Above 2 gradients grow as num_keys ** (alpha - 2).

    Returns:
        [*batch, query, key] weights in the dtype of the scores; a zero row, without gradient, where nothing is allowed.

    Raises:
        UsageError: alpha is a number below 1 or not finite.
        ShapeError: alpha is a tensor that does not fit the rows of the scores.

    Cost: a sort of each row, or 28 (float64: 58) passes of log and exp; backward is one pass. It saves the weights
    only.

    Example:
        >>> [round(weight, 4) for weight in entmax(torch.tensor([0.4, 0.0, -2.0])).tolist()]
        [0.64, 0.36, 0.0]
    """
    if isinstance(alpha, Tensor):
        rows = (*scores.shape[:-1], 1)
        pairs = zip(reversed(alpha.shape), reversed(rows), strict=False)
        if alpha.dim() > len(rows) or any(size not in (1, row) for size, row in pairs):
            raise ShapeError(f"entmax: alpha {list(alpha.shape)} must broadcast to the rows {list(rows)} of the scores")
        alpha = alpha.to(scores.device, wide_dtype(scores.dtype)).expand(rows)
    else:
        _require_order(alpha)
        if alpha == 1.0:
            return SOFTMAX.normalize(scores, allowed).weights
    # The compiler refuses a rule of forward mode, and records nothing that would ask for it.
    function = _RecordedEntmax if torch.compiler.is_compiling() else _Entmax
    return function.apply(scores.to(wide_dtype(scores.dtype)), allowed, alpha).to(scores.dtype)


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype to compute in.

    Returns:
        float64 for float64, else float32.
    """
    return dtype if dtype == torch.float64 else torch.float32


def shift(scores: Scores, allowed: Allowed | None) -> Scores:
    """Shift each row so that its largest allowed score is 0, which changes neither softmax nor entmax.

    Args:
        scores: [*batch, query, key].
        allowed: [#*batch, #query, key] bool, True = may attend; None = all.

    Returns:
        [*batch, query, key] in float32 at least, between `FLOOR` and 0; `FLOOR`, without gradient, where not allowed.
    """
    wide = scores.to(wide_dtype(scores.dtype))
    if not wide.shape[-1]:
        return wide
    hidden = wide if allowed is None else wide.masked_fill(~allowed, -torch.inf)
    largest = hidden.detach().amax(dim=-1, keepdim=True)
    # In a row without allowed keys the largest score is -inf, and -inf - -inf would be NaN.
    return (hidden - largest.masked_fill(largest == -torch.inf, 0.0)).clamp_min(FLOOR)


def _require_order(alpha: float) -> None:
    if not 1.0 <= alpha < math.inf:
        raise UsageError(f"entmax: alpha must be a finite number of at least 1, got {alpha}")


class _EntmaxFunction(torch.autograd.Function):
    """Jacobian diag(s) - s s^T / sum(s), s = p^(2 - alpha) where p > 0, else 0; Peters et al. 2019, proposition 2.

    It is written in terms of the weights, which are results themselves, so that autograd differentiates it in turn.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Scores, allowed: Allowed | None, alpha: Tensor | float) -> Scores:
        if not scores.numel():
            return torch.zeros_like(scores)
        weights = _solve(shift(scores, allowed), alpha)
        total = weights.sum(dim=-1, keepdim=True)
        # Division by infinity gives the zeros of a row without allowed keys, without one more pass over all weights.
        return weights / (
            total if allowed is None else total.masked_fill(~allowed.any(dim=-1, keepdim=True), torch.inf)
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Scores, Allowed | None, Tensor | float], output: Scores) -> None:
        alpha = inputs[2]
        ctx.alpha = None if isinstance(alpha, Tensor) else alpha
        saved = (output, *([alpha] if isinstance(alpha, Tensor) else []))
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        jacobian = _Jacobian.saved(ctx)
        # A gradient may be infinite where a weight is zero (that of an entropy is): no share of it comes through.
        grad = grad_outputs[0].masked_fill(~jacobian.support, 0.0)
        centred = grad - jacobian.mean(grad)
        alpha_grad = (centred * jacobian.bends()).sum(dim=-1, keepdim=True) if ctx.needs_input_grad[2] else None
        return jacobian.slopes * centred, None, alpha_grad


@final
class _RecordedEntmax(_EntmaxFunction):
    """Autograd function of entmax for graphs that a compiler records."""


@final
class _Entmax(_EntmaxFunction):
    """Autograd function of entmax with the rule of forward mode: the Jacobian is symmetric."""

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Tensor | None) -> Tensor:
        tangent, _, alpha_tangent = grad_inputs
        jacobian = _Jacobian.saved(ctx)
        change = torch.zeros_like(jacobian.slopes)
        if tangent is not None:
            change = change + jacobian.slopes * (tangent - jacobian.mean(tangent))
        if alpha_tangent is not None:
            bends = jacobian.bends() * alpha_tangent
            change = change + bends - jacobian.slopes * (bends.sum(dim=-1, keepdim=True) / jacobian.total)
        return change


class _Jacobian(NamedTuple):
    """Derivative of the weights by the scores, and by alpha."""

    weights: Tensor
    """Weights, 1 where there is none."""
    excess: Tensor | float
    """alpha - 1"""
    support: Tensor
    """Whether there is weight."""
    slopes: Tensor
    """s = p^(2 - alpha) in the support, else 0."""
    total: Tensor
    """Sum of the slopes; 1 in an empty row."""

    @staticmethod
    def saved(ctx: Any) -> "_Jacobian":
        """Derivative at the weights and alpha that an autograd function saved."""
        weights, *alphas = ctx.saved_tensors
        alpha = alphas[0] if alphas else ctx.alpha
        support = weights > 0
        if isinstance(alpha, float) and alpha == 2.0:
            # p^0 = 1 in the support, without powers and masks.
            slopes = weights.detach().sign()
            total = slopes.sum(dim=-1, keepdim=True)
            return _Jacobian(weights, 1.0, support, slopes, total.clamp_min(1.0))
        alpha = alpha.clamp_min(1.0) if isinstance(alpha, Tensor) else alpha
        # The derivative of a power of 0 is not a number, and masking it afterwards would leave 0 * inf in its place.
        weights = weights.masked_fill(~support, 1.0)
        slopes = (weights ** (2.0 - alpha)).masked_fill(~support, 0.0)
        total = slopes.sum(dim=-1, keepdim=True)
        return _Jacobian(weights, alpha - 1.0, support, slopes, total.masked_fill(total == 0, 1.0))

    def mean(self, changes: Tensor) -> Tensor:
        """Mean of some numbers, weighted by the slopes."""
        return (self.slopes * changes).sum(dim=-1, keepdim=True) / self.total

    def bends(self) -> Tensor:
        """Derivative of the weights by alpha at constant threshold."""
        return _bends(self.weights, self.excess).masked_fill(~self.support, 0.0)


def _bends(weights: Tensor, excess: Tensor | float) -> Tensor:
    """Derivative of p = [1 + (alpha - 1) (z - t)]_+ ^ (1 / (alpha - 1)) by alpha at constant t; `excess` is alpha - 1.

    d p / d alpha = -p (log p)^2 (e^-u - 1 + u) / u^2, u = (alpha - 1) log p; the caller then adds the effect of t,
    which keeps the sum at 1. Together they equal Correia et al. 2019, proposition 1, without its differences divided by
    (alpha - 1)^2, which lose all digits near alpha = 1.
    """
    logs = weights.log()
    u = excess * logs
    series = torch.full_like(u, 1.0 / math.factorial(13))
    for power in range(12, 1, -1):
        series = 1.0 / math.factorial(power) - u * series
    is_small = u.abs() < 0.25
    u = u.masked_fill(is_small, 1.0)
    remainder = torch.where(is_small, series, (torch.expm1(-u) + u) / u.square())
    return -weights * logs.square() * remainder


def _solve(shifted: Tensor, alpha: Tensor | float) -> Tensor:
    """Weights, whose sums are 1 but for rounding."""
    if isinstance(alpha, Tensor):
        return _bisect(shifted, alpha - 1.0)
    if alpha == 2.0:
        return _sparsemax_by_sorting(shifted)
    if alpha == 1.5:
        return _entmax15_by_sorting(shifted)
    return _bisect(shifted, torch.full_like(shifted[..., :1], alpha - 1.0))


def _sparsemax_by_sorting(shifted: Tensor) -> Tensor:
    """The k largest scores have weight as long as 1 + k z_(k) > sum of the k largest."""
    ordered, counts = _sorted(shifted)
    sums = ordered.cumsum(dim=-1)
    threshold = _last((sums - 1.0).div_(counts), 1.0 + counts * ordered > sums)
    return (shifted - threshold).clamp_min_(0.0)


def _entmax15_by_sorting(shifted: Tensor) -> Tensor:
    """With k keys of weight, the threshold is the smaller root of sum_j (z_j / 2 - threshold)^2 = 1."""
    half = shifted / 2.0
    ordered, counts = _sorted(half)
    mean = ordered.cumsum(dim=-1) / counts
    variance = ordered.square().cumsum(dim=-1) / counts - mean.square()
    thresholds = mean - (1.0 / counts - variance).clamp_min_(0.0).sqrt_()
    threshold = _last(thresholds, thresholds <= ordered)
    # The variance is a difference of similar numbers; two steps of Newton's method restore the lost digits.
    for _ in range(2):
        roots = (half - threshold).clamp_min_(0.0)
        threshold += (roots.square().sum(dim=-1, keepdim=True) - 1.0) / (2.0 * roots.sum(dim=-1, keepdim=True))
    return (half - threshold).clamp_min_(0.0).square()


def _sorted(shifted: Tensor) -> tuple[Tensor, Tensor]:
    """Rows in descending order of scores, and 1, 2, 3 ..."""
    ordered = shifted.sort(dim=-1, descending=True).values
    return ordered, torch.arange(1, shifted.shape[-1] + 1, device=shifted.device, dtype=shifted.dtype)


def _last(thresholds: Tensor, has_weight: Tensor) -> Tensor:
    """Threshold for the number of keys with weight; none have weight only where no key is allowed."""
    return thresholds.gather(-1, has_weight.sum(dim=-1, keepdim=True).clamp_min_(1).sub_(1))


def _bisect(shifted: Tensor, excess: Tensor) -> Tensor:
    """Find log p_max in [-log num_keys, 0] by bisection; `excess` is alpha - 1.

    In terms of it, p_j = p_max [1 + (alpha - 1) z_j / p_max^(alpha - 1)]_+ ^ (1 / (alpha - 1)), which is accurate for
    every alpha and becomes exp(z_j) p_max as alpha approaches 1.
    """
    excess = excess.clamp_min(torch.finfo(shifted.dtype).eps)
    step = _log(shifted.shape[-1], excess) / 2.0
    log_largest = torch.zeros_like(excess) - step
    for _ in range(58 if shifted.dtype == torch.float64 else 28):
        step /= 2.0
        total = _powers(shifted, log_largest, excess).sum(dim=-1, keepdim=True)
        log_largest = log_largest + torch.where(total < 1.0, step, -step)
    return _powers(shifted, log_largest, excess)


def _log(count: int, like: Tensor) -> Tensor | float:
    # In a recorded graph the count is a symbol, which a function of numbers would narrow.
    return torch.full_like(like, count).log() if torch.compiler.is_compiling() else math.log(count)


def _powers(shifted: Tensor, log_largest: Tensor, excess: Tensor) -> Tensor:
    slope = excess * (-excess * log_largest).clamp_max_(_LARGEST_EXPONENT).exp_()
    return (shifted * slope).clamp_min_(-1.0).log1p_().div_(excess).add_(log_largest).exp_()


@final
@dataclass(frozen=True, eq=False)
class Sparsemax(Normalizer):
    """weights = nearest point of the simplex to scores / temperature. Martins and Astudillo 2016, arXiv:1602.02068.

    Cost: a sort of each row, log(keys) comparisons per score.

    Example:
        >>> scores = torch.tensor([[2.0, 1.0, -1.0]]).double()
        >>> Sparsemax().normalize(scores, None).weights.round(decimals=2).tolist()
        [[1.0, 0.0, 0.0]]
    """

    temperature: Tensor | float = 1.0
    """Temperature above 0; a tensor has shape [] and receives gradient."""

    provides = frozenset({"weights", "argmax", "entropy"})
    weights_lie_in = "simplex"

    def __post_init__(self) -> None:
        require_positive(self.temperature, "sparsemax")

    @property
    def inverse_temperature(self) -> Tensor | float:
        return 1.0 / self.temperature

    def normalize(self, scores: Scores, allowed: Allowed | None, row_ids: RowIds | None = None) -> Normalized:
        return Normalized(sparsemax(scores, allowed))


@final
@dataclass(frozen=True, eq=False)
class Entmax(Normalizer):
    """weights = entmax_alpha(scores / temperature). Peters, Niculae and Martins 2019, arXiv:1905.05702.

    Cost: a sort of each row for alpha 1.5 and 2, else 28 (float64: 58) logarithms and exponentials per score.

    Example:
        >>> scores = torch.tensor([[2.0, 1.0, -1.0]]).double()
        >>> Entmax(alpha=1.5).normalize(scores, None).weights.round(decimals=2).tolist()
        [[0.83, 0.17, 0.0]]
    """

    alpha: Tensor | float = 1.5
    """Order, at least 1: 1 is softmax, 2 is sparsemax. A tensor receives gradient and has shape [] or [*leading, 1, 1],
    such as [head, 1, 1]; all queries share it, because they are computed in tiles."""
    temperature: Tensor | float = 1.0
    """Temperature above 0; a tensor has shape [] and receives gradient."""

    provides = frozenset({"weights", "argmax", "entropy"})
    weights_lie_in = "simplex"

    def __post_init__(self) -> None:
        require_positive(self.temperature, "entmax")
        if not isinstance(self.alpha, Tensor):
            _require_order(self.alpha)
        elif any(size != 1 for size in self.alpha.shape[-2:]):
            raise ShapeError(f"entmax: expected alpha of shape [] or [*leading, 1, 1], got {list(self.alpha.shape)}")

    @property
    def inverse_temperature(self) -> Tensor | float:
        return 1.0 / self.temperature

    def why_not_exported(self) -> str | None:
        if isinstance(self.alpha, float | int) and self.alpha in (1.0, 1.5, 2.0):
            return None
        return "entmax needs bisection unless alpha is 1, 1.5 or 2, and exported graphs have no loops"

    def normalize(self, scores: Scores, allowed: Allowed | None, row_ids: RowIds | None = None) -> Normalized:
        return Normalized(entmax(scores, allowed, self.alpha))
