"""Marginals of linear chains: one state per position, with scores of states and of neighbouring states.

Forward-backward in log space (Kim et al. 2017, section 3.2.1). Both directions run side by side in one pass, and
messages are normalised at every step, so that neither long chains nor large scores lose digits. Chains of two states
are not walked through position by position: products of neighbouring transitions halve them again and again.
"""

from typing import Final, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from heedful.cpu.concrete import is_exporting
from heedful.errors import ShapeError

LEVELS: Final = 31
"""Doublings of an exported chain: no tensor has more than 2^31 positions."""


class Marginals(NamedTuple):
    """Marginals of a distribution over structures.

    Example:
        >>> chain = linear_chain_marginals(torch.zeros(3, 2), torch.zeros(2, 2))
        >>> chain.weights[:, 1].tolist(), round(chain.log_normalizer.exp().item())
        ([0.5, 0.5, 0.5], 8)
    """

    weights: Tensor
    """Probability of each part; zero in empty structures."""
    log_normalizer: Float[Tensor, "*batch"]
    """[*batch] log of the sum over all structures of the exponential of their scores."""


def log_sum(terms: Tensor, dim: int) -> Tensor:
    """Compute log sum exp; -inf if all terms are -inf; gradients are never NaN.

    Args:
        terms: finite or -inf.
        dim: axis to sum over.

    Returns:
        The logarithms, without that axis.

    Example:
        >>> log_sum(torch.tensor([[0.0, 0.0], [-torch.inf, -torch.inf]]), 1).exp().tolist()
        [2.0, 0.0]
    """
    exponentials, top = _exponentials(terms, dim)
    total = exponentials.sum(dim)
    empty = total == 0
    return (total.masked_fill(empty, 1.0).log() + top.squeeze(dim)).masked_fill(empty, -torch.inf)


def shares(terms: Tensor, dim: int) -> Tensor:
    """Compute the softmax; zero if all terms are -inf; gradients are never NaN.

    Args:
        terms: finite or -inf.
        dim: axis to normalise over.

    Returns:
        Shares in [0, 1], of the shape of `terms`.
    """
    exponentials, _ = _exponentials(terms, dim)
    total = exponentials.sum(dim, keepdim=True)
    return exponentials / total.masked_fill(total == 0, 1.0)


def probability(log_odds: Tensor) -> Tensor:
    """Compute the sigmoid, with the same bits at every place of an array.

    torch.sigmoid rounds the last elements of an array, which do not fill a vector register, in another way, so that the
    bits of a query would depend on how many others are beside it. The same is true of torch.logaddexp.

    Args:
        log_odds: any shape.

    Returns:
        Probabilities in [0, 1], of the same shape.
    """
    return functional.logsigmoid(log_odds).exp()


def _log_add(first: Tensor, second: Tensor) -> Tensor:
    """log(exp first + exp second) of finite numbers, with the same bits at every place of an array."""
    top = torch.maximum(first.detach(), second.detach())
    return ((first - top).exp() + (second - top).exp()).log() + top


