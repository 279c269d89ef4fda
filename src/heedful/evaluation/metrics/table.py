"""Table of all metrics by name. To add one, write its file and its line here."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Final

from heedful.errors import UsageError, did_you_mean
from heedful.evaluation.interface import Metric, Setting
from heedful.evaluation.metrics.answer import SpanScore
from heedful.evaluation.metrics.bleu import Bleu
from heedful.evaluation.metrics.chrf import Chrf
from heedful.evaluation.metrics.error_rate import CharacterErrorRate, TokenErrorRate
from heedful.evaluation.metrics.exact_match import ExactMatch, WrongOutputs
from heedful.evaluation.metrics.in_place import TokensInPlace
from heedful.evaluation.metrics.phone_features import PhoneFeatureErrorRate
from heedful.evaluation.metrics.rouge import Rouge
from heedful.evaluation.metrics.ter import Ter
from heedful.text.tokenizer import Units

METRICS: dict[str, Callable[[Setting], Metric]] = {
    "bleu": lambda setting: Bleu(setting.tokenizer, setting.lowercase),
    "chrf": lambda setting: Chrf(lowercase=setting.lowercase),
    "chrf++": lambda setting: Chrf(word_order=2, lowercase=setting.lowercase),
    "ter": lambda setting: Ter(characters=setting.tokenizer in ("zh", "char")),
    "rouge1": lambda setting: Rouge("1"),
    "rouge2": lambda setting: Rouge("2"),
    "rougeL": lambda setting: Rouge("L"),
    "exact_match": lambda setting: ExactMatch(setting.lowercase),
    "accuracy": lambda setting: ExactMatch(setting.lowercase, "accuracy"),
    "answer_match": lambda setting: SpanScore("match"),
    "answer_f1": lambda setting: SpanScore("f1"),
    "wrong_outputs": lambda setting: WrongOutputs(setting.lowercase),
    "tokens_in_place": lambda setting: TokensInPlace("all", setting.lowercase),
    "tokens_before_error": lambda setting: TokensInPlace("before an error", setting.lowercase),
    "token_error_rate": lambda setting: TokenErrorRate(setting.lowercase),
    "character_error_rate": lambda setting: CharacterErrorRate(setting.lowercase),
    "phone_feature_error_rate": lambda setting: PhoneFeatureErrorRate(),
}

_SUITED: Final[dict[str, tuple[str, ...]]] = {
    "pieces": ("bleu", "chrf", "ter", "exact_match"),
    "words": ("exact_match", "token_error_rate"),
    "characters": ("exact_match", "character_error_rate"),
}


_OTHER_NAMES: Final = {"macro_f1": "macro-F1", "micro_f1": "micro-F1", "f1": "F1", "explained": "variance explained"}
"""Names of scores in percent that are no metrics of texts."""
_PLAIN_NAMES: Final = {"mean_error": "mean error"}
"""Names of scores of no unit."""


SUMMARY_METRICS: Final = ("rouge1", "rouge2", "rougeL")
"""Metrics of summaries, which reports show beside those of the first words of the sources."""


def default_metrics(target_units: Units, are_summaries: bool = False) -> tuple[str, ...]:
    """Choose metrics that suit a model's outputs.

    Args:
        target_units: units of the target's tokens.
        are_summaries: whether the model summarizes; ROUGE then suits it, if its package is installed.
    """
    return SUMMARY_METRICS if are_summaries and find_spec("rouge_score") else _SUITED[target_units]


def quick_metrics(target_units: Units, are_summaries: bool = False) -> tuple[str, ...]:
    """Choose metrics for validations: those of reports, but for TER, which takes long for poor outputs.

    Args:
        target_units: units of the target's tokens.
        are_summaries: as for `default_metrics`.
    """
    return tuple(key for key in default_metrics(target_units, are_summaries) if key != "ter")


def score_name(key: str) -> str:
    """Return the name of a score, the same wherever people read it.

    Args:
        key: a key of `METRICS`, or another score of a validation, such as "loss" or "macro_f1".

    Example:
        >>> score_name("exact_match"), score_name("bleu"), score_name("macro_f1")
        ('exact match', 'BLEU', 'macro-F1')
    """
    return METRICS[key](Setting()).name if key in METRICS else {**_OTHER_NAMES, **_PLAIN_NAMES}.get(key, key)


def score_unit(key: str) -> str:
    """Return the unit of a score.

    Args:
        key: as in `score_name`.

    Returns:
        "%" or another sign; empty = none.
    """
    return METRICS[key](Setting()).unit if key in METRICS else "%" if key in _OTHER_NAMES else ""


def score_text(key: str, score: float) -> str:
    """Write a score with its name and unit.

    Args:
        key: as in `score_name`.

    Returns:
        Such as "exact match 51.05 %".

    Example:
        >>> score_text("exact_match", 51.049), score_text("bleu", 3.2), score_text("loss", 1.2345)
        ('exact match 51.05 %', 'BLEU 3.20', 'loss 1.234')
    """
    digits = 3 if key in ("loss", *_PLAIN_NAMES) else 2
    return f"{score_name(key)} {score:.{digits}f}{' %' if score_unit(key) == '%' else ''}"


def metric_directions() -> dict[str, bool]:
    """Return for every metric whether a higher score is better.

    Returns:
        `Metric.higher_is_better` by key of `METRICS`.
    """
    return {key: make(Setting()).higher_is_better for key, make in METRICS.items()}


def build_metric(key: str, setting: Setting) -> Metric:
    """Build a metric of the table.

    Args:
        key: a key of `METRICS`.
        setting: tokenizer and treatment of case.

    Raises:
        UsageError: there is no such metric.
    """
    if key in ("word_error_rate", "wer", "phoneme_error_rate", "per"):
        raise UsageError(
            f"metric {key!r} has two meanings: token_error_rate counts edited words or phonemes, "
            f"wrong_outputs counts items with any error"
        )
    if key not in METRICS:
        raise UsageError(f"no metric {key!r}{did_you_mean(key, METRICS)}")
    return METRICS[key](setting)
