import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import DataError, UsageError
from heedful.evaluation.evaluate import compare, evaluate, quick_scores
from heedful.evaluation.interface import corpus_score
from heedful.evaluation.metrics.table import METRICS
from tests.evaluation.corpus import HYPOTHESES, REFERENCES, SOURCES, WORSE


def test_scores_are_those_of_sacrebleus_command_line(tmp_path: Path):
    Path(tmp_path, "hyp").write_text("".join(f"{text}\n" for text in HYPOTHESES), encoding="utf-8", newline="\n")
    Path(tmp_path, "ref").write_text("".join(f"{texts[0]}\n" for texts in REFERENCES), encoding="utf-8", newline="\n")
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        "ref",
        "-i",
        "hyp",
        "-m",
        "bleu",
        "chrf",
        "ter",
        "-w",
        "9",
        "-f",
        "text",
    ]
    printed = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    report = evaluate(HYPOTHESES, [texts[:1] for texts in REFERENCES], SOURCES, ("bleu", "chrf", "ter"))
    for result in report.results:
        assert f"{result.metric.name}|{result.signature} = {result.score:.9f}" in printed


def test_all_metrics_in_the_order_asked():
    keys = list(METRICS)[::-1]
    report = evaluate(HYPOTHESES, REFERENCES, SOURCES, keys, num_resamples=20)
    assert [result.key for result in report.results] == keys
    for result in report.results:
        assert result.score == corpus_score(result.metric, result.statistics)
        assert result.interval.low <= result.score <= result.interval.high
    assert (report.num_items, report.num_references) == (6, 10)


def test_a_metric_asked_twice_is_measured_once():
    report = evaluate(["a"], [["a"]], ["x"], ("exact_match", "bleu", "exact_match"), num_resamples=1)
    assert [result.key for result in report.results] == ["exact_match", "bleu"]


def test_options_reach_the_metrics():
    report = evaluate(HYPOTHESES, REFERENCES, SOURCES, ("bleu", "exact_match"), "de", True, "none", num_resamples=1)
    assert "|case:lc|eff:no|tok:none|" in report["bleu"].signature
    assert "|case:lc|" in report["exact_match"].signature


def test_seed_and_resamples_reach_the_intervals():
    one, same, other = (
        evaluate(HYPOTHESES, REFERENCES, SOURCES, ("bleu",), num_resamples=5, seed=seed) for seed in (1, 1, 2)
    )
    assert one["bleu"].interval == same["bleu"].interval != other["bleu"].interval
    assert (one.num_resamples, one.seed) == (5, 1)


def test_length_edges():
    report = evaluate(HYPOTHESES, REFERENCES, SOURCES, ("exact_match",), length_edges=[4, 9])
    assert [bucket.label for bucket in report["exact_match"].by_length] == ["1-3", "4-8", "9-10"]
    even = evaluate(HYPOTHESES * 10, REFERENCES * 10, SOURCES * 10, ("exact_match",), num_resamples=1)
    assert [bucket.num_items for bucket in even["exact_match"].by_length] == [10, 10, 10, 10, 20]


def test_single_words_are_measured_in_characters():
    report = evaluate(["K AE T", "D AO G Z"], [["K AE T"], ["D AO G"]], ["cat", "dogs"], ("exact_match",))
    assert report.length_unit == "characters"
    assert report["exact_match"].by_length[0].label == "3-4"


@pytest.mark.parametrize("language", ["zh-CN", ""])
def test_chinese_bleu_says_how_it_was_split(language: str):
    report = evaluate(["今天天气好"], [["今天天气很好"]], ["good weather today"], ("bleu", "ter"), language)
    assert "|tok:zh|" in report["bleu"].signature
    assert "|asian:yes|" in report["ter"].signature
    assert report.notes[0].startswith("BLEU splits words with the tokenizer zh, because the ")
    assert report["bleu"].score > 0


