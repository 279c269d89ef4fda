"""Heads of XML files: declaration, comments and the tag of the root, which stay when a library has written the rest."""

import codecs
import re
from typing import Final

from heedful.documents.html_tokens import html_tokens

_ENCODING: Final = re.compile(r"\A(<\?xml[^>?]*?\sencoding\s*+=\s*+[\"'])[^\"'>]*+")


def with_head(written: bytes, content: bytes, encoding: str) -> bytes:
    """Give an XML file the head, the line ends and the end of the file from which it comes.

    Args:
        written: the file in UTF-8, with the root that the other has.
        content: the file as it was.
        encoding: its encoding.

    Returns:
        The file in UTF-8, which it declares where the other declares its encoding.
    """
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    source, text = content.decode(encoding).removeprefix("\ufeff"), written.decode("utf-8")
    head, rest = _root_end(source), _root_end(text)
    if not (head and rest):
        return written
    body = text[rest:] + source[source.rfind(">") + 1 :].replace("\r\n", "\n")
    if 0 < source.count("\n") == source.count("\r\n"):
        body = body.replace("\n", "\r\n")
    return mark + (_ENCODING.sub(r"\1UTF-8", source[:head]) + body).encode("utf-8")


def _root_end(document: str) -> int:
    """Place behind the start tag of the root; 0 if the root is empty."""
    root = next((token for token in html_tokens(document, is_xml=True) if token.kind == "start"), None)
    return 0 if root is None or root.is_empty else root.end
