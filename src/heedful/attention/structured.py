"""Structured attention (Kim, Denton, Hoang, Rush 2017): weights are marginals of a distribution over structures."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, final

import torch
from torch import Tensor
from torch.nn import functional

from heedful.attention.interface import Allowed, Normalized, Normalizer, RowIds, Scope, Scores
from heedful.attention.softmax import SOFTMAX
from heedful.attention.structured_chain import binary_chain_log_odds, probability
from heedful.attention.structured_tree import projective_tree_marginals
from heedful.errors import ShapeError


@final
@dataclass(frozen=True, eq=False)
class Sigmoid(Normalizer):
    """Independent choice of each key: weights[j] = sigmoid(scores[j]) = p(z_j = 1), where keys do not interact.

    Kim et al. 2017, arXiv:1702.00887, section 3.1: `LinearChain` without transitions.

    Each weight lies in [0, 1]; a query may attend any number of keys, including none.

    Cost: an exponential per score.

    Example:
        >>> scores = torch.tensor([[2.0, 1.0, -1.0]]).double()
        >>> Sigmoid().normalize(scores, None).weights.round(decimals=2).tolist()
        [[0.88, 0.73, 0.27]]
    """

    provides = frozenset({"weights", "log_normalizer", "argmax"})
    weights_lie_in = "box"
    is_shift_invariant = False

    @property
    def inverse_temperature(self) -> float:
        return 1.0

    def normalize(self, scores: Scores, allowed: Allowed | None, row_ids: RowIds | None = None) -> Normalized:
        weights, terms = probability(scores), -functional.logsigmoid(-scores)
        if allowed is None:
            total = terms.sum(dim=-1)
            return Normalized(weights, total if scores.shape[-1] else torch.full_like(total, -torch.inf))
        total = terms.masked_fill(~allowed, 0.0).sum(dim=-1).masked_fill(~allowed.any(dim=-1), -torch.inf)
        return Normalized(weights.masked_fill(~allowed, 0.0), total)


@final
@dataclass(frozen=True, eq=False)
class LinearChain(Normalizer):
    """Segmentation attention: weights[j] = p(z_j = 1), where z in {0, 1}^keys is a chain for each query.

    p(z) = exp(sum_j z_j scores[j] + sum_j transition[z_j, z_{j+1}]) / Z. Kim et al. 2017, arXiv:1702.00887.

    Each weight lies in [0, 1]; a query may attend any number of keys, including none. With zero transitions, the
    weights are the sigmoid of the scores. Masked keys are not part of the chain: the keys around them are neighbours.

    Cost: about thirty exponentials and logarithms per score; log2(keys) operations follow each other.

    Example:
        >>> transition = torch.tensor([[0.5, 0.0], [0.0, 0.5]])  # neighbours like to agree
        >>> scores = torch.tensor([[2.0, 1.0, -1.0]]).double()
        >>> LinearChain(transition).normalize(scores, None).weights.round(decimals=2).tolist()
        [[0.9, 0.76, 0.33]]
    """

    transition: Tensor | None = None
    """[2, 2] or [*leading, 2, 2] score of a state (first axis) followed by another; finite; receives gradient. Leading
    axes align from the left with those of the scores: [1, head, 2, 2] differs between heads. None = 0."""
    start: Tensor | None = None
    """[2] or [*leading, 2] score of the state of the first key; None = 0. The paper's code has transition.mean(-2)."""
    stop: Tensor | None = None
    """[2] or [*leading, 2] score of the state of the last key; None = 0. The paper's code has transition.mean(-1)."""

    provides = frozenset({"weights", "log_normalizer", "argmax"})
    weights_lie_in = "box"
    is_positional = True
    is_shift_invariant = False
    learned = MappingProxyType({"transition": (2, 2)})

    @property
    def inverse_temperature(self) -> float:
        return 1.0

    def why_not_exported(self) -> str | None:
        return "a chain needs a loop over keys, and exported graphs have no loops"

    def normalize(self, scores: Scores, allowed: Allowed | None, row_ids: RowIds | None = None) -> Normalized:
        log_odds, log_normalizer = _chain(scores, allowed, self.transition, self.start, self.stop)
        weights = probability(log_odds)
        return Normalized(weights if allowed is None else weights.masked_fill(~allowed, 0.0), log_normalizer)


@final
@dataclass(frozen=True, eq=False)
class NormalizedLinearChain(Normalizer):
    """Like `LinearChain`, divided by the sum of the row: weights[j] = p(z_j = 1) / sum_k p(z_k = 1).

    Kim et al. 2017, arXiv:1702.00887. Their translation model multiplies the context of these weights by lambda = 2.

    Cost: that of `LinearChain`, and two exponentials per score.

    Example:
        >>> scores = torch.tensor([[2.0, 1.0, -1.0]]).double()
        >>> NormalizedLinearChain().normalize(scores, None).weights.round(decimals=2).tolist()
        [[0.47, 0.39, 0.14]]
    """

    transition: Tensor | None = None
    """As in `LinearChain`."""
    start: Tensor | None = None
    """As in `LinearChain`."""
    stop: Tensor | None = None
    """As in `LinearChain`."""

    provides = frozenset({"weights", "log_normalizer", "argmax", "entropy"})
    weights_lie_in = "simplex"
    is_positional = True
    is_shift_invariant = False
    learned = MappingProxyType({"transition": (2, 2)})

    @property
    def inverse_temperature(self) -> float:
        return 1.0

    def why_not_exported(self) -> str | None:
        return "a chain needs a loop over keys, and exported graphs have no loops"

    def normalize(self, scores: Scores, allowed: Allowed | None, row_ids: RowIds | None = None) -> Normalized:
        log_odds, log_normalizer = _chain(scores, allowed, self.transition, self.start, self.stop)
        # Computed in logs, so that rows whose marginals underflow still have proper weights.
        return Normalized(SOFTMAX.normalize(functional.logsigmoid(log_odds), allowed).weights, log_normalizer)


