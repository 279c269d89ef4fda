"""Term bases (TBX-Basic): the terms of each concept in two languages.

Read in both forms, ISO 30042:2008 (martif, termEntry, langSet) and ISO 30042:2019 (tbx, conceptEntry, langSec), the
latter with data categories as attributes or as elements. Definitions, contexts and pictures are left out.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, final

from heedful.errors import DataError
from heedful.text.lines import MAX_LINE_BYTES
from heedful.text.xml_files import XmlHandlers, parse_xml

SUFFIX: Final = ".tbx"
_CONCEPTS: Final = frozenset(("termEntry", "conceptEntry"))
_LANGUAGES: Final = frozenset(("langSet", "langSec"))
_TERMS: Final = frozenset(("tig", "ntig", "termSec"))
_STATUS: Final = "administrativeStatus"
_PREFERRED: Final = "preferredTerm"
_UNWANTED: Final = ("deprecatedTerm", "supersededTerm")
"""Beginnings of the states of terms that are not to be written."""


def is_tbx(path: Path) -> bool:
    """Tell whether a file is a term base, by its name.

    Returns:
        Whether its name ends in .tbx or .tbx.gz.
    """
    return path.name.lower().removesuffix(".gz").endswith(SUFFIX)


def tbx_pairs(path: Path, source: str, target: str) -> Iterator[tuple[int, str, str]]:
    """Read the terms of a term base.

    Args:
        path: the file; may be gzipped, and in any encoding that XML can declare.
        source: code of the source language; de stands for de-AT too, unless the concept has a de.

    Yields:
        Number of the concept from 1, one of its source terms whatever its state, and its target term: the preferred
        one, or else the first that is neither deprecated nor superseded. Concepts without such terms are left out.

    Raises:
        DataError: the file cannot be read, is not well-formed, declares entities, or has no terms in a language.
    """
    parser = _Parser(path)
    languages: dict[str, None] = {}
    for number, concept in enumerate(parser.concepts(), 1):
        languages |= dict.fromkeys(concept)
        forms = sorted(_in_language(concept, target), key=lambda term: not term[1].startswith(_PREFERRED))
        wanted = next((text for text, state in forms if not state.startswith(_UNWANTED)), "")
        if wanted:
            yield from ((number, text, wanted) for text, _ in _in_language(concept, source))
    for code in (source, target):
        if not _in_language({language: [("", "")] for language in languages}, code):
            there = ", ".join(languages) or "none; is it a TBX file?"
            raise DataError(f"{path}: no terms in the language {code!r}; languages of its terms: {there}")


_Concept = dict[str, list[tuple[str, str]]]
"""Terms of a concept by language code in lower case, each with its state; empty = none is given."""


def _in_language(concept: _Concept, code: str) -> list[tuple[str, str]]:
    code = code.lower().replace("_", "-")
    return concept.get(code) or [
        term for language, terms in concept.items() if language.startswith(f"{code}-") for term in terms
    ]


@final
class _Parser:
    """State of reading one file."""

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self._ready: list[_Concept] = []
        self._concept: _Concept = {}
        self._language = ""
        self._term = self._state = ""
        self._text: list[str] | None = None
        self._num_characters = 0

    def concepts(self) -> Iterator[_Concept]:
        for _ in parse_xml(self._path, XmlHandlers(self._start, self._end, self._add)):
            yield from self._ready
            self._ready.clear()

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if name in _CONCEPTS:
            self._concept = {}
        elif name in _LANGUAGES:
            self._language = attributes.get("xml:lang", "").lower().replace("_", "-")
        elif name in _TERMS:
            self._term = self._state = ""
        elif name == "term" or _STATUS in (name, attributes.get("type")):
            self._text, self._num_characters = [], 0

    def _end(self, name: str) -> None:
        name = name.rpartition(":")[2]
        if name in _CONCEPTS:
            self._ready.append(self._concept)
            self._concept = {}
        elif name in _TERMS:
            if self._term and self._language:
                self._concept.setdefault(self._language, []).append((self._term, self._state))
        elif name == "term":
            self._term = self._taken()
        elif self._text is not None and name in ("termNote", _STATUS):
            self._state = self._taken()

    def _taken(self) -> str:
        text = " ".join("".join(self._text or ()).split())
        self._text = None
        return text

    def _add(self, text: str) -> None:
        if self._text is None:
            return
        self._num_characters += len(text)
        if self._num_characters > MAX_LINE_BYTES:
            raise DataError(f"{self._path}: a term longer than {MAX_LINE_BYTES >> 20} MiB; is this a TBX file?")
        self._text.append(text)
