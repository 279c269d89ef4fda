"""Tokenizers of training data: learned once from a sample of the pairs, then read from the model folder."""

import random
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from heedful.data.corpus import Pair
from heedful.data.prepared_files import TOKENIZERS, read_prepared, store_tokenizers, verify_files
from heedful.errors import FileRefused, NewerFormat
from heedful.text.column_tokenizer import ColumnTokenizer
from heedful.text.tokenizer import TextConfig, Tokenizer, Units
from heedful.text.tokenizer_files import load_tokenizer
from heedful.text.tokenizer_training import choose_size, train_tokenizer

TOKENIZER_LINES: Final = 250_000
"""Number of lines per side that tokenizers learn from; of a larger corpus, a fixed random sample. A million
would take four times the time and the memory."""


def learn_tokenizers(
    sample: Sequence[Pair], config: TextConfig, num_pairs: int, folder: Path
) -> tuple[Tokenizer, Tokenizer, dict[str, str]]:
    """Train tokenizers and store them, or read those that the folder has.

    Args:
        sample: training pairs to learn from.
        num_pairs: number of pairs, held out ones too, which determines the number of pieces.

    Returns:
        Tokenizers of source and target, and the names of their files by role.

    Raises:
        NewerFormat: a newer heedful trained them.
    """
    units: dict[str, Units] = {"source": config.source_units, "target": config.target_units}
    if (folder / TOKENIZERS).is_file():
        try:
            return named_tokenizers(config, folder)
        except NewerFormat:
            raise
        except FileRefused:
            pass  # trained again, and compared with those that a begun training depends on
    size = config.vocabulary_size or choose_size(
        num_pairs, count_characters(text for pair in sample for text in pair[:2])
    )
    if config.is_shared:
        lines = [pair.source for pair in sample] + [pair.target for pair in sample]
        shared = train_tokenizer(lines, config.source_units, _limit(size, config.source_units, config), config)
        source, target, stems = shared, shared, ("tokenizer", "tokenizer")
    else:
        sides = {"source": [pair.source for pair in sample], "target": [pair.target for pair in sample]}
        train_source, train_target = (
            partial(train_tokenizer, units=units[s], size=_limit(size, units[s], config), config=config) for s in sides
        )
        if config.source_columns:
            kinds, form = config.source_columns, config.normalization
            source = ColumnTokenizer.train(sides["source"], kinds, form, train_source)
        else:
            source = train_source(sides["source"])
        target = train_target(sides["target"])
        stems = ("tokenizer-source", "tokenizer-target")
    by_role = {"source_tokenizer": (source, stems[0]), "target_tokenizer": (target, stems[1])}
    names, _ = store_tokenizers(by_role, folder)
    return source, target, names


def load_tokenizers(config: TextConfig, folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """Load the tokenizers of a preparation.

    Raises:
        FileRefused: they are damaged.
    """
    return named_tokenizers(config, folder)[:2]


def named_tokenizers(config: TextConfig, folder: Path) -> tuple[Tokenizer, Tokenizer, dict[str, str]]:
    """Load the tokenizers of a preparation, and the names of their files.

    Returns:
        Tokenizers of source and target, and the names of their files by role.

    Raises:
        FileRefused: they are damaged.
    """
    facts = read_prepared(folder / TOKENIZERS)
    names = {role: str(facts.get(role)) for role in ("source_tokenizer", "target_tokenizer")}
    form = config.normalization
    source = load_tokenizer(folder / names["source_tokenizer"], config.source_units, form)
    target = load_tokenizer(folder / names["target_tokenizer"], config.target_units, form)
    verify_files(folder, facts)  # after the versions, so that files of a newer heedful are not taken for damaged
    return source, target, names


def count_characters(texts: Iterable[str]) -> int:
    """Count the different characters of texts, each of which needs a piece.

    Returns:
        The number.

    Example:
        >>> count_characters(["aba", "bc"])
        3
    """
    characters: set[str] = set()
    for text in texts:
        characters.update(text)
    return len(characters)


def _limit(size: int, units: Units, config: TextConfig) -> int:
    """Largest vocabulary size: `size` for pieces; for characters and words the configured one, by default no limit."""
    return size if units == "pieces" else config.vocabulary_size


def sampled(pairs: Iterator[Pair], size: int) -> list[Pair]:
    """Draw a uniform sample in one pass, the same each time. Vitter 1985, algorithm R.

    Args:
        pairs: any number of pairs.
        size: number of pairs to keep; of fewer pairs, all are kept in their order.
    """
    generator, sample = random.Random(0), list[Pair]()
    for count, pair in enumerate(pairs):
        if count < size:
            sample.append(pair)
        elif (index := generator.randrange(count + 1)) < size:
            sample[index] = pair
    return sample
