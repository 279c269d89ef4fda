"""Attentive model: base of recurrent decoders with one attention over the source at each step."""

from abc import ABC
from dataclasses import replace
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention.dispatch import attend
from heedful.attention.interface import Attended, Need, PreparedKey, Score
from heedful.attention.masks import Mask, graph, local_monotonic, local_predictive, padding
from heedful.attention.monotonic import Chunkwise
from heedful.attention.stepwise import StepwiseValue
from heedful.layers.normalizing import NormalizerLayer
from heedful.layers.sentence_states import SentenceStates
from heedful.models.attention_config import AttentionConfig, build_normalizer, build_reinforcement, build_score
from heedful.models.interface import Decoded, Seq2Seq
from heedful.models.reinforcement import Reinforcement

Coverage = tuple[Tensor, ...]
"""Weights of earlier steps [source, hypothesis, position] that a step depends on: their sums, with coverage, then those
of the last step, with location filters or a normalizer that goes on from them; empty = neither."""


class AttentiveSeq2Seq(Seq2Seq, ABC):
    """Sequence-to-sequence model whose decoder attends to the source once at each step.

    Symbols of Luong et al. 2015, arXiv:1508.04025, section 3.2: S source positions, target position t, window
    [p_t - D, p_t + D], where local-m has p_t = t and local-p has p_t = S sigmoid(v_p . tanh(W_p h_t)).
    """

    score: Score
    normalizer: NormalizerLayer
    reinforcement: Reinforcement
    position_map: nn.Linear | None
    """W_p; None unless the window is local-p."""
    position_vector: nn.Parameter | None
    """v_p; None unless the window is local-p."""
    coverage_map: nn.Parameter | None
    """w; None without coverage."""
    chunk_score: Score | None
    """Second score, of the keys of a chunk (MoChA); None where chunks have one key."""
    location: "LocationFilters | None"
    """Filters of the weights of the step before; None without them."""
    sentences: SentenceStates | None
    """States of sentences; None without hierarchical attention."""
    attention: AttentionConfig

    def add_attention(self, config: AttentionConfig, query_size: int, key_size: int) -> None:
        """Create the parts of the attention, with fresh parameters.

        Args:
            config: score, normalizer and window.
            query_size: features of the decoder state that serves as query.
            key_size: features of a source state.
        """
        self.attention = config
        self.sentences = SentenceStates(key_size) if config.has_sentences else None
        sentence_size = 0 if self.sentences is None else self.sentences.output_size
        self.score = build_score(config, query_size, key_size, sentence_size=sentence_size)
        self.chunk_score = build_score(config, query_size, key_size) if config.chunk_width > 1 else None
        self.normalizer = NormalizerLayer(build_normalizer(config))
        self.reinforcement = build_reinforcement(config)
        is_predictive = config.window == "local-p"
        self.position_map = nn.Linear(query_size, query_size, bias=False) if is_predictive else None
        # Zero weights predict the middle of the source.
        self.position_vector = nn.Parameter(torch.zeros(query_size)) if is_predictive else None
        self.coverage_map = self.location = None
        if config.changes_keys:
            mapped_size = self.score.prepare(torch.empty(1, self.score.key_size)).key.shape[-1]
            self.coverage_map = nn.Parameter(torch.zeros(mapped_size)) if config.has_coverage else None
            if config.location_filters:
                self.location = LocationFilters(config.location_filters, config.location_width, mapped_size)

    def prepare_keys(
        self,
        keys: Float[Tensor, "source position size"],
        lengths: Int[Tensor, " source"],
        ids: Int[Tensor, "source position"] | None = None,
    ) -> PreparedKey:
        """Prepare the keys of the score.

        Args:
            keys: [source, position, size] source states.
            lengths: [source] numbers of real positions.
            ids: [source, position] token ids, in which sentences end in EOS; None = the source is no text.
        """
        if self.sentences is not None and ids is not None:
            keys = torch.cat((keys, self.sentences(keys, ids, lengths)), dim=-1)
        if self.attention.changes_keys:
            # Kernels round by the range of all keys, and coverage may shift it so far that padding would matter.
            real = torch.arange(keys.shape[1], device=keys.device) < lengths[:, None]
            keys = keys.masked_fill(~real[..., None], 0.0)
        prepared = self.score.prepare(keys)
        if self.chunk_score is None:
            return prepared
        return PreparedKey(torch.cat((prepared.key, self.chunk_score.prepare(keys).key), dim=-1))

    def share_values(self, annotations: Float[Tensor, "source position size"]) -> Tensor | StepwiseValue:
        """Prepare values that the steps of a training share.

        Args:
            annotations: [source, position, size].

        Returns:
            Values whose gradient is computed once for all steps; with a window, the annotations themselves, because
            gathering few keys gives no weights over all keys.
        """
        return StepwiseValue(annotations) if self.attention.window == "global" else annotations

    def attend_source(
        self,
        query: Float[Tensor, "source _ query_size"],
        keys: PreparedKey,
        values: Float[Tensor, "source position size"] | StepwiseValue,
        lengths: Int[Tensor, " source"],
        mask: Mask,
        need: tuple[Need, ...],
        coverage: Coverage = (),
    ) -> tuple[Attended, Coverage]:
        """Attend to the source.

        Args:
            query: [source, hypothesis or target, query_size].
            keys: from `prepare_keys`.
            values: [source, position, size], or the result of `share_values`.
            lengths: [source] positions that are attended.
            mask: from `visible_from` or `visible_at`.
            need: results requested beside the context.
            coverage: from `first_coverage` or the step before.

        Returns:
            Contexts [source, hypothesis or target, size] with the requested results, and the coverage of the next step.

        Cost: with coverage, every query has keys of its own, [source, hypothesis, position, size] numbers per step.
        """
        if self.position_map is not None and self.position_vector is not None:
            share = torch.sigmoid(torch.tanh(self.position_map(query)) @ self.position_vector)
            centre = lengths[:, None] * share  # p_t
            mask = mask & local_predictive(centre, self.attention.half_width, over=self.attention.softmax_over)
        is_shared = isinstance(values, StepwiseValue)
        needs_weights = self.attention.remembers_weights or (self.training and self.attention.coverage_weight > 0.0)
        need = (
            *need,
            *self.reinforcement.need,
            *(values.need if is_shared else ()),
            *(("weights",) if needs_weights else ()),
            *self.copy_need,
        )
        normalizer = self.normalizer()
        if normalizer.has_memory:
            normalizer = normalizer.after(coverage[-1])
        if coverage:
            mask = mask.each_query(query.shape[-2], 1)
        chunk_keys, keys = self._split(keys)
        operands = self._covered(query, keys, values.constant if is_shared else values, lengths, coverage)
        attended = attend(*operands, score=self.score, mask=mask, normalizer=normalizer, need=need)
        after = self._added(coverage, attended.weights)
        if self.chunk_score is not None and chunk_keys is not None and attended.weights is not None:
            chunks = Chunkwise(attended.weights, self.attention.chunk_width)
            own_keys = PreparedKey(chunk_keys[:, None])
            attended = attend(
                operands[0], own_keys, operands[2], score=self.chunk_score, mask=mask, normalizer=chunks, need=need
            )
        attended = without_query_axis(attended) if coverage else attended
        return (values.accumulate_value_grad(attended) if is_shared else attended), after

    def _split(self, keys: PreparedKey) -> tuple[Tensor | None, PreparedKey]:
        """Keys of the chunk score, if there is one, and those of the score."""
        if self.chunk_score is None:
            return None, keys
        own, chunk = keys.key.chunk(2, dim=-1)
        return chunk, PreparedKey(own)

    def _covered(
        self, query: Tensor, keys: PreparedKey, values: Tensor, lengths: Tensor, coverage: Coverage
    ) -> tuple[Tensor, PreparedKey, Tensor]:
        """Queries, keys and values; with coverage, each query [source, hypothesis, 1, size] has keys of its own."""
        if not coverage:
            return query, keys, values
        own_keys = keys.key[:, None]
        if self.coverage_map is not None:
            own_keys = own_keys + coverage[0][..., None].to(own_keys.dtype) * self.coverage_map
        if self.location is not None:
            features = self.location(coverage[-1].to(own_keys.dtype))
            real = torch.arange(own_keys.shape[-2], device=own_keys.device) < lengths[:, None]
            own_keys = own_keys + features.masked_fill(~real[:, None, :, None], 0.0)
        return query[:, :, None], PreparedKey(own_keys), values[:, None]

    def first_coverage(
        self, like: Float[Tensor, "source hypothesis size"], num_positions: int
    ) -> tuple[Float[Tensor, "source hypothesis position"], ...]:
        """Make the coverage of an initial state.

        Args:
            like: [source, hypothesis, size].
            num_positions: number of source positions, padding included.

        Returns:
            [source, hypothesis, position] zeros for coverage, and for the weights of the step before zeros, or all
            weight on the first position if the normalizer goes on from them.
        """
        nothing = like.new_zeros(*like.shape[:2], num_positions)
        sums = () if self.coverage_map is None else (nothing,)
        if self.attention.is_monotonic:
            return (*sums, nothing + (torch.arange(num_positions, device=nothing.device) == 0))
        return sums if self.location is None else (*sums, nothing)

    def _added(self, coverage: Coverage, weights: Tensor | None) -> Coverage:
        """Coverage of the next step, from weights [source, hypothesis, 1, position]; empty if nothing reads it."""
        if weights is None or not coverage:
            return ()
        weights = weights.squeeze(-2)
        sums = tuple(each + weights.to(each.dtype) for each in coverage[:1] if self.coverage_map is not None)
        return (*sums, *(weights.to(each.dtype) for each in coverage[len(sums) :]))

    def first_places(
        self, like: Float[Tensor, "source hypothesis size"]
    ) -> tuple[Int[Tensor, "source hypothesis"], ...]:
        """Make the target positions within an initial state.

        Args:
            like: [source, hypothesis, size].

        Returns:
            [source, hypothesis] zeros; empty unless the window is local-m, the only one that needs positions.
        """
        return (torch.zeros_like(like[..., 0], dtype=torch.int64),) if self.attention.window == "local-m" else ()

    def visible_at(
        self, position: tuple[Int[Tensor, "source hypothesis"], ...], lengths: Int[Tensor, " source"], num_keys: int
    ) -> Mask:
        """Return the mask of one decoding step, without the window of local-p.

        Args:
            position: target positions, from `first_places` or later steps.
            lengths: [source] positions that are attended.
            num_keys: source positions, padding included.
        """
        mask = padding(lengths)
        # The position is a tensor, so that a recorded graph of this step does not depend on its value.
        return mask & near(self.attention, position[0], lengths, num_keys) if position else mask

    def extra_losses(
        self, decoded: Decoded, token_log_probs: Float[Tensor, "batch target"], real: Bool[Tensor, "batch target"]
    ) -> dict[str, Tensor]:
        losses = self.reinforcement(decoded.attended.values(), token_log_probs, real)
        attended = decoded.attended.get(self.alignment)
        weights = None if attended is None else attended.weights
        if not self.training or not self.attention.coverage_weight or weights is None:
            return losses
        return losses | {"coverage": self.attention.coverage_weight * coverage_loss(weights, real)}


