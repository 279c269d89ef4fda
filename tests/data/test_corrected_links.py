"""Corrected word links: pairs found by their text, words as tokens, and every malformed line."""

from pathlib import Path

import pytest

from heedful.data.corpus_links import link_corpus
from heedful.data.corrected_links import CorrectedLinks
from heedful.data.encoded import EncodedCorpus
from heedful.errors import DataError
from heedful.pages.words import Words
from heedful.text.token_labels import WORD_MARK
from heedful.text.tokenizer import Tokenizer, Units
from tests.data.test_corpus_links import encode, links_of

PAIRS = [
    ("Zwei Hunde spielen.", "Two dogs play."),
    ("我们去公园。", "We go to the park."),
    ("Die Haustür ist zu.", "The front door is closed."),
]


def write(path: Path, *lines: str) -> CorrectedLinks:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return CorrectedLinks(path)


def found(
    units: Units, tmp_path: Path, *lines: str, pairs: list[tuple[str, str]] = PAIRS
) -> tuple[dict[int, set[tuple[int, int]]], EncodedCorpus, tuple[Tokenizer, Tokenizer]]:
    corpus, tokenizers = encode(pairs, (units, units), 300 if units == "pieces" else 0)
    links = write(tmp_path / "links.tsv", *lines).of_corpus(corpus, tokenizers)
    assert all(len({*zip(*each, strict=True)}) == len(each[0]) for each in links.values()), "a link stands twice"
    return {index: set(zip(*each, strict=True)) for index, each in links.items()}, corpus, tokenizers


def test_a_pair_is_found_however_its_words_are_cut(tmp_path: Path):
    links, _, _ = found(
        "characters", tmp_path, "Zwei Hunde spielen .\tTwo dogs play .\t1-1", "我们 去 公园 。\tWe go to the park.\t2-4"
    )
    # Characters, with the space before a word.
    assert links[0] == {(s, t) for s in range(4, 10) for t in range(3, 8)}
    assert links[1] == {(s, t) for s in (3, 4) for t in range(12, 18)}
    assert links.keys() == {0, 1}


@pytest.mark.parametrize("units", ["pieces", "characters"])
def test_words_of_the_page_have_the_tokens_that_the_page_merges(units: Units, tmp_path: Path):
    for index, pair in enumerate(PAIRS):
        sides: list[Words] = []
        _, corpus, tokenizers = found(units, tmp_path, "x\ty\t")
        for side, tokenizer in zip((corpus.source, corpus.target), tokenizers, strict=True):
            ids = side[index].tolist()
            sides.append(Words.of(ids, [piece.replace(" ", WORD_MARK) for piece in tokenizer.pieces(ids)]))
        shown = [["".join(word.split()) for word in side.words[:-1]] for side in sides]
        for left in range(len(shown[0])):
            links, _, _ = found(units, tmp_path, f"{' '.join(shown[0])}\t{' '.join(shown[1])}\t{left}-0")
            wanted = {
                (s, t)
                for s, word in enumerate(sides[0].word_of)
                for t, other in enumerate(sides[1].word_of)
                if (word, other) == (left, 0)
            }
            assert links == {index: wanted}, pair


def test_the_last_of_several_lines_counts_and_no_links_are_links_too(tmp_path: Path):
    pair = "Zwei Hunde spielen .\tTwo dogs play ."
    first, _, _ = found(
        "words", tmp_path, f"{pair}\t0-0", "", f"{pair}\t0-1", pairs=[("Zwei Hunde spielen .", "Two dogs play .")]
    )
    assert first == {0: {(0, 1)}}
    none, _, _ = found("characters", tmp_path, f"{pair}\t")
    assert none == {0: set()}


def test_other_texts_are_not_found(tmp_path: Path):
    links, _, _ = found(
        "characters", tmp_path, "Zwei Hunde spielen .\tTwo dogs slept .\t0-0", "Drei\tTwo dogs play .\t0-0"
    )
    assert links == {}


def test_corrected_links_stand_in_place_of_the_learned_ones(tmp_path: Path):
    pairs = [(f"a{n} b{n}", f"A{n} B{n}") for n in range(4)] * 3
    corpus, tokenizers = encode(pairs, ("words", "words"))
    learned = link_corpus(corpus, tokenizers, tmp_path / "learned")
    corrected = write(tmp_path / "links.tsv", "a1 b1\tA1 B1\t0-1").of_corpus(corpus, tokenizers)
    linked = link_corpus(corpus, tokenizers, tmp_path / "corrected", corrected=corrected)
    for index in range(len(pairs)):
        assert links_of(linked, index) == ({(0, 1)} if index % 4 == 1 else links_of(learned, index))
    assert links_of(learned, 1) != {(0, 1)}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a b", r"links\.tsv:2: 1 column; expected source words, target words and links"),
        ("a\tb\t0-0\tc", r"links\.tsv:2: 4 columns"),
        ("a\tb\t0:0", r"links\.tsv:2: '0:0' is not a link"),
        ("a\tb\t0-1", r"links\.tsv:2: link 0-1 leads out of its 1 source and 1 target words"),
        ("\t\t0-0", r"links\.tsv:2: link 0-0 leads out of its 0 source and 0 target words"),
        ("a\tb\t0p0", r"links\.tsv:2: possible links"),
    ],
)
def test_malformed_lines_are_named(line: str, message: str, tmp_path: Path):
    with pytest.raises(DataError, match=message):
        found("words", tmp_path, "a\tb\t0-0", line)


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(DataError, match=r"none\.tsv: no such file"):
        CorrectedLinks(tmp_path / "none.tsv")
