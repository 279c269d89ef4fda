"""Files of prepared data: records with checksums, tokenizers that a begun training depends on, repair of damage."""

import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeGuard, TypeVar

from heedful.data.same_data import has_begun
from heedful.errors import DamagedFile, FileRefused, NewerFormat
from heedful.files.atomic_write import digest, temporary_path
from heedful.files.bounded_read import read_bytes
from heedful.files.formats import PREPARED_FORMAT
from heedful.files.records import read_facts, write_facts
from heedful.text.folding import Normalization
from heedful.text.tokenizer import Tokenizer, Units
from heedful.text.tokenizer_files import load_tokenizer

Result = TypeVar("Result")

_NUMBER_BYTES: Final = 20
"""Most bytes of a record that is a bare number."""

TOKENIZERS: Final = "run/data/tokenizers.json"
"""Record of the tokenizers, and of the labels of a model that the training goes on from: their file names by role, and
their checksums."""


def repaired(read_or_make: Callable[[], Result], folder: Path) -> tuple[Result, str]:
    """Prepare data, and if stored results of an earlier call are damaged, delete them and prepare again.

    Args:
        read_or_make: function that reads the stored results, or prepares the data.
        folder: the model folder, whose data files are those that its run was begun with (see `claim_data`).

    Returns:
        The result, and a line about the damage; empty if there was none.

    Raises:
        FileRefused: the results are damaged and cannot be made again.
        NewerFormat: a newer heedful wrote them; nothing is changed.
    """
    try:
        return read_or_make(), ""
    except NewerFormat:
        raise
    except FileRefused as error:
        damage = str(error)
    data = folder / "run" / "data"
    for entry in data.iterdir() if data.is_dir() else ():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry != folder / TOKENIZERS:  # it has the checksums of tokenizers that a begun training depends on
            entry.unlink()
    return read_or_make(), f"{damage.partition('; ')[0]}; prepared again from the data files"


def is_texts(value: object) -> TypeGuard[list[str]]:
    """Tell whether a JSON value is a list of texts."""
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def store_tokenizers(
    tokenizers: Mapping[str, tuple[Tokenizer, str]], folder: Path
) -> tuple[dict[str, str], dict[str, str]]:
    """Save tokenizers and record their checksums, unless a begun training depends on other tokenizers.

    Args:
        tokenizers: tokenizer and file name without suffix, by role.

    Returns:
        File names by role, and checksums by file name.

    Raises:
        FileRefused: a training has begun with other tokenizers; nothing is changed.
    """
    known = _known_tokenizers(folder)
    with temporary_path(folder / "tokenizers", is_folder=True) as temporary:
        names = {role: tokenizer.save(temporary, stem) for role, (tokenizer, stem) in tokenizers.items()}
        checksums = {name: digest(temporary / name) for name in names.values()}
        for name in checksums if known is not None else ():
            earlier = (known or {}).get(name) or (digest(folder / name) if (folder / name).is_file() else "")
            if earlier != checksums[name]:
                raise FileRefused(
                    f"{folder / name}: missing, damaged or made by another version, and the training depends on it; "
                    "restore it, or delete the folder to start over"
                )
        for name in checksums:
            (temporary / name).replace(folder / name)
    (folder / TOKENIZERS).parent.mkdir(parents=True, exist_ok=True)
    write_facts(folder / TOKENIZERS, PREPARED_FORMAT, {**names, "files": checksums})
    return names, checksums


def kept_tokenizer(
    train: Callable[[], Tokenizer], units: Units, normalization: Normalization, folder: Path
) -> tuple[Tokenizer, dict[str, str], dict[str, str]]:
    """Load the tokenizer that the folder has for one side's texts, or train and store one.

    Args:
        train: function that trains it.
        units: units of its tokens.

    Returns:
        The tokenizer, file names by role, and checksums by file name.

    Raises:
        FileRefused: a training has begun with another tokenizer; nothing is changed.
        NewerFormat: a newer heedful wrote it.
    """
    if (folder / TOKENIZERS).is_file():
        try:
            facts = read_prepared(folder / TOKENIZERS)
            names = {"tokenizer": str(facts.get("tokenizer"))}
            tokenizer = load_tokenizer(folder / names["tokenizer"], units, normalization)
            verify_files(folder, facts)
        except NewerFormat:
            raise
        except FileRefused:
            pass  # trained again, and compared with the one that a begun training depends on
        else:
            return tokenizer, names, _checksums(facts)
    tokenizer = train()
    return tokenizer, *store_tokenizers({"tokenizer": (tokenizer, "tokenizer")}, folder)


def _known_tokenizers(folder: Path) -> dict[str, str] | None:
    """Recorded checksums of the tokenizers that a begun training depends on; None if no training has begun."""
    if not has_begun(folder):
        return None
    try:
        return _checksums(read_prepared(folder / TOKENIZERS))
    except FileRefused:
        return {}


def _checksums(facts: Mapping[str, Any]) -> dict[str, str]:
    files = facts.get("files")
    return {str(name): str(value) for name, value in files.items()} if isinstance(files, dict) else {}


def verify_files(folder: Path, facts: Mapping[str, Any]) -> None:
    """Check files against their recorded checksums.

    Args:
        facts: a record, whose "files" has checksums by file name; records of earlier versions have none.

    Raises:
        FileRefused: a file is missing or damaged.
    """
    for name, recorded in _checksums(facts).items():
        if not (folder / name).is_file() or digest(folder / name) != recorded:
            raise FileRefused(f"{folder / name}: missing or changed since it was written")


def read_prepared(path: Path) -> dict[str, Any]:
    """Read a record of `run/data`; one of format 1 may be a bare number of pairs.

    Raises:
        FileRefused: it is missing or damaged.
        NewerFormat: a newer heedful wrote it.
    """
    with suppress(OSError, ValueError, DamagedFile):
        return {"num_pairs": int(read_bytes(path, _NUMBER_BYTES))}
    return read_facts(path, PREPARED_FORMAT, "prepare the data again")
