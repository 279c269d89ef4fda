"""Distributions over whole structures, chains and trees: entropy, samples and the most probable structure.

Marginals, the weights of structured attention, say how probable each part is. Whole structures come from the same
charts: the most probable one by maxima in place of sums (Viterbi 1967; Eisner 1996, doi:10.3115/992628.992688), samples
by drawing, from the whole down to its parts, one predecessor or split in proportion to its share of the sum.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from heedful.attention.structured_chain import Marginals, linear_chain_marginals, log_sum, shares
from heedful.attention.structured_tree import Portion, inside, outside, projective_tree_marginals, shifted_arcs
from heedful.errors import ShapeError, UsageError


@final
@dataclass(frozen=True, eq=False)
class ChainDistribution:
    """Distribution over the sequences of states of linear chains.

    p(z) = exp(start[z_1] + sum_i unary[i, z_i] + sum_i transition[i, z_i, z_{i+1}] + stop[z_n]) / Z. Kim et al. 2017,
    arXiv:1702.00887, section 3.1. The chain of `LinearChain` has scores of 0 for state 0.

    A sequence is [*batch, position] int64, with -1 at masked positions, and everywhere if no sequence is possible.

    Example:
        >>> chain = ChainDistribution(torch.tensor([[0.0, 0.5], [0.0, -0.2]]), torch.eye(2))
        >>> chain.best().tolist(), round(chain.log_prob(chain.best()).exp().item(), 4)
        ([1, 1], 0.4144)
    """

    unary: Float[Tensor, "*batch position state"]
    """[*batch, position, state] score of a state at a position; finite."""
    transition: Tensor
    """[state, state] or [*#batch, 1 or position - 1, state, state] score of a state followed by another, as for
    `linear_chain_marginals`; -inf forbids."""
    allowed: Bool[Tensor, "*#batch position"] | None = None
    """[*#batch, position] True = part of the chain; None = all."""
    start: Tensor | None = None
    """[state] or [*#batch, state] score of the first state; None = 0."""
    stop: Tensor | None = None
    """[state] or [*#batch, state] score of the last state; None = 0."""

    def marginals(self) -> Marginals:
        """Compute the probability of every state at every position.

        Returns:
            Weights and log normalizer, as of `linear_chain_marginals`.
        """
        return linear_chain_marginals(self.unary, self.transition, self.allowed, self.start, self.stop)

    def entropy(self) -> Float[Tensor, "*batch"]:
        """Compute -sum_z p(z) log p(z), as the sum of the entropies of each state given the next one.

        Returns:
            [*batch] in nats, with gradients; 0 for an empty chain and for one without a possible sequence.

        Cost: position * state^2 exponentials, twice.
        """
        chain = self._compact()
        num_states = self.unary.shape[-1]
        # All columns are alike: the last state is followed by the end.
        onward = chain.stop[:, :, None].expand(-1, -1, num_states)
        following = torch.full_like(chain.stop, 1 / num_states)
        entropy = chain.stop.new_zeros(chain.stop.shape[0])
        for position, message in reversed([*enumerate(chain.messages(log_sum))]):
            is_inside = position < chain.lengths
            given_next = shares(message[:, :, None] + onward, -2)
            surprise = -(given_next * given_next.masked_fill(given_next == 0, 1.0).log()).sum(dim=-2)
            entropy = entropy + (following * surprise).sum(dim=-1).masked_fill(~is_inside, 0.0)
            states = (given_next * following[:, None, :]).sum(dim=-1)
            following = torch.where(is_inside[:, None], states, following)
            onward = torch.where(is_inside[:, None, None], chain.into[position], onward)
        return entropy.reshape(self.unary.shape[:-2]).to(self.unary.dtype)

    def best(self) -> Int[Tensor, "*batch position"]:
        """Find the most probable sequence, by Viterbi's algorithm.

        Returns:
            [*batch, position] states; one of them if several are equally probable.

        Cost: position * state^2 comparisons.
        """
        return self._walk_back(torch.amax, partial(torch.argmax, dim=-1), 1).reshape(self.unary.shape[:-1])

    def sample(self, num_samples: int = 1, generator: Generator | None = None) -> Int[Tensor, "sample *batch position"]:
        """Draw independent sequences, from the last state to the first.

        Args:
            num_samples: 1 or more.
            generator: source of random numbers; None = PyTorch's own.

        Returns:
            [sample, *batch, position] states.

        Raises:
            UsageError: `num_samples` is below 1.

        Cost: position * (state^2 + sample * state) exponentials.
        """
        _require_samples(num_samples)
        states = self._walk_back(log_sum, lambda scores: _drawn(shares(scores, -1), generator), num_samples)
        return states.reshape(num_samples, *self.unary.shape[:-1])

    def log_prob(self, states: Int[Tensor, "*sequence position"]) -> Float[Tensor, "*sequence"]:
        """Compute the log probability of sequences.

        Args:
            states: [*sequence, position], where the axes of sequences are those of the batch, or one of samples before
                them; at masked positions states are ignored.

        Returns:
            [*sequence] with gradients; 0 for an empty chain, -inf for impossible sequences.
        """
        chain = self._compact()
        num_items, num_positions = chain.order.shape
        log_normalizer = self.marginals().log_normalizer
        if num_positions == 0:
            return log_normalizer.new_zeros(states.shape[:-1])
        num_samples = states.shape[:-1].numel() // max(num_items, 1)
        index = states.clamp(min=0).reshape(num_samples, num_items, num_positions)
        index = index.gather(-1, chain.order.expand_as(index)).movedim(-1, 0)
        items = torch.arange(num_items, device=index.device)
        terms = chain.unary[torch.arange(num_positions, device=index.device)[:, None, None], items, index]
        moves = chain.into[
            torch.arange(1, num_positions, device=index.device)[:, None, None], items, index[:-1], index[1:]
        ]
        terms = torch.cat([terms[:1] + chain.start[items, index[0]], terms[1:] + moves])
        places = torch.arange(num_positions, device=index.device)[:, None, None]
        total = terms.masked_fill(places >= chain.lengths, 0.0).sum(dim=0)
        last = index.gather(0, (chain.lengths - 1).clamp(min=0).expand(1, *index.shape[1:])).squeeze(0)
        total = (total + chain.stop[items, last]).masked_fill(chain.lengths == 0, 0.0)
        log_normalizer = log_normalizer.reshape(-1)
        is_possible = log_normalizer > -torch.inf
        total = (total - log_normalizer.masked_fill(~is_possible, 0.0)).masked_fill(~is_possible, -torch.inf)
        return total.reshape(states.shape[:-1]).to(self.unary.dtype)

    def _walk_back(
        self, total: Callable[[Tensor, int], Tensor], choose: Callable[[Tensor], Tensor], num_samples: int
    ) -> Tensor:
        """[sample, item, position] states chosen from the last to the first, from scores [sample, item, state]."""
        with torch.no_grad():
            chain = self._compact()
            items = torch.arange(chain.stop.shape[0], device=chain.stop.device)
            onward = chain.stop.expand(num_samples, *chain.stop.shape)
            states = chain.order.new_full((num_samples, *chain.order.shape), -1)
            for position, message in reversed([*enumerate(chain.messages(total))]):
                is_inside = position < chain.lengths
                scores = message + onward
                chosen = choose(scores)
                is_possible = is_inside & (scores.amax(dim=-1) > -torch.inf)
                states[..., position] = chosen.masked_fill(~is_possible, -1)
                onward = torch.where(is_inside[:, None], chain.into[position].mT[items, chosen], onward)
            # An impossible chain shows at its last position, before which others may seem possible.
            is_inside = torch.arange(states.shape[-1], device=states.device) < chain.lengths[:, None]
            states = states.masked_fill(((states == -1) & is_inside).any(dim=-1, keepdim=True), -1)
            return states.gather(-1, chain.order.argsort(dim=-1).expand_as(states))

    def _compact(self) -> "_CompactChain":
        batch, (num_positions, num_states) = self.unary.shape[:-2], self.unary.shape[-2:]
        unary = self.unary.to(torch.promote_types(self.unary.dtype, torch.float32))
        transition = self.transition.to(unary.dtype)
        num_steps = transition.shape[-3] if transition.dim() > 2 else 1
        if transition.shape[-2:] != (num_states, num_states) or num_steps not in (1, num_positions - 1):
            raise ShapeError(f"chain: transition {list(self.transition.shape)} does not fit {list(self.unary.shape)}")
        into = transition.expand(*batch, max(num_positions - 1, 0), num_states, num_states)
        into = torch.cat([into.new_zeros(*batch, min(num_positions, 1), num_states, num_states), into], dim=-3)
        allowed = unary.new_ones(1, dtype=torch.bool) if self.allowed is None else self.allowed
        allowed = allowed.expand(*batch, num_positions).reshape(batch.numel(), num_positions)
        order = (~allowed).int().argsort(dim=-1, stable=True)
        items = torch.arange(order.shape[0], device=order.device)[:, None]
        start, stop = (
            unary.new_zeros(order.shape[0], num_states)
            if end is None
            else end.to(unary.dtype).expand(*batch, num_states).reshape(batch.numel(), num_states)
            for end in (self.start, self.stop)
        )
        return _CompactChain(
            unary.reshape(batch.numel(), num_positions, num_states)[items, order].movedim(1, 0),
            into.reshape(batch.numel(), num_positions, num_states, num_states)[items, order].movedim(1, 0),
            start,
            stop,
            allowed.sum(dim=-1),
            order,
        )


class _CompactChain(NamedTuple):
    """Chains with one batch axis, whose allowed positions come first."""

    unary: Tensor
    """[position, item, state]"""
    into: Tensor
    """[position, item, state before, state] transition into a position; that into position 0 is unused."""
    start: Tensor
    """[item, state]"""
    stop: Tensor
    """[item, state]"""
    lengths: Tensor
    """[item] number of allowed positions."""
    order: Tensor
    """[item, position] index of each of these positions in the chain as it was."""

    def messages(self, total: Callable[[Tensor, int], Tensor]) -> list[Tensor]:
        """Scores [item, state] of all beginnings of a chain that end in a state, for each position; the largest is 0.

        Args:
            total: score of several beginnings from those of each, given their axis: their sum, or the largest.
        """
        messages: list[Tensor] = []
        for unary, into in zip(self.unary, self.into, strict=True):
            before = total(messages[-1][:, :, None] + into, 1) if messages else self.start
            message = before + unary
            best = message.detach().amax(dim=-1, keepdim=True)
            messages.append(message - best.masked_fill(best == -torch.inf, 0.0))
        return messages


@final
@dataclass(frozen=True, eq=False)
class TreeDistribution:
    """Distribution over projective dependency trees.

    p(tree) = exp(sum of the scores of its arcs) / Z, over trees in which every word has one head and no arcs cross. Kim
    et al. 2017, arXiv:1702.00887, section 3.2.

    A tree is [*batch, node] int64: the head of each node, -1 for the root (node 0) and for nodes beyond the sentence;
    -1 everywhere if no tree is possible.

    Example:
        >>> scores = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
        >>> tree = TreeDistribution(scores)
        >>> tree.best().tolist(), round(tree.log_prob(tree.best()).exp().item(), 4)
        ([-1, 0, 1], 0.9362)
    """

    scores: Float[Tensor, "*batch head dependent"]
    """[*batch, head, dependent] score of an arc; node 0 is the root, node j the j-th word; -inf forbids."""
    lengths: Int[Tensor, "*leading"] | None = None
    """[*leading] number of words of each sentence, without the root; leading axes align from the left. None = all."""
    is_single_root: bool = False
    """Whether exactly one word depends on the root."""

    def marginals(self) -> Marginals:
        """Compute the probability of every arc.

        Returns:
            Weights and log normalizer, as of `projective_tree_marginals`.
        """
        return projective_tree_marginals(self.scores, self.lengths, self.is_single_root)

    def entropy(self) -> Float[Tensor, "*batch"]:
        """Compute -sum_tree p(tree) log p(tree) = log Z - the mean score of a tree.

        Returns:
            [*batch] in nats, with gradients; 0 for a sentence without words and for one without a possible tree.

        Cost: that of the marginals.
        """
        chart = shifted_arcs(self.scores, self.lengths)
        shifted = chart.arcs.reshape(self.scores.shape)
        weights, log_normalizer = projective_tree_marginals(shifted, self.lengths, self.is_single_root)
        # Arcs that are in no tree may have the score -inf, and an infinite gradient.
        terms = weights * shifted.masked_fill(weights == 0, 0.0)
        entropy = (log_normalizer - terms.sum(dim=(-2, -1))).masked_fill(log_normalizer == -torch.inf, 0.0)
        return entropy.clamp(min=0.0).to(self.scores.dtype)

    def best(self) -> Int[Tensor, "*batch node"]:
        """Find the most probable tree, by Eisner's algorithm.

        Returns:
            [*batch, node] heads; those of one tree if several are equally probable.

        Cost: words^3 additions in 4 * words tensor operations.
        """
        return self._trees(torch.amax, _best_split, 1).reshape(self.scores.shape[:-1])

    def sample(self, num_samples: int = 1, generator: Generator | None = None) -> Int[Tensor, "sample *batch node"]:
        """Draw independent trees, from the whole sentence to its smallest spans.

        Args:
            num_samples: 1 or more.
            generator: source of random numbers; None = PyTorch's own.

        Returns:
            [sample, *batch, node] heads.

        Raises:
            UsageError: `num_samples` is below 1.

        Cost: words^3 exponentials and sample * words^3 random numbers.
        """
        _require_samples(num_samples)

        def portion(halves: Tensor, dim: int) -> Tensor:
            parts = shares(halves, dim)
            chosen = _drawn(parts.expand(num_samples, *parts.shape), generator)
            return _one_hot(chosen, parts.shape[dim], parts) * (parts > 0)

        return self._trees(log_sum, portion, num_samples).reshape(num_samples, *self.scores.shape[:-1])

    def log_prob(self, heads: Int[Tensor, "*tree node"]) -> Float[Tensor, "*tree"]:
        """Compute the log probability of trees.

        Args:
            heads: [*tree, node] projective trees, where the axes of trees are those of the batch, or one of samples
                before them. Heads of the root and of nodes beyond the sentence are ignored; that heads are a projective
                tree is not checked.

        Returns:
            [*tree] with gradients; 0 for a sentence without words, -inf where an arc is forbidden.
        """
        chart = shifted_arcs(self.scores, self.lengths)
        num_items, num_nodes = chart.arcs.shape[:2]
        num_samples = heads.shape[:-1].numel() // max(num_items, 1)
        index = heads.clamp(min=0).reshape(num_samples, num_items, 1, num_nodes)
        arcs = chart.arcs.expand(index.shape[0], -1, -1, -1).gather(-2, index).squeeze(-2)
        nodes = torch.arange(num_nodes, device=arcs.device)
        is_word = (nodes > 0) & (nodes <= chart.lengths[:, None])
        _, log_normalizer = projective_tree_marginals(chart.arcs, chart.lengths, self.is_single_root)
        is_possible = log_normalizer > -torch.inf
        total = arcs.masked_fill(~is_word, 0.0).sum(dim=-1) - log_normalizer.masked_fill(~is_possible, 0.0)
        return total.masked_fill(~is_possible, -torch.inf).reshape(heads.shape[:-1]).to(self.scores.dtype)

    def _trees(self, total: Callable[[Tensor, int], Tensor], portion: Portion, num_samples: int) -> Tensor:
        """[sample, item, node] heads, where each span goes to one of its splits."""
        with torch.no_grad():
            chart = shifted_arcs(self.scores, self.lengths)
            spans, _ = inside(chart.arcs, None, self.is_single_root, total)
            chosen = outside(spans, None, chart.lengths, portion, num_samples) > 0
            heads = chosen.int().argmax(dim=-2).masked_fill(~chosen.any(dim=-2), -1)
            score = spans.by_head[:, 0, 0].gather(-1, chart.lengths[:, None])
            return heads.masked_fill(score == -torch.inf, -1)


def _require_samples(num_samples: int) -> None:
    if num_samples < 1:
        raise UsageError(f"num_samples is {num_samples}: give 1 or more")


def _drawn(parts: Tensor, generator: Generator | None) -> Tensor:
    """[*batch] index drawn in proportion to parts [*batch, choice], which may all be zero: the first of a race."""
    noise = torch.empty_like(parts).exponential_(generator=generator).clamp(min=torch.finfo(parts.dtype).tiny)
    return (parts / noise).argmax(dim=-1)


def _one_hot(index: Tensor, size: int, like: Tensor) -> Tensor:
    """[*batch, size] one at the index."""
    return (index[..., None] == torch.arange(size, device=index.device)).to(like.dtype)


def _best_split(halves: Tensor, dim: int) -> Tensor:
    """One for the best split, zero for the others; all zero if none is possible."""
    return _one_hot(halves.argmax(dim=dim), halves.shape[dim], halves) * (halves > -torch.inf)
