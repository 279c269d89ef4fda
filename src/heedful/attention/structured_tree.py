"""Marginals of projective dependency trees, by inside-outside over Eisner's spans.

Kim et al. 2017, section 3.2.2. Node 0 is the root, left of all words; it may have several dependents unless trees are
restricted to one. For nodes s < t

    joined(s, t)       = log sum over s <= u < t of complete(s -> u) + complete(t -> u + 1)
    incomplete(s -> t) = joined(s, t) + score of the arc s -> t
    complete(s -> t)   = log sum over s < u <= t of incomplete(s -> u) + complete(u -> t)

and mirrored for t -> s; log Z = complete(0 -> n). With a single root, joined(0, t) has the term u = 0 alone: the others
hold an earlier dependent of the root. The outside pass distributes the probability of a span to its halves
in proportion to their shares of those sums, without subtracting large logs. The marginals are the gradient of log Z, so
their Jacobian is a symmetric Hessian, and its product with a vector is their derivative in the direction of that
vector, which the same two passes compute. Training thus stores node^2 numbers, not the node^3 of a recorded graph.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd import Function

from heedful.attention.structured_chain import Marginals, log_sum, shares
from heedful.attention.structured_tree_graph import exported_tree_marginals
from heedful.cpu.concrete import is_exporting
from heedful.errors import ShapeError

Portion = Callable[[Tensor, int], Tensor]
"""Parts of a span that go to its splits, from their scores and their axis."""


def projective_tree_marginals(
    scores: Float[Tensor, "*batch head dependent"],
    lengths: Int[Tensor, "*leading"] | None = None,
    is_single_root: bool = False,
) -> Marginals:
    """Compute the probability of every arc under a distribution over projective dependency trees.

    p(tree) = exp(sum of the scores of its arcs) / Z, over trees in which every word has one head and no arcs cross.

    Args:
        scores: [*batch, head, dependent] score of an arc; node 0 is the root, node j the j-th word. -inf forbids an
            arc; arcs into the root and from a node to itself are always forbidden.
        lengths: [*leading] number of words of each sentence, without the root, at most head - 1; leading axes align
            from the left. None = all.
        is_single_root: whether exactly one word depends on the root, as in most treebanks.

    Returns:
        Weights [*batch, head, dependent], which sum to 1 over the heads of each word and are 0 elsewhere. A sentence
        without words has log normalizer 0; a sentence without a possible tree has log normalizer -inf and weights 0.

    Raises:
        ShapeError: the scores are not square, or the lengths have more axes than the scores.

    Cost: words^3 exponentials in 4 * words tensor operations; memory words^2, also for gradients.

    Example:
        >>> tree = projective_tree_marginals(torch.zeros(3, 3))
        >>> round(tree.log_normalizer.exp().item()), tree.weights[:, 1].tolist()
        (3, [0.66..., 0.0, 0.33...])
    """
    chart = shifted_arcs(scores, lengths)
    if is_exporting():
        # PyTorch's loops have no gradient yet, so an exported graph gives none to the scores.
        weights, log_normalizer = exported_tree_marginals(chart.arcs.detach(), chart.lengths, is_single_root)
    else:
        # The compiler refuses a rule of forward mode, and records nothing that would ask for it.
        function = _RecordedInsideOutside if torch.compiler.is_compiling() else _InsideOutside
        weights, log_normalizer = function.apply(chart.arcs, chart.lengths, is_single_root)
    log_normalizer = log_normalizer.reshape(scores.shape[:-2]) + chart.shift
    return Marginals(weights.reshape(scores.shape).to(scores.dtype), log_normalizer.to(scores.dtype))


class ShiftedArcs(NamedTuple):
    """Scores of arcs, each less the best score of its dependent."""

    arcs: Float[Tensor, "sentence head dependent"]
    """[sentence, head, dependent] at most 0, -inf where there is no arc; float32 or wider."""
    lengths: Int[Tensor, " sentence"]
    """[sentence] words."""
    shift: Float[Tensor, "*batch"]
    """[*batch] sum of what was subtracted, which all trees of a sentence share."""


def shifted_arcs(scores: Tensor, lengths: Tensor | None) -> ShiftedArcs:
    """Check and prepare the scores of arcs.

    Every word has exactly one head, so subtracting a word's best score from all its arcs changes no probability and
    keeps sums small.

    Args:
        scores: [*batch, head, dependent] as for `projective_tree_marginals`.
        lengths: [*leading] as well.

    Returns:
        The scores with one batch axis.

    Raises:
        ShapeError: the scores are not square, or the lengths have more axes than the scores.
    """
    if scores.dim() < 2 or scores.shape[-1] != scores.shape[-2] or scores.shape[-1] == 0:
        raise ShapeError(f"tree: scores must be square with the root as node 0, got {list(scores.shape)}")
    batch, num_nodes = scores.shape[:-2], scores.shape[-1]
    if lengths is None:
        lengths = torch.full((), num_nodes - 1, device=scores.device)
    if lengths.dim() > len(batch):
        raise ShapeError(f"tree: lengths {list(lengths.shape)} have more axes than the scores {list(scores.shape)}")
    missing = len(batch) - lengths.dim()
    lengths = lengths.to(scores.device, torch.int64).reshape((*lengths.shape, *(1,) * missing)).expand(batch)
    nodes = torch.arange(num_nodes, device=scores.device)
    real = nodes <= lengths[..., None]
    possible = real[..., :, None] & real[..., None, :] & (nodes > 0) & (nodes[:, None] != nodes)
    arcs = scores.to(torch.promote_types(scores.dtype, torch.float32)).masked_fill(~possible, -torch.inf)
    best = arcs.detach().amax(dim=-2)
    best = best.masked_fill(best == -torch.inf, 0.0)
    shifted = (arcs - best[..., None, :]).reshape(-1, num_nodes, num_nodes)
    return ShiftedArcs(shifted, lengths.reshape(-1), best.sum(dim=-1))


class Spans(NamedTuple):
    """Number per span, indexed by direction (right, left), one end, and width.

    In the left direction, positions are counted from the right, so that both directions are alike: a span of width w
    with its head at position h ends at position h + w.
    """

    by_head: Tensor
    """[batch, 2, head, width] complete spans."""
    by_end: Tensor
    """[batch, 2, end, width] the same ones."""
    incomplete: Tensor
    """[batch, 2, head, width]"""
    is_single_root: bool = False
    """Whether the root has one dependent: then it joins another head only while it has none."""

    def halves_of_joined(self, width: int) -> Tensor:
        """Compute the scores of pairs of spans that join two heads facing each other.

        Args:
            width: distance of the heads, 1 or more.

        Returns:
            [batch, left end, split]
        """
        right, left = self.by_head[:, :, :-width, :width].unbind(1)
        halves = right + left.flip(-2, -1)
        if not self.is_single_root:
            return halves
        is_root = torch.arange(halves.shape[-2], device=halves.device)[:, None] == 0
        return halves.masked_fill(is_root & (torch.arange(width, device=halves.device) > 0), -torch.inf)

    def halves_of_complete(self, width: int) -> Tensor:
        """Compute the scores of pairs of spans that form a head with all its dependents on one side.

        Args:
            width: of the whole, 1 or more.

        Returns:
            [batch, 2, head, split]
        """
        return self.incomplete[:, :, :-width, 1 : width + 1] + self.by_end[:, :, width:, :width].flip(-1)


def _spans(arcs: Tensor, fill: float, is_single_root: bool = False) -> Spans:
    by_head, by_end, incomplete = (arcs.new_full((arcs.shape[0], 2, *arcs.shape[1:]), fill) for _ in range(3))
    by_head[..., 0], by_end[..., 0] = 0.0, 0.0
    return Spans(by_head, by_end, incomplete, is_single_root)


def _both(joined: Tensor) -> Tensor:
    """Assign a number of two nodes, [batch, left end], to the spans of either: [batch, 2, head]."""
    return torch.stack([joined, joined.flip(-1)], dim=1)


def _arcs_of_width(arcs: Tensor, width: int) -> Tensor:
    """[batch, node, node] -> [batch, 2, head]."""
    right, left = (arcs.diagonal(offset, dim1=-2, dim2=-1) for offset in (width, -width))
    return torch.stack([right, left.flip(-1)], dim=1)


def inside(
    arcs: Tensor, tangent: Tensor | None, is_single_root: bool = False, total: Callable[[Tensor, int], Tensor] = log_sum
) -> tuple[Spans, Spans | None]:
    """Inside pass: fill the spans from narrow to wide; given a change of the scores, also its derivative.

    Args:
        arcs: [batch, head, dependent] scores; -inf where there is no arc.
        tangent: [batch, head, dependent] change of the scores; None = none.
        is_single_root: whether the root has exactly one dependent.
        total: score of a span from those of its splits, given the axis: `log_sum`, or the largest.

    Returns:
        The spans, and their change if there is one.
    """
    spans = _spans(arcs, -torch.inf, is_single_root)
    changes = None if tangent is None else _spans(tangent, 0.0)
    for width in range(1, arcs.shape[-1]):
        halves = spans.halves_of_joined(width)
        spans.incomplete[:, :, :-width, width] = _both(total(halves, -1)) + _arcs_of_width(arcs, width)
        if changes is not None and tangent is not None:
            change = (shares(halves, -1) * changes.halves_of_joined(width)).sum(-1)
            changes.incomplete[:, :, :-width, width] = _both(change) + _arcs_of_width(tangent, width)
        halves = spans.halves_of_complete(width)
        complete = total(halves, -1)
        spans.by_head[:, :, :-width, width] = complete
        spans.by_end[:, :, width:, width] = complete
        if changes is not None:
            change = (shares(halves, -1) * changes.halves_of_complete(width)).sum(-1)
            changes.by_head[:, :, :-width, width] = change
            changes.by_end[:, :, width:, width] = change
    return spans, changes


def outside(
    spans: Spans, changes: Spans | None, lengths: Tensor, portion: Portion = shares, num_kinds: int = 1
) -> Tensor:
    """Outside pass: distribute probabilities from wide spans to narrow ones.

    Where each span chooses one of its splits instead of distributing itself, the result is a tree.

    Args:
        spans: from `inside`.
        changes: as well; None = no change.
        lengths: [batch] words.
        portion: part of a span that each of its splits gets, from the scores of the splits and their axis.
        num_kinds: number of draws, if parts are drawn; 2 if there are changes.

    Returns:
        [kind, batch, node, node] marginals of the arcs, and their change; or as many drawn trees.
    """
    num_nodes = spans.by_head.shape[-1]
    # Made like the changes, of which there may be many at a time (`vmap`).
    like = spans.by_head if changes is None else changes.by_head
    by_head, by_end, incomplete = (like.new_zeros(num_kinds, *like.shape) for _ in range(3))
    chance = Spans(by_head, by_end, incomplete)
    chance.by_head[: 1 if changes is not None else num_kinds, :, 0, 0] = (
        torch.arange(num_nodes, device=like.device) == lengths[:, None]
    ).to(like.dtype)
    arcs = like.new_zeros(num_kinds, *like.shape[:1], num_nodes, num_nodes)
    for width in range(num_nodes - 1, 0, -1):
        whole = chance.by_head[..., :-width, width] + chance.by_end[..., width:, width]
        handed = _hand_down(
            whole,
            spans.halves_of_complete(width),
            None if changes is None else changes.halves_of_complete(width),
            portion,
        )
        chance.incomplete[..., :-width, 1 : width + 1] += handed
        chance.by_end[..., width:, :width] += handed.flip(-1)
        right, left = chance.incomplete[..., :-width, width].unbind(-2)
        arcs.diagonal(width, dim1=-2, dim2=-1).copy_(right)
        arcs.diagonal(-width, dim1=-2, dim2=-1).copy_(left.flip(-1))
        handed = _hand_down(
            right + left.flip(-1),
            spans.halves_of_joined(width),
            None if changes is None else changes.halves_of_joined(width),
            portion,
        )
        chance.by_head[..., :-width, :width] += torch.stack([handed, handed.flip(-2, -1)], dim=-3)
    return arcs


def _hand_down(whole: Tensor, halves: Tensor, changes: Tensor | None, portion: Portion) -> Tensor:
    """Distribute the probability of spans among their splits.

    Args:
        whole: [kind, ...] probabilities, and their changes.
        halves: [..., split] scores of the splits.
        changes: [..., split] of those scores; None = no change.
        portion: as for `outside`.

    Returns:
        [kind, ..., split] probabilities of the splits, and their changes.
    """
    parts = portion(halves, -1)
    if changes is None:
        return whole[..., None] * parts
    chance, change = whole[..., None].unbind(0)
    relative = changes - (parts * changes).sum(-1, keepdim=True)
    return torch.stack([chance * parts, (change + chance * relative) * parts])


def _change_of_marginals(arcs: Tensor, tangent: Tensor, lengths: Tensor, is_single_root: bool) -> Tensor:
    """Derivative of the marginals [batch, node, node] in the direction of a change of the scores."""
    return outside(*inside(arcs, tangent, is_single_root), lengths, num_kinds=2)[1]


class _InsideOutsideFunction(Function):
    """Autograd function from arcs [batch, node, node] and lengths [batch] to marginals and log normalizer [batch]."""

    generate_vmap_rule = True

    @staticmethod
    def forward(arcs: Tensor, lengths: Tensor, is_single_root: bool) -> tuple[Tensor, Tensor]:
        spans, _ = inside(arcs, None, is_single_root)
        (marginals,) = outside(spans, None, lengths).unbind(0)
        # Rounding may carry a sum of probabilities past 1.
        return marginals.clamp(max=1.0), spans.by_head[:, 0, 0].gather(-1, lengths[:, None]).squeeze(-1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, bool], output: tuple[Tensor, Tensor]) -> None:
        arcs, lengths, ctx.is_single_root = inputs
        saved = (arcs, lengths, output[0])
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)
        ctx.set_materialize_grads(False)

    # The base class's method has a wider type.
    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad_marginals: Tensor | None, grad_log_normalizer: Tensor | None
    ) -> tuple[Tensor | None, None, None]:
        # These are ordinary tensor operations, so autograd can differentiate them again.
        arcs, lengths, marginals = ctx.saved_tensors
        gradient = None if grad_log_normalizer is None else grad_log_normalizer[:, None, None] * marginals
        if grad_marginals is not None:
            # A gradient may be infinite where a weight is zero (that of the entropy is), so it is masked there.
            change = _change_of_marginals(
                arcs, grad_marginals.masked_fill(marginals == 0, 0.0), lengths, ctx.is_single_root
            )
            gradient = change if gradient is None else gradient + change
        return gradient, None, None


@final
class _RecordedInsideOutside(_InsideOutsideFunction):
    """Autograd function of marginals for graphs that a compiler records."""


@final
class _InsideOutside(_InsideOutsideFunction):
    """Autograd function of marginals with the rule of forward mode: a Hessian is symmetric."""

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Tensor | None) -> tuple[Tensor, Tensor]:
        arcs, lengths, marginals = ctx.saved_tensors
        tangent = torch.zeros_like(arcs) if grad_inputs[0] is None else grad_inputs[0]
        tangent = tangent.masked_fill(marginals == 0, 0.0)
        change = _change_of_marginals(arcs, tangent, lengths, ctx.is_single_root)
        return change, (marginals * tangent).sum(dim=(-2, -1))
