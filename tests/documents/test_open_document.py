"""OpenDocument texts and presentations."""

import io

import pytest

from heedful.documents.open_document import OpenDocumentFile
from heedful.text.tagged_text import TaggedText
from tests.documents import made

MOST = 10_000_000


def test_spans_are_tags_and_notes_are_passages():
    odfdo = pytest.importorskip("odfdo")
    document = OpenDocumentFile(made.open_text(), MOST)
    texts = ["title", "a bold word and more", "after tab end", "note", "one", "two"]
    assert [each.text for each in document.passages] == texts
    written = document.write([TaggedText(each.text.upper(), each.tags) for each in document.passages])
    body = odfdo.Document(io.BytesIO(written)).body.serialize()
    assert (
        '<text:p>A <text:span text:style-name="T1">BOLD</text:span> WORD<text:line-break/>AND MORE<text:tab/>AFTER TAB'
        "<text:note>"
    ) in body


def test_slides_are_read():
    odfdo = pytest.importorskip("odfdo")
    document = OpenDocumentFile(made.open_presentation(), MOST)
    assert [each.text for each in document.passages] == ["title"]
    written = odfdo.Document(io.BytesIO(document.write([TaggedText("TITEL")])))
    assert "TITEL" in written.body.serialize()
