"""Training of word vectors with gensim. Mikolov et al. 2013, arXiv:1301.3781 and arXiv:1310.4546."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal, final

import numpy as np
from pydantic import Field

from heedful.config.base import Config
from heedful.errors import DataError, MissingExtra, UsageError
from heedful.text.folding import Normalization
from heedful.text.lines import read_lines
from heedful.text.tokenizer import UnitTokenizer
from heedful.text.vectors import WordVectors
from heedful.text.vocabulary import Vocabulary


class Word2VecConfig(Config):
    """Settings for training word vectors."""

    method: Literal["skip-gram", "cbow"] = "skip-gram"
    """Training method: skip-gram predicts the neighbours from a word; cbow predicts a word from its neighbours, which
    is faster but worse for rare words."""
    size: int = Field(default=100, ge=1, le=100_000)
    """Length of each vector."""
    window: int = Field(default=5, ge=1, le=1_000_000)
    """Number of words on either side that count as neighbours."""
    min_count: int = Field(default=5, ge=1, le=1_000_000)
    """Minimum count of a word; rarer words get no vector."""
    negative: int = Field(default=5, ge=1, le=1_000_000)
    """Number of negative samples (random words) for each true neighbour."""
    epochs: int = Field(default=5, ge=1, le=1_000_000)
    seed: int = Field(default=1, ge=0, lt=2**32)
    normalization: Normalization = "NFC"


@final
class WordLines:
    """Words of text files with one sentence per line; each iteration reads the files again, in constant memory."""

    def __init__(self, paths: Sequence[Path], normalization: Normalization, column: int = 0) -> None:
        """Set the files.

        Args:
            paths: the files, gzip or not.
            normalization: Unicode normal form of the model that will use the vectors.
            column: 1-based index of the tab-separated column to read; 0 = the whole line.
        """
        self._paths: Final = tuple(paths)
        self._column: Final = column
        self._tokenizer: Final = UnitTokenizer(Vocabulary.build([]), "words", normalization)

    def __iter__(self) -> Iterator[list[str]]:
        """Read the sentences.

        Yields:
            The words of each sentence, split as the word tokenizer splits them.

        Raises:
            DataError: a file cannot be read, or a line lacks the column.
        """
        for path in self._paths:
            for number, line in enumerate(read_lines(path, nul="refuse"), 1):
                cells = line.split("\t") if self._column else [line]
                if line and len(cells) < self._column:
                    raise DataError(f"{path}:{number}: {len(cells)} columns; expected at least {self._column}")
                if line:
                    text = self._tokenizer.normalize(cells[max(0, self._column - 1)])
                    yield self._tokenizer.split(text, "words")


def train_vectors(sentences: WordLines, config: Word2VecConfig) -> WordVectors:
    """Train word vectors on a text; the result depends only on text, settings and seed.

    Returns:
        A vector for each word with at least `min_count` occurrences, the most frequent word first.

    Raises:
        MissingExtra: gensim is not installed.
        UsageError: no word is frequent enough.
    """
    try:
        from gensim.models import Word2Vec  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        raise MissingExtra("gensim", "vectors", "training word vectors") from None
    # One thread, because the result of several would depend on their timing.
    model: Any = Word2Vec(
        vector_size=config.size,
        window=config.window,
        min_count=config.min_count,
        sg=int(config.method == "skip-gram"),
        negative=config.negative,
        epochs=config.epochs,
        seed=config.seed,
        workers=1,
    )
    model.build_vocab(sentences)
    if not len(model.wv):
        raise UsageError(f"vectors: no word occurs {config.min_count} times; give more text, or a smaller --min-count")
    model.train(sentences, total_examples=model.corpus_count, epochs=config.epochs)
    return WordVectors(tuple(model.wv.index_to_key), np.asarray(model.wv.vectors, dtype=np.float32))
