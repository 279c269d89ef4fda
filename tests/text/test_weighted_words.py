"""Words of documents with their weights."""

import pytest

from heedful.text.weighted_words import weighted_sentences


@pytest.mark.parametrize(
    ("pieces", "text", "words"),
    [
        (["▁good", "ly", "▁day", "</s>", "▁bye", "</s>"], "goodly day bye", [["good" + "ly", " day", ""], ["bye", ""]]),
        (["good", "day", "<eos>"], "good day", [["good", " day", ""]]),
        (["<unk>", "good", "day", "<eos>"], "a good day", [["<unk>", " good", " day", ""]]),
        (["好", "酒", "<eos>"], "好酒", [["好", "酒", ""]]),
        (["a", "b", " ", "a", " ", "b", "<eos>"], "ab a b", [["a", "b", " ", "a", " ", "b", ""]]),
        (["▁cut"], "cut", [["cut"]]),
        (["▁a", "<0xE7>", "<0x94>", "<0xB5>", "▁b"], "a电 b", [["a", "电", " b"]]),
    ],
)
def test_pieces_are_joined_to_words_and_sentences(pieces: list[str], text: str, words: list[list[str]]):
    weights = [0.1 * (1 + index) for index in range(len(pieces))]
    sentences = [*weighted_sentences(pieces, weights, text)]
    assert [[word for word, _ in sentence] for sentence in sentences] == words
    assert sum(weight for sentence in sentences for _, weight in sentence) == pytest.approx(sum(weights))