def _exponentials(terms: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    top = terms.detach().amax(dim, keepdim=True)
    top = top.masked_fill(top == -torch.inf, 0.0)
    return (terms - top).exp(), top


def linear_chain_marginals(
    unary: Float[Tensor, "*batch position state"],
    transition: Tensor,
    allowed: Bool[Tensor, "*#batch position"] | None = None,
    start: Tensor | None = None,
    stop: Tensor | None = None,
) -> Marginals:
    """Compute the probability of every state at every position of a chain.

    p(z) = exp(start[z_1] + sum_i unary[i, z_i] + sum_i transition[i, z_i, z_{i+1}] + stop[z_n]) / Z

    A masked position is not part of the chain: its neighbours follow each other.

    Args:
        unary: [*batch, position, state] score of a state at a position.
        transition: [state, state] score of a state (first axis) followed by another, or [*#batch, 1 or position - 1,
            state, state] where it differs; -inf forbids. Between two allowed positions with masked ones between them,
            the transition into the second applies.
        allowed: [*#batch, position] bool, True = part of the chain; None = all.
        start: [state] or [*#batch, state] score of the state of the first position; None = 0.
        stop: [state] or [*#batch, state] score of the state of the last position; None = 0.

    Returns:
        Weights [*batch, position, state], which sum to 1 over the states of each allowed position and are 0 elsewhere.
        An empty chain has log normalizer 0; a chain without a possible sequence of states has log normalizer -inf and
        weights 0.

    Raises:
        ShapeError: axes of the arguments do not match.

    Cost: position * state^2 exponentials; memory the same when training.

    Example:
        >>> chain = linear_chain_marginals(torch.tensor([[0.0, 0.5], [0.0, -0.2]]), torch.zeros(2, 2))
        >>> [round(weight, 4) for weight in chain.weights[:, 1].tolist()]
        [0.6225, 0.4502]
    """
    wide = unary.to(torch.promote_types(unary.dtype, torch.float32))
    if unary.shape[-2] == 0:
        return Marginals(unary, unary.new_zeros(unary.shape[:-2]))
    if allowed is not None:
        wide = wide.masked_fill(~allowed[..., None], 0.0)
    walk = _walk(tuple(unary.shape[:-1]), unary.shape[-1], transition.to(wide.dtype), allowed, start, stop)
    states = wide.movedim((-2, -1), (0, 1))
    messages, log_normalizer = _state_messages(torch.stack([states, states.flip(0)], dim=1), walk)
    weights = shares(states + messages[:, 0] + messages[:, 1].flip(0), dim=1).movedim((0, 1), (-2, -1))
    if allowed is not None:
        weights = weights.masked_fill(~allowed[..., None], 0.0)
        log_normalizer = log_normalizer.masked_fill(~allowed.any(dim=-1), 0.0)
    return Marginals(weights.to(unary.dtype), log_normalizer.to(unary.dtype))


def binary_chain_log_odds(
    scores: Float[Tensor, "*batch position"],
    transition: Tensor,
    allowed: Bool[Tensor, "*#batch position"] | None = None,
    start: Tensor | None = None,
    stop: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute log p(z_i = 1) - log p(z_i = 0) at every position of a chain of two states.

    Equivalent to `linear_chain_marginals` with score 0 for state 0, but with a quarter of its numbers, because each
    message is one log odds. The sigmoid of the result is the marginal.

    Args:
        scores: [*batch, position] score of state 1 at a position.
        transition: [2, 2] or [*#batch, 1 or position - 1, 2, 2] as for `linear_chain_marginals`, but finite.
        allowed: [*#batch, position] bool, True = part of the chain; None = all.
        start: [2] or [*#batch, 2] score of the state of the first position; None = 0.
        stop: [2] or [*#batch, 2] score of the state of the last position; None = 0.

    Returns:
        [*batch, position] log odds, undefined at masked positions, and [*batch] log normalizer, 0 for an empty chain.

    Raises:
        ShapeError: axes of the arguments do not match.
    """
    wide = scores.to(torch.promote_types(scores.dtype, torch.float32))
    if scores.shape[-1] == 0:
        return scores, scores.new_zeros(scores.shape[:-1])
    if allowed is not None:
        wide = wide.masked_fill(~allowed, 0.0)
    walk = _walk(tuple(scores.shape), 2, transition.to(wide.dtype), allowed, start, stop)
    places = wide.movedim(-1, 0)
    # In a graph for any number of positions there is no loop over them.
    messages_of = _scanned_messages if is_exporting() else _odds_messages
    messages, log_normalizer = messages_of(torch.stack([places, places.flip(0)], dim=1), walk)
    log_odds = (places + messages[:, 0] + messages[:, 1].flip(0)).movedim(0, -1)
    if allowed is not None:
        log_normalizer = log_normalizer.masked_fill(~allowed.any(dim=-1), 0.0)
    return log_odds.to(scores.dtype), log_normalizer.to(scores.dtype)


class _Walk(NamedTuple):
    """Scores of transitions and ends, for both directions: the axis of 2 is left to right, right to left."""

    steps: Tensor
    """[1 or position - 1, 2, state, state, *#batch] score of moving from a state to another."""
    ends: Tensor
    """[2, state, *#batch] score of starting in a state; for the reverse direction, of ending in it."""
    allowed: Tensor | None
    """[position, 2, *#batch]"""
    first: Tensor | None
    """[position, 2, *#batch] whether the chain begins here."""

    def step(self, position: int) -> int:
        """Index of the row of `steps` with the transitions into a position."""
        return position - 1 if self.steps.shape[0] > 1 else 0


def _walk(
    positions: tuple[int, ...],
    num_states: int,
    transition: Tensor,
    allowed: Tensor | None,
    start: Tensor | None,
    stop: Tensor | None,
) -> _Walk:
    leading, num_positions = len(positions) - 1, positions[-1]
    if transition.dim() == 2:
        transition = transition[(None,) * (leading + 1)]
    is_square = transition.shape[-2:] == (num_states, num_states)
    if transition.dim() != leading + 3 or not is_square or transition.shape[-3] not in (1, num_positions - 1):
        raise ShapeError(
            f"chain: transition {list(transition.shape)} does not fit positions {list(positions)}, {num_states} states"
        )
    right = transition.movedim((-3, -2, -1), (0, 1, 2))
    left = right
    if allowed is not None:
        allowed = _led(allowed, leading, "allowed").movedim(-1, 0)
        left = right if right.shape[0] == 1 else _leaving(right, allowed)
    steps = torch.stack(torch.broadcast_tensors(right, left.flip(0).transpose(1, 2)), dim=1)
    vectors = [transition.new_zeros(num_states) if end is None else end.to(transition.dtype) for end in (start, stop)]
    ends = torch.broadcast_tensors(*(_led(end, leading, "start or stop") for end in vectors))
    ends = torch.stack(ends).movedim(-1, 1)
    if allowed is None:
        return _Walk(steps, ends, None, None)
    both = torch.stack([allowed, allowed.flip(0)], dim=1)
    return _Walk(steps, ends, both, both & (_places(both) == both.byte().argmax(dim=0)))


def _leaving(steps: Tensor, allowed: Tensor) -> Tensor:
    """Transition of every position but the last into the next allowed one, which need not be its neighbour."""
    places = _places(allowed)
    # If no allowed position follows, the last position serves as a placeholder: its messages are unused.
    following = torch.where(allowed, places, places[-1]).flip(0).cummin(0).values.flip(0)[1:]
    batch = torch.broadcast_shapes(steps.shape[3:], allowed.shape[1:])
    index = (following - 1)[:, None, None].expand(*steps.shape[:3], *batch)
    return steps.expand(*steps.shape[:3], *batch).gather(0, index)


def _places(rows: Tensor) -> Tensor:
    return torch.arange(rows.shape[0], device=rows.device).reshape(-1, *(1,) * (rows.dim() - 1))


def _led(tensor: Tensor, leading: int, name: str) -> Tensor:
    """Insert leading axes into a tensor that has none.

    Raises:
        ShapeError: the tensor has leading axes, but not as many as the scores.
    """
    num_axes = tensor.dim() - 1
    if num_axes not in {0, leading}:
        raise ShapeError(f"chain: {name} {list(tensor.shape)} has {num_axes} leading axes, the scores have {leading}")
    return tensor if num_axes else tensor[(None,) * leading]


def _state_messages(states: Tensor, walk: _Walk) -> tuple[Tensor, Tensor]:
    """Messages into each position, for [position, 2, state, *batch], and the log normalizer."""
    messages: list[Tensor] = []
    log_probs, total = states[0], torch.zeros_like(states[0, :, 0])
    for position, score in enumerate(states.unbind(0)):
        arriving = walk.ends.expand_as(score)
        if position > 0:
            moved = log_sum(log_probs[:, :, None] + walk.steps[walk.step(position)], dim=1)
            arriving = moved if walk.first is None else torch.where(walk.first[position][:, None], arriving, moved)
        messages.append(arriving)
        joint = arriving + score
        scale = log_sum(joint, dim=1)
        here = joint - scale.masked_fill(scale == -torch.inf, 0.0)[:, None]
        if walk.allowed is None:
            log_probs, total = here, total + scale
        else:
            log_probs = torch.where(walk.allowed[position][:, None], here, log_probs)
            total = total + scale.masked_fill(~walk.allowed[position], 0.0)
    return torch.stack(messages), total[0] + log_sum(log_probs[0] + walk.ends[1], dim=0)


def _odds_messages(scores: Tensor, walk: _Walk) -> tuple[Tensor, Tensor]:
    """The same messages as log odds of state 1, for [position, 2, *batch]."""
    begin = walk.ends[:, 1] - walk.ends[:, 0]
    odds = _chained_odds(_matrices(scores, walk, _positions(scores, walk)), walk.allowed)
    (stay, rise), (fall, hold) = (row.unbind(2) for row in walk.steps.unbind(2))
    # With w = sigmoid(behind) the probability of coming from state 1, the odds here are (1 - w) e^low + w e^high.
    behind = odds[:-1] + (fall - stay)
    from_0, from_1 = functional.logsigmoid(-behind), functional.logsigmoid(behind)
    arriving = _log_add(rise - stay + from_0, hold - fall + from_1)
    grown = stay[:, 0] - from_0[:, 0]
    if walk.allowed is not None and walk.first is not None:
        arriving = torch.where(walk.first[1:], begin, arriving)
        grown = grown.masked_fill(~(walk.allowed[1:, 0] & ~walk.first[1:, 0]), 0.0)
    messages = torch.cat([begin.expand_as(scores[:1]), arriving])
    last = odds[-1, 0] + walk.ends[1, 1] - walk.ends[1, 0]
    return messages, walk.ends[0, 0] + walk.ends[1, 0] + grown.sum(dim=0) - functional.logsigmoid(-last)


def _chained_odds(matrices: Tensor, allowed: Tensor | None) -> Tensor:
    """Log odds of state 1 at each position; those of a masked position are those of the last allowed one before it."""
    if allowed is None:
        return _odds_along(matrices)
    allowed = allowed.expand(*matrices.shape[:2], *matrices.shape[4:])
    # Allowed positions first, in their order, so that no masked one is part of their products.
    order = allowed.logical_not().byte().argsort(dim=0, stable=True)[:, :, None, None]
    ordered = _odds_along(matrices.gather(0, order.expand_as(matrices)))
    return ordered.gather(0, (allowed.cumsum(dim=0) - 1).clamp(min=0))


def _odds_along(matrices: Tensor) -> Tensor:
    """Log odds of state 1 after each of the transitions [position, 2, state before, state, *batch].

    Neighbouring transitions are multiplied, which leaves a chain of half the length; so the number of operations grows
    with the logarithm of the length, and their work with the length. Blelloch 1990, "Prefix sums and their
    applications", section 1.2.
    """
    number = len(matrices)
    if number == 1:
        return _moved(torch.zeros_like(matrices[:, :, 0, 0]), matrices)
    # Both ends are even, so that a last matrix without a partner stays outside.
    first, second = matrices[0 : number - 1 : 2], matrices[1::2]
    pairs = _log_add(first[:, :, :, :1] + second[:, :, :1], first[:, :, :, 1:] + second[:, :, 1:])
    after_pairs = _odds_along(pairs - pairs.detach().amax(dim=(2, 3), keepdim=True))
    before = torch.cat([torch.zeros_like(after_pairs[:1]), after_pairs[: (number - 1) // 2]])
    after_singles = _moved(before, matrices[0::2])
    both = torch.stack([after_singles[: number // 2], after_pairs], dim=1).flatten(0, 1)
    return both if number % 2 == 0 else torch.cat([both, after_singles[-1:]])


def _moved(odds: Tensor, matrices: Tensor) -> Tensor:
    """Log odds of state 1 after a transition from a position with log odds [position, 2, *batch]."""
    (stay, rise), (fall, hold) = (row.unbind(2) for row in matrices.unbind(2))
    return _log_add(rise, odds + hold) - _log_add(stay, odds + fall)


class _Positions(NamedTuple):
    """Transitions into each position of a chain, and the position where the chain begins."""

    steps: Tensor
    """[1 or position, 2, state, state, *#batch] transition into a position; that into position 0 is unused."""
    first: Tensor
    """[position, 2, *#batch] whether the chain begins here."""


def _positions(scores: Tensor, walk: _Walk) -> _Positions:
    trailing = (1,) * (scores.dim() - 2)
    steps = walk.steps
    if steps.shape[0] != 1:
        steps = torch.cat([steps.new_zeros(1, *steps.shape[1:]), steps])
    index = torch.arange(scores.shape[0], device=scores.device)
    return _Positions(steps, (index == 0).reshape(-1, 1, *trailing) if walk.first is None else walk.first)


def _matrices(scores: Tensor, walk: _Walk, positions: _Positions) -> Tensor:
    """Logs of the transition into a position times the factor of its state: [position, 2, state before, state, *batch].

    The first allowed position has the same row for both states before.
    """
    gains = torch.stack([torch.zeros_like(scores), scores], dim=2)[:, :, None]
    return torch.where(positions.first[:, :, None, None], walk.ends[:, None], positions.steps) + gains


def _scanned_messages(scores: Tensor, walk: _Walk) -> tuple[Tensor, Tensor]:
    """The same messages without a loop over positions: products of transition matrices, twice as long at each level.

    Hillis and Steele 1986, doi:10.1145/7902.7903. Matrices [position, 2, state before, state, *batch] are logs, divided
    by their largest entry at every level.
    """
    num_positions = scores.shape[0]
    trailing = (1,) * (scores.dim() - 2)
    index = torch.arange(num_positions, device=scores.device)
    identity = torch.eye(2, dtype=scores.dtype, device=scores.device).log().reshape(1, 1, 2, 2, *trailing)
    positions = _positions(scores, walk)
    matrices = _matrices(scores, walk, positions)
    if walk.allowed is not None:
        matrices = torch.where(walk.allowed[:, :, None, None], matrices, identity)
    matrices, scale = _scaled(matrices)
    for level in range(LEVELS):
        before = index - (1 << level)
        is_there = (before >= 0).reshape(-1, 1, 1, 1, *trailing)
        rows = before.clamp(min=0)
        earlier = torch.where(is_there, matrices.index_select(0, rows), identity)
        total = scale + scale.index_select(0, rows).masked_fill(~is_there[:, :, 0, 0], 0.0)
        matrices, more = _scaled(log_sum(earlier[:, :, :, :, None] + matrices[:, :, None], dim=3))
        scale = total + more
    behind = matrices[:, :, 0].index_select(0, (index - 1).clamp(min=0))
    arriving = log_sum(behind[:, :, :, None] + positions.steps, dim=2)
    odds = torch.where(positions.first, walk.ends[:, 1] - walk.ends[:, 0], arriving[:, :, 1] - arriving[:, :, 0])
    return odds, scale[-1, 0] + log_sum(matrices[-1, 0, 0] + walk.ends[1], dim=0)


def _scaled(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """Matrices [position, 2, 2, 2, *batch] divided by their largest entry, and its log [position, 2, *batch]."""
    largest = matrices.detach().amax(dim=(2, 3))
    return matrices - largest[:, :, None, None], largest
