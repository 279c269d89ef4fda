"""The contracts every metric of the table keeps, each shown to refuse a metric that breaks it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from heedful.errors import UsageError
from heedful.evaluation.interface import Matrix, Metric, References, Setting, corpus_score
from heedful.evaluation.metrics.exact_match import ExactMatch
from heedful.evaluation.metrics.table import (
    METRICS,
    build_metric,
    default_metrics,
    quick_metrics,
    score_name,
    score_text,
)
from tests.evaluation.corpus import HYPOTHESES, REFERENCES, WORSE


def score(metric: Metric, hypotheses: Sequence[str], references: References) -> float:
    return corpus_score(metric, metric.statistics(hypotheses, references))


def perfect_is_best(metric: Metric) -> None:
    last = [texts[-1] for texts in REFERENCES]
    assert score(metric, last, REFERENCES) == pytest.approx(100 if metric.higher_is_better else 0)


def empty_is_worst(metric: Metric) -> None:
    # One reference each: TER divides the edits to the closest by the mean length.
    single = [texts[:1] for texts in REFERENCES]
    assert score(metric, [""] * 6, single) == (0 if metric.higher_is_better else pytest.approx(100))


def worse_scores_worse(metric: Metric) -> None:
    sign = 1 if metric.higher_is_better else -1
    assert sign * score(metric, HYPOTHESES, REFERENCES) > sign * score(metric, WORSE, REFERENCES)


def doubling_changes_nothing(metric: Metric) -> None:
    doubled = score(metric, HYPOTHESES * 2, REFERENCES * 2)
    assert doubled == pytest.approx(score(metric, HYPOTHESES, REFERENCES), rel=1e-14)


def order_changes_nothing(metric: Metric) -> None:
    order = [2, 0, 5, 1, 4, 3]
    moved = score(metric, [HYPOTHESES[i] for i in order], [REFERENCES[i] for i in order])
    assert moved == pytest.approx(score(metric, HYPOTHESES, REFERENCES), rel=1e-14)


def order_of_references_changes_nothing(metric: Metric) -> None:
    turned = [texts[::-1] for texts in REFERENCES]
    assert metric.statistics(HYPOTHESES, turned).sum() == metric.statistics(HYPOTHESES, REFERENCES).sum()
    assert score(metric, HYPOTHESES, turned) == score(metric, HYPOTHESES, REFERENCES)


def items_are_counted_alone(metric: Metric) -> None:
    together = metric.statistics(HYPOTHESES, REFERENCES)
    alone = [metric.statistics([text], [texts]) for text, texts in zip(HYPOTHESES, REFERENCES, strict=True)]
    assert together.tolist() == np.concatenate(alone).tolist()


CONTRACTS: list[Callable[[Metric], None]] = [
    perfect_is_best,
    empty_is_worst,
    worse_scores_worse,
    doubling_changes_nothing,
    order_changes_nothing,
    order_of_references_changes_nothing,
    items_are_counted_alone,
]


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.__name__)
@pytest.mark.parametrize("key", METRICS)
def test_contract(contract: Callable[[Metric], None], key: str):
    if (contract, key) == (perfect_is_best, "rouge2"):
        pytest.skip("a text of one word has no bigrams, and scores 0")
    contract(build_metric(key, Setting()))


@dataclass(frozen=True)
class Wrong:
    """Exact match with one fault."""

    fault: str
    name = "wrong"
    unit = "%"

    @property
    def higher_is_better(self) -> bool:
        return self.fault != "upside down"

    def statistics(self, hypotheses: Sequence[str], references: References) -> Matrix:
        if self.fault == "first reference only":
            references = [texts[:1] for texts in references]
        if self.fault == "zips transposed":
            return ExactMatch().statistics(["x"], [["x"]])
        statistics = ExactMatch().statistics(hypotheses, references)
        if self.fault == "depends on place":
            statistics *= np.arange(1, len(statistics) + 1)[:, None]
        if self.fault == "shared state":
            statistics[:, 0] = statistics[:, 0].mean()
        return statistics

    def scores(self, totals: Matrix) -> Matrix:
        if self.fault == "not normalised":
            return totals[..., 0]
        return 100 * totals[..., 0] / totals[..., 1]

    def signature(self, references: References) -> str:
        return self.fault


@pytest.mark.parametrize(
    ("fault", "contract"),
    [
        ("upside down", perfect_is_best),
        ("zips transposed", empty_is_worst),
        ("upside down", worse_scores_worse),
        ("not normalised", doubling_changes_nothing),
        ("depends on place", order_changes_nothing),
        ("first reference only", order_of_references_changes_nothing),
        ("first reference only", perfect_is_best),
        ("shared state", items_are_counted_alone),
    ],
)
def test_the_contract_refuses(fault: str, contract: Callable[[Metric], None]):
    with pytest.raises(AssertionError):
        contract(Wrong(fault))


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.__name__)
def test_the_contract_takes_the_same_metric_without_a_fault(contract: Callable[[Metric], None]):
    contract(Wrong("none"))


@pytest.mark.parametrize("key", METRICS)
def test_metrics_say_what_they_are(key: str):
    metric = build_metric(key, Setting())
    assert metric.name.isprintable()
    assert metric.unit in ("points", "%")
    signature = metric.signature(REFERENCES)
    assert signature.startswith("nrefs:var|")
    assert all(pair.count(":") == 1 for pair in signature.split("|"))


@pytest.mark.parametrize(
    "key",
    sorted(
        set(METRICS) - {"ter", "rouge1", "rouge2", "rougeL", "answer_match", "answer_f1", "phone_feature_error_rate"}
    ),
)
def test_lowercase_reaches_the_metric(key: str):
    shouted = [text.upper() for text in HYPOTHESES]
    lowered = build_metric(key, Setting(lowercase=True))
    assert score(lowered, shouted, REFERENCES) == score(lowered, HYPOTHESES, REFERENCES)
    mixed = build_metric(key, Setting())
    assert score(mixed, shouted, REFERENCES) != score(mixed, HYPOTHESES, REFERENCES)


def test_chrf_plus_plus_has_word_pairs():
    assert "|nc:6|nw:2|" in build_metric("chrf++", Setting()).signature([["a"]])
    assert "|nc:6|nw:0|" in build_metric("chrf", Setting()).signature([["a"]])


def test_the_tokenizer_reaches_the_metric():
    assert "|tok:zh|" in build_metric("bleu", Setting("zh")).signature([["a"]])
    assert "|asian:yes|" in build_metric("ter", Setting("zh")).signature([["a"]])
    assert "|asian:no|" in build_metric("ter", Setting("13a")).signature([["a"]])


def test_unknown_metrics_are_refused_with_a_guess():
    with pytest.raises(UsageError, match="no metric 'blue'; did you mean 'bleu'"):
        build_metric("blue", Setting())


@pytest.mark.parametrize("key", ["word_error_rate", "wer", "phoneme_error_rate", "per"])
def test_names_with_two_meanings_are_refused(key: str):
    with pytest.raises(UsageError, match=r"token_error_rate .* wrong_outputs"):
        build_metric(key, Setting())


@pytest.mark.parametrize("units", ["pieces", "words", "characters"])
def test_default_metrics_exist(units: str):
    assert set(default_metrics(units)) <= METRICS.keys()  # type: ignore[arg-type]


@pytest.mark.parametrize("units", ["pieces", "words", "characters"])
def test_validations_measure_what_tests_measure(units: str):
    quick, all_of_them = quick_metrics(units), default_metrics(units)  # type: ignore[arg-type]
    assert set(quick) <= set(all_of_them)
    assert set(all_of_them) - set(quick) <= {"ter"}


def test_short_texts_are_measured_by_exact_match_and_character_error_rate():
    assert set(quick_metrics("characters")) == {"exact_match", "character_error_rate"}


def test_a_score_has_one_name_everywhere():
    for key, make in METRICS.items():
        metric = make(Setting())
        assert score_name(key) == metric.name
        assert score_text(key, 1.0).startswith(f"{metric.name} 1.00")
        assert score_text(key, 1.0).endswith(" %") == (metric.unit == "%")
    assert score_text("loss", 1.0) == "loss 1.000"
    assert score_text("accuracy", 99.0) == "accuracy 99.00 %"
