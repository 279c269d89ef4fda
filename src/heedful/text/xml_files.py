"""Safe reader of XML files: elements are handed over as they are read, and entity declarations are refused.

So no entity expands or reads another file (XML bombs, XXE); a DOCTYPE is allowed, and never fetched.
"""

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final, final
from xml.parsers import expat

from heedful.errors import DataError
from heedful.text.lines import BYTE_ORDER_MARK, read_chunks

_DECLARATION: Final = re.compile(rb"""\s*+<\?xml[^>]*?\sencoding\s*+=\s*+["']([^"'>]*+)["']""")
_HEAD: Final = re.compile(rb"\s*+<\?xml\s")
_HEAD_BYTES: Final = 1024
_OF_EXPAT: Final = frozenset({"utf-8", "utf-16", "iso8859-1", "ascii"})
_NO_ENCODINGS_OF_FILES: Final = frozenset(
    {"utf-7", "idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "mbcs", "oem"}
)
"""Text codecs of Python that would make markup out of other bytes, or fail."""


@final
@dataclass(frozen=True)
class XmlHandlers:
    """Functions that are called with what is read."""

    start: Callable[[str, dict[str, str]], None]
    """Called at the start of an element with its name and attributes."""
    end: Callable[[str], None]
    """Called at the end of an element with its name."""
    add: Callable[[str], None]
    """Called with text between them, in pieces."""


def parse_xml(path: Path, handlers: XmlHandlers) -> Iterator[None]:
    """Read an XML file.

    Args:
        path: the file; may be gzipped, and in any encoding that XML can declare.
        handlers: called in the order of the file.

    Yields:
        Nothing, after each chunk of the file.

    Raises:
        DataError: the file cannot be read, is not well-formed or declares entities.
        ValueError: a handler raised it.
        LookupError: a handler raised it.
    """
    chunks = read_chunks(path)
    head = next(chunks, b"")
    try:
        # UTF-16 has become UTF-8, whatever the XML declaration says.
        codec = "" if head.startswith(BYTE_ORDER_MARK) else declared_codec(head)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None
    decoder = codecs.getincrementaldecoder(codec)() if codec else None
    parser = expat.ParserCreate("UTF-8" if head.startswith(BYTE_ORDER_MARK) or decoder else None)
    parser.buffer_text = True
    parser.StartElementHandler = handlers.start
    parser.EndElementHandler = handlers.end
    parser.CharacterDataHandler = handlers.add

    def refuse_entity(name: str, *rest: object) -> None:
        raise DataError(f"{path}: declares the entity {name!r}, which may expand without bound; remove it")

    parser.EntityDeclHandler = refuse_entity
    try:
        for chunk in chain([head], chunks):
            parser.Parse(decoder.decode(chunk).encode() if decoder else chunk, False)
            yield
        parser.Parse(decoder.decode(b"", True).encode() if decoder else b"", True)
    except UnicodeError as error:
        reason = getattr(error, "reason", str(error))
        raise DataError(
            f"{path}: behind line {parser.CurrentLineNumber} not in the encoding that it declares, {codec} ({reason}); "
            "save it in UTF-8 and declare that"
        ) from None
    except (ValueError, LookupError) as error:  # expat found a declaration in bytes of UTF-16, say
        if "encoding" not in str(error):
            raise
        raise DataError(f"{path}: {error}; save it in UTF-8 and declare that") from None
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise DataError(f"{path}:{error.lineno}:{error.offset + 1}: not XML: {reason}; write it again") from None
    yield


def declared_codec(head: bytes) -> str:
    """Find the encoding that an XML file declares, if only Python may know it.

    Args:
        head: beginning of the file, or all of it.

    Returns:
        Name of the encoding, such as "gbk" or "Shift_JIS", which Python knows; empty if every XML parser reads it, or
        none is declared.

    Raises:
        ValueError: no file is read in that encoding, or the declaration is too long to be one.

    Example:
        >>> declared_codec(b'<?xml version="1.0" encoding="GB2312"?>')
        'GB2312'
    """
    if _HEAD.match(head) and b"?>" not in head[:_HEAD_BYTES]:  # parsers would find an encoding beyond
        raise ValueError(f"its XML declaration has more than {_HEAD_BYTES:,} bytes; write one without blanks")
    match = _DECLARATION.match(head[:_HEAD_BYTES])
    if match is None:
        return ""
    declared = match[1].decode("ascii", "replace")
    try:
        name = codecs.lookup(declared).name.replace("_", "-")
        "a".encode(declared)  # refuses codecs that give no text, such as zlib
    except (LookupError, ValueError):  # also of a name that is none, or no text
        name = "undefined"
    if name in _NO_ENCODINGS_OF_FILES:
        raise ValueError(f"declares the encoding {declared!r}, which no file is read in; convert it to UTF-8")
    return "" if name in _OF_EXPAT else declared
