"""End of a training: test scores, what a pretrained model has lost, a judgement, and engines that need no PyTorch."""

import math
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from heedful.data.split import validated_on
from heedful.errors import HeedfulError, Stopped
from heedful.evaluation.metrics.table import score_text
from heedful.predictors.cached_test_scores import cached_test_scores
from heedful.predictors.calibration import LEAST_ITEMS, calibrate, suited_criterion
from heedful.predictors.confidence import ROLE, write_confidence
from heedful.predictors.seen_sources import ROLE as SEEN
from heedful.predictors.seen_sources import choose_seen
from heedful.predictors.translator import Translator
from heedful.runs.settings import LANDING
from heedful.runs.train import RunInfo
from heedful.tasks.advice import ENOUGH_EPOCHS, RISING_SHARE, verdict
from heedful.tasks.table import find_task
from heedful.tasks.translation import TranslationData
from heedful.text.durations import duration
from heedful.training.progress import Outcome

_LIMITS: Final = {
    "steps": "training.max_steps",
    "epochs": "training.max_epochs",
    "target tokens": "training.max_target_tokens",
    "validations": "training.patience",
    "": "--minutes",
}
"""Limit that ended a training, by the last words of the reason."""


def ending(info: RunInfo, outcome: Outcome) -> str:
    """Describe how a training ended, and its best score.

    Args:
        info: facts about a completed run.

    Returns:
        One or two lines; the first tells of a training that had ended before what would continue it.
    """
    training, is_done = info.experiment.training, info.step > 0 and outcome.step == info.step
    limit = next(name for unit, name in _LIMITS.items() if outcome.reason.endswith(unit))
    more = f"; a larger {limit} continues" if is_done else ""
    time = f"{duration(outcome.seconds)}{' in all' if is_done else ''}"
    status = f"{'already ' if is_done else ''}finished: {outcome.reason} (step {outcome.step:,}, {time}){more}"
    if not outcome.best_step:
        return status
    items = validated_on(info.data.report)
    note = "" if items == "validation" else "; it says nothing about new ones: give --dev FILE"
    best = score_text(training.select_by, outcome.best)
    return f"{status}\nbest:  {best} on {items}, at step {outcome.best_step:,}{note}"


def judge(info: RunInfo, outcome: Outcome) -> str:
    """Judge the result of a training.

    Args:
        info: facts about a completed run.

    Returns:
        A line that compares the result with baselines, or, if it is poor or was still improving, says what would help
        most; else empty.
    """
    task, training = find_task(info.experiment.task), info.experiment.training
    if not outcome.best_step:
        return ""
    if training.soft_start >= outcome.step:
        return (
            f"result: attention never left its soft start: training.soft_start is {training.soft_start:,} steps, and "
            f"the training ended after {outcome.step:,}; lower it, or train longer"
        )
    share = outcome.best_step / outcome.step
    is_limited = bool(training.max_steps or training.max_minutes or training.max_target_tokens)
    is_short = is_limited and share >= RISING_SHARE and outcome.num_epochs < ENOUGH_EPOCHS
    epochs = f"{outcome.num_epochs:.1f} epochs" if outcome.num_epochs >= 1.0 else "less than one epoch"
    short = f"after {outcome.reason}, {epochs}" if is_short else ""
    if line := task.judgement(info.data, outcome.best, short):
        return line
    metric = training.select_by
    threshold = task.poor_scores.get(metric)
    sign = 1.0 if task.higher_is_better[metric] else -1.0
    is_poor = threshold is not None and sign * outcome.best < sign * threshold
    if not is_poor and training.optimizer.schedule.kind in LANDING:
        return ""  # a rate that falls to zero improves the score to the last, whatever more time would bring
    ending = "" if outcome.reason.startswith("no better") else outcome.reason
    named = score_text(metric, outcome.best)
    items, num_examples = validated_on(info.data.report), info.data.num_examples
    return verdict(named, is_poor, share, ending, num_examples, outcome.num_epochs, task.examples, items)


def score_test(info: RunInfo, outcome: Outcome, device: str, say: Callable[[str], None]) -> str:
    """Score the best model on the test set; scores already stored for this model are reused.

    With a limit of time, the test takes what training has left of it, and scores as many items as fit. The same call
    for a run that was already finished scores all items.

    Args:
        info: facts about a completed run.
        device: PyTorch's device.
        say: callback for a message before prediction begins, because prediction takes a while.

    Returns:
        Lines of text with the scores; empty without a test set.
    """
    if not len(info.data.test):
        return ""
    minutes, was_finished = info.experiment.training.max_minutes, info.step == outcome.step
    seconds = 60.0 * minutes - outcome.seconds if minutes and not was_finished else math.inf
    task = find_task(info.experiment.task)
    with _complete_at_signal(info.folder):
        return cached_test_scores(task.open(info.folder, device, "torch"), info.data.test, say, seconds)


