"""Pretrained word vectors for the words of a vocabulary, and their coverage."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from heedful.data.encoded import EncodedSide
from heedful.errors import ConfigError, DataError
from heedful.text.text_files import check_file
from heedful.text.tokenizer import TextConfig, Tokenizer, UnitTokenizer
from heedful.text.vectors import Coverage, embedding_rows, measure_coverage, read_vectors
from heedful.text.vocabulary import SPECIAL_TOKENS

Side = Literal["source", "target"]
SIDES: Final[tuple[Side, ...]] = ("source", "target")


@final
@dataclass(frozen=True, eq=False)
class Pretrained:
    """Pretrained vectors of one side.

    Attributes:
        side: source or target.
        path: the file.
        rows: [token, size] vectors of the vocabulary; random where the file has none.
        coverage: share of the training text that has vectors.
        is_frozen: whether training leaves the vectors unchanged.
    """

    side: Side
    path: Path
    rows: NDArray[np.float32]
    coverage: Coverage
    is_frozen: bool

    def __str__(self) -> str:
        """Return file and coverage on one line."""
        missing = f"; without: {', '.join(self.coverage.missing[:5])}" if self.coverage.missing else ""
        return f"{self.path.name}, {'frozen' if self.is_frozen else 'tuned'}: {self.coverage}{missing}"


def vectors_file(config: TextConfig, side: Side) -> str:
    """Return the path of a side's word vectors.

    Args:
        side: source or target.

    Returns:
        The path; empty = none.
    """
    return config.source_vectors if side == "source" else config.target_vectors


def check_vectors(config: TextConfig) -> None:
    """Check settings and files before any other work.

    Raises:
        ConfigError: the tokens are pieces, which have no vectors.
        DataError: a file does not exist.
    """
    for side in SIDES:
        units = config.source_units if side == "source" else config.target_units
        if path := vectors_file(config, side):
            if units == "pieces":
                raise ConfigError(f"text.{side}_vectors: pieces have no vectors; set text.{side}_units = words")
            if not Path(path).is_file():
                check_file(
                    Path(path)
                )  # says what there is instead; of vectors that are there it would refuse binary ones


def read_pretrained(config: TextConfig, side: Side, tokenizer: Tokenizer, corpus: EncodedSide, seed: int) -> Pretrained:
    """Read the vectors of one side's words.

    A word without a vector takes that of a word that differs only in case, if there is one.

    Args:
        side: a side for which the configuration names a file.
        corpus: training text of the side, for the coverage.

    Raises:
        ConfigError: tokens are pieces.
        DataError: the file is not one of word vectors, or has none for any word of the vocabulary.
    """
    path = Path(vectors_file(config, side))
    if not isinstance(tokenizer, UnitTokenizer):
        raise ConfigError(
            f"text.{side}_vectors: tokens are pieces, which have no vectors; set text.{side}_units = words"
        )
    tokens = tokenizer.vocabulary.tokens
    # Some published files repeat a word; the first entry is the more frequent one.
    vectors = read_vectors(path, tokens, ignore_case=True, repeated="first")
    counts = corpus.counts(len(tokens)).tolist()
    seen = {token: count for token, count in zip(tokens, counts, strict=True) if token not in SPECIAL_TOKENS}
    try:
        rows = embedding_rows(tokens, vectors, seed)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    return Pretrained(side, path, rows, measure_coverage(seen, vectors), config.vectors == "frozen")
