"""Dictionary of a word model, learned from its training pairs and stored with a checksum."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from heedful.data.corpus import Pair
from heedful.data.prepared_files import read_prepared, verify_files
from heedful.files.atomic_write import digest
from heedful.files.formats import PREPARED_FORMAT
from heedful.files.records import write_facts
from heedful.text.dictionary import Dictionary, learn_dictionary
from heedful.text.tokenizer import Tokenizer, UnitTokenizer
from heedful.text.word_alignment import align_pairs

DICTIONARY: Final = "dictionary.tsv"
LEARNED: Final = "run/data/dictionary.json"
"""Record of the dictionary."""
DICTIONARY_PAIRS: Final = 100_000
"""Number of pairs that a dictionary is learned from; of a larger corpus, a fixed random sample."""
DICTIONARY_PLACES: Final = 8_000_000
"""Largest number of source words times target words of these pairs; takes half a gigabyte of memory."""


def store_dictionary(
    sample: Iterable[Pair], source_tokenizer: Tokenizer, target_tokenizer: Tokenizer, folder: Path
) -> dict[str, str]:
    """Learn a dictionary for a model with unknown words, unless it exists already.

    Args:
        sample: training pairs to learn from.

    Returns:
        The file name in the model folder, by its role.

    Raises:
        FileRefused: an earlier dictionary is damaged.
        NewerFormat: a newer heedful wrote it.
    """
    if (folder / LEARNED).is_file() and (folder / DICTIONARY).is_file():
        verify_dictionary(folder)
        return {"dictionary": DICTIONARY}
    pairs: list[tuple[list[str], list[str]]] = []
    num_places = 0
    for pair in sample:
        source, target = (
            UnitTokenizer.split(tokenizer.normalize(text), "words")
            for tokenizer, text in ((source_tokenizer, pair.source), (target_tokenizer, pair.target))
        )
        num_places += len(source) * len(target)
        if num_places > DICTIONARY_PLACES:
            break
        pairs.append((source, target))
    learn_dictionary(pairs, align_pairs(pairs)).save(folder / DICTIONARY)
    checksums = {DICTIONARY: digest(folder / DICTIONARY)}
    write_facts(folder / LEARNED, PREPARED_FORMAT, {"num_pairs": len(pairs), "files": checksums})
    return {"dictionary": DICTIONARY}


def verify_dictionary(folder: Path) -> None:
    """Check a stored dictionary.

    Raises:
        FileRefused: it is missing or damaged.
        NewerFormat: a newer heedful wrote it.
    """
    facts = read_prepared(folder / LEARNED)
    Dictionary.load(folder / DICTIONARY)
    verify_files(folder, facts)