def compare_with_pretrained(info: RunInfo, device: str) -> str:
    """Score a model before and after a training that went on from it, on its own validation set.

    Args:
        info: facts about a completed run.
        device: PyTorch's device.

    Returns:
        A line of text; empty if the training began with fresh weights.
    """
    if info.pretrained is None:
        return ""
    with _complete_at_signal(info.folder):
        own_validation = find_task(info.experiment.task).own_validation
        return info.pretrained.compare(info.folder, own_validation, device)


def remember(info: RunInfo, say: Callable[[str], None]) -> None:
    """Store the commonest targets of the training sources of a model of short texts, if they help in validation.

    Args:
        info: facts about a completed run.
        say: callback for a line about the choice.

    Raises:
        Stopped: Ctrl-C; the model is complete.
    """
    task, text = find_task(info.experiment.task), info.experiment.text
    if not isinstance(info.data, TranslationData) or "characters" not in (text.source_units, text.target_units):
        return
    items, translator = task.calibration_items(info.data), task.open(info.folder, engine="torch")
    if items is None or not isinstance(translator, Translator) or SEEN in translator.folder.facts:
        return
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    translate = partial(translator.translate, beam=1, segments=None, corrected=False, memory=False)
    with _complete_at_signal(info.folder):
        try:
            if line := choose_seen(translator.folder, info.data.pairs.train, tokenizers, items, translate):
                say(line)
        except HeedfulError as error:
            say(f"no memory: {error}")


@contextmanager
def _complete_at_signal(folder: Path) -> Generator[None]:
    """Say at Ctrl-C that the model is complete.

    Raises:
        Stopped: at Ctrl-C.
    """
    try:
        yield
    except KeyboardInterrupt:
        message = f"stopped after training: the model in {folder} is complete; run the same command for the rest"
        raise Stopped(message, signal.SIGINT) from None


def export_and_calibrate(info: RunInfo, say: Callable[[str], None], warn: Callable[[str], None] | None = None) -> None:
    """Make a trained model ready for use: export its engines, and fit its confidence.

    Args:
        info: facts about a completed run; without `training.export` nothing is done.
        say: callback for lines about the work.
        warn: callback for failed exports; None = `say`.

    Raises:
        Stopped: Ctrl-C; the model is complete.
    """
    export_engines(info, say, warn)
    calibrate_model(info, say)


def calibrate_model(info: RunInfo, say: Callable[[str], None]) -> None:
    """Fit the confidence of a trained translation model to its validation set, unless it has one already.

    A failure is reported in one line.

    Args:
        info: facts about a completed run; without `training.export` nothing is done, as for engines.
        say: callback for the result.

    Raises:
        Stopped: Ctrl-C; the model is complete.
    """
    task = find_task(info.experiment.task)
    items = task.calibration_items(info.data) if info.experiment.training.export else None
    if items is None:
        return
    translator = task.open(info.folder)
    if ROLE in translator.folder.facts or len(items) < LEAST_ITEMS or not isinstance(translator, Translator):
        return
    with _complete_at_signal(info.folder):
        try:
            confidence, report = calibrate(translator, items, suited_criterion(translator))
            write_confidence(translator.folder, confidence)
        except HeedfulError as error:
            say(f"no confidence: {error}")
        else:
            say(report.to_text().rstrip())


def export_engines(info: RunInfo, say: Callable[[str], None], warn: Callable[[str], None] | None = None) -> None:
    """Export the engines that run the trained model without PyTorch, unless it has them already.

    A failed export is reported in one line and costs nothing but its time: the model then runs with PyTorch.

    Args:
        info: facts about a completed run.
        say: callback for a line before the work, which takes seconds, and for the result of each export.
        warn: callback for failed exports; None = `say`.

    Raises:
        Stopped: Ctrl-C; the model is complete.
    """
    folder, experiment = info.folder, info.experiment
    if not experiment.training.export:
        return
    task = find_task(experiment.task)
    predictor = task.open(folder, engine="torch")
    earlier = predictor.exported
    names = [name for name in predictor.usual_engines if name not in earlier or earlier[name].fault]
    if names:
        say(f"exporting to {' and '.join(names)}, to run the model without PyTorch; takes a few seconds")
    for name in names:
        try:
            with _complete_at_signal(folder):
                say(f"engine {predictor.exporter(name)().summary()}")
        except Stopped:
            raise
        except Exception as error:  # whatever the exporters raise, the model is trained and saved
            reason = str(error).partition("\n")[0] or type(error).__name__
            (warn or say)(
                f"no engine {name}, the model runs with PyTorch: {reason.removesuffix('; use --engine torch')}"
            )
