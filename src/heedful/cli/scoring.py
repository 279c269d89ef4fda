"""Translate an evaluation set and score the output: what `evaluate`, `train` and `demo` share."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from heedful.evaluation.report import Report
    from heedful.search.config import SearchConfig
    from heedful.text.prepare import EvaluationSet
    from heedful.text.tokenizer import Units
    from heedful.translator import Translator

_METRICS: Final[dict[str, tuple[str, ...]]] = {
    "pieces": ("bleu", "chrf", "ter", "exact_match"),
    "words": ("exact_match", "token_error_rate"),
    "characters": ("exact_match", "character_error_rate"),
}


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
        translator: the model.
        items: what to read; at least one item.

    Returns:
        The perplexity over all references.
    """
    from heedful.runtime.reading import encode_source
    from heedful.text.encoded import EncodedCorpus, EncodedSide
    from heedful.text.vocabulary import EOS
    from heedful.training.likelihood import log_likelihood

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
    found = log_likelihood(translator.model(), EncodedCorpus(EncodedSide.of(sources), EncodedSide.of(targets)))
    bits = -found.log_prob / math.log(2.0) / max(1, num_characters)
    return Perplexity(found.perplexity, bits, found.num_tokens, num_cut)


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

    _ = translator.backend  # loads the weights, which are no part of the speed
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
