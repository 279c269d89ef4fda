"""Word documents and presentations."""

import io
import zipfile
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


@pytest.mark.parametrize(
    ("library", "name", "reader"), [("docx", "Document", WordFile), ("pptx", "Presentation", PresentationFile)]
)
def test_the_title_of_a_document_is_read(library: str, name: str, reader: Any):
    make = getattr(pytest.importorskip(library), name)
    source = make()
    if library == "pptx":
        source.slides.add_slide(source.slide_layouts[6])
    source.core_properties.title, source.core_properties.author = "Ein <Titel>", "Ein Name"
    document = reader(made.saved(source), MOST)
    assert [each.text for each in document.passages] == ["Ein <Titel>"]
    written = make(io.BytesIO(upper(document))).core_properties
    assert (written.title, written.author) == ("EIN <TITEL>", "Ein Name")


def test_properties_that_are_no_xml_stay():
    with zipfile.ZipFile(io.BytesIO(made.word())) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["docProps/core.xml"] = b"<title>"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    document = WordFile(file.getvalue(), MOST)
    assert document.passages[0].text == "title"
    with zipfile.ZipFile(io.BytesIO(upper(document))) as archive:
        assert archive.read("docProps/core.xml") == b"<title>"


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


def _word(body: str) -> WordFile:
    namespace = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    part = f"<w:document {namespace}><w:body>{body}</w:body></w:document>"
    return WordFile(made.archive({"word/document.xml": part.encode()}), MOST)


def test_text_around_a_comment_is_no_less_text():
    document = _word("<w:p><w:r><w:t>a<!--x--> b</w:t></w:r></w:p>")
    assert [each.text for each in document.passages] == ["a b"]


def test_runs_with_a_format_of_thousands_of_parts_stay():
    """It would be copied into each run of the translation."""
    long = f"<w:r><w:rPr>{'<w:b/>' * 2_000}</w:rPr><w:t>a</w:t></w:r>"
    document = _word(f"<w:p><w:r><w:t>before</w:t></w:r>{long}<w:r><w:t>after</w:t></w:r></w:p>")
    (passage,) = document.passages
    assert passage == TaggedText("beforeafter", (Tag(6, 6),))
    with zipfile.ZipFile(io.BytesIO(upper(document))) as written:
        part = written.read("word/document.xml").decode()
    assert part.index("BEFORE") < part.index(long) < part.index("AFTER")


def test_what_a_spelling_checker_found_is_not_written_again():
    document = _word('<w:p><w:r><w:rPr><w:b/><w:lang w:val="de"/></w:rPr><w:t>Fisch</w:t></w:r></w:p>')
    with zipfile.ZipFile(io.BytesIO(upper(document))) as written:
        part = written.read("word/document.xml").decode()
    assert "<w:rPr><w:b/></w:rPr>" in part
    assert "FISCH" in part
