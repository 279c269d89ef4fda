"""Term pairs: phrases that translate each other, in a form of their words, stored once and checked on reading."""

import random
from pathlib import Path

import numpy as np
import pytest

from heedful.data import term_pairs as module
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.data.term_pairs import NUM_FIELDS, TERMS, are_forms, find_phrases, read_terms, store_terms
from heedful.errors import FileRefused, NewerFormat, UsageError
from heedful.files.formats import ENCODED_FORMAT
from heedful.files.records import read_facts, write_facts
from heedful.text.marian import MarianTokenizer
from heedful.text.tokenizer import PieceTokenizer, TextConfig, Tokenizer
from heedful.text.tokenizer_training import train_tokenizer
from heedful.text.vocabulary import EOS
from tests.thorough import thorough

NOUNS = [(f"noun{a}{b}", f"{b}{a}wort") for a in "abcdef" for b in "ghijkl"]
"""Source nouns and target nouns, which a plural -en may end."""


def pairs() -> list[tuple[str, str]]:
    """Sentences of three nouns after an article each, in reversed order on the target side."""
    source = random.Random(3)
    written: list[tuple[str, str]] = []
    for _ in range(300):
        nouns = source.sample(NOUNS, 3)
        endings = [source.choice(["", "en"]) for _ in nouns]
        target = [f"die {noun}{ending}" for (_, noun), ending in zip(nouns, endings, strict=True)]
        written.append((" ".join(f"the {noun}" for noun, _ in nouns) + ".", " ".join(reversed(target)) + "."))
    return written


def encoded(texts: list[tuple[str, str]]) -> tuple[EncodedCorpus, Tokenizer]:
    tokenizer = train_tokenizer([text for pair in texts for text in pair], "pieces", 400, TextConfig())
    sides = [EncodedSide.of([[*tokenizer.encode(pair[side]), EOS] for pair in texts]) for side in (0, 1)]
    return EncodedCorpus(sides[0], sides[1]), tokenizer


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[EncodedCorpus, Tokenizer, EncodedCorpus, Path]:
    folder = tmp_path_factory.mktemp("terms")
    corpus, tokenizer = encoded(pairs())
    assert store_terms(corpus, (tokenizer, tokenizer), folder) > 800
    return corpus, tokenizer, read_terms(folder, corpus), folder


def terms_of(corpus: EncodedCorpus, tokenizer: Tokenizer, terms: EncodedCorpus, index: int) -> list[tuple[str, str]]:
    """Source words and target words of each term of a pair."""
    found: list[tuple[str, str]] = []
    begin = 0
    for start, stop, number in terms.source[index].reshape(-1, NUM_FIELDS).tolist():
        target = terms.target[index][begin : begin + number]
        begin += number
        found.append((tokenizer.decode(corpus.source[index][start:stop].tolist()), tokenizer.decode(target.tolist())))
    assert begin == len(terms.target[index])
    return found


def test_terms_are_translations_of_words_in_any_of_their_forms(
    stored: tuple[EncodedCorpus, Tokenizer, EncodedCorpus, Path],
):
    corpus, tokenizer, terms, _ = stored
    translations = dict(NOUNS)
    num_right = num_terms = num_as_written = 0
    for index, (_, target) in enumerate(pairs()):
        for source, given in terms_of(corpus, tokenizer, terms, index):
            num_terms += 1
            num_right += given.removesuffix("en") == translations.get(source.strip().strip("."))
            num_as_written += given in target.strip(".").split(" ")
            assert "die" not in given.split(" ")[:1]  # too common to begin a term
    assert num_right / num_terms > 0.95
    assert 0.4 < num_as_written / num_terms < 0.6  # the form is drawn: half of them is another one


@thorough
def test_the_form_of_the_reference_alone_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: tuple[EncodedCorpus, Tokenizer, EncodedCorpus, Path]
):
    monkeypatch.setattr(module, "are_forms", str.__eq__)
    corpus, tokenizer = stored[:2]
    store_terms(corpus, (tokenizer, tokenizer), tmp_path)
    terms = read_terms(tmp_path, corpus)
    given = [(i, form) for i in range(len(corpus)) for _, form in terms_of(corpus, tokenizer, terms, i)]
    assert all(form in pairs()[index][1] for index, form in given)


