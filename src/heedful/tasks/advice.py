"""Advice around a training: reasons for the chosen settings, results of similar corpora, and a verdict at the end."""

from collections.abc import Mapping
from math import log
from typing import Final, NamedTuple

from heedful.config.base import Tree
from heedful.evaluation.metrics.table import score_name, score_text
from heedful.text.tokenizer import Units

FEW_PAIRS: Final = 1_000
"""Number of pairs below which a model mostly knows its training pairs by heart."""
FEW_EPOCHS: Final = 10
"""Number of epochs from which on few pairs are learned by heart; before, more time helps whatever their number."""
ENOUGH_EPOCHS: Final = 14
"""Number of epochs from which on a limit has not kept a classifier from learning."""
RISING_SHARE: Final = 0.8
"""Share of all updates after which a best validation means that the score was still improving."""

POOR_ACCURACY: Final = 70.0
"""Accuracy, in percent, below which a classifier is poor."""
MOSTLY_ONE: Final = 85.0
"""Share of the texts with the most frequent label, in percent, from which on few others are what is wrong."""
FEW_ROWS: Final = 200
"""Number of texts a label below which, if the accuracy is poor, more of them are what helps a classifier most."""


class MeasuredCorpus(NamedTuple):
    """Result of a corpus that heedful was measured on (docs/performance.md, docs/log.md)."""

    num_pairs: int
    what: str
    """Corpus and result."""


MEASURED: Final[Mapping[str, tuple[MeasuredCorpus, ...]]] = {
    "short": (
        MeasuredCorpus(10_000, "Finnish words and features to their forms reached 94 % exact match in 10 minutes"),
        MeasuredCorpus(75_000, "dates and numbers as people write them reached 99 % exact match in 90 seconds"),
    ),
    "pronunciations": (
        MeasuredCorpus(800, "words of a language and their phones reached 77 % exact match in a minute"),
        MeasuredCorpus(10_000, "Greek words and their phones reached 90 % exact match in 3 minutes"),
        MeasuredCorpus(72_000, "Romanian words and their phones reached 98 % exact match in 12 minutes"),
        MeasuredCorpus(130_000, "English words and their phones with stress reached 69 % exact match in 6 minutes"),
    ),
    "summaries": (
        MeasuredCorpus(11_433, "first sentences of news and their headlines reached ROUGE-L 45 in 12 minutes"),
    ),
    "sentences": (
        MeasuredCorpus(5_262, "Spanish-English speeches of parliament reached BLEU 4 in 45 minutes"),
        MeasuredCorpus(28_180, "short English-Chinese sentences reached BLEU 31 in 34 minutes"),
        MeasuredCorpus(29_000, "German-English descriptions of pictures reached BLEU 42 in 44 minutes"),
    ),
}
"""Corpora by the kind of their texts, with results on at most two processor cores."""


def reasons(
    units: Units,
    kind: str,
    num_pairs: int,
    minutes: float,
    has_copy: bool = False,
    are_pronunciations: bool = False,
) -> Mapping[str, str]:
    """Explain the choice of tokens and model, and how to choose otherwise.

    Args:
        units: units of the target's tokens.
        num_pairs: number of training pairs.
        minutes: limit of time; 0 = none.
        has_copy: whether the model copies words of its source.
        are_pronunciations: whether targets are the phones of words.

    Returns:
        A line by section of the settings: "text" and "model".
    """
    tokens = {
        "characters": "characters as tokens, because the texts are short",
        "words": "characters and symbols as tokens, because the targets are symbols with spaces between them",
        "pieces": "pieces of words as tokens, because the texts are sentences",
    }[units]
    if are_pronunciations:
        tokens = "letters and phones as tokens, because the targets are pronunciations"
    other = "characters" if units == "pieces" else "pieces"
    limit = f" and {minutes:g} minute{'' if minutes == 1 else 's'}" if minutes else ""
    sizes = f"{num_pairs:,} pairs{limit}"
    soonest = "pronunciations from the fewest words" if kind == "hard_attention" else "short texts soonest"
    model = (
        f"a {kind} of a size for {sizes}, because sentences are long"
        if kind == "transformer"
        else f"a small {kind}, because it learns {soonest}"
    )
    if has_copy:
        model = f"a {kind} that copies, because targets are short and mostly of words of their sources, like summaries"
    return {
        "text": f"chosen: {tokens}; otherwise: --set text.source_units={other} --set text.target_units={other}",
        "model": f"chosen: {model}; otherwise: --preset NAME; see: heedful list presets",
    }


