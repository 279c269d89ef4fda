"""Evaluation on a set, shared by `evaluate`, `train` and `demo`: translate and score."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.cli.messages import Messages
from heedful.cli.options import choose_device
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.data.prepare import EvaluationSet
    from heedful.evaluation.report import Report
    from heedful.search.config import SearchConfig
    from heedful.search.constraints import Constraints
    from heedful.translator import Translator


def load_to_run(path: Path, engine: str, device: str, ensemble: Sequence[Path] = ()) -> "Translator":
    """Open a model for running, with PyTorch only where PyTorch runs it.

    Args:
        path: the model folder.
        engine: as the user named it.
        device: as the user named it.
        ensemble: folders of models that decode together with it.

    Returns:
        The translator.

    Raises:
        UsageError: there is no such model, engine or device, or they do not go together.
    """
    from heedful.translator import load

    if device not in ("auto", "cpu"):
        if engine not in ("auto", "torch"):
            raise UsageError(f"--engine {engine} computes on the CPU; leave out --device {device}")
        return load(path, choose_device(device), "torch", ensemble)
    if engine == "torch":
        return load(path, choose_device(device), engine, ensemble)
    # Which device PyTorch would take is asked only when PyTorch is needed: to ask, it must be loaded.
    return load(path, device, engine, ensemble)


def tell_engine(
    translator: "Translator",
    search: "SearchConfig",
    attention: bool,
    messages: Messages,
    constraints: "Constraints | None" = None,
    is_exact: bool = False,
) -> "SearchConfig":
    """Load the engine, and print its name where there is a choice.

    Args:
        translator: the model.
        search: beam and the like.
        attention: whether attention is wanted.
        messages: where to say it.
        constraints: what outputs begin with, hold and do not hold.
        is_exact: whether no bit may depend on what is decoded beside.

    Returns:
        The search, as it was given.
    """
    backend = translator.backends.searching(search, attention, constraints, is_exact)
    if translator.backends.exported:
        reasons = [
            f"{name}: {exported.fault}" for name, exported in translator.backends.exported.items() if exported.fault
        ]
        if backend.name.startswith("ctranslate2") and search.beam > 1:
            reasons.insert(0, "its own beam search, which stops sooner than heedful's")
        messages.say(f"engine {backend.name}" + "".join(f"; {reason}" for reason in reasons))
    return search


def changed_search(
    translator: "Translator", beam: int | None, nbest: int = 1, changes: Mapping[str, Any] | None = None
) -> "SearchConfig":
    """Apply the user's options to the model's own search settings.

    Args:
        translator: the model.
        beam: hypotheses carried; None = the model's own.
        nbest: outputs wanted; a smaller beam grows to it.
        changes: other settings of the search by name; those that are None stay as the model has them.

    Returns:
        The settings.
    """
    from heedful.config import validate
    from heedful.search.config import SearchConfig, with_outputs

    overrides = {name: value for name, value in (changes or {}).items() if value is not None}
    config = translator.search
    if overrides:
        carried = {"beam": beam} if beam else {}
        config = validate(SearchConfig, config.model_dump(mode="json") | carried | overrides, "search")
    return with_outputs(config, beam or 0, nbest)


@dataclass(frozen=True)
class Evaluated:
    """Outputs of a model on an evaluation set, and their scores."""

    outputs: list[str]
    report: "Report"
    seconds: float
    """Seconds of translating, without loading the model."""
    num_replaced: int = 0
    """Number of outputs with replaced unknown words."""
    unreplaced: "Report | None" = None
    """Scores without replacement; None where nothing was replaced."""


def score_outputs(
    translator: "Translator",
    items: "EvaluationSet",
    search: "SearchConfig",
    metrics: Sequence[str],
    batch_tokens: int,
    lowercase: bool = False,
    seed: int = 12345,
) -> Evaluated:
    """Translate and score.

    Args:
        translator: the model.
        items: sources with references.
        search: beam and the like.
        metrics: keys of the table of metrics; empty = what suits the model.
        batch_tokens: most source positions times beam decoded together.
        lowercase: compare without regard to case.
        seed: of the resamples behind the intervals.

    Returns:
        Outputs and scores.
    """
    from heedful.evaluation.evaluate import evaluate
    from heedful.evaluation.metrics.table import default_metrics

    translator.backends.searching(search)  # loads the weights, which are no part of the speed
    started = time.perf_counter()
    translations = list(translator.stream(items.sources, search, batch_tokens=batch_tokens))
    seconds = time.perf_counter() - started
    num_replaced = sum(bool(one.unreplaced) for one in translations)
    keys = tuple(metrics) or default_metrics(translator.text.target_units)
    if num_replaced and not metrics:
        keys = ("bleu", *(key for key in keys if key != "bleu"))  # sentences, then, and no sounds or marks

    def report(outputs: list[str]) -> "Report":
        return evaluate(
            outputs,
            items.references,
            items.sources,
            metrics=keys,
            target_language=translator.target_language,
            lowercase=lowercase,
            seed=seed,
        )

    outputs = [one.text for one in translations]
    before = report([one.unreplaced or one.text for one in translations]) if num_replaced else None
    return Evaluated(outputs, report(outputs), seconds, num_replaced, before)
