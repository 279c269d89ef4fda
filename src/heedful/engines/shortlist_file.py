"""File of a vocabulary shortlist in the folder of an engine, in CTranslate2's format.

Each line has a source token, a tab, and target tokens that are separated by spaces; the line without a source token
has the targets of every source.
"""

from pathlib import Path

from heedful.engines.ctranslate2 import SHORTLIST, ids_of, names_of
from heedful.errors import FileRefused
from heedful.files.atomic_write import atomic_write
from heedful.files.bounded_read import MOST_BULK_BYTES, read_bytes
from heedful.text.shortlist import Shortlist


def write_shortlist(shortlist: Shortlist, folder: Path) -> None:
    """Write a shortlist."""
    with atomic_write(folder / SHORTLIST) as stream:
        stream.write(f"\t{' '.join(names_of(shortlist.common))}\n")
        for source, targets in sorted(shortlist.translations.items()):
            if targets:
                stream.write(f"{names_of([source])[0]}\t{' '.join(names_of(targets))}\n")


def read_shortlist(folder: Path) -> Shortlist:
    """Read a shortlist.

    Raises:
        FileRefused: the file is missing or damaged.
    """
    path = folder / SHORTLIST
    common: list[int] = []
    translations: dict[int, list[int]] = {}
    try:
        for line in read_bytes(path, MOST_BULK_BYTES).decode().split("\n")[:-1]:
            source, _, targets = line.partition("\t")
            ids = ids_of(targets.split())
            if source:
                translations[ids_of([source])[0]] = ids
            else:
                common = ids
    except OSError as error:
        raise FileRefused(f"{path}: {error.strerror}; export the model again") from None
    except ValueError as error:
        raise FileRefused(f"{path}: damaged: {error}; export the model again") from None
    return Shortlist(common, translations)
