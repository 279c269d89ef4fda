"""Translate an evaluation set and score the output: what `evaluate`, `train` and `demo` share."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from heedful.cli.messages import Messages
from heedful.cli.options import choose_device
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.evaluation.report import Report
    from heedful.search.config import SearchConfig
    from heedful.search.demands import Demand
    from heedful.text.prepare import EvaluationSet
    from heedful.text.tokenizer import Units
    from heedful.translator import Translator

_METRICS: Final[dict[str, tuple[str, ...]]] = {
    "pieces": ("bleu", "chrf", "ter", "exact_match"),
    "words": ("exact_match", "token_error_rate"),
    "characters": ("exact_match", "character_error_rate"),
}


def load_to_run(path: Path, engine: str, device: str, ensemble: Sequence[Path] = ()) -> "Translator":
    """Open a model to run it, with PyTorch only where that is what runs it.

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
    demand: "Demand | None" = None,
    is_exact: bool = False,
) -> "SearchConfig":
    """Load what computes, and say what it is where there is a choice.

    Args:
        translator: the model.
        search: beam and the like.
        attention: whether attention is wanted.
        messages: where to say it.
        demand: what outputs begin with, hold and do not hold.
        is_exact: whether no bit may depend on what is decoded beside.

    Returns:
        The search, as it was given.
    """
    backend = translator.backends.searching(search, attention, demand, is_exact)
    if translator.backends.exported:
        reasons = [f"{name}: {found.fault}" for name, found in translator.backends.exported.items() if found.fault]
        if backend.name.startswith("ctranslate2") and search.beam > 1:
            reasons.insert(0, "its own beam search, which stops sooner than heedful's")
        messages.say(f"engine {backend.name}" + "".join(f"; {reason}" for reason in reasons))
    return search


def default_metrics(target_units: "Units") -> tuple[str, ...]:
    """Choose metrics that say something of a model's outputs.

    Args:
        target_units: what the target's tokens are.

    Returns:
        Keys of the table of metrics.
    """
    return _METRICS[target_units]


def changed_search(
    translator: "Translator", beam: int | None, nbest: int = 1, changes: Mapping[str, Any] | None = None
) -> "SearchConfig":
    """Lay what the user asked for on the model's own search settings.

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

    given = {name: value for name, value in (changes or {}).items() if value is not None}
    config = translator.search
    if given:
        carried = {"beam": beam} if beam else {}
        config = validate(SearchConfig, config.model_dump(mode="json") | carried | given, "search")
    return with_outputs(config, beam or 0, nbest)


@dataclass(frozen=True)
class Perplexity:
    """How probable a model finds the references."""

    per_token: float
    """exp of the mean negative log probability of a target token: comparable between models with the same tokens."""
    bits_per_character: float
    """Comparable between any two models."""
    num_tokens: int
    num_cut: int
    """References longer than the model takes, of which only the beginning counts."""


def perplexity(translator: "Translator", items: "EvaluationSet") -> Perplexity:
    """Read the references with a model, by forced decoding.

    Args:
        translator: the model; what decodes by its own settings computes.
        items: what to read; at least one item.

    Returns:
        The perplexity over all references.
    """
    from heedful.runtime.reading import encode_source
    from heedful.text.vocabulary import EOS

    most = translator.text.max_tokens - 1
    sources: list[list[int]] = []
    targets: list[list[int]] = []
    num_cut = num_characters = 0
    for source, texts in zip(items.sources, items.references, strict=True):
        ids = encode_source(translator.source_tokenizer, source, translator.text)[0].tolist()
        for text in texts:
            gold = translator.target_tokenizer.encode(text)
            num_cut += len(gold) > most
            num_characters += len(translator.target_tokenizer.normalize(text))
            sources.append(ids)
            targets.append([*gold[:most], EOS])
    log_prob, num_tokens = _read(translator, sources, targets), sum(map(len, targets))
    bits = -log_prob / math.log(2.0) / max(1, num_characters)
    return Perplexity(math.exp(min(-log_prob / num_tokens, 700.0)), bits, num_tokens, num_cut)


def _read(translator: "Translator", sources: Sequence[list[int]], targets: Sequence[list[int]]) -> float:
    """The log probability of all targets together."""
    backend = translator.backends.reading()
    if backend.name == "torch":
        from heedful.text.encoded import EncodedCorpus, EncodedSide
        from heedful.training.likelihood import log_likelihood

        corpus = EncodedCorpus(EncodedSide.of(sources), EncodedSide.of(targets))
        return log_likelihood(translator.model(), corpus).log_prob
    import numpy as np

    from heedful.runtime.engine import read_sorted

    ids = [np.array(source, dtype=np.int64) for source in sources]
    return sum(float(found.log_probs.sum()) for found in read_sorted(backend, ids, targets))


@dataclass(frozen=True)
class Evaluated:
    """A model's outputs on an evaluation set, and their scores."""

    outputs: list[str]
    report: "Report"
    seconds: float
    """Spent translating, the loading of the model left out."""
    num_replaced: int = 0
    """Outputs whose unknown words were replaced."""
    unreplaced: "Report | None" = None
    """The scores without that; None where nothing was replaced."""


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

    translator.backends.searching(search)  # loads the weights, which are no part of the speed
    started = time.perf_counter()
    found = list(translator.stream(items.sources, search, batch_tokens=batch_tokens))
    seconds = time.perf_counter() - started
    num_replaced = sum(bool(one.unreplaced) for one in found)
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

    outputs = [one.text for one in found]
    before = report([one.unreplaced or one.text for one in found]) if num_replaced else None
    return Evaluated(outputs, report(outputs), seconds, num_replaced, before)