def test_terms_are_found_once_and_again_where_their_files_are_damaged(
    stored: tuple[EncodedCorpus, Tokenizer, EncodedCorpus, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    corpus, tokenizer, terms, _ = stored
    number = store_terms(corpus, (tokenizer, tokenizer), tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(module, "align_pairs", None)
        assert store_terms(corpus, (tokenizer, tokenizer), tmp_path) == number
    ids = tmp_path / TERMS / "target.ids"
    ids.write_bytes(ids.read_bytes()[:-2] + b"\0\1")
    with pytest.raises(FileRefused):
        read_terms(tmp_path, corpus)
    assert store_terms(corpus, (tokenizer, tokenizer), tmp_path) == number
    again = read_terms(tmp_path, corpus)
    for index in range(len(corpus)):
        np.testing.assert_array_equal(again.target[index], terms.target[index])
    facts = read_facts(tmp_path / TERMS / "encoded.json", ENCODED_FORMAT, "")
    write_facts(tmp_path / TERMS / "encoded.json", ENCODED_FORMAT, facts)
    text = (tmp_path / TERMS / "encoded.json").read_text(encoding="utf-8")
    (tmp_path / TERMS / "encoded.json").write_text(text.replace('"format": 1', '"format": 99'), encoding="utf-8")
    with pytest.raises(NewerFormat):
        store_terms(corpus, (tokenizer, tokenizer), tmp_path)


def test_terms_of_other_pairs_are_refused(stored: tuple[EncodedCorpus, Tokenizer, EncodedCorpus, Path]):
    few = EncodedCorpus(EncodedSide.of([[5, EOS]]), EncodedSide.of([[5, EOS]]))
    with pytest.raises(FileRefused, match="not of these pairs; delete the folder"):
        read_terms(stored[3], few)


def test_parts_of_a_large_corpus_give_the_same_kind_of_terms(
    stored: tuple[EncodedCorpus, Tokenizer, EncodedCorpus, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "MOST_PLACES", 100_000)
    corpus, tokenizer, terms, _ = stored
    number = store_terms(corpus, (tokenizer, tokenizer), tmp_path)
    assert number == pytest.approx(len(terms.target) * 3, rel=0.1)


def test_a_tokenizer_that_cannot_locate_words_is_refused(tmp_path: Path):
    corpus, tokenizer = encoded(pairs()[:20])
    assert isinstance(tokenizer, PieceTokenizer)
    from heedful.text.vocabulary import Vocabulary

    marian = MarianTokenizer(tokenizer.model, Vocabulary.build([tokenizer.pieces(range(4, len(tokenizer)))]))
    with pytest.raises(UsageError, match=r"training\.term_share: the tokenizer of an imported model"):
        store_terms(corpus, (marian, marian), tmp_path)


@pytest.mark.parametrize(
    ("word", "other", "are"),
    [
        ("rot", "roten", True),
        ("sitzt", "sitzen", True),
        ("mann", "männer", True),
        ("walk", "walking", True),
        ("geldbeutel", "geldbörse", False),
        ("auto", "auge", False),
        ("an", "an", True),
        ("an", "ans", False),
    ],
)
def test_forms_share_a_stem(word: str, other: str, are: bool):
    assert are_forms(word, other) is are_forms(other, word) is are


def test_phrases_are_linked_within_themselves_only():
    links = [(0, 0), (1, 2), (2, 1), (2, 2), (4, 4)]
    assert [one[:2] for one in find_phrases(links)] == [
        ((0, 1), (0, 1)),
        ((0, 3), (0, 3)),
        ((1, 3), (1, 3)),
        ((4, 5), (4, 5)),
    ]
    assert [one.words for one in find_phrases(links)] == [((0, 0),), ((0, 0),), (), ((4, 4),)]
    assert find_phrases([]) == []
