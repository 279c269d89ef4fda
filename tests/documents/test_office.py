"""Word documents and presentations."""

import io
from typing import Any

import pytest

from heedful.documents.office import PresentationFile, WordFile
from heedful.text.tagged_text import Tag, TaggedText
from tests.documents import made

MOST = 10_000_000


def upper(document: Any) -> bytes:
    content: bytes = document.write([TaggedText(each.text.upper(), each.tags) for each in document.passages])
    return content


def runs(paragraph: Any) -> list[tuple[str, bool | None, bool | None]]:
    return [(run.text, run.font.bold, run.font.italic) for run in paragraph.runs]


def test_runs_of_a_word_document_are_tags():
    docx = pytest.importorskip("docx")
    document = WordFile(made.word(), MOST)
    assert [each.text for each in document.passages] == ["title", "a bold word and more", "after tab", "cell", "head"]
    written = docx.Document(io.BytesIO(upper(document)))
    assert runs(written.paragraphs[1]) == [
        ("A ", None, None),
        ("BOLD", True, None),
        (" WORD\n", None, None),
        ("AND MORE\tAFTER TAB", None, True),
    ]
    assert written.tables[0].cell(0, 0).text == "CELL"
    assert written.sections[0].header.paragraphs[0].text == "HEAD"


def test_a_tag_moves_with_its_words():
    docx = pytest.importorskip("docx")
    source = docx.Document()
    paragraph = source.add_paragraph("the ")
    paragraph.add_run("red").bold = True
    paragraph.add_run(" dog")
    document = WordFile(made.saved(source), MOST)
    assert document.passages == [TaggedText("the red dog", (Tag(4, 7),))]
    written = docx.Document(io.BytesIO(document.write([TaggedText("canis ruber", (Tag(6, 11),))])))
    assert runs(written.paragraphs[0]) == [("canis ", None, None), ("ruber", True, None)]


def test_what_a_spelling_checker_found_splits_no_word():
    docx = pytest.importorskip("docx")
    source = docx.Document()
    source.add_paragraph()._p.extend(
        docx.oxml.parse_xml(
            '<w:p xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:r><w:rPr>'
            '<w:lang w:val="de"/></w:rPr><w:t>Fisch</w:t></w:r><w:proofErr w:type="spellStart"/><w:r>'
            "<w:t>suppe</w:t></w:r></w:p>"
        )
    )
    assert WordFile(made.saved(source), MOST).passages == [TaggedText("Fischsuppe")]


def test_links_and_text_boxes_stay():
    docx = pytest.importorskip("docx")
    source = docx.Document()
    paragraph = source.add_paragraph("before ")
    namespace = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    paragraph._p.append(
        docx.oxml.parse_xml(f'<w:hyperlink {namespace} w:anchor="x"><w:r><w:t>link</w:t></w:r></w:hyperlink>')
    )
    paragraph.add_run()._element.append(
        docx.oxml.parse_xml(
            f"<w:pict {namespace}><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p></w:txbxContent></w:pict>"
        )
    )
    paragraph.add_run(" after")
    document = WordFile(made.saved(source), MOST)
    assert [each.text for each in document.passages] == ["before link after", "box"]
    written = upper(document)
    assert [each.text for each in WordFile(written, MOST).passages] == ["BEFORE LINK AFTER", "BOX"]
    link = docx.Document(io.BytesIO(written)).paragraphs[0].hyperlinks[0]
    assert (link.text, link.fragment) == ("LINK", "x")


def test_a_header_that_sections_share_is_read_once():
    docx = pytest.importorskip("docx")
    source = docx.Document()
    source.sections[0].header.paragraphs[0].text = "head"
    for _ in range(20):
        source.add_section()
    assert [each.text for each in WordFile(made.saved(source), MOST).passages] == ["head"]


def test_runs_of_a_presentation_are_tags():
    pptx = pytest.importorskip("pptx")
    document = PresentationFile(made.presentation(), MOST)
    assert [each.text for each in document.passages] == ["title", "a bold word", "note"]
    slide = pptx.Presentation(io.BytesIO(upper(document))).slides[0]
    assert slide.shapes.title.text == "TITLE"
    assert runs(slide.placeholders[1].text_frame.paragraphs[0]) == [
        ("A ", None, None),
        ("BOLD", True, None),
        (" WORD", None, None),
    ]
    assert slide.notes_slide.notes_text_frame.text == "NOTE"
