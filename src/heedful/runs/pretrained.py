"""Pretrained model: a trained model with whose tokenizers, sizes and weights another training goes on."""

from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import copyfile
from typing import Any, Final, final

import torch
from torch import nn

from heedful.config.base import Tree, merge, read_toml, validate
from heedful.data.encoded import EncodedSide
from heedful.data.prepared_files import TOKENIZERS
from heedful.engines.folder import CONFIG, MANIFEST, open_folder
from heedful.errors import ConfigError, HeedfulError
from heedful.evaluation.evaluate import quick_scores
from heedful.evaluation.metrics.table import METRICS, score_text
from heedful.files.atomic_write import digest, sync
from heedful.files.formats import PREPARED_FORMAT
from heedful.files.records import write_facts
from heedful.models.store import read_weights
from heedful.predictors.interface import Items, Predictor, spaced
from heedful.predictors.table import find_predictor, load
from heedful.tasks.experiment import Experiment, upgraded
from heedful.text.text_files import UNNAMED
from heedful.text.tokenizer import Tokenizer

LEARNING_RATE: Final = 3e-4
"""Peak learning rate of Adam for weights that are trained already."""
WARMUP_STEPS: Final = 50
MOST_COMPARED: Final = 500
"""Number of the model's own validation sources that are translated before and after."""
MOST_UNKNOWN: Final = 0.02
"""Largest share of unknown tokens that is not worth a word."""
_LEAST_VALIDATE_EVERY: Final = 20
"""Steps between validations that are chosen, at least."""
_FREE: Final = ("dropout", "max_training_tokens", "max_characters")
"""Settings of text and model that any weights fit, by the ends of their names."""
_SECTIONS: Final = ("text", "images", "model")
"""Sections of the settings that the weights depend on."""
_ROLES: Final = ("source_tokenizer", "target_tokenizer", "tokenizer", "labels")
"""Files that ids depend on, by role; each task has some of them."""


