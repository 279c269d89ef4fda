"""Inline terms: what is written into sources can be told from them, and words keep their indices."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.text.inline_terms import MARK, InlineTerm, insert_terms, source_words, token_place
from heedful.text.tokenizer import PieceTokenizer, Tokenizer, UnitTokenizer
from heedful.text.vocabulary import SPECIAL_TOKENS, Vocabulary

LINES = ["das rote Haus am Meer", "ein altes Haus", "the red house by the sea", "an old house"] * 20
PIECES = PieceTokenizer.train(LINES, 330, "NFC")
LETTERS = UnitTokenizer(Vocabulary.build([list(line) for line in LINES]), "characters", "NFC")
WORDS = UnitTokenizer(Vocabulary.build([line.split(" ") for line in LINES]), "words", "NFC")
TOKENIZERS = [PIECES, LETTERS, WORDS]


def test_terms_stand_in_the_order_of_their_places():
    terms = [InlineTerm(3, (8, 9)), InlineTerm(1, (7,))]
    assert insert_terms([4, 5, 6, 3], terms) == [4, MARK, 7, MARK, 5, 6, MARK, 8, 9, MARK, 3]
    assert insert_terms([4, 3], []) == [4, 3]


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_a_term_belongs_to_the_word_before_it(tokenizer: Tokenizer):
    text = "das rote Haus"
    ids, ranges = tokenizer.encode(text), tokenizer.ranges(text)
    place, token_ids = token_place(ranges, len("das rote")), tuple(tokenizer.encode("red house"))
    written = insert_terms(ids, [InlineTerm(place, token_ids)])
    words = tokenizer.word_indices(ids)
    term = [words[place - 1]] * (len(token_ids) + 2)
    assert source_words(tokenizer, written) == [*words[:place], *term, *words[place:]]
    assert words[place - 1] == 1
    assert tokenizer.decode(ids[:place]) == "das rote"


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_a_source_without_terms_has_its_usual_words(tokenizer: Tokenizer):
    ids = tokenizer.encode("das rote Haus am Meer")
    assert source_words(tokenizer, ids) == tokenizer.word_indices(ids)
    assert source_words(tokenizer, []) == []


MARKS = st.sampled_from([*SPECIAL_TOKENS, "<s>", "</s>", "\x02", "\ue000", "Haus", " ", "a"])


@given(text=st.lists(MARKS).map("".join) | st.text())
def test_no_text_holds_a_mark(text: str):
    for tokenizer in TOKENIZERS:
        assert MARK not in tokenizer.encode(text)
