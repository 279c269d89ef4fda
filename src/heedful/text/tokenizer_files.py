"""Loading of tokenizer files: pieces, characters, words, columns, and Marian tokenizers."""

from pathlib import Path

from heedful.errors import FileRefused
from heedful.files.bounded_read import MOST_BULK_BYTES, read_bytes
from heedful.text.column_tokenizer import SUFFIX, ColumnTokenizer
from heedful.text.folding import Normalization
from heedful.text.marian import MarianTokenizer
from heedful.text.tokenizer import PieceTokenizer, Tokenizer, Units, UnitTokenizer
from heedful.text.vocabulary import SPECIAL_TOKENS, Vocabulary


def load_tokenizer(path: Path, units: Units, normalization: Normalization, reads_forms: bool = False) -> Tokenizer:
    """Read a tokenizer file written by `Tokenizer.save`.

    Args:
        units: kind of token.
        normalization: Unicode normal form applied before tokenization.
        reads_forms: whether words with letters that a vocabulary of characters lacks are read in a form that it has,
            such as in lower case; for sources.

    Raises:
        FileRefused: the file is missing or is not a tokenizer of this kind, for example it has words with spaces.
    """
    if path.suffix == SUFFIX:
        return ColumnTokenizer.load(path, units, normalization, reads_forms)
    if units != "pieces":
        vocabulary = Vocabulary.load(path)
        for token in vocabulary.tokens[len(SPECIAL_TOKENS) :]:
            if UnitTokenizer.split(token, units) != [token]:
                raise FileRefused(f"{path}: token {token[:40]!r} is not one of {units}: no text could hold it")
        return UnitTokenizer(vocabulary, units, normalization, reads_forms)
    if path.suffix == ".marian":
        return MarianTokenizer.load(path, normalization)
    try:
        model = read_bytes(path, MOST_BULK_BYTES)
    except OSError as error:
        raise FileRefused(f"{path}: {error.strerror}") from None
    try:
        return PieceTokenizer(model, normalization)
    except FileRefused as error:
        raise FileRefused(f"{path}: {error}") from None
