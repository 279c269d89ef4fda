"""Vocabulary shortlist of an engine, learned from the encoded training pairs of its model."""

from pathlib import Path
from typing import Final

from heedful.data.encoded import ENCODED, EncodedCorpus
from heedful.errors import FileRefused, UsageError
from heedful.text.shortlist import Shortlist

MAX_PLACES: Final = 8_000_000
"""Largest number of source tokens times target tokens that are learned from; takes half a gigabyte of memory."""


def learn_shortlist(model: Path) -> Shortlist:
    """Learn a shortlist from the training pairs of a model, or from a regular sample of a large corpus.

    Raises:
        UsageError: the folder no longer has its training pairs.
        FileRefused: the pairs are damaged.
    """
    data = model / "run" / "data"
    if not (data / ENCODED).is_file():
        raise UsageError(
            f"{model}: has no training pairs in run/data, which a shortlist is learned from; "
            "export --shortlist in the folder where it was trained"
        )
    corpus = EncodedCorpus.read(data)
    sizes = corpus.source.lengths.astype("int64") * corpus.target.lengths
    step = 1 + int(sizes.sum()) // MAX_PLACES
    pairs = [(corpus.source[index].tolist(), corpus.target[index].tolist()) for index in range(0, len(corpus), step)]
    if not pairs:
        raise FileRefused(f"{data}: has no training pairs; train the model again")
    return Shortlist.learn(pairs)
