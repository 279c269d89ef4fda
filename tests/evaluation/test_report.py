import json
from dataclasses import replace

import numpy as np
import pytest

from heedful.errors import UsageError
from heedful.evaluation.bootstrap import Difference, Interval
from heedful.evaluation.by_length import Bucket
from heedful.evaluation.interface import Metric
from heedful.evaluation.metrics.error_rate import TokenErrorRate
from heedful.evaluation.metrics.exact_match import ExactMatch
from heedful.evaluation.report import Report, Result, differences_to_text, table


def result(key: str, metric: Metric, score: float, interval: Interval) -> Result:
    buckets = (Bucket(1, 2, 20, score, interval), Bucket(3, 3, 110, 5.0, Interval(0.0, 100.0)))
    return Result(key, metric, score, interval, metric.signature([["a"]]), buckets, np.ones((130, 2)))


REPORT = Report(
    num_items=130,
    num_references=131,
    length_unit="words",
    results=(
        result("exact_match", ExactMatch(), 50.0, Interval(33.333, 66.666)),
        result("token_error_rate", TokenErrorRate(), 7.125, Interval(6.0, 8.5)),
    ),
    notes=("1 of 130 hypotheses are empty",),
    num_resamples=1000,
    seed=12345,
    items="abc",
)
DIFFERENCE = Difference("BLEU", "points", True, 31.25, 30.0, 1.25, Interval(-0.5, 3.0), 0.1495, 0.93, 130, 1000, 12345)


def test_text():
    assert REPORT.to_text().split("\n") == [
        "130 items, 131 references",
        "",
        "metric              score   95 % interval  best  signature",
        "exact match       50.00 %  [33.33, 66.67]  high  nrefs:1|case:mixed|space:collapsed|heedful:1",
        "token error rate   7.12 %    [6.00, 8.50]  low   nrefs:1|case:mixed|tok:space|ref:closest|heedful:1",
        "",
        "by source length in words",
        "length  items           exact match     token error rate",
        "1-2        20  50.00 [33.33, 66.67]    7.12 [6.00, 8.50]",
        "3         110   5.00 [0.00, 100.00]  5.00 [0.00, 100.00]",
        "",
        "note: 1 of 130 hypotheses are empty",
        "",
    ]


def test_text_has_no_table_of_one_range():
    single = replace(REPORT.results[0], by_length=REPORT.results[0].by_length[:1])
    text = replace(REPORT, results=(single,), num_items=1, num_references=1, notes=()).to_text()
    assert text.startswith("1 item, 1 reference\n")
    assert text.endswith("|heedful:1\n")


def test_json():
    plain = json.loads(json.dumps(REPORT.to_dict(), allow_nan=False))
    assert set(plain) == set(vars(REPORT))
    assert (plain["num_items"], plain["num_references"], plain["length_unit"]) == (130, 131, "words")
    assert (plain["num_resamples"], plain["seed"], plain["items"]) == (1000, 12345, "abc")
    assert plain["notes"] == ["1 of 130 hypotheses are empty"]
    assert plain["results"][1] == {
        "metric": "token_error_rate",
        "name": "token error rate",
        "score": 7.125,
        "low": 6.0,
        "high": 8.5,
        "unit": "%",
        "higher_is_better": False,
        "signature": "nrefs:1|case:mixed|tok:space|ref:closest|heedful:1",
        "by_length": [
            {"shortest": 1, "longest": 2, "num_items": 20, "score": 7.125, "low": 6.0, "high": 8.5},
            {"shortest": 3, "longest": 3, "num_items": 110, "score": 5.0, "low": 0.0, "high": 100.0},
        ],
    }


def test_results_by_key():
    assert REPORT["token_error_rate"].score == 7.125
    assert REPORT.scores() == {"exact_match": 50, "token_error_rate": 7.125}
    with pytest.raises(UsageError, match="no 'bleu' in this report; known: exact_match, token_error_rate"):
        REPORT["bleu"]


def test_reports_are_equal_whatever_the_statistics():
    other = replace(REPORT.results[0], statistics=np.zeros((130, 2)))
    assert replace(REPORT, results=(other, REPORT.results[1])) == REPORT


def test_differences_as_text():
    lower = replace(DIFFERENCE, metric="TER", higher_is_better=False, difference=-10.5, p_value=0.0009)
    assert differences_to_text([DIFFERENCE, lower]).split("\n") == [
        "metric  score  baseline  difference  95 % interval      p  verdict",
        "BLEU    31.25     30.00       +1.25  [-0.50, 3.00]  0.149  undecided",
        "TER     31.25     30.00      -10.50  [-0.50, 3.00]  0.001  better",
        "",
    ]


def test_text_is_ascii_without_trailing_blanks():
    for line in (REPORT.to_text() + differences_to_text([DIFFERENCE])).split("\n"):
        assert line.isascii()
        assert line == line.rstrip()


def test_table_of_a_head_only():
    assert table([("a", "b")]) == "a  b\n"