def _chain(
    scores: Tensor, allowed: Tensor | None, transition: Tensor | None, start: Tensor | None, stop: Tensor | None
) -> tuple[Tensor, Tensor]:
    num_leading = scores.dim() - 1
    if transition is None:
        transition = scores.new_zeros(2, 2)
    if allowed is not None:
        allowed = allowed[(None,) * (scores.dim() - allowed.dim())]
    if transition.dim() > 2:
        transition = _aligned(transition, 2, num_leading).unsqueeze(-3)
    start, stop = (
        None if end is None else _aligned(end, 1, num_leading) if end.dim() > 1 else end for end in (start, stop)
    )
    log_odds, log_normalizer = binary_chain_log_odds(scores, transition, allowed, start, stop)
    if scores.shape[-1] == 0:
        log_normalizer = torch.full_like(log_normalizer, -torch.inf)
    elif allowed is not None:
        log_normalizer = log_normalizer.masked_fill(~allowed.any(dim=-1), -torch.inf)
    return log_odds, log_normalizer


def _aligned(tensor: Tensor, trailing: int, num_leading: int) -> Tensor:
    """Insert axes after the leading ones, so that leading axes align from the left.

    Raises:
        ShapeError: the tensor has more leading axes than the scores.
    """
    num_axes = tensor.dim() - trailing
    if num_axes >= num_leading:
        raise ShapeError(
            f"chain: {list(tensor.shape)} has {num_axes} leading axes, but the scores have only {num_leading - 1}"
        )
    return tensor.reshape(*tensor.shape[:num_axes], *(1,) * (num_leading - num_axes), *tensor.shape[num_axes:])


@final
@dataclass(frozen=True, eq=False)
class ProjectiveTree(Normalizer):
    """Syntactic attention: weights[i, j] = p(key j is the head of query i) in a projective dependency tree.

    p(tree) = exp(sum of scores[i, j] over its arcs j -> i) / Z; the first key is the root. Kim et al. 2017,
    arXiv:1702.00887.

    With as many queries as keys, both are the root followed by the words, and the root's row is zero; with one query
    less, the queries are the words. Every other row sums to 1. A word is in the tree if some query may attend its key
    and its row may attend some key, so a padding mask suffices; the mask also says which arcs are allowed. If no tree
    is possible, all weights are zero. `projective_tree_marginals` also returns the log of the sum over trees.

    Cost: about ten exponentials per score and key, keys^3 in total; all scores in memory.

    Example:
        >>> scores = torch.zeros(3, 3)  # row = word, column = head; the root is word 0
        >>> ProjectiveTree().normalize(scores, None).weights.sum(dim=-1).round(decimals=2).tolist()
        [0.0, 1.0, 1.0]
    """

    is_single_root: bool = False
    """Whether exactly one word depends on the root."""

    provides = frozenset({"weights", "argmax", "entropy"})
    weights_lie_in = "sub-simplex"
    scope: ClassVar[Scope] = "matrix"
    is_positional = True

    @property
    def inverse_temperature(self) -> float:
        return 1.0

    def why_not_exported(self) -> str | None:
        return "a tree needs a loop over spans, and exported graphs have no loops"

    def why_not(self, num_queries: int, num_keys: int) -> str | None:
        if 0 <= num_keys - num_queries <= 1 and num_keys > 0:
            return None
        return (
            "a tree needs queries and keys that are the same words (the keys may have a root before them), as in "
            f"self-attention of an encoder; got {num_queries} queries and {num_keys} keys"
        )

    def normalize(self, scores: Scores, allowed: Allowed | None, row_ids: RowIds | None = None) -> Normalized:
        num_queries, num_keys = scores.shape[-2:]
        if reason := self.why_not(num_queries, num_keys):
            raise ShapeError(reason)
        rootless = num_keys - num_queries
        arcs = functional.pad(scores.mT, (rootless, 0))
        if allowed is None:
            weights = projective_tree_marginals(arcs, is_single_root=self.is_single_root).weights
        else:
            arcs_allowed = functional.pad(allowed.expand(scores.shape).mT, (rootless, 0), value=False)
            weights = _masked_tree(arcs, arcs_allowed, self.is_single_root)
        return Normalized(weights[..., rootless:].mT)


def _masked_tree(arcs: Tensor, allowed: Tensor, is_single_root: bool) -> Tensor:
    """Compute marginals of the arcs between allowed nodes, compacted so that there are no gaps."""
    is_head, is_dependent = allowed.any(dim=-1), allowed.any(dim=-2)
    is_dependent[..., 0] = True  # the root needs no head
    present = is_head & is_dependent & is_head[..., :1]
    order = (~present).int().argsort(dim=-1, stable=True)
    hidden = _reordered(arcs.masked_fill(~allowed, -torch.inf), order)
    lengths = (present.sum(dim=-1) - 1).clamp(min=0)
    return _reordered(projective_tree_marginals(hidden, lengths, is_single_root).weights, order.argsort(dim=-1))


def _reordered(arcs: Tensor, order: Tensor) -> Tensor:
    rows = arcs.gather(-2, order[..., :, None].expand(arcs.shape))
    return rows.gather(-1, order[..., None, :].expand(arcs.shape))
