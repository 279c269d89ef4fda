"""Texts of files in any common encoding: read as what their letters tell, and written the same way."""

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from heedful.documents.interface import decode_text
from heedful.errors import DataError
from heedful.text.encodings import guess_encoding, is_mostly_utf8

UTF8: Final = "UTF-8"
_SAMPLE_BYTES: Final = 1 << 16
_CONTROLS: Final = re.compile("[\x00-\x08\x0e-\x1a\x7f-\x84\x86-\x9f]")
_DOS_END: Final = b"\x1a"
_WESTERN: Final = (
    *("äöüßéèàâç", "àâæçéèêëîïôœùûüÿ", "áéíóúüñ", "àáâãçéêíóôõúü", "àèéìíîòóù"),
    *("áéèëïíóöüú", "æøåéó", "åäöéü", "àçéèíïòóúü"),
)
"""Letters of languages that CP1252 is for, German first; a Czech text read so has letters of several."""
_VOWELS: Final = frozenset("оеаиуыяюіїєёэъѝ")
_LEAST_VOWELS: Final = 0.3
"""Least share of these among the letters of CP1251 that ASCII lacks; of Greek or Hebrew read so it is smaller."""
_FEWEST_LETTERS: Final[Mapping[str, int]] = {"CP1252": 2, "CP1251": 8}
_FEWEST_WIDE: Final = 6
"""Fewest letters that ASCII lacks by which another encoding is known."""
_MOST_NUL: Final = 0.2


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
            text = decode_text(content)
        except DataError:
            lines = content[: 16 * _SAMPLE_BYTES].split(b"\n")
            sample = b"\n".join(line for line in lines if not line.isascii())[:_SAMPLE_BYTES]
            if is_mostly_utf8(sample or content[:_SAMPLE_BYTES]):
                raise
            return cls._guessed(content, sample)
        if text.count("\0") > _MOST_NUL * len(text):
            raise DataError("not UTF-8 text, but perhaps UTF-16; convert the file to UTF-8")
        return cls(text)

    @classmethod
    def _guessed(cls, content: bytes, sample: bytes) -> "EncodedText":
        """Text in the encoding that the letters of a sample tell.

        Raises:
            DataError: they tell none for sure.
        """
        guess = guess_encoding(sample)
        # CP1252 has all letters of ISO-8859-1, and the quotation marks that a translation may bring.
        encoding = "CP1252" if guess == "ISO-8859-1" else guess
        text = _decoded(content.removesuffix(_DOS_END), encoding)
        letters = [letter for letter in text.lower() if letter > "\x7f" and letter.isalpha()]
        if encoding == "CP1252":
            is_sure = any(set(letters) <= set(alphabet) for alphabet in _WESTERN)
        else:
            share = sum(map(_VOWELS.__contains__, letters)) / max(1, len(letters))
            is_sure = encoding != "CP1251" or share >= _LEAST_VOWELS
        if not is_sure or len(letters) < _FEWEST_LETTERS.get(encoding, _FEWEST_WIDE):
            raise DataError("not UTF-8 text, and in no other encoding for sure; convert the file to UTF-8")
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
