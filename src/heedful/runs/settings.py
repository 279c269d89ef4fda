"""Settings of a training: layers of increasing precedence, from defaults to the user's, resolved into one value."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from heedful.config.base import Tree, leaves, merge, validate
from heedful.config.plugins import is_custom
from heedful.errors import ConfigError, did_you_mean
from heedful.models.store import DEFAULT_TASK
from heedful.models.table import DEFAULT_PRESET, MODELS, PRESETS, AnyModelConfig, model_class
from heedful.runs.request import TrainRequest
from heedful.tasks.experiment import Experiment
from heedful.tasks.interface import Task
from heedful.training.optimizer import OptimizerConfig

AUTO_VALUES: Final[Mapping[str, int | str]] = {"batch_tokens": 0, "validate_every": 0, "select_by": "auto"}
"""Training settings that are chosen from the corpus by default, and the value of each that asks for this choice."""

AUTO_KEYS: Final = (
    "model.",
    "text.source_units",
    "text.target_units",
    "text.shared",
    "text.source_columns",
    "text.max_characters",
    "text.max_tokens",
    "text.cut_sources",
    "text.split_sentences",
    "text.normalization",
    "images.",
    *(f"training.{name}" for name in AUTO_VALUES),
    "training.validation_items",
    "training.max_epochs",
    "training.average",
    "training.optimizer.kind",
    "training.optimizer.learning_rate",
    "training.optimizer.mean_over",
    "training.optimizer.schedule.kind",
    "training.optimizer.schedule.warmup_steps",
    "search.no_repeat_ngram_size",
    "search.max_length_ratio",
    "search.max_length_offset",
)
"""Settings, or prefixes of settings, that a task may choose by data and time."""
FREE_ON_RESUME: Final = (
    "training.max_steps",
    "training.max_epochs",
    "training.max_target_tokens",
    "training.max_minutes",
    "training.patience",
    "training.precision",
    "training.execution",
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


LANDING: Final = ("linear", "cosine")
"""Schedules that end at a limit."""
LIMITS: Final = ("max_steps", "max_epochs", "max_target_tokens", "max_minutes")


@final
@dataclass(frozen=True)
class SettingsLayers:
    """Layers of the settings of one training; those chosen from the data are added when they are known."""

    task: Task[Any, Any]
    request: TrainRequest
    earlier: Experiment | None = None
    """Settings of the training that is resumed; those that were chosen for it stay. None = a new training."""

    @property
    def kept(self) -> Tree:
        """Settings that were chosen for the training that is resumed; empty in a new one."""
        if self.earlier is None or self.earlier.task != self.task.name:
            return {}
        stored = self.earlier.model_dump(mode="json")
        chosen, before = _auto_settings(stored), stored["training"]
        section = self.request.settings.get("training", {})
        named = {name: section[name] for name in LIMITS if name in section} if isinstance(section, dict) else {}
        if any(value != before[name] for name, value in named.items()):
            # Another limit has other epochs beside it, which are chosen as in a new training.
            return {**chosen, "training": {k: v for k, v in chosen["training"].items() if k not in LIMITS}}
        if named or self.earlier.training.optimizer.schedule.kind not in LANDING:
            return chosen
        # A rate that falls to zero at a limit needs one; without another, the training ends as it did.
        return merge(chosen, {"training": {name: before[name] for name in LIMITS if before[name]}})

    def resolve(self, chosen: Tree) -> Experiment:
        """Resolve the settings: every value is determined.

        Raises:
            ConfigError: a setting is invalid, or belongs to another task.
        """
        task, request = self.task, self.request
        user = merge(request.settings, {"task": task.name})
        experiment = load_experiment(request.preset, user, merge(chosen, self.kept), task.default_preset)
        _check_task(task, experiment)
        return experiment

    def check_resumable(self, folder: Path, experiment: Experiment, section: str = "") -> None:
        """Refuse to resume a training with settings that would change its model.

        Args:
            section: prefix of the keys to compare; empty = all keys.

        Raises:
            ConfigError: a setting changed that may not change.
        """
        if self.earlier is None:
            return
        before, now = (dict(leaves(one.model_dump(mode="json"))) for one in (self.earlier, experiment))
        for key in sorted(key for key in before.keys() | now.keys() if key.startswith(section)):
            if before.get(key) != now.get(key) and not key.startswith(FREE_ON_RESUME):
                raise ConfigError(
                    f"{folder}: holds a run with {key} = {before.get(key)}, not {now.get(key)}; "
                    "choose another --out, or delete the folder to start over"
                )


def _check_task(task: Task[Any, Any], experiment: Experiment) -> None:
    """Refuse settings of another task.

    Raises:
        ConfigError: the kind of model, a setting or the selecting score is not one of the task.
    """
    if experiment.model.kind not in task.kinds and not is_custom(experiment.model.kind):
        known = ", ".join(sorted(task.kinds))
        raise ConfigError(f"model.kind: {experiment.model.kind} is not a model for {task.name}; known: {known}")
    if experiment.training.mix and task.name != DEFAULT_TASK:
        raise ConfigError(f"training.mix: older pairs can be mixed into {DEFAULT_TASK} only, not into {task.name}")
    for name in task.without_effect:
        section, _, key = name.partition(".")
        part = getattr(experiment, section)
        for each in [key] if key else type(part).model_fields:
            if getattr(part, each) != type(part).model_fields[each].default:
                raise ConfigError(f"{section}.{each}: {task.name} does not use it; leave it out")
    chosen = experiment.training.select_by
    if chosen != "auto" and chosen not in task.higher_is_better:
        hint = did_you_mean(chosen, task.higher_is_better)
        raise ConfigError(f"training.select_by: no score {chosen!r} in {task.name}{hint}")


def load_experiment(
    preset: str = "",
    settings: Tree | None = None,
    chosen: Mapping[str, Any] | None = None,
    default_preset: str = DEFAULT_PRESET,
) -> Experiment:
    """Assemble a configuration, in increasing precedence: defaults, values from the corpus, preset, user's settings.

    A preset that nobody named comes before the values from the corpus.

    Args:
        preset: name of a preset; empty = `default_preset`, or the preset of the model kind in `settings` or `chosen`.
        settings: settings of the user, from `heedful.runs.request.merged_settings`.
        default_preset: preset of the task, used if neither preset nor kind is given.

    Raises:
        ConfigError: a preset or key is unknown, or a value is invalid.
    """
    check_preset(preset)
    user_tree = dict(settings or {})
    if isinstance(training := user_tree.get("training"), dict):
        user_tree["training"] = {key: value for key, value in training.items() if not _is_auto(key, value)}
    adapted = _without_rate(chosen or {}, user_tree)
    sizes = _preset_tree(preset, user_tree, adapted, default_preset)
    kind, suited_model = sizes["model"]["kind"], adapted.get("model", {})
    suited = {**adapted, "model": _of_kind(suited_model, kind)}
    is_suited = not preset and suited_model.get("kind", kind) == kind
    known = merge(sizes, suited) if is_suited else merge(suited, sizes)
    return validate(Experiment, merge(known, user_tree))


def check_preset(preset: str) -> None:
    """Refuse an unknown preset.

    Args:
        preset: name of a preset; empty = none.

    Raises:
        ConfigError: there is no such preset.
    """
    if preset and preset not in PRESETS:
        raise ConfigError(f"--preset {preset}: no such preset{did_you_mean(preset, PRESETS)}")


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


def _is_auto(key: str, value: object) -> bool:
    return not isinstance(value, bool) and key in AUTO_VALUES and value == AUTO_VALUES[key]


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


def _auto_settings(tree: Tree, path: str = "") -> Tree:
    """Values of `AUTO_KEYS` in a tree of settings."""
    here = {key: f"{path}.{key}" if path else key for key in tree}
    tables = {key: _auto_settings(value, here[key]) for key, value in tree.items() if isinstance(value, dict)}
    values = {key: value for key, value in tree.items() if key not in tables and here[key].startswith(AUTO_KEYS)}
    return values | {key: table for key, table in tables.items() if table}
