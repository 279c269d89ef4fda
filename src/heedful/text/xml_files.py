"""Safe reader of XML files: elements are handed over as they are read, and entity declarations are refused.

So no entity expands or reads another file (XML bombs, XXE); a DOCTYPE is allowed, and never fetched.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import final
from xml.parsers import expat

from heedful.errors import DataError
from heedful.text.lines import BYTE_ORDER_MARK, read_chunks


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
    """
    chunks = read_chunks(path)
    head = next(chunks, b"")
    # UTF-16 has become UTF-8, whatever the XML declaration says.
    parser = expat.ParserCreate("UTF-8" if head.startswith(BYTE_ORDER_MARK) else None)
    parser.buffer_text = True
    parser.StartElementHandler = handlers.start
    parser.EndElementHandler = handlers.end
    parser.CharacterDataHandler = handlers.add

    def refuse_entity(name: str, *rest: object) -> None:
        raise DataError(f"{path}: declares the entity {name!r}, which may expand without bound; remove it")

    parser.EntityDeclHandler = refuse_entity
    try:
        for chunk in chain([head], chunks):
            parser.Parse(chunk, False)
            yield
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise DataError(f"{path}:{error.lineno}:{error.offset + 1}: not XML: {reason}") from None
    yield
