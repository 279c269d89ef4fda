"""Experiment: the complete configuration of a run (model, text, training, search), assembled and resolved."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import torch
from pydantic import BaseModel, model_validator
from torch import nn

from heedful.config.base import Tree, merge, parse_overrides, read_toml, validate
from heedful.config.plugins import is_custom
from heedful.data.images import ImageConfig
from heedful.errors import ConfigError, did_you_mean
from heedful.models.attention_config import AttentionConfig, build_normalizer, upgrade_attention
from heedful.models.bidaf import BidafConfig
from heedful.models.hierarchical import HierarchicalConfig
from heedful.models.memory_network import MemoryNetworkConfig
from heedful.models.rnn_encoder_decoder import RNNEncoderDecoderConfig
from heedful.models.self_attentive import SelfAttentiveConfig
from heedful.models.store import StoredSettings
from heedful.models.table import DEFAULT_PRESET, MODELS, PRESETS, AnyModelConfig, model_class
from heedful.models.text_classifier import TextClassifierConfig
from heedful.models.transformer import TransformerConfig
from heedful.search.config import SearchConfig
from heedful.text.tokenizer import TextConfig
from heedful.training.config import TrainingConfig
from heedful.training.guided import Guidance
from heedful.training.optimizer import OptimizerConfig

_WITHOUT_ALIGNMENT: Final = (
    RNNEncoderDecoderConfig,
    TextClassifierConfig,
    HierarchicalConfig,
    SelfAttentiveConfig,
    MemoryNetworkConfig,
    BidafConfig,
)
LEFT_OPEN: Final[Mapping[str, int | str]] = {"batch_tokens": 0, "validate_every": 0, "select_by": "auto"}
"""Training settings that are chosen from the corpus by default, and the value of each that asks for this choice."""

CHOSEN: Final = (
    "model.",
    "text.source_units",
    "text.target_units",
    "text.max_characters",
    "text.max_tokens",
    "text.split_sentences",
    "images.",
    *(f"training.{name}" for name in LEFT_OPEN),
    "training.validation_items",
    "training.average",
    "training.optimizer.kind",
    "training.optimizer.learning_rate",
    "training.optimizer.mean_over",
    "training.optimizer.schedule.warmup_steps",
)
"""Settings, or prefixes of settings, that a task may choose by data and time."""
FREE_ON_RESUME: Final = (
    "training.max_steps",
    "training.max_epochs",
    "training.max_target_tokens",
    "training.max_minutes",
    "training.patience",
    "training.precision",
    "training.optimizer.learning_rate",
    "training.optimizer.schedule.",
    "training.parallel",
    "training.export",
    "training.tensorboard",
    "search.",
)
"""Settings, or prefixes of settings, that may change when a run is resumed.

