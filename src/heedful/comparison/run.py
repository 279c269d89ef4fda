"""Runs of a grid: each row with each seed, earlier results reused, tables written after every run."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, final

from heedful.comparison.budget import move_other_budget
from heedful.comparison.evaluation import evaluate_run
from heedful.comparison.gold import AER, alignment_error
from heedful.comparison.grid import Row
from heedful.comparison.plan import ComparisonPlan, fingerprints, shell_command, task_of, watch_data
from heedful.comparison.run_result import ComparedItems, RunResult, find_run_result, read_record, run_key, write_record
from heedful.comparison.save_tables import write_tables
from heedful.comparison.summary import Comparison
from heedful.config.base import validate
from heedful.data.corpus import find_pairs
from heedful.data.corpus_filter import CorpusFilter
from heedful.data.same_data import DataWatch
from heedful.data.split import MIN_PAIRS
from heedful.data.stories import Stories
from heedful.errors import DataError, FileRefused, HeedfulError, MissingExtra, ResourceError, Stopped, UsageError
from heedful.models.store import DEFAULT_TASK
from heedful.predictors.captioner import Captioner
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.runs.request import TrainRequest
from heedful.runs.train import RunInfo, check_buildable
from heedful.text.tokenizer import TextConfig
from heedful.training.lock import locked
from heedful.training.progress import Outcome

ITEMS: Final = "items.json"
_SUMMED: Final = ("num_parameters", "num_target_tokens", "seconds")
"""Fields that are summed over the members of an ensemble."""


@final
@dataclass(frozen=True)
class Runner:
    """Callbacks of a comparison: training and messages."""

    train: Callable[[TrainRequest], tuple[RunInfo, Outcome]]
    """Trains a model, or resumes its training; returns the facts known at the start, and the outcome."""
    say: Callable[[str], None]
    warn: Callable[[str], None]
    """Reports a message that must not be missed."""


def run_grid(plan: ComparisonPlan, runner: Runner) -> Comparison:
    """Run every run of a grid that has no result yet, and write the tables after each.

    Args:
        runner: callbacks for training and messages.

    Raises:
        UsageError: no row can be run, the folder holds a comparison of other data, or another comparison is running
            in it.
        DataError: the data are unusable, or change meanwhile.
        ResourceError: the folder cannot be written.
        MissingExtra: a package is not installed.
        Stopped: a signal arrived; finished runs are stored, and the same call resumes the comparison.
    """
    watch = watch_data(plan.request)
    if not os.path.lexists(plan.out / ITEMS):
        _check_held_out(plan.request)
    missing = _impossible_rows(plan)
    try:
        plan.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResourceError(f"{plan.out}: cannot be written: {error.strerror}; choose another --out") from None
    with locked(plan.out):
        return _run_all(plan, runner, watch, missing)


def _run_all(plan: ComparisonPlan, runner: Runner, watch: DataWatch, missing: dict[str, str]) -> Comparison:
    """Run every possible run of a grid in a locked folder.

    Raises:
        UsageError: no row can be run, or the folder holds a comparison of other data.
        DataError: the data changed meanwhile.
        ResourceError: the folder cannot be written.
        MissingExtra: a package is not installed.
        Stopped: a signal arrived.
    """
    data = fingerprints(watch)
    items = _known_items(plan, data)
    for name, reason in missing.items():
        runner.warn(f"{name}: not run: {reason}")
    results: dict[str, list[RunResult]] = {row.name: [] for row in plan.rows}
    runs = [(row, seed) for seed in plan.seeds for row in plan.rows if seed in row.seeds]
    for number, (row, seed) in enumerate(runs, start=1):
        if reason := _lacking(row, missing):
            missing[row.name] = reason
        if row.name in missing:
            continue
        watch.check()
        runner.say(f"== {row.name}, seed {seed}: run {number} of {len(runs)}")
        key, path = plan.key(row, seed, data), plan.out / "findings" / f"{row.folder}-{seed}.json"
        known = find_run_result(path, key, len(items.sources)) if items is not None else None
        try:
            if items is not None and known is not None:
                runner.say("done before")
                result = known
            else:
                result, items = _find(plan, row, seed, key, items, data, results, runner)
                watch.check()  # before the result is stored as that of these data
                write_record(path, result)
            result = _aligned(plan, row, result, path, runner)
        except (Stopped, ResourceError, MissingExtra):
            raise
        except HeedfulError as error:
            missing[row.name] = f"seed {seed}: {error}"
            runner.warn(f"{row.name}, seed {seed}: not run: {error}")
            continue
        results[row.name].append(result)
        if result is not known:
            write_tables(plan, items, results, missing, runner.warn)
    watch.check()
    if items is None or not any(results.values()):
        name, reason = next(iter(missing.items()))
        raise UsageError(f"no row of the grid can be run; {name}: {reason}")
    return write_tables(plan, items, results, missing, runner.warn)


def _find(
    plan: ComparisonPlan,
    row: Row,
    seed: int,
    key: str,
    items: ComparedItems | None,
    data: Mapping[str, str],
    results: Mapping[str, Sequence[RunResult]],
    runner: Runner,
) -> tuple[RunResult, ComparedItems]:
    """Train and evaluate one run, or evaluate an ensemble; the first run of the grid determines the items."""
    if items is not None and row.members:
        members = [next(result for result in results[name] if result.seed == seed) for name in row.members]
        facts = _facts_of_ensemble(plan, row, seed, members)
    else:
        info, facts = _train(plan, row, seed, runner)
        if items is None:
            items = _choose_items(plan, info, data)
            write_record(plan.out / ITEMS, items)
    runner.say(f"measuring on {len(items.sources):,} sources")
    first, *others = plan.folders(row, seed)
    return evaluate_run(first, items, {**facts, "row": row.name, "seed": seed, "key": key}, others), items


def _aligned(plan: ComparisonPlan, row: Row, result: RunResult, path: Path, runner: Runner) -> RunResult:
    """Update the alignment error rate of a result: computed where it is missing, removed where it is of other links."""
    wanted = plan.gold.key if plan.gold else ""
    if result.gold == wanted:
        return result
    measures = {key: figure for key, figure in result.measures.items() if key != AER}
    facts: dict[str, Any] = {**result.model_dump(mode="json"), "gold": "", "measures": measures}
    if plan.gold is None:
        return validate(RunResult, facts)
    first, *others = plan.folders(row, result.seed)
    try:
        rate = alignment_error(load(first, plan.request.device, "torch", others, kind=Translator), plan.gold)
    except (UsageError, FileRefused) as error:  # the model is gone
        runner.warn(f"{row.name}, seed {result.seed}: not aligned: {error}")
        return validate(RunResult, facts)
    if rate is not None:
        measures[AER] = rate
    result = validate(RunResult, {**facts, "gold": wanted})
    write_record(path, result)
    return result


def _impossible(request: TrainRequest) -> str:
    """Reason why a row cannot be trained, found before training; empty where it can."""
    try:
        check_buildable(request)
    except (HeedfulError, ValueError) as error:
        return str(error)
    return ""


def _impossible_rows(plan: ComparisonPlan) -> dict[str, str]:
    missing: dict[str, str] = {}
    for row in plan.rows:
        if reason := _lacking(row, missing) or _impossible(plan.run(row, row.seeds[0])):
            missing[row.name] = reason
    return missing


def _lacking(row: Row, missing: Mapping[str, str]) -> str:
    """Reason why an ensemble cannot be evaluated; empty where all its models exist."""
    return next((f"needs {name}, which is not run" for name in row.members if name in missing), "")


def _train(plan: ComparisonPlan, row: Row, seed: int, runner: Runner) -> tuple[RunInfo, dict[str, Any]]:
    request = plan.run(row, seed)
    if moved := move_other_budget(request):
        runner.say(f"{request.out}: held a run with another budget, which is now {moved}")
    info, outcome = runner.train(request)
    overrides = [word for setting in plan.settings(row, seed) for word in ("--set", setting)]
    return info, {
        "command": shell_command(("train",), request, (*overrides, "--out", str(request.out))),
        "num_parameters": info.num_parameters,
        "step": outcome.step,
        "num_target_tokens": outcome.num_target_tokens,
        "seconds": outcome.seconds,
        "tokens_per_second": outcome.tokens_per_second,
        "ended": outcome.reason,
        "best_step": outcome.best_step,
        "device": request.device,
    }


def _facts_of_ensemble(plan: ComparisonPlan, row: Row, seed: int, members: Sequence[RunResult]) -> dict[str, Any]:
    """Training facts of an ensemble, from the results of its members."""
    first, *others = map(str, plan.folders(row, seed))
    options = [word for folder in others for word in ("--ensemble", folder)]
    data = plan.request.test or plan.request.dev or plan.request.data
    return {
        "command": shlex.join(["heedful", "evaluate", first, *map(str, data), *options]),
        **{name: sum(getattr(each, name) for each in members) for name in _SUMMED},
        "step": 0,
        "tokens_per_second": 0.0,
        "ended": members[0].ended,
        "best_step": 0,
        "device": plan.request.device,
    }


def _known_items(plan: ComparisonPlan, data: Mapping[str, str]) -> ComparedItems | None:
    path = plan.out / ITEMS
    if not os.path.lexists(path):
        return None
    items = read_record(path, ComparedItems)
    if items.data != run_key({"data": data, "columns": plan.request.columns}):
        raise UsageError(f"{plan.out}: holds a comparison on other data; choose another --out")
    return items


def _check_held_out(request: TrainRequest) -> None:
    """Refuse, before any training, data from which no evaluation set can be made.

    Raises:
        DataError: no evaluation file was given, and there are too few pairs to hold any out.
    """
    if request.dev or request.test or task_of(request).name != DEFAULT_TASK:
        return  # other tasks say so before they train
    enough = 10 * MIN_PAIRS
    pairs = CorpusFilter(TextConfig().max_characters).apply(find_pairs([*request.data], request.columns))
    if sum(1 for _ in islice(pairs, enough)) < enough:
        raise DataError(f"{request.data[0]}: too few pairs to hold out a test set: give --test")


def _choose_items(plan: ComparisonPlan, info: RunInfo, data: Mapping[str, str]) -> ComparedItems:
    """Return the test set, or in its absence the validation set.

    Raises:
        DataError: there is neither.
    """
    request = plan.request
    predictor = load(info.folder)
    chosen = info.data.test
    if not len(chosen) and request.dev:
        chosen = predictor.read_items(request.dev, request.columns)
    if not len(chosen):
        raise DataError(f"{request.data[0]}: too few examples to hold out a test set: give --test")
    return ComparedItems(
        sources=tuple(chosen.sources),
        references=tuple(tuple(texts) for texts in chosen.references),
        supporting=tuple(story.supporting for story in chosen.stories) if isinstance(chosen, Stories) else (),
        target_language=predictor.target_language,
        trained_unit="target tokens" if predictor.generates_text else "examples",
        are_images=isinstance(predictor, Captioner),
        is_validation=not len(info.data.test),
        default_metrics=predictor.metrics[:2],
        data=run_key({"data": data, "columns": request.columns}),
    )
