"""Offered terms: written into sources as far as they fit, and bound where the output does not have them."""

from collections.abc import Sequence

import numpy as np
import pytest

from heedful.engines.offered_terms import TermSearch, stem_tokens, tokens_of, with_terms
from heedful.engines.text_constraints import TextConstraints
from heedful.search.constraints import Constraints
from heedful.search.interface import Hypothesis, IntArray
from heedful.text.inline_terms import MARK
from heedful.text.terms import Term, Terms
from heedful.text.tokenizer import PieceTokenizer, UnitTokenizer
from heedful.text.vocabulary import EOS, SPECIAL_TOKENS, UNK, Vocabulary

LINES = ["das rote Haus am Meer", "ein altes Haus.", "the red house by the sea", "an old house."] * 20
PIECES = PieceTokenizer.train(LINES, 330, "NFC")
WORDS = UnitTokenizer(Vocabulary.build([line.split(" ") for line in LINES]), "words", "NFC")
TERMS = Terms((Term("Haus", "building"), Term("rot", "red"), Term("am Meer", "by the sea"), Term("<bos>", "mark")))


def written(
    text: str, terms: Terms = TERMS, most: int = 100, tokenizer: PieceTokenizer | UnitTokenizer = PIECES
) -> str:
    """Source with its terms, in brackets."""
    ids = with_terms(np.array([*tokenizer.encode(text), EOS]), text, terms, tokenizer, most)
    assert ids[-1] == EOS
    runs: list[list[int]] = [[]]
    for token in ids[:-1].tolist():
        if token == MARK:
            runs.append([])
        else:
            runs[-1].append(token)
    pieces = [tokenizer.decode(run).strip(" ") for run in runs]
    return "".join(f"[{one}]" if i % 2 else one for i, one in enumerate(pieces))


def test_terms_stand_behind_their_words():
    assert written("das rote Haus am Meer.") == "das rote Haus[building]am Meer[by the sea]."
    assert written("das Haus, Häuser!") == "das Haus[building], Häuser[building]!"
    assert written("nichts") == "nichts"


def test_the_words_of_hidden_terms_are_unknown():
    text = "das rote Haus am Meer"
    ids = np.array([*PIECES.encode(text), EOS])
    plain, hidden = (
        with_terms(ids, text, TERMS, PIECES, 100, names)
        for names in ((), [one for one in TERMS.terms if one.source != "rot"])
    )
    is_hidden = hidden == UNK
    np.testing.assert_array_equal(hidden[~is_hidden], plain[~is_hidden])
    assert PIECES.decode(plain[is_hidden].tolist()).split() == ["Haus", "am", "Meer"]


def test_a_token_that_two_hidden_terms_share_is_hidden_once():
    terms = Terms((Term("大学", "university"), Term("生活", "life")))
    lines = ["大 学生 活", "学生 学生", "学生 去", "学生学生 大", "university life", "life of a student"]
    tokenizer = PieceTokenizer.train(lines * 30, 300, "NFC")
    text = "大学生活"
    ids = np.array([*tokenizer.encode(text), EOS])
    assert "学生" in tokenizer.pieces(ids[:-1].tolist())
    plain, hidden = (with_terms(ids, text, terms, tokenizer, 100, names) for names in ((), terms.terms))
    assert len(plain) == len(hidden)
    np.testing.assert_array_equal(plain[hidden != UNK], hidden[hidden != UNK])


def test_tokens_are_those_of_the_output():
    output = PIECES.encode("by „the red“ house")
    for words in ("by", "the", "red", "the red", "house"):
        tokens = tokens_of(PIECES, words, output)
        assert PIECES.decode(tokens).strip() == words
        assert any(tuple(output[i : i + len(tokens)]) == tokens for i in range(len(output)))
    assert tokens_of(PIECES, "sea", output) == ()


def test_marks_in_a_text_are_text():
    hostile = "das <bos> Haus <bos> mark <bos> <s> \x02"
    assert (
        written(hostile, Terms((Term("Haus", "<bos> x <eos>"),)))
        == "das <bos> Haus[<bos> x <eos>]<bos> mark <bos> <s> \x02"
    )
    ids = with_terms(np.array([*PIECES.encode(hostile), EOS]), hostile, Terms((Term("x", "y"),)), PIECES, 100)
    assert MARK not in ids


def test_terms_that_do_not_fit_are_left_out():
    text = "das Haus am Meer"
    full = len(PIECES.encode(text)) + 1
    building = len(PIECES.encode("building")) + 2
    assert written(text, most=full) == text
    assert written(text, most=full + building) == "das Haus[building]am Meer"
    assert written(text, most=full + building - 1) in (text, "das Haus am Meer[by the sea]")


def test_terms_with_unknown_tokens_and_texts_that_were_cut_get_none():
    assert written("das rote Haus", tokenizer=WORDS) == "das rote Haus"
    assert UNK in WORDS.encode("building")
    cut = np.array([*PIECES.encode("das Haus am Meer")[:2], EOS])
    assert with_terms(cut, "das Haus am Meer", TERMS, PIECES, 100) is cut


def test_texts_without_normal_form_get_none():
    free = PieceTokenizer(PIECES.model, "none")
    decomposed = "das Haus u\u0308ber"
    assert written(decomposed, tokenizer=PIECES) == "das Haus[building]über"
    assert "[" not in written(decomposed, tokenizer=free)


