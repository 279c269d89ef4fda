"""Translate an evaluation set and score the output: what `evaluate`, `train` and `demo` share."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from heedful.cli.messages import Messages
from heedful.cli.options import choose_device
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.evaluation.report import Report
    from heedful.search.config import SearchConfig
    from heedful.text.prepare import EvaluationSet
    from heedful.text.tokenizer import Units
    from heedful.translator import Translator

_READ_TOGETHER: Final = 64
_METRICS: Final[dict[str, tuple[str, ...]]] = {
    "pieces": ("bleu", "chrf", "ter", "exact_match"),
    "words": ("exact_match", "token_error_rate"),
    "characters": ("exact_match", "character_error_rate"),
}


def load_to_run(path: Path, engine: str, device: str) -> "Translator":
    """Open a model to run it, with PyTorch only where that is what runs it.

    Args:
        path: the model folder.
        engine: as the user named it.
        device: as the user named it.

    Returns:
        The translator.

    Raises:
        UsageError: there is no such model, engine or device, or the two do not go together.
    """
    from heedful.translator import load

    if device not in ("auto", "cpu"):
        if engine not in ("auto", "torch"):
            raise UsageError(f"--engine {engine} computes on the CPU; leave out --device {device}")
        return load(path, choose_device(device), "torch")
    if engine == "torch":
        return load(path, choose_device(device), engine)
    # Which device PyTorch would take is asked only when PyTorch is needed: to ask, it must be loaded.
    return load(path, device, engine)


def tell_engine(
    translator: "Translator", search: "SearchConfig", attention: bool, messages: Messages
) -> "SearchConfig":
    """Load what computes, and say what it is where there is a choice.

    Args:
        translator: the model.
        search: beam and the like.
        attention: whether attention is wanted.
        messages: where to say it.

    Returns:
        The search, as it was given.
    """
    backend = translator.backend_for(search, attention)
    if translator.exported:
        reasons = [f"{name}: {found.fault}" for name, found in translator.exported.items() if found.fault]
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


def changed_search(translator: "Translator", beam: int | None, nbest: int = 1) -> "SearchConfig":
    """Lay what the user asked for on the model's own search settings.

    Args:
        translator: the model.
        beam: hypotheses carried; None = the model's own.
        nbest: outputs wanted; a smaller beam grows to it.

    Returns:
        The settings.
    """
    from heedful.search.config import with_outputs

    return with_outputs(translator.search, beam or 0, nbest)


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
    from heedful.text.vocabulary import EOS
    from heedful.translator import encode_source

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
    backend = translator.backend
    if backend.name == "torch":
        from heedful.text.encoded import EncodedCorpus, EncodedSide
        from heedful.training.likelihood import log_likelihood

        corpus = EncodedCorpus(EncodedSide.of(sources), EncodedSide.of(targets))
        return log_likelihood(translator.model(), corpus).log_prob
    import numpy as np

    # Of like lengths together, a bounded number at a time.
    order = sorted(range(len(targets)), key=lambda row: len(targets[row]))
    total = 0.0
    for first in range(0, len(order), _READ_TOGETHER):
        rows = order[first : first + _READ_TOGETHER]
        ids = [np.array(sources[row], dtype=np.int64) for row in rows]
        total += sum(float(found.sum()) for found in backend.log_probs(ids, [targets[row] for row in rows]))
    return total


@dataclass(frozen=True)
class Evaluated:
    """A model's outputs on an evaluation set, and their scores."""

    outputs: list[str]
    report: "Report"
    seconds: float
    """Spent translating, the loading of the model left out."""


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

    keys = tuple(metrics) or default_metrics(translator.text.target_units)
    translator.backend_for(search)  # loads the weights, which are no part of the speed
    started = time.perf_counter()
    outputs = [found.text for found in translator.stream(items.sources, search, batch_tokens=batch_tokens)]
    seconds = time.perf_counter() - started
    report = evaluate(
        outputs,
        items.references,
        items.sources,
        metrics=keys,
        target_language=translator.target_language,
        lowercase=lowercase,
        seed=seed,
    )
    return Evaluated(outputs, report, seconds)
