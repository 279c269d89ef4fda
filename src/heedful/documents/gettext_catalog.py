"""Catalogues of gettext (.po), read and written by the Translate Toolkit."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, final

from heedful.documents.interface import DocumentFile
from heedful.errors import DataError, needed_for
from heedful.text.tagged_text import TaggedText


@final
class GettextFile(DocumentFile):
    """Catalogue of gettext, whose messages without a translation are translated; others, also fuzzy ones, stay."""

    def __init__(self, content: bytes, most_bytes: int) -> None:
        """Read the messages.

        Raises:
            DataError: it is no catalogue.
            MissingExtra: the Translate Toolkit is not installed.
        """
        with needed_for("catalogues of texts"):
            reader = import_module("translate.storage.pypo")
        self._store: Final[Any] = _read(lambda: reader.pofile.parsestring(content), content, most_bytes)
        self._units: Final[list[Any]] = [
            unit
            for unit in self._store.units
            if unit.istranslatable() and not unit.isobsolete() and str(unit.source).strip() and not _is_translated(unit)
        ]

    @property
    def passages(self) -> list[TaggedText]:
        return [TaggedText(str(text)) for unit in self._units for text in _forms(unit)]

    def write(self, outputs: Sequence[TaggedText]) -> bytes:
        remaining = iter(outputs)
        number, _ = self._store.getheaderplural() or (None, None)
        for unit in self._units:
            forms = [next(remaining).text for _ in _forms(unit)]
            if len(forms) > 1:
                count = int(number) if number and str(number).isdigit() and int(number) < 10 else 2
                forms = [forms[0], *[forms[-1]] * (count - 1)]
            unit.target = forms if unit.hasplural() else forms[0]
        return bytes(self._store)


def _read(parse: Any, content: bytes, most_bytes: int) -> Any:
    if len(content) > most_bytes:
        raise DataError(f"its content exceeds {most_bytes} bytes")
    try:
        return parse()
    except MemoryError:
        raise
    except Exception as error:  # any error of the parser: the file is not what it claims to be
        raise DataError(f"not a readable catalogue ({type(error).__name__})") from None


def _is_translated(unit: Any) -> bool:
    return any(str(text).strip() for text in getattr(unit.target, "strings", [unit.target or ""]))


def _forms(unit: Any) -> list[str]:
    """Singular and plural of a message, or its one form."""
    return [*unit.source.strings] if unit.hasplural() else [unit.source]
