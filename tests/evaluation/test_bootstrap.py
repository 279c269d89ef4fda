import json
from collections.abc import Sequence

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from heedful.errors import DataError, UsageError
from heedful.evaluation import bootstrap
from heedful.evaluation.bootstrap import Interval, paired_bootstrap, resampled_totals, score_interval
from heedful.evaluation.interface import Matrix, corpus_score
from heedful.evaluation.metrics.bleu import Bleu
from heedful.evaluation.metrics.exact_match import ExactMatch, WrongOutputs
from tests.evaluation.corpus import HYPOTHESES, REFERENCES, WORSE


def marks(right: Sequence[bool] | np.ndarray) -> Matrix:
    """Statistics of `ExactMatch`."""
    return np.stack([np.asarray(right, dtype=np.float64), np.ones(len(right))], axis=1)


def test_totals_are_sums_of_drawn_items():
    statistics = np.random.default_rng(0).random((7, 3))
    drawn = np.random.default_rng(5).integers(0, 7, size=(20, 7))
    np.testing.assert_allclose(resampled_totals(statistics, 20, seed=5), statistics[drawn].sum(axis=1), rtol=1e-13)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch):
    statistics = np.random.default_rng(0).integers(0, 9, size=(11, 2)).astype(np.float64)
    whole = resampled_totals(statistics, 50)
    for block in (1, 25, 100):
        monkeypatch.setattr(bootstrap, "_BLOCK", block)
        assert resampled_totals(statistics, 50).tolist() == whole.tolist()


def test_seeds():
    statistics = np.arange(10.0)[:, None]
    assert resampled_totals(statistics, 5, seed=1).tolist() == resampled_totals(statistics, 5, seed=1).tolist()
    assert resampled_totals(statistics, 5, seed=1).tolist() != resampled_totals(statistics, 5, seed=2).tolist()


def test_no_resamples_are_refused():
    with pytest.raises(UsageError, match="num_resamples must be 1 or more, got 0"):
        score_interval(ExactMatch(), marks([True]), num_resamples=0)


def test_resampled_scores_are_sacrebleus(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    references = [texts[:1] for texts in REFERENCES] * 5
    sacre = BLEU().corpus_score(HYPOTHESES * 5, [[texts[0] for texts in references]], n_bootstrap=300)
    scores = Bleu().scores(resampled_totals(Bleu().statistics(HYPOTHESES * 5, references), 300))
    # sacreBLEU sums and scores resamples in float32.
    assert scores.mean() == pytest.approx(sacre._mean, rel=1e-7)
    ordered = np.sort(scores)
    assert (ordered[300 - 300 // 40 - 1] - ordered[300 // 40]) / 2 == pytest.approx(sacre._ci, rel=1e-6)


def test_interval_of_a_share_is_the_binomials():
    low, high = score_interval(ExactMatch(), marks([True] * 300 + [False] * 700), num_resamples=4000)
    half = 196 * (0.3 * 0.7 / 1000) ** 0.5
    assert low == pytest.approx(30 - half, abs=0.4)
    assert high == pytest.approx(30 + half, abs=0.4)


def test_interval_of_one_sided_items_is_a_point():
    assert score_interval(ExactMatch(), marks([True] * 9)) == Interval(100, 100)


def test_difference_has_its_sign_scores_and_interval():
    good, bad = Bleu().statistics(HYPOTHESES * 20, REFERENCES * 20), Bleu().statistics(WORSE * 20, REFERENCES * 20)
    found = paired_bootstrap(Bleu(), good, bad)
    assert found.score == corpus_score(Bleu(), good)
    assert found.baseline_score == corpus_score(Bleu(), bad)
    assert found.difference == found.score - found.baseline_score > 0
    assert found.interval.low < found.difference < found.interval.high
    assert (found.verdict(), found.win_rate) == ("better", 1)
    assert found.p_value == pytest.approx(1 / 1001)
    turned = paired_bootstrap(Bleu(), bad, good)
    assert (turned.difference, turned.p_value, turned.verdict(), turned.win_rate) == (
        -found.difference,
        found.p_value,
        "worse",
        0,
    )
    assert turned.interval == pytest.approx((-found.interval.high, -found.interval.low))


def test_lower_can_be_better():
    good, bad = marks([False] * 100), marks([True] * 60 + [False] * 40)
    found = paired_bootstrap(WrongOutputs(), good, bad)
    assert (found.difference, found.verdict(), found.win_rate) == (-60, "better", 1)


def test_a_system_against_itself_differs_by_nothing():
    statistics = Bleu().statistics(HYPOTHESES, REFERENCES)
    found = paired_bootstrap(Bleu(), statistics, statistics)
    assert (found.difference, found.p_value, found.win_rate) == (0, 1, 0.5)
    assert found.interval == Interval(0, 0)
    assert found.verdict() == "undecided"


def test_pairing_makes_small_differences_visible():
    # 20 of 1,000 items improve and none gets worse: unmistakable item by item, lost in the spread of two samples.
    right = np.arange(1000) % 2 == 0
    better = right | (np.arange(1000) % 50 == 1)
    found = paired_bootstrap(ExactMatch(), marks(better), marks(right))
    assert found.difference == pytest.approx(2)
    assert found.p_value < 0.01
    low, high = score_interval(ExactMatch(), marks(right))
    assert high - low > 2 * found.difference


def test_p_value_is_that_of_a_sign_test():
    # 30 items better, 15 worse, 155 alike: z = 15 / sqrt(45), 2.5 % in two tails.
    score, baseline = np.zeros(200), np.zeros(200)
    score[:30], baseline[30:45] = 1, 1
    found = paired_bootstrap(ExactMatch(), marks(score), marks(baseline), num_resamples=10_000)
    assert found.p_value == pytest.approx(0.025, abs=0.01)


def test_equal_systems_are_rarely_called_different():
    generator = np.random.default_rng(3)
    calls = [
        paired_bootstrap(
            ExactMatch(), marks(generator.random(150) < 0.5), marks(generator.random(150) < 0.5), 200, seed
        ).verdict()
        for seed in range(400)
    ]
    # 5 % of 400 are 20, with a standard deviation of 4.4; a one-sided test would give 40.
    assert 8 <= 400 - calls.count("undecided") <= 33


def test_different_numbers_of_items_are_refused():
    with pytest.raises(DataError, match="same items only, got 2 and 3"):
        paired_bootstrap(ExactMatch(), marks([True] * 2), marks([True] * 3))


def test_difference_as_json():
    found = paired_bootstrap(ExactMatch(), marks([True, False]), marks([False, False]), 100, seed=7)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (plain["metric"], plain["difference"], plain["seed"], plain["num_items"]) == ("exact match", 50, 7, 2)
    assert (plain["low"], plain["high"]) == found.interval
    assert "interval" not in plain
