"""Files of plain text and of HTML."""

from collections.abc import Sequence
from typing import Final, final

from heedful.documents.encoded_text import EncodedText
from heedful.documents.html import HtmlMarkup
from heedful.documents.interface import DocumentFile, decode_text
from heedful.text.tagged_text import TaggedText


@final
class TextFile(DocumentFile):
    """Plain text, one passage; line ends become line feeds."""

    def __init__(self, content: bytes, most_bytes: int) -> None:
        """Decode the file.

        Args:
            most_bytes: bound of its unpacked size.
        """
        self._encoded: Final = EncodedText.of(content)
        self.encoding = self._encoded.encoding
        self._text: Final = self._encoded.text.replace("\r\n", "\n").replace("\r", "\n")

    @property
    def passages(self) -> list[TaggedText]:
        return [TaggedText(self._text)]

    def write(self, outputs: Sequence[TaggedText]) -> bytes:
        return self._encoded.write(outputs[0].text)


@final
class HtmlFile(DocumentFile):
    """HTML page; what is not translated stays to the character."""

    def __init__(self, content: bytes, most_bytes: int) -> None:
        """Read the page.

        Args:
            most_bytes: bound of its unpacked size.
        """
        self._markup: Final = HtmlMarkup(decode_text(content))

    @property
    def passages(self) -> list[TaggedText]:
        return self._markup.passages

    def write(self, outputs: Sequence[TaggedText]) -> bytes:
        return self._markup.write(outputs).encode("utf-8")
