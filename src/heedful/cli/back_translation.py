"""Training with text of the target side alone: the option --monolingual of `heedful train`."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.cli.folder_names import beside
from heedful.cli.lines import text_lines
from heedful.cli.messages import Messages
from heedful.errors import UsageError
from heedful.training.rank import rank_info

if TYPE_CHECKING:
    from heedful.config.base import Tree
    from heedful.runs.request import TrainRequest
    from heedful.runs.train import RunInfo


def with_back_translation(
    request: "TrainRequest",
    texts: list[Path],
    minutes: float,
    messages: Messages,
    train: "Callable[[TrainRequest], tuple[RunInfo, Any]]",
) -> "TrainRequest":
    """Train a model of the other direction, translate texts back, and add them to the data of a training.

    Args:
        request: the training, without a limit of time.
        texts: files of text in the target language.
        minutes: limit of time of both trainings together; 0 = none.
        train: trains as requested, or resumes.

    Returns:
        The training on real and back-translated pairs, with its part of the time.

    Raises:
        UsageError: the training cannot be combined with back-translation.
    """
    _check(request)
    from heedful.cli.scoring import load_to_run
    from heedful.data.corpus import find_pairs
    from heedful.predictors.back_translation import REVERSE, REVERSE_SHARE, mix_pairs, select_texts, store_pairs
    from heedful.predictors.translator import Translator
    from heedful.runs.facts import find_files, model_folder, request_task
    from heedful.runs.finish import export_engines

    out = model_folder(request, find_files(request_task(request), request))
    folder = beside(out, ".back-translated", keeps_suffix=True)
    if (pairs := find_pairs(request.data, request.columns)).source_names:
        raise UsageError("train: --monolingual makes sources from text; it cannot make several columns")
    dev, test = (find_pairs(paths, request.columns) if paths else None for paths in (request.dev, request.test))
    real = store_pairs(pairs, dev, test, folder)
    selected = select_texts(text_lines(texts), real.references)
    source, target = _languages(request)
    forward = replace(
        request,
        dev=(real.dev,),
        test=(real.test,) if real.test else (),
        columns=(1, 2),
        languages=(source, target),
        out=out,
    )
    minutes = minutes or request.settings.get("training", {}).get("max_minutes", 0)
    reverse_minutes = _begun_minutes(folder) or minutes * REVERSE_SHARE
    reverse = replace(
        forward,
        data=(real.train,),
        test=(),
        columns=(2, 1),
        languages=(target, source),
        out=folder / REVERSE,
        settings=_limited(_reversed_settings(request.settings), reverse_minutes),
    )
    share = f" for {reverse_minutes:g} of {minutes:g} minutes" if minutes else ""
    messages.say(f"first a model from {target} to {source}{share}: {folder / REVERSE}")
    started, _ = train(reverse)
    export_engines(started, messages.say, messages.warn)
    teacher = load_to_run(folder / REVERSE, "auto", request.device, kind=Translator)
    mixed = mix_pairs(teacher, selected, real, folder, messages.say)
    return replace(forward, data=(mixed,), settings=_limited(request.settings, minutes * (1 - REVERSE_SHARE)))


def _begun_minutes(folder: Path) -> float:
    """Minutes of the model of the other direction if it has begun to translate: then it is not trained further."""
    from heedful.config.base import read_toml
    from heedful.predictors.back_translation import OUTPUTS, REVERSE

    config = folder / REVERSE / "config.toml"
    has_begun = (folder / OUTPUTS).is_dir() and config.is_file()
    return read_toml(config)["training"]["max_minutes"] if has_begun else 0


def _check(request: "TrainRequest") -> None:
    """Refuse what back-translation cannot be combined with.

    Raises:
        UsageError: another task, a model to go on from, older pairs, or several processes.
    """
    if request.task not in ("", "translation"):
        raise UsageError(f"--monolingual: for translation, not for {request.task}; leave one of the two out")
    if request.pretrained:
        raise UsageError("--monolingual: trains from fresh weights; leave out --from")
    if request.settings.get("training", {}).get("mix"):
        raise UsageError("--monolingual: takes no older pairs by --mix; put them into the data, or go on with --from")
    if rank_info().size > 1:
        raise UsageError("--monolingual: needs a single process; start it without torchrun")


def _reversed_settings(settings: "Tree") -> "Tree":
    """Settings of the user for the other direction.

    Those of source and target change places. Corrected word links and terms are of the data's direction, and left out.
    """
    sections = {name: dict(section) for name, section in settings.items() if isinstance(section, dict)}
    if text := sections.get("text"):
        names = {"source": "target", "target": "source"}
        sides = {key: key.partition("_") for key in text}
        sections["text"] = {
            f"{names.get(side, side)}{mark}{rest}": text[key] for key, (side, mark, rest) in sides.items()
        }
    for name in ("links", "term_share"):
        sections.get("training", {}).pop(name, None)
    return {**settings, **sections}


def _limited(settings: "Tree", minutes: float) -> "Tree":
    """Settings with a limit of time; 0 = as they are."""
    from heedful.config.base import merge

    return merge(settings, {"training": {"max_minutes": minutes}}) if minutes else settings


def _languages(request: "TrainRequest") -> tuple[str, str]:
    from heedful.text.text_files import language_names

    source, target = language_names(request.data, request.columns)
    return request.languages[0] or source, request.languages[1] or target
