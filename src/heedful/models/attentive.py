"""Attentive model: base of recurrent decoders with one attention over the source at each step."""

from abc import ABC

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention.dispatch import attend
from heedful.attention.interface import Attended, Need, PreparedKey, Score
from heedful.attention.masks import Mask, graph, local_monotonic, local_predictive, padding
from heedful.attention.stepwise import StepwiseValue
from heedful.layers.normalizing import NormalizerLayer
from heedful.models.attention_config import AttentionConfig, build_normalizer, build_reinforcement, build_score
from heedful.models.interface import Decoded, Seq2Seq
from heedful.models.reinforcement import Reinforcement


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
    attention: AttentionConfig

    def add_attention(self, config: AttentionConfig, query_size: int, key_size: int) -> None:
        """Create the parts of the attention, with fresh parameters.

        Args:
            config: score, normalizer and window.
            query_size: features of the decoder state that serves as query.
            key_size: features of a source state.
        """
        self.attention = config
        self.score = build_score(config, query_size, key_size)
        self.normalizer = NormalizerLayer(build_normalizer(config))
        self.reinforcement = build_reinforcement(config)
        is_predictive = config.window == "local-p"
        self.position_map = nn.Linear(query_size, query_size, bias=False) if is_predictive else None
        # Zero weights predict the middle of the source.
        self.position_vector = nn.Parameter(torch.zeros(query_size)) if is_predictive else None

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
    ) -> Attended:
        """Attend to the source.

        Args:
            query: [source, hypothesis or target, query_size].
            keys: from `score.prepare`.
            values: [source, position, size], or the result of `share_values`.
            lengths: [source] positions that are attended.
            mask: from `visible_from` or `visible_at`.
            need: summaries wanted.

        Returns:
            Contexts [source, hypothesis or target, size], and the requested results.
        """
        if self.position_map is not None and self.position_vector is not None:
            share = torch.sigmoid(torch.tanh(self.position_map(query)) @ self.position_vector)
            centre = lengths[:, None] * share  # p_t
            mask = mask & local_predictive(centre, self.attention.half_width, over=self.attention.softmax_over)
        is_shared = isinstance(values, StepwiseValue)
        attended = attend(
            query,
            keys,
            values.constant if is_shared else values,
            score=self.score,
            mask=mask,
            normalizer=self.normalizer(),
            need=(*need, *self.reinforcement.need, *(values.need if is_shared else ())),
        )
        return values.accumulate_value_grad(attended) if is_shared else attended

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

        Returns:
            The mask.
        """
        mask = padding(lengths)
        # The position is a tensor, so that a recorded graph of this step does not depend on its value.
        return mask & near(self.attention, position[0], lengths, num_keys) if position else mask

    def extra_losses(
        self, decoded: Decoded, token_log_probs: Float[Tensor, "batch target"], real: Bool[Tensor, "batch target"]
    ) -> dict[str, Tensor]:
        return self.reinforcement(decoded.attended.values(), token_log_probs, real)


def visible_from(config: AttentionConfig, first: int, lengths: Int[Tensor, " source"]) -> Mask:
    """Return the mask of successive queries, without the window of local-p.

    Args:
        config: attention configuration.
        first: target position of the first query.
        lengths: [source] positions that are attended.

    Returns:
        The mask.
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
        config: attention configuration.
        centre: [source, hypothesis] target positions.
        lengths: [source] positions that are attended.
        num_keys: source positions, padding included.

    Returns:
        The mask.
    """
    if config.past_source == "last":
        centre = torch.minimum(centre, lengths[:, None] - 1)
    positions = torch.arange(num_keys, device=centre.device)
    return graph((positions - centre[..., None]).abs() <= config.half_width)
