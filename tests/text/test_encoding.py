"""Token ids of lines and documents."""

from heedful.text.encoding import encode_text
from heedful.text.tokenizer import UnitTokenizer
from heedful.text.vocabulary import EOS, Vocabulary


def test_sentences_of_a_document_end_in_eos_but_the_last():
    tokenizer = UnitTokenizer(Vocabulary.build([["One.", "two", "Two", "three."]], 0, 1), "words", "NFC")
    text = "One. Two three."
    first, *rest = tokenizer.encode(text)
    assert encode_text(tokenizer, text, is_document=False) == [first, *rest]
    assert encode_text(tokenizer, text, is_document=True) == [first, EOS, *rest]
    assert encode_text(tokenizer, "two<br/>three.", is_document=True)[1] == EOS
    assert encode_text(tokenizer, " ", is_document=True) == []
