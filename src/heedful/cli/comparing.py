"""Running a grid: each row with each seed, what was found before taken as it is, and the tables after every run."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final

import torch

from heedful.cli.measuring import MEASURES, measure
from heedful.cli.messages import Messages
from heedful.cli.scoring import default_metrics
from heedful.cli.train import train_and_watch
from heedful.comparison.finding import Finding, Items, find_finding, read_record, run_key, write_record
from heedful.comparison.grid import Grid, Row, baseline_of
from heedful.comparison.page import report_page
from heedful.comparison.summary import Comparison, summarise
from heedful.comparison.tables import to_markdown
from heedful.errors import DataError, HeedfulError, MissingExtra, ResourceError, Stopped, UsageError
from heedful.experiment import load_experiment
from heedful.inspection.length_plot import Curve, save_length_plot
from heedful.recipe import Recipe, Started
from heedful.text.corpus import CorpusFilter, find_pairs
from heedful.text.files import written_whole
from heedful.text.prepare import MIN_PAIRS, EvaluationSet
from heedful.text.tokenizer import TextConfig
from heedful.translator import load

_SUMMED: Final = ("num_parameters", "num_target_tokens", "seconds")
"""Of an ensemble, what its members have together."""


@dataclass(frozen=True)
class Plan:
    """What is to be run."""

    grid: Grid
    rows: tuple[Row, ...]
    seeds: tuple[int, ...]
    recipe: Recipe
    """Data, budget and device of all runs; its folder holds theirs."""
    command: str

    @property
    def out(self) -> Path:
        """The folder of the comparison."""
        return self.recipe.out or Path()

    def run(self, row: Row, seed: int) -> Recipe:
        """Give the recipe of one run.

        Args:
            row: of the grid.
            seed: of weights, order and dropout.

        Returns:
            What `heedful train` would be told.
        """
        settings = (*row.settings, *self.recipe.settings, f"training.seed={seed}")
        out = self.out / "runs" / f"{row.folder}-{seed}"
        return replace(self.recipe, preset=row.preset, settings=settings, out=out)


def compare(plan: Plan, messages: Messages) -> Comparison:
    """Do what is still to be done of a grid, and write the tables after each run.

    Args:
        plan: what is to be run.
        messages: told how it goes.

    Returns:
        The table.

    Raises:
        UsageError: not one row can be run, or the folder holds a comparison of other data.
        DataError: the data cannot be used.
        ResourceError: the folder cannot be written.
        MissingExtra: a package is not installed.
        Stopped: a signal; what was found is kept, and the same command goes on.
    """
    data = _fingerprints(plan.recipe)
    items = _known_items(plan, data)
    if items is None:
        _check_held_out(plan.recipe)
    missing = _impossible_rows(plan)
    for name, reason in missing.items():
        messages.warn(f"{name}: not run: {reason}")
    findings: dict[str, list[Finding]] = {row.name: [] for row in plan.rows}
    runs = [(row, seed) for seed in plan.seeds for row in plan.rows]
    for number, (row, seed) in enumerate(runs, start=1):
        if reason := _lacking(row, missing):
            missing[row.name] = reason
        if row.name in missing:
            continue
        messages.say(f"== {row.name}, seed {seed}: run {number} of {len(runs)}")
        members = [next(found for found in findings[name] if found.seed == seed) for name in row.members]
        key = run_key({"members": [each.key for each in members]}) if members else _key(plan.run(row, seed), data)
        path = plan.out / "findings" / f"{row.folder}-{seed}.json"
        if items is not None and (known := find_finding(path, key, len(items.sources))):
            messages.say("done before")
            findings[row.name].append(known)
            continue
        try:
            found, items = (
                _find_ensemble(plan, row, seed, key, items, members)
                if items is not None and members
                else _find(plan, row, seed, key, items, messages)
            )
        except (Stopped, ResourceError, MissingExtra):
            raise
        except HeedfulError as error:
            missing[row.name] = f"seed {seed}: {error}"
            messages.warn(f"{row.name}, seed {seed}: not run: {error}")
            continue
        write_record(path, found)
        findings[row.name].append(found)
        write_tables(plan, items, findings, missing, messages)
    if items is None or not any(findings.values()):
        name, reason = next(iter(missing.items()))
        raise UsageError(f"no row of the grid can be run; {name}: {reason}")
    return write_tables(plan, items, findings, missing, messages)


def _impossible(recipe: Recipe) -> str:
    """Say why a row cannot be, before anything is trained; empty where it can."""
    try:
        experiment = load_experiment(recipe.preset, recipe.config, recipe.settings)
        with torch.device("meta"):
            experiment.model.build(8, 8, experiment.text.is_shared)
    except (HeedfulError, ValueError) as error:
        return str(error)
    return ""


def _impossible_rows(plan: Plan) -> dict[str, str]:
    missing: dict[str, str] = {}
    for row in plan.rows:
        if reason := _lacking(row, missing) or _impossible(plan.run(row, plan.seeds[0])):
            missing[row.name] = reason
    return missing


def _lacking(row: Row, missing: Mapping[str, str]) -> str:
    """Say which model an ensemble cannot have; empty where it has all."""
    return next((f"needs {name}, which is not run" for name in row.members if name in missing), "")


def _key(recipe: Recipe, data: Mapping[str, str]) -> str:
    """Name a run by all that decides what it finds."""
    given = {"preset": recipe.preset, "settings": recipe.settings, "languages": recipe.languages}
    return run_key({**given, "data": data, "columns": recipe.columns, "measures": sorted(MEASURES)})


def _find(plan: Plan, row: Row, seed: int, key: str, items: Items | None, messages: Messages) -> tuple[Finding, Items]:
    """Train and measure; the first run of all decides on what is measured."""
    recipe = plan.run(row, seed)
    started, outcome = train_and_watch(recipe, messages)
    if items is None:
        items = _choose_items(plan, started)
        write_record(plan.out / "items.json", items)
    messages.say(f"measuring on {len(items.sources):,} sources")
    training = {
        "row": row.name,
        "seed": seed,
        "key": key,
        "command": shell_command(("train",), recipe, ("--out", str(recipe.out))),
        "num_parameters": started.num_parameters,
        "step": outcome.step,
        "num_target_tokens": outcome.num_target_tokens,
        "seconds": outcome.seconds,
        "tokens_per_second": outcome.tokens_per_second,
        "ended": outcome.reason,
        "best_step": outcome.best_step,
        "device": recipe.device,
    }
    return measure(started.folder, items, training), items


def _find_ensemble(
    plan: Plan, row: Row, seed: int, key: str, items: Items, members: Sequence[Finding]
) -> tuple[Finding, Items]:
    """Measure models that were trained for other rows, as one."""
    by_name = {each.name: each for each in plan.rows}
    folders = [plan.run(by_name[name], seed).out or Path() for name in row.members]
    options = [word for folder in folders[1:] for word in ("--ensemble", str(folder))]
    data = plan.recipe.test or plan.recipe.dev or plan.recipe.data
    command = shlex.join(["heedful", "evaluate", str(folders[0]), *map(str, data), *options])
    facts = {
        "row": row.name,
        "seed": seed,
        "key": key,
        "command": command,
        **{name: sum(getattr(each, name) for each in members) for name in _SUMMED},
        "step": 0,
        "tokens_per_second": 0.0,
        "ended": members[0].ended,
        "best_step": 0,
        "device": plan.recipe.device,
    }
    return measure(folders[0], items, facts, folders[1:]), items


def _fingerprints(recipe: Recipe) -> dict[str, str]:

    parts = {"train": recipe.data, "dev": recipe.dev, "test": recipe.test}
    found = {name: find_pairs([*paths], recipe.columns) for name, paths in parts.items() if paths}
    return {name: json.dumps(pairs.fingerprint()) for name, pairs in found.items()}


def _known_items(plan: Plan, data: dict[str, str]) -> Items | None:

    path = plan.out / "items.json"
    if not path.is_file():
        return None
    items = read_record(path, Items)
    if items.data != run_key({"data": data, "columns": plan.recipe.columns}):
        raise UsageError(f"{plan.out}: holds a comparison on other data; choose another --out")
    return items


def _check_held_out(recipe: Recipe) -> None:
    """Refuse data that leave nothing to measure on, before anything is trained.

    Raises:
        DataError: no evaluation file was given, and there are too few pairs to hold any out.
    """
    if recipe.dev or recipe.test:
        return
    enough = 10 * MIN_PAIRS
    kept = CorpusFilter(TextConfig().max_characters).apply(find_pairs([*recipe.data], recipe.columns))
    if sum(1 for _ in islice(kept, enough)) < enough:
        raise DataError(f"{recipe.data[0]}: too few pairs to hold out a test set: give --test")


def _choose_items(plan: Plan, started: Started) -> Items:
    """Take the test set, or for want of one the validation set.

    Raises:
        DataError: there is neither.
    """
    recipe = plan.recipe
    chosen = started.test
    if not len(chosen) and recipe.dev:
        chosen = EvaluationSet.of(find_pairs([*recipe.dev], recipe.columns))
    if not len(chosen):
        raise DataError(f"{recipe.data[0]}: too few pairs to hold out a test set: give --test")
    return Items(
        sources=tuple(chosen.sources),
        references=tuple(tuple(texts) for texts in chosen.references),
        target_language=load(started.folder).target_language,
        is_validation=not len(started.test),
        default_metrics=default_metrics(started.experiment.text.target_units)[:2],
        data=run_key({"data": _fingerprints(recipe), "columns": recipe.columns}),
    )


def write_tables(
    plan: Plan,
    items: Items,
    findings: dict[str, list[Finding]],
    missing: dict[str, str],
    messages: Messages,
) -> Comparison:
    """Write table.md, table.json, by-length.png and report.html of what is known.

    Args:
        plan: what was to be run.
        items: what all were measured on.
        findings: by name of the row.
        missing: reasons by name of rows that could not be run.
        messages: told where there can be no picture.

    Returns:
        The table.

    Raises:
        ResourceError: a file cannot be written.
    """
    grid = plan.grid
    metrics = grid.metrics or items.default_metrics
    found = summarise(grid.title, items, metrics, findings, baseline_of(grid, plan.rows), missing, grid.length_edges)
    facts = {"command": plan.command, **found.to_dict(), "context": _context(plan)}
    texts = {
        "table.md": to_markdown(found, plan.command),
        "table.json": json.dumps(facts, ensure_ascii=False, indent=1) + "\n",
        "report.html": report_page(found, findings, plan.command, _picture(plan.out, found, messages), _context(plan)),
    }
    try:
        for name, text in texts.items():
            with written_whole(plan.out / name) as stream:
                stream.write(text)
    except OSError as error:
        raise ResourceError(f"{plan.out}: tables not written: {error.strerror or error}") from None
    return found


def _picture(out: Path, found: Comparison, messages: Messages) -> bytes:
    """Draw scores by source length; nothing where there is one range only, or nothing to draw with."""
    if not found.rows or len(found.rows[0].by_length) < 2:
        return b""
    curves = [
        Curve(
            row.name,
            tuple(bucket.score for bucket in row.by_length),
            tuple(bucket.interval.low for bucket in row.by_length),
            tuple(bucket.interval.high for bucket in row.by_length),
        )
        for row in found.rows
    ]
    path = out / "by-length.png"
    ranges = [bucket.label for bucket in found.rows[0].by_length]
    try:
        save_length_plot(path, curves, ranges, found.baseline, found.metric.name, found.length_unit)
    except MissingExtra as error:
        messages.warn(str(error))
        return b""
    return path.read_bytes()


def _context(plan: Plan) -> list[str]:
    """Say what all rows share."""
    recipe = plan.recipe
    parts = {"training": recipe.data, "validation": recipe.dev, "test": recipe.test}
    data = [f"{name}: {', '.join(map(str, paths))}" for name, paths in parts.items() if paths]
    return [*data, f"seeds: {', '.join(map(str, plan.seeds))}", *(f"budget of each run: {s}" for s in recipe.settings)]


def shell_command(words: Sequence[str], recipe: Recipe, options: Sequence[str]) -> str:
    """Write a command as a shell takes it.

    Args:
        words: the verb, and what stands before the data.
        recipe: data and, for a training, settings.
        options: put at the end.

    Returns:
        One line.
    """
    given = ["heedful", *words, *map(str, recipe.data)]
    given += [word for name in ("dev", "test") for path in getattr(recipe, name) for word in (f"--{name}", str(path))]
    given += ["--columns", ",".join(map(str, recipe.columns))] if recipe.columns != (1, 2) else []
    given += ["--languages", ":".join(recipe.languages)] if all(recipe.languages) else []
    if "train" in words:
        given += ["--preset", recipe.preset] if recipe.preset else []
        given += [word for setting in recipe.settings for word in ("--set", setting)]
    return shlex.join([*given, *options])
