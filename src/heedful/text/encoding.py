"""Encoding of texts: token ids of a line, or of a document whose sentences end in EOS."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from heedful.text.sentences import split_sentences
from heedful.text.tokenizer import TextConfig, Tokenizer, UnitTokenizer
from heedful.text.vocabulary import EOS

_WORD: Final = re.compile("[^ ]+")


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


def encode_texts(tokenizer: Tokenizer, texts: Sequence[str], is_document: bool) -> list[list[int]]:
    """Encode many texts, as `encode_text` does each.

    Args:
        is_document: whether every sentence of a text but the last ends in EOS.

    Returns:
        Token ids of each text, without EOS at the end.
    """
    return [encode_text(tokenizer, text, True) for text in texts] if is_document else tokenizer.encode_all(texts)


def encode_source(tokenizer: Tokenizer, text: str, config: TextConfig) -> tuple[NDArray[np.int64], bool]:
    """Encode a source, truncated to the length that the model accepts.

    Args:
        text: any text; very long text is truncated before tokenization too, to save time.

    Returns:
        [position] ids ending in EOS (EOS alone for blank text; one after each sentence of a document), and whether the
    """
    return _encode(tokenizer, text, config.max_tokens, config.split_sentences)


def encode_target(tokenizer: Tokenizer, text: str, config: TextConfig) -> tuple[NDArray[np.int64], bool]:
    """Encode a target, truncated to the length that the model accepts.

    Returns:
        [position] ids with EOS at the end alone, as in training, and whether the text was truncated; it has no EOS
        then, because it does not end there.
    """
    ids, was_cut = _encode(tokenizer, text, config.max_tokens, is_document=False)
    return ids[: ids.size - was_cut], was_cut


def _encode(tokenizer: Tokenizer, text: str, most: int, is_document: bool) -> tuple[NDArray[np.int64], bool]:
    if not text.strip():
        return np.array([EOS], dtype=np.int64), False
    beginning = text[: _stop(tokenizer, text, most)]
    # NUL ends a string in some libraries, so U+FFFD, the replacement character, stands for it.
    ids = encode_text(tokenizer, beginning.replace("\0", "\ufffd"), is_document)
    rest = text[len(beginning) :].strip()
    return np.array([*ids[: most - 1], EOS], dtype=np.int64), len(ids) >= most or bool(rest)


def _stop(tokenizer: Tokenizer, text: str, most: int) -> int:
    """Length of a beginning of a text that has at least as many tokens as a model accepts, unless the text is shorter.

    Tokens beyond the limit are dropped, so text behind this beginning need not be tokenized.
    """
    if isinstance(tokenizer, UnitTokenizer) and tokenizer.units == "words":
        # A word may have any length. Few words are no tokens, such as a line break of HTML in a document.
        ends = [word.end() for word in islice(_WORD.finditer(text), 4 * most)]
        return ends[-1] if len(ends) == 4 * most else len(text)
    # No piece is longer than 16 characters.
    return 16 * most
