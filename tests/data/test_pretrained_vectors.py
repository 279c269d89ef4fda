from pathlib import Path

import numpy as np
import pytest

from heedful.data.encoded import EncodedSide
from heedful.data.pretrained_vectors import check_vectors, read_pretrained, vectors_file
from heedful.errors import ConfigError, DataError
from heedful.text.tokenizer import TextConfig, UnitTokenizer
from heedful.text.vocabulary import Vocabulary

WORDS = UnitTokenizer(Vocabulary.build([["the", "the", "the", "House", "House", "xyz"]]), "words", "NFC")
TEXT = "3 2\nthe 1 2\nhouse 3 4\nother 5 6\n"


def config(path: Path, **changes: object) -> TextConfig:
    units = {"source_units": "words", "target_units": "words"}
    return TextConfig(**{**units, "source_vectors": str(path), **changes})  # type: ignore[arg-type]


def test_vectors_come_to_the_places_of_their_words(tmp_path: Path):
    path = tmp_path / "some.vec"
    path.write_bytes(TEXT.encode())
    corpus = EncodedSide.of([WORDS.encode(text) for text in ("the House the", "the xyz nobody the", "the")])
    found = read_pretrained(config(path), "source", WORDS, corpus, 3)
    tokens = WORDS.vocabulary.tokens
    assert found.rows.shape == (len(tokens), 2)
    assert found.rows[tokens.index("the")].tolist() == [1, 2]
    assert found.rows[tokens.index("House")].tolist() == [3, 4]  # of house
    assert np.isfinite(found.rows).all()
    assert (found.side, found.path, found.is_frozen) == ("source", path, False)
    assert str(found) == (
        "some.vec, tuned: vectors for 1 of 3 words (33.3 %), 71.4 % of running words, "
        "14.3 % more (1) by another case; without: xyz"
    )
    again = read_pretrained(config(path, vectors="frozen"), "source", WORDS, corpus, 3)
    assert np.array_equal(again.rows, found.rows)
    assert again.is_frozen
    assert str(again).startswith("some.vec, frozen: ")
    other = read_pretrained(config(path), "source", WORDS, corpus, 4)
    assert not np.array_equal(other.rows, found.rows)


def test_a_repeated_word_takes_its_first_vector(tmp_path: Path):
    path = tmp_path / "some.vec"
    path.write_bytes(b"the 1 2\nxyz 3 4\nthe 5 6\n")
    found = read_pretrained(config(path), "source", WORDS, EncodedSide.of([[4]]), 0)
    assert found.rows[WORDS.vocabulary.tokens.index("the")].tolist() == [1, 2]


def test_no_word_found_names_the_file(tmp_path: Path):
    path = tmp_path / "some.vec"
    path.write_bytes(b"1 2\nother 5 6\n")
    with pytest.raises(DataError, match=r"some\.vec: none of 7 words has a vector"):
        read_pretrained(config(path), "source", WORDS, EncodedSide.of([[4]]), 0)


def test_what_can_be_refused_before_any_work(tmp_path: Path):
    path = tmp_path / "some.vec"
    path.write_bytes(b"\x00\x01binary")
    check_vectors(TextConfig())
    check_vectors(config(path))
    with pytest.raises(ConfigError, match=r"source_vectors: pieces have no vectors; set text\.source_units = words"):
        check_vectors(config(path, source_units="pieces"))
    with pytest.raises(DataError, match=r"some\.vek: no such file"):
        check_vectors(config(path.with_suffix(".vek")))
    target = config(path, source_vectors="", target_vectors=str(path))
    assert (vectors_file(target, "source"), vectors_file(target, "target")) == ("", str(path))
    with pytest.raises(ConfigError, match=r"text\.target_vectors: pieces"):
        check_vectors(target.model_copy(update={"target_units": "pieces"}))
