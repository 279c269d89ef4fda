"""Tokenizers read from their files: pieces, characters or words, and those of Marian's models."""

from pathlib import Path

from heedful.errors import FileRefused
from heedful.text.marian import MarianTokenizer
from heedful.text.tokenizer import Normalization, PieceTokenizer, Tokenizer, Units, UnitTokenizer
from heedful.text.vocabulary import SPECIAL_TOKENS, Vocabulary


def load_tokenizer(path: Path, units: Units, normalization: Normalization) -> Tokenizer:
    """Read a tokenizer file written by `Tokenizer.save`.

    Args:
        path: the file.
        units: what a token is.
        normalization: Unicode normal form applied first.

    Returns:
        The tokenizer.

    Raises:
        FileRefused: the file is missing or is no tokenizer of that kind, such as words with a space inside.
    """
    if units != "pieces":
        vocabulary = Vocabulary.load(path)
        for token in vocabulary.tokens[len(SPECIAL_TOKENS) :]:
            if UnitTokenizer.split(token, units) != [token]:
                raise FileRefused(f"{path}: token {token[:40]!r} is not one of {units}: no text could hold it")
        return UnitTokenizer(vocabulary, units, normalization)
    if path.suffix == ".marian":
        return MarianTokenizer.load(path, normalization)
    try:
        return PieceTokenizer(path.read_bytes(), normalization)
    except OSError as error:
        raise FileRefused(f"{path}: {error.strerror}") from None
