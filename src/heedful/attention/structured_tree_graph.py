"""Marginals of projective trees in an exported graph, for any number of words.

A graph for any number of words has no loop of Python over the widths of spans, so the two passes of `structured_tree`
are loops of the graph itself (`torch.while_loop`). Their charts are whole at every width: [sentence, 2, head, width]
for both directions, with -inf or 0 where there is no span.
"""

import torch
from torch import Tensor

from heedful.attention.structured_chain import log_sum, shares


def exported_tree_marginals(arcs: Tensor, lengths: Tensor, is_single_root: bool) -> tuple[Tensor, Tensor]:
    """Compute marginals by loops that an exported graph keeps.

    Args:
        arcs: [sentence, head, dependent] scores, -inf where there is no arc.
        lengths: [sentence] words.
        is_single_root: whether exactly one word depends on the root.

    Returns:
        [sentence, head, dependent] marginals, and [sentence] log normalizer.

    Cost: that of `projective_tree_marginals`, about twice.
    """
    nodes = torch.arange(arcs.shape[-1], device=arcs.device)
    by_width = _by_width(torch.stack([arcs, arcs.flip(-2, -1)], dim=1), nodes)
    complete, incomplete = _inside(by_width, nodes, is_single_root)
    chances = _outside(complete, incomplete, lengths, nodes, is_single_root)
    right, left = _by_node(chances, nodes).unbind(1)
    log_normalizer = complete[:, 0, 0].gather(-1, lengths[:, None]).squeeze(-1)
    return (right + left.flip(-2, -1)).clamp(max=1.0), log_normalizer


def _by_width(arcs: Tensor, nodes: Tensor) -> Tensor:
    """[..., head, dependent] to [..., head, width]; -inf beyond the last node."""
    dependents = nodes[:, None] + nodes
    last = nodes.shape[0] - 1
    index = dependents.clamp(max=last).expand(arcs.shape)
    return arcs.gather(-1, index).masked_fill(dependents > last, -torch.inf)


def _by_node(spans: Tensor, nodes: Tensor) -> Tensor:
    """[..., head, width] to [..., head, dependent]; 0 before the head."""
    widths = nodes - nodes[:, None]
    return spans.gather(-1, widths.clamp(min=0).expand(spans.shape)).masked_fill(widths <= 0, 0.0)


def _part(chart: Tensor, rows: Tensor, columns: Tensor, fill: float) -> Tensor:
    """Rows and columns of a chart; a number where either is outside of it."""
    last = chart.shape[-1] - 1
    is_there = ((rows >= 0) & (rows <= last))[:, None] & (columns >= 0) & (columns <= last)
    part = chart.index_select(-2, rows.clamp(0, last)).index_select(-1, columns.clamp(0, last))
    return part.masked_fill(~is_there, fill)


def _by_end(complete: Tensor, nodes: Tensor) -> Tensor:
    """[..., head, width] to [..., end, width]; -inf where there is no span."""
    heads = nodes[:, None] - nodes
    return complete.gather(-2, heads.clamp(min=0).expand(complete.shape)).masked_fill(heads < 0, -torch.inf)


def _halves_of_joined(complete: Tensor, width: Tensor, nodes: Tensor, is_single_root: bool) -> Tensor:
    """[sentence, left end, split] as of `Spans.halves_of_joined`, -inf beyond the last split."""
    right, left = complete.unbind(1)
    left = _part(left, nodes.shape[0] - 1 - width - nodes, width - 1 - nodes, -torch.inf)
    halves = right + left
    is_barred = is_single_root & (nodes[:, None] == 0) & (nodes > 0)
    return halves.masked_fill((nodes >= width) | is_barred, -torch.inf)


def _halves_of_complete(complete: Tensor, incomplete: Tensor, width: Tensor, nodes: Tensor) -> Tensor:
    """[sentence, 2, head, split] as of `Spans.halves_of_complete`, -inf beyond the last split."""
    rest = _part(_by_end(complete, nodes), nodes + width, width - 1 - nodes, -torch.inf)
    return (_part(incomplete, nodes, nodes + 1, -torch.inf) + rest).masked_fill(nodes >= width, -torch.inf)


def _mirrored(joined: Tensor, width: Tensor, nodes: Tensor, fill: float) -> Tensor:
    """[sentence, left end] to the spans of both ends: [sentence, 2, head]."""
    heads = nodes.shape[0] - 1 - width - nodes
    left = joined.index_select(-1, heads.clamp(min=0)).masked_fill(heads < 0, fill)
    return torch.stack([joined, left], dim=1)


def _inside(by_width: Tensor, nodes: Tensor, is_single_root: bool) -> tuple[Tensor, Tensor]:
    """Complete and incomplete spans [sentence, 2, head, width]."""
    number = nodes.shape[0]

    def is_left(width: Tensor, complete: Tensor, incomplete: Tensor) -> Tensor:
        return width < number

    def fill(width: Tensor, complete: Tensor, incomplete: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        here = nodes == width
        joined = log_sum(_halves_of_joined(complete, width, nodes, is_single_root), -1)
        arcs = by_width.index_select(-1, width.reshape(1)).squeeze(-1)
        spans = _mirrored(joined, width, nodes, -torch.inf) + arcs
        incomplete = torch.where(here, spans[..., None], incomplete)
        whole = log_sum(_halves_of_complete(complete, incomplete, width, nodes), -1)
        return width + 1, torch.where(here, whole[..., None], complete), incomplete

    nothing = torch.full_like(by_width, -torch.inf)
    start = (torch.ones_like(nodes[0]), nothing.masked_fill(nodes == 0, 0.0), nothing.clone())
    _, complete, incomplete = torch.while_loop(is_left, fill, start)
    return complete, incomplete


def _outside(complete: Tensor, incomplete: Tensor, lengths: Tensor, nodes: Tensor, is_single_root: bool) -> Tensor:
    """[sentence, 2, head, width] probability of each incomplete span, which is that of its arc."""

    def is_left(width: Tensor, by_head: Tensor, by_end: Tensor, arcs: Tensor) -> Tensor:
        return width > 0

    def distribute(
        width: Tensor, by_head: Tensor, by_end: Tensor, arcs: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        column = width.reshape(1)
        whole = by_head.index_select(-1, column) + _part(by_end, nodes + width, column, 0.0)
        parts = whole * shares(_halves_of_complete(complete, incomplete, width, nodes), -1)
        arcs = arcs + _part(parts, nodes, nodes - 1, 0.0)
        by_end = by_end + _part(parts, nodes - width, width - 1 - nodes, 0.0)
        right, left = arcs.index_select(-1, column).squeeze(-1).unbind(1)
        joined = right + _mirrored(left, width, nodes, 0.0)[:, 1]
        parts = joined[..., None] * shares(_halves_of_joined(complete, width, nodes, is_single_root), -1)
        mirrored = _part(parts, nodes.shape[0] - 1 - width - nodes, width - 1 - nodes, 0.0)
        return width - 1, by_head + torch.stack([parts, mirrored], dim=1), by_end, arcs

    nothing = torch.zeros_like(complete)
    is_sentence = (nodes[:, None] == 0) & (nodes == lengths[:, None, None])
    whole = torch.stack([is_sentence, torch.zeros_like(is_sentence)], dim=1).to(complete.dtype)
    start = (nodes[-1].clone(), whole, nothing, nothing.clone())
    return torch.while_loop(is_left, distribute, start)[3]
