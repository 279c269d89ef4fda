"""Records: JSON files with a format version and a checksum, written whole; a damaged one is refused.

Records of earlier versions of heedful have no checksum and are accepted without one.
"""

import json
from abc import ABC
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from heedful.errors import DamagedFile, FileRefused
from heedful.files.atomic_write import atomic_write
from heedful.files.bounded_read import MOST_BULK_BYTES, read_json_object
from heedful.files.formats import Format

CHECKSUM: Final = "sha256"
"""Key of the sha256 of all other keys and values."""


def write_facts(path: Path, kind: Format, facts: Mapping[str, Any]) -> None:
    """Write a record.

    Args:
        path: the file; it is replaced when the new one is complete.
        facts: content, as JSON values.

    Raises:
        FileRefused: a folder, a pipe or a device is in the place of the file, or a link to one.
        OSError: the disk is full or refuses.
    """
    with atomic_write(path, is_internal=True) as stream:
        json.dump(sealed(kind, facts), stream, indent=1)


def read_facts(path: Path, kind: Format, advice: str) -> dict[str, Any]:
    """Read a record.

    Args:
        advice: end of the message about a damaged record, which says what to do.

    Returns:
        The content, without version and checksum.

    Raises:
        FileRefused: the file is missing, is not a JSON object, or does not match its checksum.
        NewerFormat: a newer heedful wrote it.
    """
    try:
        facts = read_json_object(path, MOST_BULK_BYTES)
    except FileNotFoundError:
        raise FileRefused(f"{path}: missing; {advice}") from None
    except DamagedFile as error:
        raise FileRefused(f"{str(error).rpartition('; ')[0]}; {advice}") from None
    content = kind.strip(path, facts)
    if not is_as_written(facts):
        raise FileRefused(f"{path}: damaged: it does not match its checksum; {advice}")
    return {key: value for key, value in content.items() if key != CHECKSUM}


def sealed(kind: Format, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a record, or of one line of a log, with its version and its checksum."""
    # As it will be read: tuples become lists, and bytes of file names that are no UTF-8 question marks.
    stamped = json.loads(json.dumps(kind.stamp(facts), ensure_ascii=False).encode(errors="replace"))
    return {**stamped, CHECKSUM: checksum(stamped)}


def is_as_written(facts: Mapping[str, Any]) -> bool:
    """Tell whether a record matches its checksum; those of earlier versions have none, and are believed."""
    return CHECKSUM not in facts or facts[CHECKSUM] == checksum({k: v for k, v in facts.items() if k != CHECKSUM})


class RecordSchema(BaseModel, ABC):
    """Schema of the values that readers of a record rely on; a subclass has a field for each and ignores other keys."""

    model_config = ConfigDict(extra="ignore", strict=True)

    @classmethod
    def error(cls, facts: Mapping[str, Any]) -> str:
        """Describe the first value of a record that does not fit.

        Returns:
            Such as "languages: input should be a valid list"; empty if all values are right.
        """
        try:
            cls.model_validate(facts)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            return f"{'.'.join(map(str, first['loc']))}: {first['msg'][:1].lower()}{first['msg'][1:]}"
        return ""


_CANONICAL: Final = json.JSONEncoder(sort_keys=True)


def checksum(facts: Mapping[str, Any]) -> str:
    """Compute the checksum of a record.

    Args:
        facts: the record as it is read from its file, without the entry `CHECKSUM`.

    Returns:
        The sha256 of its canonical form, in hexadecimal digits.
    """
    return sha256(_CANONICAL.encode(facts).encode("ascii")).hexdigest()
