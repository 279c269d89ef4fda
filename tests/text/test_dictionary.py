"""A dictionary counted from links, on disk and in use."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import DataError, ShapeError, UsageError
from heedful.text.dictionary import Dictionary, Entry, learn_dictionary, replace_unknown
from heedful.text.links import Links
from heedful.text.word_alignment import Pair, align_pairs


def pairs_of(*lines: str) -> list[Pair]:
    return [(source.split(), target.split()) for source, target in (line.split("|") for line in lines)]


PAIRS = pairs_of("das Haus | the house", "das Buch | the book", "ein Buch | a book")


def test_the_most_frequent_link_is_the_translation():
    pairs = [(["x", "y"], ["a", "b", "c"])] * 3
    links: list[Links] = [[(0, 0), (0, 1), (1, 2)], [(0, 1)], [(0, 1), (1, 0), (1, 2)]]
    learned = learn_dictionary(pairs, links)
    assert learned.entries == {"x": Entry("b", 3 / 4, 3), "y": Entry("c", 2 / 3, 2)}
    assert set(learn_dictionary(pairs, links, min_count=3).entries) == {"x"}


def test_equally_frequent_translations_go_by_code_point():
    pairs = [(["x"], ["b"]), (["x"], ["a"]), (["x"], ["B"])]
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        learned = learn_dictionary([pairs[place] for place in order], [[(0, 0)]] * 3, min_count=1)
        assert learned.entries == {"x": Entry("B", 1 / 3, 1)}


def test_words_that_no_table_can_hold_are_left_out():
    bad = ["", "a\tb", "a\n", "\r", "\0", "\ufeffx", "\ud800"]
    pairs = [([word, "x"], ["y", word]) for word in bad]
    learned = learn_dictionary([*pairs, (["x"], ["y"])], [[(0, 0), (1, 1)]] * len(bad) + [[(0, 0)]], min_count=1)
    assert set(learned.entries) <= {"x"}
    for word in bad:
        for entries in ({word: Entry("y", 1.0, 1)}, {"x": Entry(word, 1.0, 1)}):
            with pytest.raises(DataError, match="is empty or has a character that no table can hold"):
                Dictionary(entries)


def test_what_cannot_be_learned_from_is_refused():
    with pytest.raises(DataError, match="2 pairs have 1 alignments"):
        learn_dictionary([(["x"], ["y"])] * 2, [[(0, 0)]])
    for link in ((1, 0), (0, 1), (-1, 0), (0, -1)):
        with pytest.raises(
            DataError, match=rf"pair 2: link {link[0]}-{link[1]} leads out of its 1 source and 1 target"
        ):
            learn_dictionary([(["x"], ["y"])] * 2, [[(0, 0)], [link]])
    with pytest.raises(UsageError, match="min_count must be 1 or more, got 0"):
        learn_dictionary([], [], 0)
    assert len(learn_dictionary([], [])) == 0


@pytest.mark.parametrize(("probability", "count"), [(0.0, 1), (1.1, 1), (float("nan"), 1), (0.5, 0)])
def test_numbers_out_of_range_are_refused(probability: float, count: int):
    with pytest.raises(DataError, match="'x' has probability"):
        Dictionary({"x": Entry("y", probability, count)})


def test_what_is_not_in_it_stays_as_it_is():
    dictionary = Dictionary({"Haus": Entry("house", 1.0, 3)})
    assert [dictionary.translate(word) for word in ("Haus", "haus", "Meyer")] == ["house", "haus", "Meyer"]
    assert ("Haus" in dictionary, "house" in dictionary, len(dictionary)) == (True, False, 1)


WORD = st.text(st.characters(exclude_characters="\t\n\r\0\ufeff", exclude_categories=["Cs"]), min_size=1, max_size=4)
ENTRY = st.builds(Entry, WORD, st.floats(0, 1, exclude_min=True), st.integers(1, 10**9))


@settings(max_examples=60)
@given(st.dictionaries(WORD, ENTRY, max_size=5), st.booleans())
def test_dictionaries_round_trip(tmp_path_factory: pytest.TempPathFactory, entries: dict[str, Entry], packed: bool):
    path = tmp_path_factory.getbasetemp() / "dictionary"
    Dictionary(entries).save(path)
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    assert Dictionary.load(path).entries == entries


def test_what_is_saved(tmp_path: Path):
    path = tmp_path / "d.tsv"
    Dictionary({"b": Entry("z", 0.1, 7), "a": Entry("我", 2 / 3, 2)}).save(path)
    assert path.read_bytes() == "#heedful dictionary 1\na\t我\t0.6666666666666666\t2\nb\tz\t0.1\t7\n".encode()
    assert [child.name for child in tmp_path.iterdir()] == ["d.tsv"]


def test_a_dictionary_written_by_hand(tmp_path: Path):
    (tmp_path / "d").write_bytes(b"Haus\thouse\r\nein Wort\ttwo words\n")
    loaded = Dictionary.load(tmp_path / "d")
    assert loaded.entries == {"Haus": Entry("house", 1.0, 1), "ein Wort": Entry("two words", 1.0, 1)}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x", "1 column; expected source, target, probability and count"),
        ("", "1 column; expected"),
        ("x\ty\t1", "3 columns; expected"),
        ("x\ty\t1\t1\t1", "5 columns; expected"),
        ("a\tz", "'a' has a translation already; keep one"),
        ("x\t", "dictionary: the word '' is empty"),
        ("\ty", "dictionary: the word '' is empty"),
        ("x\ty\thigh\t1", "['high', '1'] is no probability and count"),
        ("x\ty\t1\t1.5", "['1', '1.5'] is no probability and count"),
        ("x\ty\t2\t1", "dictionary: 'x' has probability 2.0 and count 1; expected"),
        ("x\ty\tnan\t1", "dictionary: 'x' has probability nan"),
        ("x\ty\t1\t-1", "dictionary: 'x' has probability 1.0 and count -1"),
        ("x\ty\t1\t" + "9" * 5000, "['1', '999"),
    ],
)
def test_faults_are_named_with_their_line(tmp_path: Path, line: str, message: str):
    path = tmp_path / "d"
    path.write_bytes(f"a\tb\t1\t1\n{line}\nc\td\t1\t1\n".encode())
    with pytest.raises(DataError) as caught:
        Dictionary.load(path)
    assert str(caught.value).startswith(f"{path}:2: {message}")


@settings(max_examples=100)
@given(
    st.one_of(
        st.binary(max_size=40),
        st.lists(st.sampled_from(["x", "é", "\t", "\n", "1", "0.5", "nan", "-", "\r"])).map(
            lambda parts: "".join(parts).encode()
        ),
    )
)
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes):
    path = tmp_path_factory.getbasetemp() / "fuzzed"
    path.write_bytes(content)
    try:
        Dictionary.load(path)
    except DataError as error:
        message = str(error)
    else:
        message = f"{path}:"
    assert message.startswith(f"{path}:")
    assert "\n" not in message


# What replaces unknown words.
DICTIONARY = Dictionary({"Haus": Entry("house", 1.0, 3), "im": Entry("in", 0.5, 1)})


def test_unknown_words_are_translated_or_copied():
    weights = np.array([[0.6, 0.4, 0, 0], [0.1, 0.2, 0.7, 0], [0.1, 0.5, 0.4, 0], [0, 0, 1, 0]])
    source = ["im", "Haus", "Meyer"]
    replaced = replace_unknown(["<unk>", "<unk>", "<unk>", "."], weights, source, DICTIONARY)
    assert replaced == ["in", "Meyer", "house", "."]
    assert replace_unknown(["<unk>", "?"], weights, source, DICTIONARY, unknown="?") == ["<unk>", "Meyer"]
    assert replace_unknown(["<unk>"], weights, source, Dictionary({})) == ["im"]


def test_end_marks_are_nothing_to_translate():
    # The last column is the source's end mark, the last row the target's.
    weights = np.array([[0.1, 0.3, 0.6], [0.4, 0.3, 0.3], [0.0, 0.0, 1.0]])
    assert replace_unknown(["<unk>", "<unk>"], weights, ["im", "Haus"], DICTIONARY) == ["house", "in"]


def test_a_word_that_attends_to_nothing_stays_unknown():
    assert replace_unknown(["<unk>", "x"], np.array([[0, 0, 1.0], [1, 0, 0]]), ["a", "b"], DICTIONARY) == ["<unk>", "x"]
    assert replace_unknown(["<unk>"], np.zeros((1, 1)), [], DICTIONARY) == ["<unk>"]
    assert replace_unknown([], np.zeros((0, 3)), ["a"], DICTIONARY) == []


def test_weights_too_small_are_refused():
    with pytest.raises(ShapeError, match=r"shape \[1, 2\]; expected at least \[2, 2\]"):
        replace_unknown(["x", "y"], np.ones((1, 2)), ["a", "b"], DICTIONARY)


# IBM model 1.
def test_a_dictionary_from_real_pairs_alone(corpora: Path):
    sides: list[list[list[str]]] = []
    for language in ("de", "en"):
        text = (corpora / "multi30k" / f"train.{language}").read_text("utf-8").lower()
        lines = text.replace(".", " .").replace(",", " ,").split("\n")[:3000]
        sides.append([line.split() for line in lines])
    pairs = list(zip(*sides, strict=True))
    learned = learn_dictionary(pairs, align_pairs(pairs))
    expected = {"hund": "dog", "frau": "woman", "und": "and", "roten": "red", "gitarre": "guitar", "zwei": "two"}
    assert {word: learned.translate(word) for word in expected} == expected
    assert len(learned) > 800
