import pytest

from heedful.engines.text_constraints import TextConstraints
from heedful.errors import UsageError
from heedful.text.terms import Term, Terms
from heedful.text.tokenizer import PieceTokenizer, UnitTokenizer
from heedful.text.vocabulary import Vocabulary

WORDS = UnitTokenizer(Vocabulary.build([["the", "red", "house"]]), "words", "NFC")
LETTERS = UnitTokenizer(Vocabulary.build(["the café"]), "characters", "NFC")


@pytest.fixture(scope="module")
def pieces() -> PieceTokenizer:
    lines = [
        "the red house stands there",
        "a house is red",
        "我们今天去学校",
        "今天我们不去学校",
        "学校今天不开门",
    ] * 20
    return PieceTokenizer.train(lines, 340, "NFC")


def test_phrases_become_tokens():
    constraints = TextConstraints("the red", ["house", " red house "], ["the house"]).encode(WORDS)
    the, red, house = (WORDS.encode(word)[0] for word in ("the", "red", "house"))
    assert constraints.prefix == (the, red)
    assert constraints.required == [(house,), (red, house)]
    assert constraints.banned == [(the, house)]
    assert TextConstraints().encode(WORDS).is_free
    assert TextConstraints(prefix=" ").encode(WORDS).is_free
    # Text is normalized as the model's was.
    assert TextConstraints(banned=["cafe\u0301"]).encode(LETTERS).banned == [tuple(LETTERS.encode("café"))]


def test_pieces_of_spaced_scripts_begin_a_word(pieces: PieceTokenizer):
    constraints = TextConstraints("the", ["red"], ["house"]).encode(pieces)
    assert constraints.required == [tuple(pieces.encode("red"))]
    assert constraints.banned == [tuple(pieces.encode("house"))]
    inside = pieces.encode("the red house")
    assert inside[-len(pieces.encode("house")) :] == pieces.encode("house")


def test_pieces_of_scripts_without_spaces_stand_anywhere(pieces: PieceTokenizer):
    constraints = TextConstraints(required=["学校"], banned=["今天"]).encode(pieces)
    (required,) = constraints.required
    assert not pieces.pieces(required)[0].startswith("\u2581")
    assert pieces.decode(required) == "学校"
    assert [pieces.decode(form) for form in constraints.banned] == ["今天", "今天"]
    assert [pieces.pieces(form)[0].startswith("\u2581") for form in constraints.banned] == [False, True]


def test_a_word_of_several_pieces_gets_no_ending(pieces: PieceTokenizer):
    constraints = TextConstraints(required=["red", "the hors", "学校", "red."]).encode(pieces)
    assert len(pieces.encode("red")) == 1
    assert constraints.whole == [tuple(pieces.encode("the hors"))]
    continuing = pieces.pieces(constraints.continuing)
    assert {"s", "e"} < {*continuing}
    assert not [piece for piece in continuing if not piece[0].isalnum()]
    for tokenizer in (WORDS, LETTERS):  # their tokens are words, or letters that go on anywhere
        assert TextConstraints(required=["the"]).encode(tokenizer).whole == []
    assert TextConstraints(required=["red"]).encode(pieces).continuing == ()


def test_the_words_of_terms_end_in_their_sources_only(pieces: PieceTokenizer):
    terms = Terms((Term("Pferd", "hors"), Term("rot", "red")))
    constraints = TextConstraints(required=["stan"], terms=terms).of_sources(pieces)
    hors, stan = (tuple(pieces.encode(word)) for word in ("hors", "stan"))
    assert constraints.of("das Pferd ist rot", 0).whole == [stan, hors]
    assert constraints.of("nichts", 0).whole == [stan]
    assert len(constraints.of("nichts", 0).continuing) > 0
    free = TextConstraints(terms=terms).of_sources(pieces)
    assert free.of("das Pferd", 0).whole == [hors]
    assert (free.of("rot", 0).whole, free.of("rot", 0).continuing) == ([], ())


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (TextConstraints(required=[" "]), "required phrase: blank"),
        (TextConstraints(banned=[""]), "banned phrase: blank"),
        (
            TextConstraints(prefix="the blue"),
            "prefix 'the blue': the model's vocabulary has no token for part of it: 'blue'",
        ),
        (TextConstraints(banned=["green house"]), "banned phrase 'green house': .*: 'green'"),
        (
            TextConstraints(required=["the red house"], banned=["red"]),
            "'the red house' contains 'red', which is banned",
        ),
    ],
)
def test_what_cannot_be_asked_is_told(constraints: TextConstraints, message: str):
    with pytest.raises(UsageError, match=message):
        constraints.encode(WORDS)


def test_letters_that_are_unknown_are_named():
    with pytest.raises(UsageError, match="has no token for part of it: 'x'"):
        TextConstraints(banned=["the x"]).encode(LETTERS)


def test_a_banned_phrase_of_pieces_is_banned_after_punctuation_too():
    lines = ['the red house stands "house" there', "a (house) is red, houses too", "boathouse"] * 20
    pieces = PieceTokenizer.train(lines, 300, "NFC")
    banned = {tuple(form) for form in TextConstraints(banned=["house"]).encode(pieces).banned}
    for text in ('the "house" is', "a (house)", "house"):
        tokens = tuple(pieces.encode(text))
        assert any(form == tokens[at : at + len(form)] for form in banned for at in range(len(tokens))), text
    tokens = tuple(pieces.encode("boathouse"))
    assert not any(form == tokens[at : at + len(form)] for form in banned for at in range(len(tokens)))


def test_a_banned_word_is_banned_before_punctuation_too():
    tokenizer = UnitTokenizer(
        Vocabulary.build([["the", "house", "house.", 'house!"', "houses", "house-boat", '"the', "(a"]]), "words", "NFC"
    )
    banned = TextConstraints(banned=["the house"]).encode(tokenizer).banned
    assert {tokenizer.decode(form) for form in banned} == {
        f"{quote}the house{end}" for quote in ("", '"') for end in ("", ".", '!"')
    }
    with pytest.raises(UsageError, match=r"'house\.' contains 'house', which is banned"):
        TextConstraints(required=["house."], banned=["house"]).encode(tokenizer)
