"""Archives of XML parts: damage, bounds, and what stays to the byte."""

import contextlib
import io
import zipfile

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


def test_damaged_bytes_are_one_line_or_another_document():
    content = made.word()
    for place in range(40, len(content), len(content) // 60):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        with contextlib.suppress(DataError):  # any other exception fails the test
            document = FORMATS[".docx"](bytes(damaged), MOST)
            document.write(document.passages)
