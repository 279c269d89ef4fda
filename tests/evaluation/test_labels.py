"""Scores of labels, against scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, precision_score, recall_score

from heedful.errors import DataError
from heedful.evaluation.label_sets import score_sets
from heedful.evaluation.labels import UnseenLabels, score_labels
from heedful.text.label_sets import joined_labels, split_labels


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_scikit_learn(seed: int):
    generator = np.random.default_rng(seed)
    names = [chr(97 + number) for number in range(seed + 2)]
    gold, said = (generator.choice(names, 50).tolist() for _ in range(2))
    report = score_labels(said, gold)
    assert report.accuracy == pytest.approx(100 * accuracy_score(gold, said))
    assert report.macro_f1 == pytest.approx(100 * f1_score(gold, said, average="macro", zero_division=0))
    labels = [score.label for score in report.by_label]
    for measure, values in (
        (precision_score, [score.precision for score in report.by_label]),
        (recall_score, [score.recall for score in report.by_label]),
    ):
        wanted = measure(gold, said, average=None, labels=labels, zero_division=0)
        assert values == pytest.approx((100 * wanted).tolist())
    low, high = report.interval
    assert 0.0 <= low < report.accuracy < high <= 100.0


def test_a_label_that_is_never_right_counts():
    report = score_labels(["a", "a"], ["a", "unseen"])
    assert report.accuracy == 50.0
    assert [round(score.f1, 1) for score in report.by_label] == [66.7, 0.0]
    assert "unseen" in report.to_text()
    assert report.to_dict()["labels"][1]["recall"] == 0.0
    assert "macro-F1 33.33 %" in report.summary()


@pytest.mark.parametrize(("said", "gold"), [([], []), (["a"], ["a", "b"])])
def test_what_does_not_belong_together_is_refused(said: list[str], gold: list[str]):
    with pytest.raises(DataError, match="predicted labels"):
        score_labels(said, gold)


def test_the_confusion_matrix_is_that_of_scikit_learn():
    generator = np.random.default_rng(3)
    gold, said = (generator.choice(["a", "b", "长标签长标签", "d"], 50).tolist() for _ in range(2))
    report = score_labels(said, gold)
    labels = [score.label for score in report.by_label]
    wanted = confusion_matrix(gold, said, labels=labels)
    assert report.confusion == tuple(map(tuple, wanted.tolist()))
    assert report.to_dict()["confusion"] == wanted.tolist()
    assert report.right == tuple(one == other for one, other in zip(gold, said, strict=True))
    *_, head, first, _, _, _ = report.to_text().splitlines()
    assert head.split() == ["a", "b", "d", "长标签长标"]
    assert [int(cell) for cell in first.split()[1:]] == wanted[0].tolist()


def test_a_matrix_too_wide_for_a_terminal_is_left_to_json():
    labels = [f"label {number}" for number in range(30)]
    report = score_labels(labels, labels)
    assert "predicted label" not in report.to_text()
    assert len(report.to_dict()["confusion"]) == 30


def test_the_most_frequent_label_alone_stands_beside_the_accuracy():
    report = score_labels(["a", "a", "b", "b"], ["a", "a", "a", "b"])
    assert (report.accuracy, report.majority, report.to_dict()["majority"]) == (75.0, 75.0, 75.0)
    assert "; the most frequent label of these texts alone has 75.00 %\n" in report.summary()
    assert "; the most frequent label of these texts alone has 75.00 %\n" in report.to_text()


def test_labels_that_are_never_predicted_are_named():
    report = score_labels(["ham"] * 4, ["ham", "spam", "ham", "junk"])
    assert report.never_predicted == ("junk", "spam")
    assert "never predicted: 'junk', 'spam'" in report.summary()
    assert "never predicted: 'junk', 'spam'" in report.to_text()
    unseen = replace(report, unseen=UnseenLabels.of([["junk"], ["spam"], ["junk"]], ["ham", "spam"]))
    assert unseen.never_predicted == ("spam",)
    for text in (unseen.summary(), unseen.to_text()):
        assert "2 texts with 1 label unseen in training: 'junk'\n" in text
        assert "never predicted: 'spam'\n" in text
    assert unseen.to_dict()["unseen"] == {"labels": ("junk",), "num_items": 2}
    many = UnseenLabels.of([[f"label {number}"] for number in range(9)], [])
    assert many.to_text().endswith("'label 3', 'label 4', and 4 more")
    assert score_labels(["a", "b"], ["b", "a"]).never_predicted == ()
    assert "never" not in score_labels(["a", "b"], ["b", "a"]).summary()


def test_unseen_labels_of_sets_are_told():
    sets = [joined_labels(labels) for labels in (["a", "x"], ["a"], ["b"])]
    report = score_sets([sets[1], sets[1], sets[1]], sets)
    report = replace(report, unseen=UnseenLabels.of(map(split_labels, sets), ["a", "b"]))
    for text in (report.summary(), report.to_text()):
        assert "1 text with 1 label unseen in training: 'x'\n" in text
        assert "never predicted rightly: 'b'\n" in text
