"""Documents whose texts are written in capitals, so that what else changes is seen."""

from heedful.documents.table import FORMATS
from heedful.text.tagged_text import TaggedText


def texts(ending: str, source: str | bytes) -> list[str]:
    content = source.encode() if isinstance(source, str) else source
    return [each.text for each in FORMATS[ending](content, 10_000_000).passages]


def in_capitals(ending: str, source: str | bytes) -> str:
    """The file with its texts in capitals, after a check that without a change it stays as it is."""
    content = source.encode() if isinstance(source, str) else source
    document = FORMATS[ending](content, 10_000_000)
    outputs = [TaggedText(each.text.upper(), each.tags) for each in document.passages]
    if ending not in (".po", ".xlf"):  # in which a translation that equals its source is written all the same
        assert document.write(document.passages) == content
    return FORMATS[ending](content, 10_000_000).write(outputs).decode()
