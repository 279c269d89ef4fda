"""The figures of a row: over seeds, against the baseline, by length."""

import json
import math

import numpy as np
import pytest

from heedful.comparison.run_result import ComparedItems
from heedful.comparison.summary import Spread, summarise
from heedful.comparison.tables import score_rows
from heedful.evaluation.evaluate import compare, evaluate
from heedful.evaluation.report import Report
from tests.comparison.made import ITEMS, REFERENCES, SOURCES, by_row, make_finding, make_outputs


def evaluated(num_right: int) -> Report:
    return evaluate(make_outputs(num_right), REFERENCES, SOURCES, metrics=("bleu", "chrf"), target_language="en")


def test_one_seed_is_what_evaluate_finds():
    results = by_row([make_finding("none", 20), make_finding("dot", 40)])
    found = summarise("t", ITEMS, ("bleu", "chrf"), results, "none", {})
    none, dot = found.rows
    reports = evaluated(20), evaluated(40)
    for row, report in zip((none, dot), reports, strict=True):
        assert {key: spread.mean for key, spread in row.scores.items()} == report.scores()
        assert row.interval == report["bleu"].interval
        assert row.by_length == report["bleu"].by_length
        assert all(spread.deviation == 0.0 for spread in row.scores.values())
    assert none.difference is None
    assert dot.difference == compare(reports[1], reports[0])[0]
    assert dot.difference is not None
    assert dot.difference.difference > 0
    assert dot.difference.p_value < 0.01
    assert found.signatures == {key: reports[0][key].signature for key in ("bleu", "chrf")}
    assert (found.metric.name, found.length_unit, found.num_items) == ("BLEU", "words", 60)


def test_seeds_give_mean_and_deviation():
    runs = [make_finding("a", 20, 1), make_finding("a", 30, 2), make_finding("a", 50, 3)]
    row = summarise("", ITEMS, ("bleu",), by_row(runs), "a", {}).rows[0]
    scores = [evaluated(num)["bleu"].score for num in (20, 30, 50)]
    assert row.seeds == (1, 2, 3)
    assert row.scores["bleu"].mean == pytest.approx(np.mean(scores), rel=1e-12)
    assert row.scores["bleu"].deviation == pytest.approx(np.std(scores, ddof=1), rel=1e-12)
    assert row.figures["tokens_per_second"] == Spread(122.0, 1.0, 3)
    assert row.figures["num_parameters"] == Spread(12_345.0, 0.0, 3)
    assert row.figures["perplexity"].mean == pytest.approx(4.0 + 1 / 3)
    # All seeds' outputs scored together lie between the best and the worst seed, and so does the interval's middle.
    assert min(scores) < sum(row.interval) / 2 < max(scores)


def test_an_infinite_figure_has_no_deviation_and_is_null_in_json():
    runs = [make_finding("a", 20, 1, perplexity=math.inf), make_finding("a", 30, 2)]
    found = summarise("", ITEMS, ("bleu",), by_row(runs), "a", {})
    assert found.rows[0].figures["perplexity"] == Spread(math.inf, None, 2)
    facts = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert facts["rows"][0]["figures"]["perplexity"] == {"mean": None, "deviation": None, "num_runs": 2}
    head, line = score_rows(found)
    assert dict(zip(head, line, strict=True))["perplexity"] == "inf"


def test_differences_are_of_the_seeds_that_both_have():
    runs = [make_finding("none", 10, 1), make_finding("none", 50, 2), make_finding("dot", 30, 1)]
    found = summarise("", ITEMS, ("bleu",), by_row(runs), "none", {})
    assert found.rows[1].difference == compare(evaluated(30), evaluated(10))[0]
    assert any("fewer seeds" in note and "dot" in note for note in found.notes)
    apart = [make_finding("none", 10, 1), make_finding("dot", 30, 2)]
    assert summarise("", ITEMS, ("bleu",), by_row(apart), "none", {}).rows[1].difference is None


def test_a_row_against_its_own_copy_is_undecided():
    runs = [make_finding("a", 30, seed) for seed in (1, 2)] + [make_finding("b", 30, seed) for seed in (1, 2)]
    difference = summarise("", ITEMS, ("bleu",), by_row(runs), "a", {}).rows[1].difference
    assert difference is not None
    assert (difference.difference, difference.p_value) == (0.0, 1.0)


def test_columns_without_figures_are_left_out_and_measures_have_theirs():
    plain = summarise("", ITEMS, ("bleu",), by_row([make_finding("a", 3)]), "a", {})
    keys = [column.key for column in plain.columns()]
    assert keys == ["num_parameters", "perplexity", "tokens_per_second", "num_target_tokens", "seconds"]
    measured = [make_finding("a", 3, measures={"aer": 0.5}), make_finding("b", 3)]
    found = summarise("", ITEMS, ("bleu",), by_row(measured), "a", {})
    assert "AER %" in [column.title for column in found.columns()]
    assert found.rows[0].figures["aer"] == Spread(0.5, 0.0, 1)
    assert "aer" not in found.rows[1].figures


def test_rows_without_runs_are_left_out():
    found = summarise("", ITEMS, ("bleu",), {"a": [], "b": [make_finding("b", 3)]}, "a", {"c": "why"})
    assert [row.name for row in found.rows] == ["b"]
    assert found.missing == {"c": "why"}
    assert any("the baseline a has no run yet" in note for note in found.notes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tokenizers": ("a", "c")}, "different tokenizers"),
        ({"ended": "5 minutes"}, "30 steps; 5 minutes"),
        ({"device": "cuda"}, "runs were made in different places"),
    ],
)
def test_what_makes_rows_hard_to_compare_is_said(changes: dict[str, object], said: str):
    same = [make_finding("a", 3), make_finding("b", 3)]
    notes = summarise("", ITEMS, ("bleu",), by_row(same), "a", {}).notes
    assert [note.partition(":")[0] for note in notes] == ["one seed", "every training ended after 30 steps"]
    changed = [make_finding("a", 3), make_finding("b", 3, **changes)]
    assert any(said in note for note in summarise("", ITEMS, ("bleu",), by_row(changed), "a", {}).notes)


def test_scores_on_the_validation_set_are_said():
    items = ComparedItems.model_validate({**dict(ITEMS), "is_validation": True})
    notes = summarise("", items, ("bleu",), by_row([make_finding("a", 3)]), "a", {}).notes
    assert any("validation set" in note for note in notes)


def test_lengths_may_be_cut_where_asked():
    found = summarise("", ITEMS, ("bleu",), by_row([make_finding("a", 30)]), "a", {}, length_edges=(4, 8))
    assert [bucket.label for bucket in found.rows[0].by_length] == ["1-3", "4-7", "8-12"]


def test_json_holds_all_of_it():
    runs = [make_finding("a", 30), make_finding("b", 40)]
    found = summarise("t", ITEMS, ("bleu", "chrf"), by_row(runs), "a", {"c": "why"})
    facts = json.loads(json.dumps(found.to_dict()))
    assert [row["name"] for row in facts["rows"]] == ["a", "b"]
    assert facts["rows"][1]["difference"]["p_value"] == found.rows[1].difference.p_value  # type: ignore[union-attr]
    assert facts["rows"][0]["difference"] is None
    assert facts["rows"][0]["scores"]["chrf"]["mean"] == found.rows[0].scores["chrf"].mean
    assert facts["rows"][0]["low"] == found.rows[0].interval.low
    assert facts["metrics"]["bleu"]["signature"].startswith("nrefs:1|")
    assert len(facts["rows"][0]["by_length"]) == len(found.rows[0].by_length)
    assert facts["missing"] == {"c": "why"}
