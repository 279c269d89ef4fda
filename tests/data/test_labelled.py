"""Batches of labelled texts."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from heedful.data.batch import Position
from heedful.data.corpus import Pair
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.data.label_batches import LabelSampler, make_label_batch
from heedful.data.labelled import find_labelled
from heedful.data.labelled_texts import LabelledTexts
from heedful.search.inputs import TokenArrays

TEXTS = [[4] * (1 + row % 7) + [3] for row in range(50)]
LABELS = [[row % 3] for row in range(50)]
CORPUS = EncodedCorpus(EncodedSide.of(TEXTS), EncodedSide.of(LABELS))


def test_rows_without_text_or_label_are_left_out():
    pairs = [Pair("a", "x ", 1), Pair(" ", "x", 2), Pair("b", "", 3), Pair("c", "y", 4)]
    texts = LabelledTexts.of([*pairs, Pair("", "", 5)])
    assert texts == LabelledTexts(["a", "c"], ["x", "y"], num_without_text=2, num_without_label=1)
    assert texts[:1] == LabelledTexts(["a"], ["x"], num_without_text=2, num_without_label=1)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"label": "x", "text": "one"}\n'),
        ("a.jsonl", '{"text": "one", "label": "x"}\n'),
        ("a.csv", "label,review\nx,one\n"),
        ("a.tsv", "text\tsentiment\none\tx\n"),
        ("a.tsv", "one\tx\n"),
    ],
)
def test_headings_tell_which_column_has_the_labels(name: str, text: str, tmp_path: Path):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert [pair[:2] for pair in find_labelled([path])] == [("one", "x")]


def test_columns_that_are_chosen_are_not_swapped(tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_text("label,text\nx,one\n", encoding="utf-8")
    assert [pair[:2] for pair in find_labelled([path], ("label", "text"))] == [("x", "one")]
    assert [pair[:2] for pair in find_labelled([path], (2, 1))] == [("one", "x")]


def test_a_batch_is_padded_and_its_parts_no_wider_than_they_need():
    batch = make_label_batch(CORPUS, np.array([0, 2]), TokenArrays)
    ids, lengths, labels = (array.tolist() for array in batch.arrays())
    assert ids == [[4, 3, 0, 0], [4, 4, 4, 3]]
    assert (lengths, labels) == ([2, 4], [0, 2])
    assert (len(batch), batch.num_units, len(batch.arrays())) == (2, 2, 3)
    first = batch.rows(slice(0, 1))
    assert first.arrays()[0].tolist() == [[4, 3]]
    assert first.labels.tolist() == [0]


def test_every_text_comes_once_an_epoch_and_a_position_is_enough_to_go_on():
    sampler = LabelSampler(CORPUS, 24, 3, TokenArrays)
    number = sampler.num_batches(0)
    epoch = list(islice(sampler, number))
    assert sum(len(batch) for batch in epoch) == 50
    assert all(batch.arrays()[0].size <= 24 for batch in epoch)
    assert sampler.position == Position(0, number)
    again = LabelSampler(CORPUS, 24, 3, TokenArrays)
    again.position = Position(0, 2)
    for one, other in zip(epoch[2:], again, strict=False):
        assert one.arrays()[0].tolist() == other.arrays()[0].tolist()
        assert one.labels.tolist() == other.labels.tolist()


@pytest.mark.parametrize(
    "row",
    ['{"text": "one", "label": 1}', '{"id": 7, "label": 1, "text": "one"}', '{"text": "one", "label": "1", "n": 2}'],
)
def test_labels_may_be_whole_numbers(row: str, tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_text(f"{row}\n", encoding="utf-8")
    assert [pair[:2] for pair in find_labelled([path])] == [("one", "1")]


def test_labels_may_be_truth_values(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "one", "label": true}\n{"text": "two", "label": false}\n', encoding="utf-8")
    assert [pair[:2] for pair in find_labelled([path])] == [("one", "true"), ("two", "false")]


def test_headings_of_texts_and_labels_are_recognised_in_every_format(tmp_path: Path):
    labels = ("label", "Category", "v1", "Stars", "Sentiment", "intent", "类别", "情感")
    texts = ("text", "Message", "v2", "SMS", "review_text", "tweet", "内容", "评论")
    for separator, suffix in ((",", "csv"), (";", "csv"), ("\t", "tsv")):
        for names in zip(texts, labels, strict=True):
            for order in ((0, 1), (1, 0)):
                rows = [names, *((f"text {row}", "good" if row % 2 else "bad") for row in range(4))]
                path = tmp_path / f"data.{suffix}"
                lines = (separator.join((row[order[0]], row[order[1]])) for row in rows)
                path.write_bytes("".join(f"{line}\n" for line in lines).encode())
                pairs = [*find_labelled([path])]
                assert [(pair.source, pair.target) for pair in pairs] == rows[1:], (separator, names, order)


def test_rows_of_data_are_no_headings(tmp_path: Path):
    path = tmp_path / "data.tsv"
    for first in ("a text\tlabel", "text\tgood", "message\tspam", "label\tv1", "text\treview"):
        path.write_bytes(f"{first}\nother\tbad\n".encode())
        wanted = 1 if first == "text\treview" else 2  # two headings of any pairs, as before
        assert len([*find_labelled([path])]) == wanted, first