They concern the steps to come; a change of any other would make the steps behind wrong.
"""


class Experiment(StoredSettings):
    """Complete configuration of a run, without its data."""

    text: TextConfig = TextConfig()
    images: ImageConfig = ImageConfig()
    training: TrainingConfig = TrainingConfig()
    search: SearchConfig = SearchConfig()

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
        if self.training.term_share and self.training.alignment_weight:
            raise ValueError("training.term_share: terms have no alignment links; set training.alignment_weight to 0")
        if self.training.term_share and self.text.split_sentences:
            raise ValueError("training.term_share: sources with terms are single texts; set text.split_sentences=false")
        return self

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


def load_experiment(
    preset: str = "",
    file: Path | None = None,
    settings: Sequence[str] = (),
    adapted: Mapping[str, Any] | None = None,
    default_preset: str = DEFAULT_PRESET,
) -> Experiment:
    """Assemble a configuration, in increasing precedence: defaults, values from the corpus, preset, file, settings.

    A preset that nobody named comes before the values from the corpus.

    Args:
        preset: name of a preset; empty = `default_preset`, or the preset of the model kind in file, settings or
            `adapted`.
        file: TOML file.
        settings: strings of the form ``dotted.key=value``.
        adapted: values chosen from the corpus.
        default_preset: preset of the task, used if neither preset nor kind is given.

    Returns:
        The configuration, fully resolved.

    Raises:
        ConfigError: a preset or key is unknown, or a value is invalid.
    """
    if preset and preset not in PRESETS:
        raise ConfigError(f"--preset {preset}: no such preset{did_you_mean(preset, PRESETS)}")
    user_tree = merge(*(upgraded(tree) for tree in (read_toml(file) if file else {}, parse_overrides(settings))))
    if isinstance(training := user_tree.get("training"), dict):
        user_tree["training"] = {key: value for key, value in training.items() if not _is_left_open(key, value)}
    adapted = _without_rate(adapted or {}, user_tree)
    chosen = _preset_tree(preset, user_tree, adapted, default_preset)
    kind, suited_model = chosen["model"]["kind"], adapted.get("model", {})
    suited = {**adapted, "model": _of_kind(suited_model, kind)}
    is_suited = not preset and suited_model.get("kind", kind) == kind
    known = merge(chosen, suited) if is_suited else merge(suited, chosen)
    return validate(Experiment, merge(known, user_tree))


def _without_rate(adapted: Mapping[str, Any], user_tree: Tree) -> Tree:
    """Settings from the corpus, whose rate and warm-up are for their optimizer, not for another that the user named."""
    chosen = adapted.get("training", {}).get("optimizer", {})
    named = user_tree.get("training", {})
    optimizer = named.get("optimizer", {}) if isinstance(named, dict) else {}
    kind = optimizer.get("kind") if isinstance(optimizer, dict) else None
    usual = str(chosen.get("kind", OptimizerConfig().kind))
    if not chosen or kind is None or kind == usual:
        return dict(adapted)
    foreign = {"learning_rate"} if {str(kind), usual} <= {"adam", "muon"} else {"learning_rate", "schedule"}
    left = {key: value for key, value in chosen.items() if key not in foreign}
    return {**adapted, "training": {**adapted["training"], "optimizer": left}}


def upgraded(tree: Tree) -> Tree:
    """Convert the keys of an older configuration to the current ones; stored models convert their own.

    Args:
        tree: a configuration, or a part of one, as nested dictionaries.

    Returns:
        The configuration with current keys.
    """
    return {**tree, "model": upgrade_attention(tree["model"])} if "model" in tree else tree


def _is_left_open(key: str, value: object) -> bool:
    return not isinstance(value, bool) and key in LEFT_OPEN and value == LEFT_OPEN[key]


def _of_kind(suited: Tree, kind: str) -> Tree:
    """Suited settings that a model kind has; tables only if they were chosen for this kind."""
    known = model_class(kind).model_fields
    is_same = suited.get("kind", kind) == kind
    return {key: value for key, value in suited.items() if key in known and (is_same or not isinstance(value, dict))}


def _preset_tree(preset: str, tree: Tree, adapted: Mapping[str, Any], default_preset: str) -> Tree:
    """Model settings of the preset; without a preset, of the preset named after the model kind.

    If neither preset nor kind is given, the kind that suits the corpus is used, if it has all settings that are given.

    Raises:
        ConfigError: the kind is unknown, or the preset is of another kind.
    """
    kind = tree.get("model", {}).get("kind") if isinstance(tree.get("model"), dict) else None
    if is_custom(str(kind)) and not preset:
        return {"model": {"kind": kind}}
    if kind is not None and str(kind) not in MODELS:
        raise ConfigError(f"model.kind: no model {kind!r}{did_you_mean(str(kind), MODELS)}")
    is_named = bool(preset)
    if not preset:
        usual = PRESETS[default_preset].kind
        wanted = _suited_kind(tree, adapted, usual) if kind is None else kind
        preset = default_preset if wanted == usual else str(wanted)
    config = PRESETS[preset]
    if kind is not None and kind != config.kind:
        raise ConfigError(f"model.kind: {kind!r}, but preset {preset!r} is a {config.kind}; leave one of them out")
    return {
        "model": _named_values(config)
        if is_named
        else config.model_dump(mode="json", exclude_unset=True) | {"kind": config.kind}
    }


def _named_values(config: AnyModelConfig) -> Tree:
    """Values of a preset that a user named: all settings by which presets of its kind differ.

    Dropout is one of them only if the preset sets it, because it depends on the size of the corpus.
    """
    names = set[str]().union(*(each.model_fields_set for each in PRESETS.values() if each.kind == config.kind))
    names = (names - {"dropout"}) | config.model_fields_set | {"kind"}
    return {name: value for name, value in config.model_dump(mode="json").items() if name in names}


def _suited_kind(tree: Tree, adapted: Mapping[str, Any], usual: str) -> str:
    """Model kind that suits the corpus, if it has all settings that the user gave; else the default kind."""
    suited = str(adapted.get("model", {}).get("kind", usual))
    set_by_hand = tree.get("model", {})
    has_all = isinstance(set_by_hand, dict) and set_by_hand.keys() <= MODELS[suited].model_fields.keys()
    return suited if has_all else usual


def has_attention(experiment: Experiment) -> bool:
    """Tell whether the model attends to its source.

    Args:
        experiment: configuration of the model.

    Returns:
        Whether outputs can be aligned with their sources.
    """
    return not isinstance(experiment.model, _WITHOUT_ALIGNMENT)


def earlier_settings(path: Path, task: str) -> Tree:
    """Read the chosen settings of an earlier run, so that the same command resumes it, however they were chosen.

    Args:
        path: file of the settings that the run was started with; if it does not exist, there is nothing to resume.
        task: name of the task; a run of another one has no settings for it.

    Returns:
        Values of `CHOSEN` for `load_experiment`; empty without a run.
    """
    if not path.is_file():
        return {}
    experiment = validate(Experiment, read_toml(path))
    return _chosen(experiment.model_dump(mode="json")) if experiment.task == task else {}


def _chosen(tree: Tree, path: str = "") -> Tree:
    """Values of `CHOSEN` in a tree of settings."""
    here = {key: f"{path}.{key}" if path else key for key in tree}
    tables = {key: _chosen(value, here[key]) for key, value in tree.items() if isinstance(value, dict)}
    values = {key: value for key, value in tree.items() if key not in tables and here[key].startswith(CHOSEN)}
    return values | {key: table for key, table in tables.items() if table}


def check_resumable(folder: Path, path: Path, experiment: Experiment, section: str = "") -> None:
    """Refuse to resume a run with settings that would change its model.

    Args:
        folder: model folder.
        path: file of the settings that the run was started with; if it does not exist, there is nothing to resume.
        experiment: current settings.
        section: prefix of the keys to compare; empty = all keys.

    Raises:
        ConfigError: a setting changed that may not change.
    """
    if not path.is_file():
        return
    # A setting that did not exist when the run was started has its default.
    begun = validate(Experiment, read_toml(path))
    before, now = (_leaves(one.model_dump(mode="json")) for one in (begun, experiment))
    for key in sorted(key for key in before.keys() | now.keys() if key.startswith(section)):
        if before.get(key) != now.get(key) and not key.startswith(FREE_ON_RESUME):
            raise ConfigError(
                f"{folder}: holds a run with {key} = {before.get(key)}, not {now.get(key)}; "
                "choose another --out, or delete the folder to start over"
            )


def _leaves(tree: dict[str, Any], path: str = "") -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        here = f"{path}.{key}" if path else key
        leaves |= _leaves(value, here) if isinstance(value, dict) else {here: value}
    return leaves


def build_model(experiment: Experiment, sizes: Sequence[Any]) -> nn.Module:
    """Build the model with freshly initialised parameters, determined by the seed.

    Args:
        experiment: configuration of the model.
        sizes: sizes that depend on the data: the arguments of the model configuration's `build`.

    Returns:
        The model.
    """
    torch.manual_seed(experiment.training.seed)
    return experiment.model.build(*sizes)
