r"""Texts of Java programs (.properties): values are translated, the rest stays to the character.

Source: java.util.Properties.load: a value goes on in the next line after a backslash, and ``\u00e4`` is a character.
"""

import re
from collections.abc import Sequence
from typing import Final, final

from heedful.documents.interface import DocumentFile, decode_text
from heedful.text.identifiers import is_identifier
from heedful.text.tagged_text import TaggedText

_LOGICAL_LINE: Final = re.compile(r"(?:[^\\\r\n]|\\\r\n|\\[^\r]|\\\r(?!\n)|\\\Z)++")
_KEY: Final = re.compile(r"[ \t\f]*+(?:[^\\ \t\f:=\r\n]|\\.)++[ \t\f]*+[:=]?[ \t\f]*+", re.DOTALL)
_CONTINUED: Final = re.compile(r"\\(?:\r\n|\r|\n)[ \t\f]*+")
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROL: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_WRITTEN: Final = {"\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\f": r"\f"}


@final
class PropertiesFile(DocumentFile):
    """Texts by their keys, in UTF-8, or in ASCII with escapes."""

    def __init__(self, content: bytes, most_bytes: int) -> None:
        """Read the texts.

        Args:
            most_bytes: bound of its unpacked size.
        """
        self._document: Final = decode_text(content)
        self._texts: Final[list[tuple[int, int, str]]] = []  # start and end of the value, and its text
        for line in _LOGICAL_LINE.finditer(self._document):
            written = line[0]
            if written.lstrip(" \t\f").startswith(("#", "!")):
                continue
            key = _KEY.match(written)
            text = _text(written[key.end() :]) if key else ""
            is_whole = not any("\ud800" <= character <= "\udfff" for character in text)
            if key and text.strip() and is_whole and not is_identifier(text, key[0].strip(" \t\f:=")):
                self._texts.append((line.start() + key.end(), line.end(), text))

    @property
    def passages(self) -> list[TaggedText]:
        return [TaggedText(text) for _, _, text in self._texts]

    def write(self, outputs: Sequence[TaggedText]) -> bytes:
        written: list[str] = []
        offset = 0
        for (start, end, text), output in zip(self._texts, outputs, strict=True):
            if output.text != text:
                written += [self._document[offset:start], self._escaped(output.text)]
                offset = end
        return "".join([*written, self._document[offset:]]).encode("utf-8")

    def _escaped(self, text: str) -> str:
        escaped = "".join(_WRITTEN.get(character, character) for character in text)
        escaped = "\\" * escaped.startswith(" ") + escaped
        if not self._document.isascii():
            return escaped
        # In a file of ASCII alone, Java programs of before version 9 read no other characters.
        units = (character.encode("utf-16-be").hex() for character in escaped if not character.isascii())
        codes = iter("".join(rf"\u{unit[start : start + 4]}" for start in range(0, len(unit), 4)) for unit in units)
        return "".join(character if character.isascii() else next(codes) for character in escaped)


def _text(written: str) -> str:
    joined = _CONTINUED.sub("", written)
    text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else _CONTROL.get(match[2], match[2]), joined)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\u" in joined else text
