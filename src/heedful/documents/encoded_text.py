"""Texts of files in any common encoding: read as what their letters tell, and written the same way."""

import codecs
import re
from dataclasses import dataclass
from typing import Final, final

from heedful.documents.interface import decode_text
from heedful.errors import DataError
from heedful.text.encodings import guess_encoding, is_mostly_utf8

UTF8: Final = "UTF-8"
_SAMPLE_BYTES: Final = 1 << 16
_BEYOND_ASCII: Final = re.compile(rb"[^\n]*[\x80-\xff][^\n]*\n?")
_CONTROLS: Final = re.compile("[\x00-\x08\x0e-\x1a\x7f-\x84\x86-\x9f]")
_WITHIN_WORD: Final = re.compile(r"[^\W\d_][\u00a1-\u00bf\u00d7\u00f7][^\W\d_]")
"""Sign between two letters: a letter in the encoding that the text is in."""
_MIDDLE_DOT: Final = "\u00b7"


@final
@dataclass(frozen=True)
class EncodedText:
    """Text of a file, and the encoding that it is in."""

    text: str
    encoding: str = UTF8
    mark: bytes = b""
    """Byte order mark in front of it."""

    @classmethod
    def of(cls, content: bytes) -> "EncodedText":
        """Decode a text file.

        Args:
            content: UTF-8, UTF-16 with a byte order mark, or an encoding that its letters tell.

        Raises:
            DataError: it is not text, or in no encoding that is known.
        """
        for mark, encoding in ((codecs.BOM_UTF16_LE, "UTF-16LE"), (codecs.BOM_UTF16_BE, "UTF-16BE")):
            if content.startswith(mark):
                return cls(_decoded(content[2:], encoding), encoding, mark)
        try:
            return cls(decode_text(content))
        except DataError:
            sample = b"".join(_BEYOND_ASCII.findall(content[: 16 * _SAMPLE_BYTES]))[:_SAMPLE_BYTES]
            if is_mostly_utf8(sample or content[:_SAMPLE_BYTES]):
                raise
        encoding = guess_encoding(sample)
        # CP1252 has all letters of ISO-8859-1, and the quotation marks that a translation may bring.
        encoding = "CP1252" if encoding == "ISO-8859-1" else encoding
        text = _decoded(content, encoding)
        signs = [match[0] for match in _WITHIN_WORD.finditer(text) if match[0][1] != _MIDDLE_DOT]
        if encoding == "CP1252" and signs:
            raise DataError(f"not UTF-8 text, nor CP1252, which would have {signs[0]}; convert the file to UTF-8")
        return cls(text, encoding)

    def write(self, text: str) -> bytes:
        """Write a text in the same encoding, or in UTF-8 where this lacks a character of it."""
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError:
            return text.encode("utf-8")


def _decoded(content: bytes, encoding: str) -> str:
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        text = "\0"
    if _CONTROLS.search(text):
        raise DataError("not UTF-8 text; convert the file to UTF-8")
    return text
