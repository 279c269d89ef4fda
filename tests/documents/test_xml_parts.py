"""Archives of XML parts: damage, bounds, and what stays to the byte."""

import contextlib
import io
import zipfile
from collections.abc import Callable

import pytest

from heedful.documents.table import FORMATS
from heedful.errors import DataError
from heedful.text.tagged_text import TaggedText
from tests.documents import made

MOST = 10_000_000
MADE = {".docx": made.word, ".pptx": made.presentation, ".odt": made.open_text, ".odp": made.open_presentation}


@pytest.mark.parametrize("ending", MADE)
def test_only_parts_with_text_change(ending: str):
    content = MADE[ending]()
    document = FORMATS[ending](content, MOST)
    written = document.write([TaggedText(each.text.replace("e", "é"), each.tags) for each in document.passages])
    assert [each.text for each in FORMATS[ending](written, MOST).passages] == [
        each.text.replace("e", "é") for each in document.passages
    ]
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(io.BytesIO(written)) as after:
        assert before.namelist() == after.namelist()
        changed = [name for name in before.namelist() if before.read(name) != after.read(name)]
    assert all(name.endswith(".xml") for name in changed)
    assert len(changed) <= 6


@pytest.mark.parametrize("ending", MADE)
def test_files_that_are_no_documents_are_refused(ending: str):
    with pytest.raises(DataError, match="not a document of this kind"):
        FORMATS[ending](b"text", MOST)
    with pytest.raises(DataError, match=r"not a readable \w+ \w+: it has no part with text"):
        FORMATS[ending](made.archive({"a.xml": b"<a/>"}), MOST)
    with pytest.raises(DataError, match="its content exceeds 10000000 bytes"):
        FORMATS[ending](made.archive({"a.xml": bytes(MOST + 1)}), MOST)
    content = MADE[ending]()
    with pytest.raises(DataError, match="not a "):
        FORMATS[ending](content[: len(content) // 2], MOST)


@pytest.mark.parametrize(
    "part",
    [
        b"<office:text",
        b"",
        b'<!DOCTYPE a [<!ENTITY b "xxxxxxxxxx"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><a>&c;</a>',
        b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]><a>&b;</a>',
        *[
            ("<a " + " ".join(f'xmlns:n{number}="n"' for number in range(300)) + "/>").encode(encoding)
            for encoding in ("utf-8", "utf-16")
        ],
    ],
)
def test_parts_that_are_no_xml_entities_and_many_namespaces_are_refused(part: bytes):
    for ending, name in ((".docx", "word/document.xml"), (".odt", "content.xml")):
        with pytest.raises(DataError, match=rf"not a readable \w+ \w+: {name}: \w"):
            FORMATS[ending](made.archive({name: part}), MOST)


def test_many_tags_are_refused_before_they_take_memory():
    namespace = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    part = f"<w:document {namespace}><w:body><w:p>{'<w:r/>' * 600_000}</w:p></w:body></w:document>"
    with pytest.raises(DataError, match="it has more than 500,000 tags; divide it"):
        FORMATS[".docx"](made.archive({"word/document.xml": part.encode()}), MOST)


def _word(text: str) -> bytes:
    namespace = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    body = text.replace("<a>", "<w:ins>").replace("</a>", "</w:ins>").replace("x", "<w:r><w:t>x</w:t></w:r>")
    part = f"<w:document {namespace}><w:body><w:p>{body}</w:p></w:body></w:document>"
    return made.archive({"word/document.xml": part.encode()})


def _open_text(text: str) -> bytes:
    names = 'xmlns:o="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    names += ' xmlns:t="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    body = text.replace("<a>", "<t:span>").replace("</a>", "</t:span>")
    part = f"<o:document-content {names}><o:body><o:text><t:p>{body}</t:p></o:text></o:body></o:document-content>"
    return made.archive({"mimetype": b"application/vnd.oasis.opendocument.text", "content.xml": part.encode()})


def _xliff(text: str) -> bytes:
    body = text.replace("<a>", '<pc id="1">').replace("</a>", "</pc>")
    return (
        '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="de"><file id="f"><unit id="u">'
        f"<segment><source>{body}</source></segment></unit></file></xliff>"
    ).encode()


@pytest.mark.parametrize(("ending", "frame"), [(".docx", _word), (".odt", _open_text), (".xlf", _xliff)])
def test_words_within_too_many_elements_stay(ending: str, frame: Callable[[str], bytes]):
    """Each word would have a tag for each of them."""
    for depth, expected in ((32, "xx"), (33, "x")):
        (passage,) = FORMATS[ending](frame(f"x{'<a>' * depth}x{'</a>' * depth}"), MOST).passages
        assert passage.text == expected, depth


def test_damaged_bytes_are_one_line_or_another_document():
    content = made.word()
    for place in range(40, len(content), len(content) // 60):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        with contextlib.suppress(DataError):  # any other exception fails the test
            document = FORMATS[".docx"](bytes(damaged), MOST)
            document.write(document.passages)
