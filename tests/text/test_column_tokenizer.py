"""Tokenizer of columns: lossless, features whole, whatever the units of the texts."""

import json
from functools import partial
from pathlib import Path
from typing import get_args

import pytest

from heedful.errors import DataError, FileRefused
from heedful.text.column_tokenizer import ColumnTokenizer
from heedful.text.tokenizer import TextConfig, Units
from heedful.text.tokenizer_files import load_tokenizer
from heedful.text.tokenizer_training import train_tokenizer
from heedful.text.vocabulary import EOS, UNK

SOURCES = [
    f"{word} | {tags}" for word in ("an gehen", "V", "stehen") for tags in ("V;PRS;SG", "V;NOM(PL;PSS(1,PL))")
] * 9
SIZES = {"pieces": 280, "characters": 0, "words": 0}


def trained(units: Units) -> ColumnTokenizer:
    train = partial(train_tokenizer, units=units, size=SIZES[units], config=TextConfig(source_units=units))
    return ColumnTokenizer.train(SOURCES, ("text", "features"), "NFC", train)


def test_every_source_comes_back_and_features_are_whole(tmp_path: Path):
    for units in get_args(Units):
        tokenizer = trained(units)
        path = tmp_path / tokenizer.save(tmp_path, f"source-{units}")
        again = load_tokenizer(path, units, "NFC")
        assert len(again) == len(tokenizer)
        for text in SOURCES:
            ids = tokenizer.encode(text)
            assert ids == again.encode(text) == tokenizer.encode(text.replace(" | ", "\t"))
            assert again.decode([*ids, EOS]) == text
            tags = text.split(" | ")[1].split(";")
            assert tokenizer.pieces(ids)[-len(tags) :] == tags
            assert tokenizer.unknown_features(text) == []
            assert UNK not in ids
            assert max(ids) < len(tokenizer)
            words = [one for one in text.split(" ") if one]
            assert sorted({*tokenizer.word_indices(ids)}) == [*range(len(words))]
            if units != "pieces":
                pieces = zip(tokenizer.pieces(ids), tokenizer.ranges(text), strict=True)
                assert all(piece in text[first:last] for piece, (first, last) in pieces)


def test_a_letter_is_no_feature():
    tokenizer = trained("characters")
    letter, separator, feature, *_ = tokenizer.encode("V | V;SG")
    assert letter != feature
    assert tokenizer.pieces([letter, separator, feature]) == ["V", "|", "V"]


def test_other_columns_are_refused_and_other_features_unknown():
    tokenizer = trained("characters")
    for text, number in (
        ("gehen", "1 column"),
        ("gehen | ", "1 column"),
        ("a | b | c", "3 columns"),
        ("a\tb\tc", "3 columns"),
    ):
        with pytest.raises(DataError, match=f"has {number}; the model reads 2: text | features") as caught:
            tokenizer.encode(text)
        assert "\n" not in str(caught.value)
    assert tokenizer.unknown_features("gehen | V;DU;SG;DU") == ["DU"]
    assert tokenizer.encode("gehen | V;DU")[-1] == UNK
    assert tokenizer.normalize("gehen") == "gehen"  # whatever is looked up, such as a correction
    assert tokenizer.normalize("gehen\tV") == "gehen | V"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("columns", ["text"]),
        ("columns", ["text", "speech"]),
        ("features", ["V", "V"]),
        ("features", [1]),
        ("text", ["a", "b"]),
        ("text", "AAAA"),
        ("text", None),
        ("format", "x"),
    ],
)
def test_damaged_files_are_refused(key: str, value: object, tmp_path: Path):
    path = tmp_path / trained("characters").save(tmp_path, "source")
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {key: value}), encoding="utf-8")
    with pytest.raises(FileRefused, match=str(path)) as caught:
        load_tokenizer(path, "characters", "NFC")
    assert "\n" not in str(caught.value)
