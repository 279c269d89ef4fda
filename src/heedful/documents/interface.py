"""Interface of documents: passages to translate, and the file that is written with their translations."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from heedful.errors import DataError
from heedful.text.tagged_text import TaggedText


class DocumentFile(ABC):
    """Opened document."""

    encoding: str = "UTF-8"
    """Encoding of its text."""

    @property
    @abstractmethod
    def passages(self) -> list[TaggedText]:
        """Texts to translate with their inline tags, in order: paragraphs, cells, titles, subtitles."""

    @abstractmethod
    def write(self, outputs: Sequence[TaggedText]) -> bytes:
        """Write the document with translated passages; all else stays as it is.

        Args:
            outputs: translation of each passage, with the same tags.
        """


def decode_text(content: bytes) -> str:
    """Decode a text file.

    Args:
        content: UTF-8, with or without a byte order mark.

    Raises:
        DataError: it is not UTF-8.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError("not UTF-8 text; convert the file to UTF-8") from None
