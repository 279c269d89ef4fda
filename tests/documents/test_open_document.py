"""OpenDocument texts and presentations."""

import io
import zipfile

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
    assert [each.text for each in document.passages] == ["title", "presentation"]
    written = odfdo.Document(io.BytesIO(document.write([TaggedText("TITEL"), TaggedText("VORTRAG")])))
    assert "TITEL" in written.body.serialize()
    assert written.meta.title == "VORTRAG"


def test_a_translated_cell_has_no_value_in_the_other_language():
    names = " ".join(
        f'xmlns:{one}="urn:oasis:names:tc:opendocument:xmlns:{one}:1.0"' for one in ("office", "table", "text")
    )
    cell = (
        '<table:table-cell office:value-type="string" office:string-value="{0}"><text:p>{0}</text:p></table:table-cell>'
    )
    table = f"<table:table><table:table-row>{cell.format('hund')}{cell.format('X')}</table:table-row></table:table>"
    body = f"<office:body><office:text>{table}</office:text></office:body>"
    content = made.archive(
        {"content.xml": f"<office:document-content {names}>{body}</office:document-content>".encode()}
    )
    document = OpenDocumentFile(content, MOST)
    written = document.write([TaggedText(each.text.upper(), each.tags) for each in document.passages])
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        changed = archive.read("content.xml").decode()
    assert '<table:table-cell office:value-type="string"><text:p>HUND</text:p>' in changed
    assert 'office:string-value="X"><text:p>X</text:p>' in changed