@final
class LocationFilters(nn.Module):
    """Features of source positions from the weights of the step before, mapped to the size of the keys.

    U f_j with f = F * alpha_(i-1); Chorowski et al. 2015, arXiv:1506.07503, eq. 8 and 9.
    """

    def __init__(self, num_filters: int, width: int, size: int) -> None:
        """Create the filters F, and the map U, whose first values are zeros.

        Args:
            width: positions that a filter sees, an odd number.
            size: size of the mapped keys.
        """
        super().__init__()
        self.filters = nn.Conv1d(1, num_filters, width, padding=width // 2, bias=False)
        self.map = nn.Linear(num_filters, size, bias=False)
        nn.init.zeros_(self.map.weight)

    def forward(
        self, weights: Float[Tensor, "source hypothesis position"]
    ) -> Float[Tensor, "source hypothesis position size"]:
        """Compute the features of each position from the weights around it.

        Args:
            weights: [source, hypothesis, position].
        """
        features = self.filters(weights.flatten(0, 1)[:, None])
        return self.map(features.transpose(-1, -2)).unflatten(0, weights.shape[:2])


def without_query_axis(attended: Attended) -> Attended:
    """Turn calls with one query each into one call with many queries.

    Args:
        attended: results with a query axis of size 1, [*batch, 1] or [*batch, 1, size].

    Returns:
        The same without that axis, so that the last leading axis is the query axis.
    """
    with_features = {"context": attended.context, "weights": attended.weights}
    others = {name: getattr(attended, name) for name in ("log_normalizer", "argmax", "entropy", "log_prob")}
    return replace(
        attended,
        **{name: tensor.squeeze(-2) for name, tensor in with_features.items() if tensor is not None},
        **{name: tensor.squeeze(-1) for name, tensor in others.items() if tensor is not None},
    )


def coverage_loss(
    weights: Float[Tensor, "batch target position"], real: Bool[Tensor, "batch target"]
) -> Float[Tensor, ""]:
    """Compute the coverage loss, which is high where weights return to positions that have had weight before.

    sum_t sum_j min(a_tj, c_tj), where c_tj = sum_{t' < t} a_t'j; See et al. 2017, arXiv:1704.04368, eq. 10 and 12.

    Args:
        weights: [batch, target, position] weights of the source positions.
        real: [batch, target] True where not padding.

    Example:
        >>> weights = torch.tensor([[[0.5, 0.5], [1.0, 0.0]]])
        >>> coverage_loss(weights, torch.ones(1, 2, dtype=torch.bool)).item()
        0.5
    """
    coverage = weights.cumsum(dim=1) - weights
    return torch.minimum(weights, coverage).sum(dim=-1).masked_fill(~real, 0.0).sum()


def visible_from(config: AttentionConfig, first: int, lengths: Int[Tensor, " source"]) -> Mask:
    """Return the mask of successive queries, without the window of local-p.

    Args:
        first: target position of the first query.
        lengths: [source] positions that are attended.
    """
    if config.window != "local-m":
        return padding(lengths)
    stay = lengths if config.past_source == "last" else None
    return padding(lengths) & local_monotonic(config.half_width, first, stay)


def near(
    config: AttentionConfig, centre: Int[Tensor, "source hypothesis"], lengths: Int[Tensor, " source"], num_keys: int
) -> Mask:
    """Return the mask of local-m's window around the target position of each hypothesis.

    Args:
        centre: [source, hypothesis] target positions.
        lengths: [source] positions that are attended.
        num_keys: source positions, padding included.
    """
    if config.past_source == "last":
        centre = torch.minimum(centre, lengths[:, None] - 1)
    positions = torch.arange(num_keys, device=centre.device)
    return graph((positions - centre[..., None]).abs() <= config.half_width)