def expectation(units: Units, num_pairs: int, are_pronunciations: bool = False, are_summaries: bool = False) -> str:
    """Say what a similar corpus has reached.

    Args:
        units: units of the target's tokens.
        num_pairs: number of training pairs.
        are_pronunciations: whether targets are the phones of words.
        are_summaries: whether targets are summaries of their sources.
    """
    kind = "short" if units == "characters" else "sentences"
    corpora = MEASURED["pronunciations" if are_pronunciations else "summaries" if are_summaries else kind]
    fewest = min(corpora[0].num_pairs, FEW_PAIRS) // 2 if are_pronunciations else FEW_PAIRS
    if num_pairs < fewest:
        return (
            f"expect little: from {num_pairs:,} pairs, a model mostly learns these pairs by heart; "
            f"for new texts it takes {fewest:,} and more"
        )
    nearest = min(corpora, key=lambda corpus: abs(log(corpus.num_pairs / num_pairs)))
    return f"for comparison: {nearest.num_pairs:,} pairs of {nearest.what}"


def verdict(
    score: str,
    is_poor: bool,
    best_share: float,
    ending: str,
    num_pairs: int,
    num_epochs: float = FEW_EPOCHS,
    examples: str = "pairs",
    items: str = "validation",
) -> str:
    """Judge the result of a training and say what would improve it most.

    Args:
        score: best score in validations, with its name.
        is_poor: whether a model of this score is of little use.
        best_share: updates before the best validation, as a share of all updates.
        ending: limit that ended the training; empty = validation stopped improving.
        num_pairs: number of training examples.
        num_epochs: number of passes over them.
        examples: noun for them.
        items: items that the score is on, such as "the training pairs".

    Returns:
        One line; empty where the result is not poor and had stopped improving.
    """
    is_rising = bool(ending) and best_share >= RISING_SHARE
    has_begun = bool(ending) and num_epochs < 1.0
    result = f"result: poor, {score} on {items}; " if is_poor else "result: still improving; "
    if is_poor and has_begun:
        return (
            f"{result}most help would come from more time: it ended after {ending}, less than one epoch; "
            "the same command with a larger limit continues"
        )
    if is_rising and (num_pairs >= FEW_PAIRS or num_epochs < FEW_EPOCHS):
        return (
            f"{result}most help would come from more time: it was improving at the end, after {ending}; "
            "the same command with a larger limit continues"
        )
    if not is_poor:
        return ""
    return (
        f"{result}most help would come from more {examples}: {num_pairs:,} are too few, or too different from "
        "each other"
    )


def named_sections(settings: Tree, preset: str) -> set[str]:
    """List the sections whose choice is the user's own.

    Args:
        preset: preset that the user named; may be empty.

    Returns:
        Those of "text" and "model" that need no reasons.
    """
    text = settings.get("text", {})
    has_units = isinstance(text, dict) and bool({"source_units", "target_units"} & text.keys())
    has_model = bool(preset) or bool(settings.get("model"))
    return {name for name, is_named in (("text", has_units), ("model", has_model)) if is_named}


def label_verdict(
    best: float,
    majority: float,
    ngrams: float,
    num_texts: int,
    num_labels: int,
    key: str = "accuracy",
    short: str = "",
) -> str:
    """Judge a classifier by two simple ones.

    Args:
        best: its score on validation.
        majority: score of the most frequent label alone, or of the best set of labels; of numbers, of their mean.
        ngrams: score of a linear model of n-grams alone.
        num_texts: number of training texts.
        num_labels: number of labels.
        key: name of the score: a percentage, or "mean_error", of which less is better.
        short: time of a training that a limit ended while it was learning, such as "after 15 steps, 3.0 epochs"; empty
            for others.

    Returns:
        One line; first of all whether the classifier is below a baseline.
    """
    sign = -1.0 if key == "mean_error" else 1.0
    name = score_text(key, best)
    constant, linear = (score_text(key, score).removeprefix(f"{score_name(key)} ") for score in (majority, ngrams))
    simplest = {"mean_error": "the mean alone has", "micro_f1": "the most frequent labels alone have"}
    simple = simplest.get(key, "the most frequent label alone has")
    baselines = f"{simple} {constant}, n-grams alone have {linear}"
    more_time = f"it ended {short}; the same command with a larger limit continues"
    if sign * best <= sign * majority:
        mostly_one = key == "accuracy" and majority >= MOSTLY_ONE and num_labels > 1
        uneven = "few texts have another label: give more of those, and see macro-F1"
        check = "check that labels follow from the texts, and that --columns names both"
        reason = more_time if short else uneven if mostly_one else check
        return f"result: no better than a baseline, {name} on validation; {baselines}; {reason}"
    below = "below a baseline, " if sign * best < sign * ngrams else ""
    few = num_texts / num_labels
    is_poor = key != "mean_error" and best < POOR_ACCURACY and few < FEW_ROWS
    more_texts = f"more texts would help most: {few:,.0f} a label so far"
    help_line = f"; {more_time if short else more_texts}" if is_poor else ""
    return f"result: {below}{name} on validation; {baselines}{help_line}"