@pytest.mark.parametrize(
    ("hypotheses", "references", "note"),
    [
        (["", "b"], [["a"], ["b"]], "1 of 2 hypotheses are empty"),
        (["a", "b"], [["a", " "], ["b"]], "1 of 2 items have an empty reference"),
        (["a .", "b ."], [["a ."], ["b ."]], "the hypotheses look tokenised"),
        (["\u00e9", "b"], [["e\u0301"], ["b"]], "1 hypotheses equal a reference but for the Unicode form"),
    ],
)
def test_notes(hypotheses: list[str], references: list[list[str]], note: str):
    notes = evaluate(hypotheses, references, ["x", "y"], num_resamples=1).notes
    assert len(notes) == 1
    assert notes[0].startswith(note)


def test_ordinary_texts_need_no_note():
    assert evaluate(["a b.", "c"], [["a b."], ["d"]], ["x", "y"], num_resamples=1).notes == ()
    assert evaluate(["a ."], [["a ."]], ["x"], tokenizer="none", num_resamples=1).notes == (
        "BLEU splits words with the tokenizer none, because it was asked for",
    )


@pytest.mark.parametrize(
    ("metrics", "message"),
    [((), "no metric given"), ("bleu", "must be a list of names"), (("blue",), "did you mean 'bleu'")],
)
def test_bad_metrics_are_refused(metrics: Any, message: str):
    with pytest.raises(UsageError, match=message):
        evaluate(["a"], [["a"]], ["x"], metrics)


def test_transposed_references_are_refused():
    transposed = [[texts[0] for texts in REFERENCES]]
    with pytest.raises(DataError, match="transposed"):
        evaluate(HYPOTHESES, transposed, SOURCES)
    with pytest.raises(DataError, match="transposed"):
        quick_scores(HYPOTHESES, transposed)


def test_quick_scores_are_the_reports():
    keys = ("bleu", "chrf", "exact_match")
    assert quick_scores(HYPOTHESES, REFERENCES) == evaluate(HYPOTHESES, REFERENCES, SOURCES, keys).scores()
    chinese = (["今天天气好"], [["今天天气很好"]])
    assert quick_scores(*chinese, "zh")["bleu"] == evaluate(*chinese, ["x"], keys)["bleu"].score
    assert quick_scores(["A"], [["a"]], lowercase=True)["exact_match"] == 100


def test_compare_takes_the_metrics_both_have():
    good = evaluate(HYPOTHESES, REFERENCES, SOURCES, ("chrf", "bleu"), num_resamples=1)
    bad = evaluate(WORSE, REFERENCES, SOURCES, ("bleu", "exact_match"), num_resamples=1)
    (found,) = compare(good, bad, num_resamples=50, seed=3)
    assert (found.metric, found.score, found.baseline_score) == ("BLEU", good["bleu"].score, bad["bleu"].score)
    assert (found.num_resamples, found.seed) == (50, 3)


def test_compare_refuses_other_items():
    good = evaluate(HYPOTHESES, REFERENCES, SOURCES, num_resamples=1)
    bad = evaluate(WORSE[::-1], REFERENCES[::-1], SOURCES[::-1], num_resamples=1)
    with pytest.raises(DataError, match="not evaluated on the same sources and references"):
        compare(good, bad)


def test_compare_refuses_other_definitions():
    good = evaluate(HYPOTHESES, REFERENCES, SOURCES, ("bleu",), num_resamples=1)
    bad = evaluate(WORSE, REFERENCES, SOURCES, ("bleu",), lowercase=True, num_resamples=1)
    with pytest.raises(UsageError, match=r"measured in two ways, .*case:mixed.* and .*case:lc"):
        compare(good, bad)
    other = evaluate(WORSE, REFERENCES, SOURCES, ("chrf",), num_resamples=1)
    with pytest.raises(UsageError, match="share no metric"):
        compare(good, other)
