"""Translation memories (TMX 1.4b): read as one row of texts by language per translation unit, and written.

Inline codes of formatting (bpt, ept, it, ph, ut) are left out of the texts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from itertools import chain, islice
from pathlib import Path
from typing import Final, TextIO, final

from heedful.errors import DataError
from heedful.text.lines import MAX_LINE_BYTES
from heedful.text.xml_files import XmlHandlers, parse_xml
from heedful.version import __version__

SUFFIX: Final = ".tmx"
_SAMPLE_UNITS: Final = 1000
"""Number of units inspected to find the languages."""
_MOST_LANGUAGES: Final = 100
"""Languages of a file that is read as rows, each of which has a text for each of them."""
_CODES: Final = frozenset(("bpt", "ept", "it", "ph", "ut", "sub"))
_UNWRITABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML 1.0 cannot represent, not even escaped."""
_BREAKS: Final = re.compile(r"(?<! ) *+[\r\n\t][ \r\n\t]*+")


def is_tmx(path: Path) -> bool:
    """Tell whether a file is a translation memory, by its name.

    Returns:
        Whether its name ends in .tmx or .tmx.gz.
    """
    return path.name.lower().removesuffix(".gz").endswith(SUFFIX) and path.is_file()


def tmx_rows(path: Path) -> Iterator[dict[str, str]]:
    """Read the units of a translation memory.

    Args:
        path: the file; may be gzipped, and in any encoding that XML can declare.

    Yields:
        For each unit, its text by language code in lower case, the file's source language first; "" where it has none
        in a language of the first units.

    Raises:
        DataError: the file cannot be read, is not well-formed, declares entities, or has no unit with two languages.
    """
    parser = _Parser(path)
    units = parser.units()
    first = list(islice(units, _SAMPLE_UNITS))
    languages = {language: None for unit in first for language in unit}
    if len(languages) > _MOST_LANGUAGES:
        raise DataError(
            f"{path}: texts in {len(languages):,} languages; divide it, {_MOST_LANGUAGES} at most in a file"
        )
    order = sorted(languages, key=lambda language: language != parser.source_language)
    if len(order) < 2:
        raise DataError(f"{path}: no translation units in two languages; is it a TMX file?")
    for unit in chain(first, units):
        yield {language: unit.get(language, "") for language in order}


def tmx_pairs(path: Path, source: str, target: str) -> Iterator[tuple[str, str]]:
    """Read the texts of two languages from a translation memory, whatever their order in it.

    Args:
        path: the file; may be gzipped, and in any encoding that XML can declare.
        source: code of the source language; de stands for de-AT too, and de-AT for de, unless the unit has the same.

    Yields:
        For each unit, its source and its target; "" where it has no text in the language.

    Raises:
        DataError: the file cannot be read, is not well-formed, declares entities, or has no unit with both languages.
    """
    languages: dict[str, None] = {}
    has_both = False
    for unit in _Parser(path).units():
        languages |= dict.fromkeys(unit)
        pair = _in_language(unit, source), _in_language(unit, target)
        has_both = has_both or all(pair)
        yield pair
    if not has_both:
        kinds = ", ".join(languages) or "none; is it a TMX file?"
        raise DataError(f"{path}: no unit has text in both {source} and {target}; languages of its units: {kinds}")


def tmx_languages(path: Path) -> list[str]:
    """List the languages of the first units of a translation memory.

    Returns:
        Codes in lower case, in order of first occurrence.

    Raises:
        DataError: the file cannot be read, is not well-formed, or declares entities.
    """
    return [*dict.fromkeys(language for unit in islice(_Parser(path).units(), _SAMPLE_UNITS) for language in unit)]


def _in_language(unit: Mapping[str, str], code: str) -> str:
    """Text of a unit in a language, or else in one that differs by its region only; "" without any."""
    texts = {language.replace("_", "-"): text for language, text in unit.items() if text}
    code = code.lower().replace("_", "-")
    related = (text for language, text in texts.items() if f"{language}-".startswith(f"{code}-"))
    wider = (text for language, text in texts.items() if code.startswith(f"{language}-"))
    return texts.get(code) or next(related, "") or next(wider, "")


def write_tmx(stream: TextIO, languages: tuple[str, str], pairs: Iterable[tuple[str, str]]) -> None:
    """Write pairs of texts as a translation memory.

    Args:
        stream: where to write.
        languages: codes of source and target.
        pairs: a source and a target each; characters that XML has no room for become U+FFFD.
    """
    source, target = (f'"{escape(code)}"' for code in languages)
    stream.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n'
        f'<header creationtool="heedful" creationtoolversion="{escape(__version__)}" segtype="sentence" '
        f'o-tmf="heedful" adminlang="en" srclang={source} datatype="plaintext"/>\n<body>\n'
    )
    for pair in pairs:
        left, right = (escape(_UNWRITABLE.sub("\ufffd", text), quote=False) for text in pair)
        stream.write(
            f"<tu><tuv xml:lang={source}><seg>{left}</seg></tuv><tuv xml:lang={target}><seg>{right}</seg></tuv></tu>\n"
        )
    stream.write("</body>\n</tmx>\n")


@final
class _Parser:
    """State of reading one file."""

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self.source_language = ""
        self._ready: list[dict[str, str]] = []
        self._unit: dict[str, str] = {}
        self._language = ""
        self._text: list[str] | None = None
        self._num_characters = 0
        self._code_depth = 0

    def units(self) -> Iterator[dict[str, str]]:
        for _ in parse_xml(self._path, XmlHandlers(self._start, self._end, self._add)):
            yield from self._ready
            self._ready.clear()

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "header":
            self.source_language = attributes.get("srclang", "").lower()
        elif name == "tu":
            self._unit = {}
        elif name == "tuv":
            self._language = (attributes.get("xml:lang") or attributes.get("lang", "")).lower()
        elif name == "seg":
            self._text, self._num_characters, self._code_depth = [], 0, 0
        elif name in _CODES:
            self._code_depth += 1

    def _end(self, name: str) -> None:
        if name == "seg" and self._text is not None:
            text = _BREAKS.sub(" ", "".join(self._text)).strip(" ")
            self._text = None
            if self._language:
                self._unit.setdefault(self._language, text)
        elif name == "tu":
            self._ready.append(self._unit)
            self._unit = {}
        elif name in _CODES:
            self._code_depth -= 1

    def _add(self, text: str) -> None:
        if self._text is None or self._code_depth:
            return
        self._num_characters += len(text)
        if self._num_characters > MAX_LINE_BYTES:
            raise DataError(f"{self._path}: a segment longer than {MAX_LINE_BYTES >> 20} MiB; is this a TMX file?")
        self._text.append(text)
