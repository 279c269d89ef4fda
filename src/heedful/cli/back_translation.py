"""Training with text of the target side alone: the option --monolingual of `heedful train`."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.cli.folder_names import beside
from heedful.cli.lines import text_lines
from heedful.cli.messages import Messages
from heedful.errors import UsageError
from heedful.training.rank import place

if TYPE_CHECKING:
    from heedful.config.base import Tree
    from heedful.runs.train import Started
    from heedful.tasks.interface import Recipe


def with_back_translation(
    recipe: "Recipe",
    texts: list[Path],
    minutes: float,
    messages: Messages,
    train: "Callable[[Recipe], tuple[Started, Any]]",
) -> "Recipe":
    """Train a model of the other direction, translate texts back, and add them to the data of a training.

    Args:
        recipe: the training, without a limit of time.
        texts: files of text in the target language.
        minutes: limit of time of both trainings together; 0 = none.
        messages: printer of the progress.
        train: trains by a recipe, or resumes.

    Returns:
        The training on real and back-translated pairs, with its part of the time.

    Raises:
        UsageError: the recipe cannot be combined with back-translation.
    """
    _check(recipe)
    from heedful.cli.scoring import load_to_run
    from heedful.data.corpus import find_pairs
    from heedful.predictors.back_translation import REVERSE, REVERSE_SHARE, mix_pairs, select_texts, store_pairs
    from heedful.predictors.translator import Translator
    from heedful.runs.finish import export_engines
    from heedful.runs.resolution import files_of, folder_of, task_of, user_settings

    out = folder_of(recipe, files_of(task_of(recipe), recipe))
    folder = beside(out, ".back-translated", keeps_suffix=True)
    dev, test = (find_pairs(paths, recipe.columns) if paths else None for paths in (recipe.dev, recipe.test))
    real = store_pairs(find_pairs(recipe.data, recipe.columns), dev, test, folder)
    selected = select_texts(text_lines(texts), real.references)
    source, target = _languages(recipe)
    forward = replace(
        recipe,
        dev=(real.dev,),
        test=(real.test,) if real.test else (),
        columns=(1, 2),
        languages=(source, target),
        out=out,
    )
    minutes = minutes or user_settings(recipe).get("training", {}).get("max_minutes", 0)
    reverse_minutes = _begun_minutes(folder) or minutes * REVERSE_SHARE
    reverse_limit = [f"training.max_minutes={reverse_minutes}"] if reverse_minutes else []
    limit = [f"training.max_minutes={minutes * (1 - REVERSE_SHARE)}"] if minutes else []
    reverse = replace(
        forward,
        data=(real.train,),
        test=(),
        columns=(2, 1),
        languages=(target, source),
        out=folder / REVERSE,
        config=None,
        settings=(*_reversed_settings(recipe), *reverse_limit),
    )
    share = f" for {reverse_minutes:g} of {minutes:g} minutes" if minutes else ""
    messages.say(f"first a model from {target} to {source}{share}: {folder / REVERSE}")
    started, _ = train(reverse)
    export_engines(started, messages.say)
    teacher = load_to_run(folder / REVERSE, "auto", recipe.device, kind=Translator)
    mixed = mix_pairs(teacher, selected, real, folder, messages.say)
    return replace(forward, data=(mixed,), settings=(*recipe.settings, *limit))


def _begun_minutes(folder: Path) -> float:
    """Minutes of the model of the other direction if it has begun to translate: then it is not trained further."""
    from heedful.config.base import read_toml
    from heedful.predictors.back_translation import OUTPUTS, REVERSE

    config = folder / REVERSE / "config.toml"
    has_begun = (folder / OUTPUTS).is_dir() and config.is_file()
    return read_toml(config)["training"]["max_minutes"] if has_begun else 0


def _check(recipe: "Recipe") -> None:
    """Refuse what back-translation cannot be combined with.

    Raises:
        UsageError: another task, a model to go on from, older pairs, or several processes.
    """
    if recipe.task not in ("", "translation"):
        raise UsageError(f"--monolingual: for translation, not for {recipe.task}; leave one of the two out")
    if recipe.origin:
        raise UsageError("--monolingual: trains from fresh weights; leave out --from")
    from heedful.runs.resolution import user_settings

    if user_settings(recipe).get("training", {}).get("mix"):
        raise UsageError("--monolingual: takes no older pairs by --mix; put them into the data, or go on with --from")
    if place().size > 1:
        raise UsageError("--monolingual: needs a single process; start it without torchrun")


def _reversed_settings(recipe: "Recipe") -> list[str]:
    """Settings of the file and the command line for the other direction, as --set takes them.

    Those of source and target change places. Corrected word links and terms are of the data's direction, and left out.
    """
    from heedful.runs.resolution import user_settings

    tree = user_settings(recipe)
    sections = {name: dict(section) for name, section in tree.items() if isinstance(section, dict)}
    if text := sections.get("text"):
        names = {"source": "target", "target": "source"}
        sides = {key: key.partition("_") for key in text}
        sections["text"] = {
            f"{names.get(side, side)}{mark}{rest}": text[key] for key, (side, mark, rest) in sides.items()
        }
    for name in ("links", "term_share"):
        sections.get("training", {}).pop(name, None)
    return _flattened({**tree, **sections})


def _flattened(tree: "Tree", prefix: str = "") -> list[str]:
    """Settings of nested dictionaries, as --set takes them."""
    settings: list[str] = []
    for key, value in tree.items():
        if isinstance(value, dict):
            settings += _flattened(value, f"{prefix}{key}.")
        else:
            settings.append(f"{prefix}{key}={json.dumps(value, ensure_ascii=False)}")
    return settings


def _languages(recipe: "Recipe") -> tuple[str, str]:
    from heedful.text.text_files import language_names

    source, target = language_names(recipe.data, recipe.columns)
    return recipe.languages[0] or source, recipe.languages[1] or target
