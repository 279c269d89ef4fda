"""Running a grid: each row with each seed, what was found before taken as it is, and the tables after every run."""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final

import torch

from heedful import __version__
from heedful.cli.messages import Messages
from heedful.cli.scoring import default_metrics, perplexity
from heedful.cli.train import train_and_watch
from heedful.comparison.finding import Finding, Items, find_finding, read_record, run_key, write_record
from heedful.comparison.grid import Grid, Row, baseline_of
from heedful.comparison.page import report_page
from heedful.comparison.summary import Comparison, summarise
from heedful.comparison.tables import to_markdown
from heedful.config import validate
from heedful.errors import DataError, HeedfulError, MissingExtra, ResourceError, Stopped, UsageError
from heedful.evaluation.interface import Setting, corpus_score
from heedful.evaluation.language import choose_tokenizer
from heedful.evaluation.metrics.table import build_metric
from heedful.experiment import load_experiment
from heedful.inspection.length_plot import Curve, save_length_plot
from heedful.recipe import Recipe, Started
from heedful.runtime.engine import DEFAULT_BATCH_TOKENS
from heedful.runtime.folder import CONFIG, digest
from heedful.text.corpus import CorpusFilter, find_pairs
from heedful.text.files import written_whole
from heedful.text.prepare import MIN_PAIRS, EvaluationSet
from heedful.text.tokenizer import TextConfig
from heedful.translator import Translation, Translator, load

Measure = Callable[[Translator, EvaluationSet, Sequence[Translation]], float | None]
"""From a model, what it was measured on and its outputs to a figure; None where the model has none."""


def bleu_before_unknown(translator: Translator, items: EvaluationSet, outputs: Sequence[Translation]) -> float | None:
    """Score outputs as they were before their unknown words were replaced.

    Args:
        translator: the model.
        items: sources and references.
        outputs: of the model's own search.

    Returns:
        BLEU; None where this model's search replaces no unknown words.
    """
    if not translator.search.replace_unknown:
        return None
    every = (text for texts in items.references for text in texts)
    metric = build_metric("bleu", Setting(choose_tokenizer(translator.target_language, every).tokenizer))
    texts = [output.unreplaced or output.text for output in outputs]
    return corpus_score(metric, metric.statistics(texts, items.references))


MEASURES: Final[dict[str, Measure]] = {"bleu_before_unknown": bleu_before_unknown}
"""What else is measured of each run, by the key of its column in `heedful.comparison.summary.COLUMNS`."""


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
    missing = {row.name: reason for row in plan.rows if (reason := _impossible(plan.run(row, plan.seeds[0])))}
    for name, reason in missing.items():
        messages.warn(f"{name}: not run: {reason}")
    findings: dict[str, list[Finding]] = {row.name: [] for row in plan.rows}
    runs = [(row, seed) for seed in plan.seeds for row in plan.rows]
    for number, (row, seed) in enumerate(runs, start=1):
        if row.name in missing:
            continue
        messages.say(f"== {row.name}, seed {seed}: run {number} of {len(runs)}")
        key = _key(plan.run(row, seed), data)
        path = plan.out / "findings" / f"{row.folder}-{seed}.json"
        if items is not None and (known := find_finding(path, key, len(items.sources))):
            messages.say("done before")
            findings[row.name].append(known)
            continue
        try:
            found, items = _find(plan, row, seed, key, items, messages)
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
    return _measure(started.folder, items, training), items


def _measure(folder: Path, items: Items, training: Mapping[str, object]) -> Finding:
    """Translate the items with the kept model and read their references with it."""
    translator = load(folder, str(training["device"]))
    measured = EvaluationSet([*items.sources], [[*texts] for texts in items.references])
    outputs = list(translator.stream(items.sources, translator.search, batch_tokens=DEFAULT_BATCH_TOKENS))
    read = perplexity(translator, measured)
    names = (str(translator.folder.facts[f"{side}_tokenizer"]) for side in ("source", "target"))
    found = {
        **training,
        "settings": (folder / CONFIG).read_text(encoding="utf-8"),
        "tokenizers": [digest(folder / name) for name in names],
        "versions": f"heedful {__version__}, PyTorch {torch.__version__}, threads {torch.get_num_threads()}",
        "outputs": [output.text for output in outputs],
        "perplexity": read.per_token,
        "bits_per_character": read.bits_per_character,
        "measures": {
            key: figure
            for key, measure in MEASURES.items()
            if (figure := measure(translator, measured, outputs)) is not None
        },
    }
    return validate(Finding, found)


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
