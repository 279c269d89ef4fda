"""Experiment: the complete configuration of a training (model, text, training, search), checked as a whole."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Self

import torch
from pydantic import BaseModel, model_validator
from torch import nn

from heedful.config.base import Tree
from heedful.config.plugins import is_custom
from heedful.data.images import ImageConfig
from heedful.models.attention_config import AttentionConfig, build_normalizer, upgrade_attention
from heedful.models.bidaf import BidafConfig
from heedful.models.hard_attention import HardAttentionConfig
from heedful.models.hierarchical import HierarchicalConfig
from heedful.models.memory_network import MemoryNetworkConfig
from heedful.models.rnn_encoder_decoder import RNNEncoderDecoderConfig
from heedful.models.self_attentive import SelfAttentiveConfig
from heedful.models.store import StoredSettings
from heedful.models.table import AnyModelConfig
from heedful.models.text_classifier import TextClassifierConfig
from heedful.models.transformer import TransformerConfig
from heedful.search.config import SearchConfig
from heedful.text.tokenizer import TextConfig
from heedful.training.config import TrainingConfig
from heedful.training.guided import Guidance

_WITHOUT_ALIGNMENT: Final = (
    RNNEncoderDecoderConfig,
    TextClassifierConfig,
    HierarchicalConfig,
    SelfAttentiveConfig,
    MemoryNetworkConfig,
    BidafConfig,
)


class Experiment(StoredSettings):
    """Complete configuration of a run, without its data."""

    text: TextConfig = TextConfig()
    images: ImageConfig = ImageConfig()
    training: TrainingConfig = TrainingConfig()
    search: SearchConfig = SearchConfig()

    @property
    def unused_sections(self) -> frozenset[str]:
        return frozenset() if self.task == "captioning" else frozenset({"images"})

    @model_validator(mode="after")
    def _check_positions(self) -> Self:
        model, most = self.model, self.text.max_tokens
        for name, part in (("model", model), ("model.layers", getattr(model, "layers", None))):
            if isinstance(part, TransformerConfig) and part.positions == "learned" and part.max_positions < most:
                raise ValueError(f"{name}.max_positions {part.max_positions} is below text.max_tokens {most}; raise it")
        if getattr(model, "has_copy", False) and not self.text.is_shared:
            raise ValueError(
                "model.has_copy: copied tokens need one vocabulary of source and target; set text.shared=true and the "
                "same units on both sides"
            )
        if self.training.alignment_weight and (reason := _why_not_guided(model, self.guidance.is_for_soft_steps)):
            raise ValueError(f"training.alignment_weight: {reason} leave it at 0")
        if self.training.links and not self.training.alignment_weight:
            raise ValueError("training.links: no links are taught; set training.alignment_weight, such as to 1")
        if (self.training.soft_start or self.training.soft_share) and not is_custom(model.kind):
            if all(attention.normalizer == "softmax" for attention in _attentions(model)):
                raise ValueError(
                    "training.soft_start, training.soft_share: this model has no attention but softmax; leave them out"
                )
        if not self.training.mix and self.training.mix_share != TrainingConfig().mix_share:
            raise ValueError("training.mix_share: no older pairs are mixed in; name their file with --mix")
        if self.training.mix and self.training.alignment_weight:
            raise ValueError("training.mix: older pairs have no alignment links; set training.alignment_weight to 0")
        if self.training.split_pieces and self.training.alignment_weight:
            raise ValueError("training.split_pieces: links are of whole pieces; set training.alignment_weight to 0")
        if self.training.noise and self.training.alignment_weight:
            raise ValueError("training.noise: changed texts have no alignment links; set training.alignment_weight=0")
        if self.training.noise and self.task == "captioning":
            if self.images.kind == "features":
                raise ValueError("training.noise: only pictures can be changed, not features of them; leave it at 0")
        elif self.training.noise and (self.text.split_sentences or not self._has_pieces):
            raise ValueError("training.noise: the texts of both sides are sentences in pieces of words; leave it at 0")
        if self.training.term_share and self.training.alignment_weight:
            raise ValueError("training.term_share: terms have no alignment links; set training.alignment_weight to 0")
        if self.training.term_share and self.text.split_sentences:
            raise ValueError("training.term_share: sources with terms are single texts; set text.split_sentences=false")
        return self

    @property
    def _has_pieces(self) -> bool:
        return self.text.source_units == self.text.target_units == "pieces"

    @property
    def guidance(self) -> Guidance:
        """Guided alignment of the training: in soft steps only, where other weights may be 0."""
        training, attention = self.training, _source_attention(self.model)
        has_soft = bool(training.soft_start or training.soft_share)
        in_soft = has_soft and attention is not None and _may_be_zero(attention)
        return Guidance(training.alignment_weight, int(training.alignment_step == "read"), in_soft)


def _attentions(config: BaseModel) -> Iterator[AttentionConfig]:
    """Attention of a model, from its configuration and those within it."""
    for name in type(config).model_fields:
        value = getattr(config, name)
        if name in getattr(config, "without_effect", ()):
            continue
        if isinstance(value, AttentionConfig):
            yield value
        elif isinstance(value, BaseModel):
            yield from _attentions(value)


def _source_attention(model: BaseModel) -> AttentionConfig | None:
    """Attention of the decoder over the source; a Transformer for images has it in the configuration of its layers."""
    attention = getattr(getattr(model, "layers", model), "attention", None)
    return attention if isinstance(attention, AttentionConfig) else None


def _why_not_guided(model: AnyModelConfig, in_soft_steps: bool) -> str:
    if isinstance(model, _WITHOUT_ALIGNMENT):
        return f"a {model.kind} has no attention that could be taught;"
    if isinstance(model, HardAttentionConfig):
        return "a hard_attention sums over all alignments, so links cannot be taught;"
    attention = _source_attention(model)
    if attention is None:
        return ""
    if attention.score == "uniform":
        return "uniform weights cannot be taught;"
    if attention.window != "global":
        return f"the window {attention.window} hides most words, so links cannot be taught;"
    if not in_soft_steps and _may_be_zero(attention):
        return (
            f"weights of {attention.normalizer} may be 0, and links are taught by their logarithms; set "
            "training.soft_start or training.soft_share, so that soft steps teach them, or"
        )
    return ""


def _may_be_zero(attention: AttentionConfig) -> bool:
    """Tell whether a key that may be attended to can have the weight 0."""
    normalizer = build_normalizer(attention)
    return normalizer.weights_lie_in != "simplex" or "log_normalizer" not in normalizer.provides


def upgraded(tree: Tree) -> Tree:
    """Convert the keys of an older configuration to the current ones; stored models convert their own.

    Args:
        tree: a configuration, or a part of one, as nested dictionaries.
    """
    return {**tree, "model": upgrade_attention(tree["model"])} if "model" in tree else tree


def has_attention(experiment: Experiment) -> bool:
    """Tell whether the model attends to its source.

    Returns:
        Whether outputs can be aligned with their sources.
    """
    return not isinstance(experiment.model, _WITHOUT_ALIGNMENT)


def build_model(experiment: Experiment, sizes: Sequence[Any]) -> nn.Module:
    """Build the model with freshly initialised parameters, determined by the seed.

    Args:
        sizes: sizes that depend on the data: the arguments of the model configuration's `build`.
    """
    torch.manual_seed(experiment.training.seed)
    return experiment.model.build(*sizes)
