"""Advice around a training."""

import pytest

from heedful.config.base import parse_overrides
from heedful.tasks.advice import FEW_PAIRS, MEASURED, expectation, label_verdict, named_sections, reasons, verdict


@pytest.mark.parametrize(("units", "kind"), [("characters", "rnnsearch"), ("pieces", "transformer")])
def test_a_choice_has_a_reason_and_another_way(units: str, kind: str):
    lines = reasons(units, kind, 12_345, 3.0)  # type: ignore[arg-type]
    assert lines.keys() == {"text", "model"}
    for line in lines.values():
        assert line.startswith("chosen: ")
        assert "because" in line
        assert "; otherwise: --" in line
    assert units in lines["text"]
    assert kind in lines["model"]


def test_phones_are_named():
    lines = reasons("characters", "hard_attention", 800, 0.0, are_pronunciations=True)
    assert "because the targets are pronunciations" in lines["text"]
    assert "pronunciations from the fewest words" in lines["model"]


def test_the_users_own_choice_needs_no_reason():
    assert named_sections({}, "") == set()
    assert named_sections({}, "tiny") == {"model"}
    assert named_sections(parse_overrides(["model.dropout=0.2", "text.source_units=words"]), "") == {"model", "text"}
    assert named_sections(parse_overrides(["text.max_tokens=9", "training.seed=2"]), "") == set()


def test_the_nearest_measured_corpus_is_named():
    assert "75,000 pairs of dates" in expectation("characters", 60_000)
    assert "130,000 pairs of English words" in expectation("characters", 200_000, True)
    assert "800 pairs of words" in expectation("characters", 900, True)
    assert expectation("characters", 300, True).startswith("expect little: from 300 pairs")
    assert "5,262 pairs of Spanish-English speeches" in expectation("pieces", 4_000)
    assert "29,000 pairs" in expectation("words", 1_000_000)
    assert all(
        one.num_pairs > FEW_PAIRS for name, corpora in MEASURED.items() for one in corpora if name != "pronunciations"
    )
    assert expectation("pieces", 20).startswith("expect little: from 20 pairs")
    assert "headlines reached ROUGE-L" in expectation("pieces", 9_000, are_summaries=True)


def test_a_poor_result_says_what_would_help_most():
    rising = verdict("BLEU 4.00", True, 1.0, "3 minutes", 20_000)
    assert rising.startswith("result: poor, BLEU 4.00 on validation; most help would come from more time")
    assert "at the end, after 3 minutes; the same command" in rising
    by_heart = verdict("BLEU 4.00", True, 1.0, "", 90, items="the training pairs")
    assert by_heart.startswith("result: poor, BLEU 4.00 on the training pairs; most help")
    stalled = verdict("BLEU 4.00", True, 0.5, "", 20_000)
    assert stalled.startswith("result: poor, BLEU 4.00 on validation; most help would come from more pairs: 20,000")
    assert "more pairs" in verdict("BLEU 4.00", True, 1.0, "3 minutes", 20)  # by heart sooner or later
    assert "more time" in verdict("accuracy 0.00 %", True, 1.0, "3 minutes", 900, num_epochs=0.5)
    assert "more pairs" in verdict("accuracy 0.00 %", True, 1.0, "3 minutes", 900, num_epochs=40.0)
    begun = verdict("BLEU 0.26", True, 0.6, "1 minute", 9_499, num_epochs=0.2)
    assert begun.startswith("result: poor, BLEU 0.26 on validation; most help would come from more time: it ended ")
    assert "after 1 minute, less than one epoch; the same command with a larger limit continues" in begun
    assert "8 steps, less than one epoch;" in verdict("BLEU 0.26", True, 0.6, "8 steps", 9_499, num_epochs=0.97)
    assert verdict("BLEU 40.00", False, 1.0, "3 minutes", 20_000).startswith("result: still improving; most help")
    assert verdict("BLEU 40.00", False, 0.5, "3 minutes", 20_000) == ""
    assert verdict("BLEU 40.00", False, 1.0, "", 20_000) == ""


def test_a_classifier_is_judged_by_its_baselines():
    assert label_verdict(95.0, 95.0, 97.0, 2_000, 2).startswith("result: no better than a baseline, accuracy 95.00 %")
    below = label_verdict(96.0, 95.0, 97.0, 2_000, 2)
    assert below.startswith("result: below a baseline, accuracy 96.00 %")
    assert "n-grams alone have 97.00 %" in below
    above = label_verdict(98.0, 95.0, 97.0, 2_000, 2)
    assert above.startswith("result: accuracy 98.00 %")
    assert "more texts" not in above
    assert "more texts would help most: 5 a label" in label_verdict(60.0, 2.0, 55.0, 385, 77)
    assert "more texts" not in label_verdict(60.0, 2.0, 55.0, 38_500, 77)


def test_several_labels_are_judged_by_the_measure_of_the_result():
    verdict = label_verdict(81.0, 30.5, 79.25, 1000, 10, "micro_f1")
    assert verdict == (
        "result: micro-F1 81.00 % on validation; the most frequent labels alone have 30.50 %, "
        "n-grams alone have 79.25 %"
    )


def test_a_training_that_a_limit_ended_needs_time_before_texts():
    short = "after 15 steps, 3.0 epochs"
    for best in (60.0, 30.0):
        assert f"it ended {short}; the same command with" in label_verdict(best, 30.0, 55.0, 385, 77, short=short)
    assert "check that labels follow" in label_verdict(30.0, 30.0, 55.0, 385, 77)


def test_few_texts_of_other_labels_are_named_where_one_has_nearly_all():
    uneven = label_verdict(95.0, 95.0, 95.0, 200, 2)
    assert "few texts have another label" in uneven
    assert "check that labels" not in uneven
    assert "few texts have another label" not in label_verdict(50.0, 50.0, 50.0, 200, 2)


def test_advice_names_what_the_task_learns_from():
    assert "more questions: 243 are too few" in verdict("accuracy 10.00 %", True, 0.5, "", 243, examples="questions")
