"""Encoding of texts: token ids of a line, or of a document whose sentences end in EOS."""

from heedful.text.sentences import split_sentences
from heedful.text.tokenizer import Tokenizer
from heedful.text.vocabulary import EOS


def encode_text(tokenizer: Tokenizer, text: str, is_document: bool) -> list[int]:
    """Encode a text.

    Args:
        is_document: whether every sentence but the last ends in EOS.

    Returns:
        Token ids, without EOS at the end.
    """
    if not is_document:
        return tokenizer.encode(text)
    return [token for sentence in split_sentences(text) for token in (*tokenizer.encode(sentence), EOS)][:-1]