class Fake:
    """Search whose output is the source, its first term if there is one, and what is required."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[IntArray], list[Constraints]]] = []

    def __call__(self, sources: Sequence[IntArray], /, *, constraints: Sequence[Constraints]) -> list[list[Hypothesis]]:
        self.calls.append(([*sources], [*constraints]))
        outputs: list[list[Hypothesis]] = []
        for source, one in zip(sources, constraints, strict=True):
            places = np.flatnonzero(source == MARK)
            term = source[places[0] + 1 : places[1]].tolist() if places.size else []
            tokens = (*term, *(token for phrase in one.required for token in phrase))
            outputs.append([Hypothesis(tokens, -1.0, -1.0, (), "eos")])
        return outputs


def test_only_terms_that_are_missing_are_bound():
    texts = ["das Haus am Meer", "das Haus", "nichts", "Meer"]
    constraints = TextConstraints(required=["red"], terms=TERMS).of_sources(PIECES)
    search, fake = TermSearch(constraints, PIECES, PIECES, 100), Fake()
    ids = [np.array([*PIECES.encode(text), EOS]) for text in texts]
    general = [constraints.general for _ in texts]
    offered, found = search(texts, ids, general, fake)
    outputs = [PIECES.decode(hypotheses[0].token_ids) for hypotheses in found]
    assert outputs == ["building red building by the sea", "building red", "red", "red"]
    (first, free), (hidden, still_free), (second, bound) = fake.calls
    assert [one.required for one in free] == [constraints.general.required] * 4
    kept = [tuple(PIECES.encode(phrase)) for phrase in ("building", "by the sea")]  # what the output has already too
    assert [one.required for one in bound] == [[*constraints.general.required, *kept]]
    assert len(first) == 4
    (source,) = hidden
    assert still_free == [constraints.general]
    words = np.flatnonzero(source == UNK)
    assert PIECES.decode(offered[0][words].tolist()).split() == ["am", "Meer"]  # only what is missing
    np.testing.assert_array_equal(second[0], source)
    np.testing.assert_array_equal(offered[3], ids[3])


class Inflector(Fake):
    """Search whose output is what is required, and after a stem an ending of its own."""

    def __init__(self, ending: str) -> None:
        super().__init__()
        self.ending = ending

    def __call__(self, sources: Sequence[IntArray], /, *, constraints: Sequence[Constraints]) -> list[list[Hypothesis]]:
        self.calls.append(([*sources], [*constraints]))
        texts = [" ".join(PIECES.decode(phrase) for phrase in one.required) for one in constraints]
        tokens = [
            PIECES.encode(text + self.ending if text in ("bui", "buil", "build", "buildi") else text) for text in texts
        ]
        return [[Hypothesis(tuple(one), -1.0, -1.0, (), "eos")] for one in tokens]


@pytest.mark.parametrize(("ending", "output", "num_calls"), [("dings", "", 3), ("tin", "building", 4)])
def test_the_stem_is_bound_before_the_whole_form(ending: str, output: str, num_calls: int):
    stem = PIECES.decode(stem_tokens(PIECES, "building", PIECES.encode("building")))
    ending = "building"[len(stem) :] + "s" if ending == "dings" else ending
    constraints = TextConstraints(terms=Terms((Term("Haus", "building"),))).of_sources(PIECES)
    fake = Inflector(ending)
    ids = [np.array([*PIECES.encode("das Haus"), EOS])]
    _, found = TermSearch(constraints, PIECES, PIECES, 100)(["das Haus"], ids, [constraints.general], fake)
    assert PIECES.decode(found[0][0].token_ids) == (output or stem + ending)
    assert len(fake.calls) == num_calls


def test_nothing_is_bound_where_the_term_is_read_in_place_of_its_word():
    constraints = TextConstraints(terms=Terms((Term("Haus", "building"),))).of_sources(PIECES)
    calls: list[Sequence[Constraints]] = []

    def reading(sources: Sequence[IntArray], /, *, constraints: Sequence[Constraints]) -> list[list[Hypothesis]]:
        calls.append(constraints)
        texts = ["buildings" if UNK in source else "house" for source in sources]
        return [[Hypothesis(tuple(PIECES.encode(text)), -1.0, -1.0, (), "eos")] for text in texts]

    text = "das Haus"
    ids = [np.array([*PIECES.encode(text), EOS])]
    offered, found = TermSearch(constraints, PIECES, PIECES, 100)([text], ids, [constraints.general], reading)
    assert PIECES.decode(found[0][0].token_ids) == "buildings"
    assert calls == [[constraints.general]] * 2
    assert UNK not in offered[0]


def test_a_stem_has_half_of_the_letters_and_all_but_four():
    letters = UnitTokenizer(Vocabulary.build([list("abcdefghijkl ")]), "characters", "NFC")
    for word, stem in [
        ("abcdefgh", "abcd"),
        ("abcdefghijkl", "abcdefgh"),
        ("abcd", "abc"),
        ("ab", "ab"),
        ("a bc", "a bc"),
    ]:
        assert letters.decode(stem_tokens(letters, word, letters.encode(word))) == stem


@pytest.mark.parametrize("special", SPECIAL_TOKENS)
def test_no_source_is_searched_twice_where_nothing_is_missing(special: str):
    constraints = TextConstraints(terms=Terms((Term("Haus", special),))).of_sources(PIECES)
    fake = Fake()
    text = f"Haus {special}"
    TermSearch(constraints, PIECES, PIECES, 100)(
        [text], [np.array([*PIECES.encode(text), EOS])], [constraints.general], fake
    )
    assert len(fake.calls) == 1