@final
class PretrainedModel:
    """Folder of a trained model to go on from; construct by its path."""

    def __init__(self, path: Path) -> None:
        """Verify the folder and read its settings.

        Raises:
            UsageError: there is no such model.
            FileRefused: a file of the model is missing or damaged.
            NewerFormat: a newer heedful made the model.
        """
        self.folder: Final = open_folder(path)
        self.experiment: Final = validate(Experiment, upgraded(read_toml(path / CONFIG)))

    @property
    def path(self) -> Path:
        """The model folder."""
        return self.folder.path

    @property
    def _beginnings(self) -> tuple[str, ...]:
        """Settings of the model for the first steps of fresh weights, which trained ones have behind them."""
        return getattr(self.experiment.model, "beginnings", ())

    def identity(self) -> tuple[Any, ...]:
        """Return values that change whenever the model changes.

        Returns:
            Size and time of change of its manifest, which has the checksums of all its files.
        """
        stat = (self.path / MANIFEST).stat()
        return stat.st_size, stat.st_mtime_ns, stat.st_ino

    def fingerprint(self) -> dict[str, Any]:
        """Describe the model so that any change is detected.

        Returns:
            "files": sha256 of each file by its name. JSON can hold it.
        """
        return {"files": dict(self.folder.facts["files"])}

    def settings(self) -> Tree:
        """List the settings that a training takes over: tokens, sizes and search, and a rate for trained weights.

        What a model does in the first steps of its training is not among them.

        Returns:
            Values for `heedful.runs.settings.SettingsLayers.resolve`.
        """
        tree = self.experiment.model_dump(mode="json")
        optimizer = {"kind": "adam", "learning_rate": LEARNING_RATE, "schedule": {"warmup_steps": WARMUP_STEPS}}
        # A model that reads terms goes on to read them.
        training = {"optimizer": optimizer} | {key: tree["training"][key] for key in ("label_smoothing", "term_share")}
        sections = {section: tree[section] for section in (*_SECTIONS, "search")}
        sections["model"] = {key: value for key, value in tree["model"].items() if key not in self._beginnings}
        return {**sections, "training": training}

    def check(self, experiment: Experiment) -> None:
        """Refuse settings that the weights or the tokenizers do not fit.

        Raises:
            ConfigError: a setting of text, images or model differs.
        """
        before, after = self.experiment.model_dump(mode="json"), experiment.model_dump(mode="json")
        for section in _SECTIONS:
            for key in sorted(before[section].keys() | after[section].keys()):
                old, new = before[section].get(key), after[section].get(key)
                if old != new and not key.endswith(_FREE) and key not in self._beginnings:
                    raise ConfigError(
                        f"{section}.{key}: {new}, but {self.path} has {old}; leave it out, or train without --from"
                    )

    def warnings(self, languages: tuple[str, str], sides: Mapping[str, tuple[EncodedSide, Tokenizer]]) -> list[str]:
        """Tell what of new data does not suit the model.

        Args:
            languages: codes of the data, as far as their names say.
            sides: encoded training texts and their tokenizer by side; see `Task.encoded_sides`.

        Returns:
            A line for each problem.
        """
        if not sides:
            return []
        lines = [
            f"the {side} files are named {code}, but {self.path} has {own}"
            for side, code, own in zip(("source", "target"), languages, self.languages, strict=True)
            if code and own and code != own and not {code, own} & {*UNNAMED}
        ]
        for side, (tokens, tokenizer) in sides.items():
            num_unknown = int(tokens.counts(len(tokenizer))[tokenizer.unknown_ids()].sum())
            share = num_unknown / max(1, int(tokens.lengths.sum()))
            if share > MOST_UNKNOWN:
                lines.append(
                    f"{100 * share:.0f} % of the {side} tokens are unknown to {self.path}, whose vocabulary does not "
                    "change; train without --from if the data are written otherwise"
                )
        return lines

    @property
    def languages(self) -> tuple[str, str]:
        """Language codes of source and target; empty = unknown."""
        source, target = self.folder.facts.get("languages", ["", ""])
        return str(source), str(target)

    def copy_tokenizers(self, folder: Path) -> None:
        """Copy the tokenizers, and labels if there are any, into the folder of a training, unless it has them.

        Args:
            folder: the training's model folder.
        """
        if (folder / TOKENIZERS).is_file():
            return
        names = {role: self.folder.file(role).name for role in _ROLES if role in self.folder.facts}
        for name in set(names.values()):
            copyfile(self.path / name, folder / name)
            sync(folder / name)
        (folder / TOKENIZERS).parent.mkdir(parents=True, exist_ok=True)
        checksums = {name: digest(folder / name) for name in names.values()}
        write_facts(folder / TOKENIZERS, PREPARED_FORMAT, {**names, "files": checksums})

    def copy_weights(self, model: nn.Module) -> None:
        """Give a model the weights.

        Args:
            model: of the same sizes.

        Raises:
            FileRefused: the weights are damaged, or do not fit.
        """
        weights = read_weights(self.folder, model)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(weights[name])

    def compare(self, folder: Path, own_validation: Callable[[Path], Items], device: str) -> str:
        """Score the model before and after the training on its own validation set.

        Args:
            own_validation: function that reads the validation set of a model; see `Task.own_validation`.
            device: PyTorch's device.

        Returns:
            A line: what was forgotten, or that nothing tells.
        """
        missing = f"own:   {self.path} has no validation set of its own, so nothing tells what was forgotten"
        try:
            items = spaced(own_validation(self.path), MOST_COMPARED)
            if not len(items):
                return missing
            own = find_predictor(self.folder)(self.folder, device, "torch", [])
            (key, before), (_, after) = (_score(model, items) for model in (own, load(folder, device, "torch")))
        except (HeedfulError, OSError, ValueError, KeyError, TypeError):
            return missing
        return (
            f"own:   {score_text(key, before)} before, {score_text(key, after)} after, on {len(items):,} sources of "
            f"the validation set of {self.path}"
        )


def _score(predictor: Predictor, items: Items) -> tuple[str, float]:
    """Key and value of the primary metric."""
    key = predictor.metrics[0]
    counted = key if key in METRICS else "exact_match"  # of labels and answers, the accuracy
    outputs = predictor.predict(items.sources)
    scores = quick_scores(outputs, items.references, predictor.target_language, metrics=(counted,))
    return key, scores[counted]


def with_pretrained(chosen: Tree, model: PretrainedModel | None, is_planned: bool = False) -> Tree:
    """Put the settings of a pretrained model over those that were chosen from the data.

    Args:
        model: the model to go on from, if any.
        is_planned: whether they were chosen for a limit of time, within which validations are spread. Without one, a
            model that goes on is validated four times as often as a new one, so that training ends four times as soon
            after its best score.

    Returns:
        Values for `heedful.runs.settings.SettingsLayers.resolve`.
    """
    if model is None:
        return chosen
    # Sizes and words are those of the model; of the plan for the data and the time, the rest stays.
    dropout = {key: value for key, value in chosen.get("model", {}).items() if key.endswith("dropout")}
    training = chosen.get("training", {})
    if not is_planned and (steps := training.get("validate_every")):
        training = training | {"validate_every": min(steps, max(_LEAST_VALIDATE_EVERY, steps // 4))}
    return merge(merge({"training": training}, model.settings()), {"model": dropout})
